"""All benches: short ones on Icarus, and with ``--thorough`` all on every simulator and core."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cocotb.simulators import TOOLS, Model
from tests.thorough import grouped
from tests.tools import needs

BENCHES = sorted(path.stem for path in (Path(__file__).parent / "benches").glob("[!_]*.py"))


LONG = {"corners", "faults", "sequences", "stops"}
"""Benches that take three to ten seconds each on Icarus. tests/lockstep/test_errors.py stops runs, too."""
RUNS = [
    *(grouped("verilator wide", "verilator", "wide", bench, thorough=True) for bench in BENCHES),
    *(grouped("verilator tiny", "verilator", "tiny", bench, thorough=True) for bench in BENCHES),
    *(grouped("icarus tiny", "icarus", "tiny", bench, thorough=bench in LONG) for bench in BENCHES),
    *(grouped("icarus wide", "icarus", "wide", bench, thorough=True) for bench in ("corners", "resets")),
]


@pytest.mark.parametrize(("simulator", "config", "bench"), RUNS)
def test_bench(
    simulator: str, config: str, bench: str, built: Callable[[str, str], Model], tmp_path: Path
) -> None:
    needs(TOOLS[simulator])
    built(simulator, config).run(f"tests.cocotb.benches.{bench}", tmp_path)
