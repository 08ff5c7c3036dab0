"""Every bench on every simulator, and on every core between them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cocotb.simulators import TOOLS, Model
from tests.tools import needs

BENCHES = sorted(path.stem for path in (Path(__file__).parent / "benches").glob("[!_]*.py"))


LONG = {"corners", "faults", "sequences"}
"""Benches that take Icarus ten seconds each."""
RUNS = [
    pytest.param(
        simulator,
        config,
        bench,
        marks=[
            pytest.mark.xdist_group(simulator),
            *([pytest.mark.thorough] if simulator == "icarus" and bench in LONG else []),
        ],
    )
    for simulator, config in {"verilator": "wide", "icarus": "tiny"}.items()
    for bench in BENCHES
]
"""One process has all runs of a model, so that none waits while another compiles it."""


@pytest.mark.parametrize(("simulator", "config", "bench"), RUNS)
def test_bench(
    simulator: str, config: str, bench: str, built: Callable[[str, str], Model], tmp_path: Path
) -> None:
    needs(TOOLS[simulator])
    built(simulator, config).run(f"tests.cocotb.benches.{bench}", tmp_path)
