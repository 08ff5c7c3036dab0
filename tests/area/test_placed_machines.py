"""Counted block RAMs and multipliers are those of the placed cores."""

import re
from pathlib import Path

import pytest

from accel.area.area_model import block_rams, multipliers
from accel.core.config import NAMED

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "resources.md"
PLACED = {
    name: (int(rams), int(products))
    for name, rams, products in re.findall(
        r"^\| `([\w-]+)` \| [\d,]+ \(\d+%\) \| [\d,]+ \(\d+%\) \| (\d+) \(\d+%\) \| (\d+) \(\d+%\) \|",
        PAGE.read_text(encoding="utf-8"),
        re.M,
    )
}


def test_the_page_lists_placed_cores() -> None:
    assert {"tiny", "ecp5", "tiny-int8", "ecp5-int8"} <= PLACED.keys()


@pytest.mark.parametrize("name", PLACED)
def test_counts_are_those_of_the_placed_core(name: str) -> None:
    assert (block_rams(NAMED[name]), multipliers(NAMED[name])) == PLACED[name]
