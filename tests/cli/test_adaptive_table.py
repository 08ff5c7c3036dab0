"""Tables that fit the terminal."""

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from accel.cli.adaptive_table import Column, adaptive_table, shorten
from tests.strategies import examples

NAMES = ["image_QuantizeLinear", "conv1"]


def lines(columns: list[Column], width: int | None) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width or 10_000).print(adaptive_table(columns, width))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def columns() -> list[Column]:
    return [
        Column(heading="layer", cells=NAMES, is_text=True, is_name=True),
        Column(heading="multiply accumulates", cells=["1,000", "78,400"], least=1),
        Column(heading="mapping", cells=["plain", "windows"], least=2, is_text=True),
        Column(heading="cycles", cells=["12", "1,338"]),
    ]


def test_a_wide_table_has_everything() -> None:
    first, *rest = lines(columns(), None)
    assert first.split() == ["layer", "multiply", "accumulates", "mapping", "cycles"]
    assert rest == [
        "image_QuantizeLinear                 1,000  plain        12",
        "conv1                               78,400  windows   1,338",
    ]


def test_names_are_shortened_before_columns_are_dropped() -> None:
    found = lines(columns(), 44)
    assert found[2].startswith("image_Q…Linear ")
    assert "windows" in found[3]
    assert all(len(line) <= 44 for line in found)


def test_dropped_columns_are_named() -> None:
    found = lines(columns(), 24)
    assert found[0].split() == ["layer", "cycles"]
    assert found[2].split() == ["conv1", "1,338"]
    assert " ".join(found[3:]) == "left out for want of width: multiply accumulates, mapping"


@examples(100)
@given(st.text(alphabet="abc_", max_size=40), st.integers(3, 30))
def test_shortened_texts_keep_both_ends(text: str, width: int) -> None:
    found = shorten(text, width)
    assert len(found) == min(len(text), width)
    if len(text) > width:
        head, tail = found.split("…")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert abs(len(head) - len(tail)) <= 1
