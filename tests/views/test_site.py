"""The documentation's tables of networks fit the screen of a laptop."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NARROWEST = 1366

_CLIPPED = """[...document.querySelectorAll('.table-wrapper')].filter(
    e => e.scrollWidth > e.clientWidth + 1 || e.getBoundingClientRect().right > innerWidth).length"""
_BROKEN = """[...document.querySelectorAll('td:nth-child(2)')].filter(
    e => e.getBoundingClientRect().height > 30).length"""


@pytest.mark.browser
def test_tables_of_networks_fit(tmp_path: Path, opened: Callable[..., Any]) -> None:
    settings = ("extensions=myst_parser", "root_doc=mobilenet")
    options = [word for setting in settings for word in ("-D", setting)]
    command = [sys.executable, "-m", "sphinx", "-Q", "-c", str(DOCS), *options]
    subprocess.run([*command, str(DOCS / "reference" / "networks"), str(tmp_path)], check=True)
    for name in ("mobilenet", "resnet18", "gemm"):
        page = opened(tmp_path / f"{name}.html", width=NARROWEST)
        assert page.locator("table tbody tr").count() > 3
        assert page.evaluate(_CLIPPED) == 0, name
        assert page.evaluate(_BROKEN) == 0, name
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROWEST
