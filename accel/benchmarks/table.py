"""The figures of layers as the cells of a table, each layer in a row and the network in the last one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from accel.benchmarks.layers import Row, total

UNKNOWN = "-"
"""In place of a figure that there is not."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A heading, the cell of a layer, and that of the network, of whose layers all have figures."""

    heading: str
    cell: Callable[[Row], str]
    whole: Callable[[Sequence[Row]], str]
    left: bool = False


def _number(heading: str, key: str, *, once: bool = False, digits: int = 0) -> Column:
    """A figure that is summed up; ``once``: each layer counts once, however often it occurs."""

    def whole(rows: Sequence[Row]) -> str:
        value = sum(row[key] for row in rows) if once else total(rows, key)
        return f"{value:,.{digits}f}"

    return Column(heading=heading, cell=lambda row: f"{row[key]:,.{digits}f}", whole=whole)


def _ratio(heading: str, over: str, under: str, form: str = ".3f") -> Column:
    """One figure over another."""

    def whole(rows: Sequence[Row]) -> str:
        return _divided(total(rows, over), total(rows, under), form)

    return Column(heading=heading, cell=lambda row: _divided(row[over], row[under], form), whole=whole)


def _divided(over: float | None, under: float | None, form: str) -> str:
    return UNKNOWN if over is None or not under else format(over / under, form)


def _mode(heading: str, mode: str) -> Column:
    """The GEMM core's utilization in a mode."""

    def whole(rows: Sequence[Row]) -> str:
        cycles = sum(row["repeats"] * row["modes"][mode]["cycles"] for row in rows)
        return _divided(total(rows, "ideal_cycles"), cycles, ".3f")

    def cell(row: Row) -> str:
        return _divided(row["ideal_cycles"], row["modes"][mode]["cycles"], ".3f")

    return Column(heading=heading, cell=cell, whole=whole)


def _text(heading: str, cell: Callable[[Row], str], whole: str = "") -> Column:
    return Column(heading=heading, cell=cell, whole=lambda _: whole, left=True)


def bound_text(row: Row) -> str:
    """What bounds a layer, and the share of its cycles in which the busiest unit is at work."""
    busy = {unit: cycles["busy"] / row["cycles"] for unit, cycles in row["stalls"].items()}
    del busy["fetch"]
    unit = max(busy, key=lambda one: busy[one])
    share = f"{busy[unit]:.1%}"
    return f"{row['bound_by']} {share}" if row["bound_by"] != "latency" else f"latency ({unit} {share})"


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
    _text("bound by", bound_text),
)
"""What ``accel bench`` shows. Of the total, all but the seconds count each layer as often as it occurs."""


def lines(rows: Sequence[Row], columns: Sequence[Column] = COLUMNS) -> list[list[str]]:
    """The cells of the layers, and of the network if it is whole; a layer at fault has nothing but a name."""
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
