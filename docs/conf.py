"""Sphinx: pages in Markdown, the API from docstrings, the commands from their own help."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
sys.path.insert(0, str(HERE.parent))

project = "accel"
author = "The accel authors"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "commands",
    "gallery",
    "notebooks",
    "public",
]
exclude_patterns = ["_ext", "_build"]
nitpicky = True
nitpick_ignore_regex = [("py:(class|data|attr)", ".*")]  # types in signatures, fields that stand in prose

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
autodoc_default_options = {"members": True, "show-inheritance": False}
napoleon_google_docstring = True
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = "accel"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]
