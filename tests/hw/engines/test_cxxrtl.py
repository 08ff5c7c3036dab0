"""The engine CXXRTL, whose models compute a cycle in one pass."""

from pathlib import Path

import pytest

from accel.core.config import NAMED
from accel.hw.engines import cxxrtl
from tests.thorough import also

DESIGNS = ["tiny-int8", *(also(name) for name in sorted(NAMED) if name != "tiny-int8")]


@pytest.mark.parametrize("name", DESIGNS)
def test_no_signal_depends_on_itself(name: str, tmp_path: Path) -> None:
    """CXXRTL evaluates whole signals. If a bit depended on another bit of its signal, a
    second pass would follow."""
    sources = cxxrtl._generate(NAMED[name], tmp_path, waves=False)
    assert len(sources) == 1
    assert (tmp_path / "design.cc").stat().st_size > 0
