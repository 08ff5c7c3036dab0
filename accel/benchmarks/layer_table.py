"""Figures of layers as a table."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from accel.benchmarks.measure_layers import Row, total
from accel.compiler.expr.compulsory_cost import busiest_unit

UNKNOWN = "-"


class Column(Struct, frozen=True, kw_only=True):
    """A column. ``whole`` makes the cell of the network."""

    heading: str
    cell: Callable[[Row], str]
    whole: Callable[[Sequence[Row]], str]
    left: bool = False


def _number(heading: str, key: str, *, once: bool = False, digits: int = 0) -> Column:
    def whole(rows: Sequence[Row]) -> str:
        value = sum(row[key] for row in rows) if once else total(rows, key)
        return f"{value:,.{digits}f}"

    return Column(heading=heading, cell=lambda row: f"{row[key]:,.{digits}f}", whole=whole)


def _ratio(heading: str, dividend: str, divisor: str, form: str = ".3f") -> Column:
    def whole(rows: Sequence[Row]) -> str:
        return _quotient_text(total(rows, dividend), total(rows, divisor), form)

    return Column(
        heading=heading, cell=lambda row: _quotient_text(row[dividend], row[divisor], form), whole=whole
    )


def _quotient_text(dividend: float | None, divisor: float | None, form: str) -> str:
    return UNKNOWN if dividend is None or not divisor else format(dividend / divisor, form)


def _mode(heading: str, mode: str) -> Column:
    def whole(rows: Sequence[Row]) -> str:
        cycles = sum(row["repeats"] * row["modes"][mode]["cycles"] for row in rows)
        return _quotient_text(total(rows, "ideal_cycles"), cycles, ".3f")

    def cell(row: Row) -> str:
        return _quotient_text(row["ideal_cycles"], row["modes"][mode]["cycles"], ".3f")

    return Column(heading=heading, cell=cell, whole=whole)


def _text(heading: str, cell: Callable[[Row], str], whole: str = "") -> Column:
    return Column(heading=heading, cell=cell, whole=lambda _: whole, left=True)


def busiest_text(row: Row) -> str:
    busy = {unit: cycles["busy"] for unit, cycles in row["stalls"].items() if unit != "fetch"}
    unit, share = busiest_unit(row["cycles"], busy)
    return f"{unit} {share:.1%}"


NAME = _text("layer", lambda row: str(row["name"]), "total")
REPEATS = _number("times", "repeats", once=True)

COLUMNS = (
    NAME,
    REPEATS,
    _number("cycles", "cycles"),
    _ratio("roofline", "roofline_cycles", "cycles"),
    _mode("serial", "serial"),
    _mode("V = 1", "v1"),
    _mode("chosen V", "chosen"),
    Column(heading="V", cell=lambda row: str(row["vthreads"]), whole=lambda _: ""),
    _ratio("bytes", "moved_bytes", "compulsory_bytes", ".2f"),
    _number("instructions", "instructions"),
    _number("compile s", "compile_seconds", once=True, digits=2),
    _number("simulate s", "simulate_seconds", once=True, digits=3),
    _text("busiest unit", busiest_text),
)
"""Columns of ``accel bench``. Totals except seconds count repetitions."""


def table_lines(rows: Sequence[Row], columns: Sequence[Column] = COLUMNS) -> list[list[str]]:
    """Return a line for each layer and, without faults, for the network."""
    found = [
        [
            column.cell(row) if row["cycles"] is not None or column in (NAME, REPEATS) else UNKNOWN
            for column in columns
        ]
        for row in rows
    ]
    if all(row["cycles"] is not None for row in rows):
        found.append([column.whole(rows) for column in columns])
    return found
