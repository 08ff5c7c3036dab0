"""Monitors see violations that occur in a simulator."""

from collections.abc import Callable
from pathlib import Path

from tests.cocotb.simulators import Model
from tests.tools import needs


def test_violations_around_a_running_core_are_seen(
    built: Callable[[str, str], Model], tmp_path: Path
) -> None:
    """It runs on Icarus, which compiles models quickly."""
    needs("iverilog")
    built("icarus", "flipped-tiny").run("tests.cocotb.planted", tmp_path)
