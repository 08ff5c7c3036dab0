"""Every bench; with ``--thorough`` on every simulator, and on every core."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cocotb.simulators import TOOLS, Model
from tests.thorough import grouped
from tests.tools import needs

BENCHES = sorted(path.stem for path in (Path(__file__).parent / "benches").glob("[!_]*.py"))


LONG = {"corners", "faults", "sequences"}
"""Benches that take Icarus ten seconds each, and run with Verilator by default; the others with Icarus."""
RUNS = [
    *(grouped("verilator wide", "verilator", "wide", bench, thorough=True) for bench in BENCHES),
    *(grouped("verilator tiny", "verilator", "tiny", bench, thorough=bench not in LONG) for bench in BENCHES),
    *(grouped("icarus tiny", "icarus", "tiny", bench, thorough=bench in LONG) for bench in BENCHES),
    *(grouped("icarus wide", "icarus", "wide", bench, thorough=True) for bench in ("corners", "resets")),
]


@pytest.mark.parametrize(("simulator", "config", "bench"), RUNS)
def test_bench(
    simulator: str, config: str, bench: str, built: Callable[[str, str], Model], tmp_path: Path
) -> None:
    needs(TOOLS[simulator])
    built(simulator, config).run(f"tests.cocotb.benches.{bench}", tmp_path)
