"""Every bench on every simulator."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cocotb.simulators import Model

BENCHES = sorted(path.stem for path in (Path(__file__).parent / "benches").glob("[!_]*.py"))


@pytest.mark.parametrize("bench", BENCHES)
@pytest.mark.parametrize("config", ["tiny", "wide"])
def test_bench(
    simulator: str, config: str, bench: str, built: Callable[[str, str], Model], tmp_path: Path
) -> None:
    built(simulator, config).run(f"tests.cocotb.benches.{bench}", tmp_path)
