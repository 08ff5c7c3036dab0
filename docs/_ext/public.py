"""References by the place where something is defined lead to its public name, by which the pages present it.

Docstrings refer to ``accel.run.program.Program``, which their readers have in front of them; the pages
describe ``accel.Program``, so that the places inside may change without them.
"""

import importlib
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

PUBLIC = ("accel", "accel.te", "accel.views", "accel.sweeps", "accel.assembly", "accel.core.isa")
"""Modules whose ``__all__`` names what is public; the first that names something wins."""


def public_names() -> dict[str, str]:
    """Public names by the places where they are defined."""
    found: dict[str, str] = {}
    for module_name in PUBLIC:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            thing = getattr(module, name)
            place, qualified = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
            if place and qualified:
                found.setdefault(f"{place}.{qualified}", f"{module_name}.{name}")
    return found


NAMES = public_names()


def resolve(app: Sphinx, environment: BuildEnvironment, node: pending_xref, content: nodes.Element) -> Any:
    """Called by Sphinx for a reference that leads nowhere: try it by the public name."""
    if node.get("refdomain") != "py":
        return None
    domain = environment.get_domain("py")
    inner = node["reftarget"]
    rest = ""
    while inner not in NAMES and "." in inner:
        inner, _, last = inner.rpartition(".")
        rest = f".{last}{rest}"
    if inner in NAMES:
        target = NAMES[inner] + rest
    else:  # a neighbour by its bare name; it stands on a page by another path
        target = node["reftarget"]
        node["refspecific"] = True
    return domain.resolve_xref(
        environment, node["refdoc"], app.builder, node["reftype"], target, node, content
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True}
