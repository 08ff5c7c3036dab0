"""Every bench on every simulator, and on every core."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cocotb.simulators import TOOLS, Model
from tests.tools import needs

BENCHES = sorted(path.stem for path in (Path(__file__).parent / "benches").glob("[!_]*.py"))


RUNS = [
    *(("verilator", config, bench) for bench in BENCHES for config in ("tiny", "wide")),
    *(("icarus", "wide" if bench in {"corners", "resets"} else "tiny", bench) for bench in BENCHES),
]
"""Icarus takes long: each bench runs there on one of the cores."""


@pytest.mark.parametrize(("simulator", "config", "bench"), RUNS)
def test_bench(
    simulator: str, config: str, bench: str, built: Callable[[str, str], Model], tmp_path: Path
) -> None:
    needs(TOOLS[simulator])
    built(simulator, config).run(f"tests.cocotb.benches.{bench}", tmp_path)
