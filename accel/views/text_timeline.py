"""The pipeline chart as text."""

from collections.abc import Iterator, Mapping
from textwrap import wrap

from accel.core.isa import Unit
from accel.core.unit_states import State
from accel.views.activity_records import InstructionSlice
from accel.views.analyzed_run import AnalyzedRun
from accel.views.axis_ticks import tick_step
from accel.views.state_shares import state_shares

_GLYPHS = {State.BUSY: "█", State.MEMORY: "▒", State.TOKEN: "·", State.IDLE: " "}
_ASCII_GLYPHS = {State.BUSY: "#", State.MEMORY: "m", State.TOKEN: ".", State.IDLE: " "}
_WAITING_GLYPHS = {"█": "─", "#": "-"}
"""Glyph of an instruction in flight without moving data, by that of a busy cycle."""
_GUTTER = 9
_MIN_COLUMNS = 40
_TICK_COLUMNS = 14
MOST_ROWS = 48
"""A longer program is shown by units only."""


def state_glyphs(*, ascii_only: bool) -> Mapping[State, str]:
    return _ASCII_GLYPHS if ascii_only else _GLYPHS


def timeline_text(
    run: AnalyzedRun, *, columns: int = 100, ascii_only: bool = False, window: range | None = None
) -> str:
    """Return a line for each unit, and without ``window`` for instructions of a short program."""
    lines = _lines(run, max(columns, _MIN_COLUMNS), state_glyphs(ascii_only=ascii_only), window)
    return "".join(line.rstrip() + "\n" for line in lines)


def middle_window(run: AnalyzedRun, cycles: int) -> range:
    """Return ``cycles`` around the store unit's transfer nearest to the run's middle."""
    total = max(1, run.activity.cycles)
    busy = [span for span in run.activity.spans[Unit.STORE] if span.state is State.BUSY]
    begins = [span.start for span in busy] or [total // 2]
    middle = min(begins, key=lambda begin: abs(begin - total // 2))
    start = max(0, min(middle - cycles // 2, total - cycles))
    return range(start, min(total, start + cycles))


def _lines(
    run: AnalyzedRun, columns: int, glyphs: Mapping[State, str], window: range | None
) -> Iterator[str]:
    width = columns - _GUTTER
    indent = " " * _GUTTER
    start, stop = (0, max(1, run.activity.cycles)) if window is None else (window.start, window.stop)
    cycles = stop - start
    yield _axis(start, cycles, width)
    for unit in Unit:
        shares = state_shares(run.activity.spans[unit], start, stop, width)
        yield f"{unit.label:<{_GUTTER}}" + "".join(glyphs[State(n)] for n in shares.argmax(axis=1).tolist())
    keys = {glyphs[state]: state.label for state in State if state is not State.IDLE}
    yield indent + "   ".join(f"{glyph} {label}" for glyph, label in keys.items())
    per_column = f"{cycles / width:,.0f} cycles" if cycles >= 2 * width else "about a cycle"
    yield f"{indent}a column is {per_column} and shows its most frequent state"
    if run.result.error is not None:
        yield from (indent + line for line in wrap(f"the run stops here: {run.result.error}", width))
    if window is not None or len(run.activity.slices) > MOST_ROWS:
        return
    yield ""
    for one in sorted(run.activity.slices, key=lambda s: s.instruction):
        yield f"{one.unit.label:<{_GUTTER}}" + _row(run, one, width, glyphs[State.BUSY])


def _axis(start: int, cycles: int, width: int) -> str:
    step = tick_step(cycles, max(2, width // _TICK_COLUMNS))
    line = [" "] * (width + _GUTTER)
    for cycle in range(-(-start // step) * step, start + cycles + 1, step):
        text = f"{cycle:,}"
        column = _GUTTER + (cycle - start) * width // cycles
        if column + len(text) <= len(line):
            line[column : column + len(text)] = text
    return "cycle".ljust(_GUTTER) + "".join(line[_GUTTER:])


def _row(run: AnalyzedRun, one: InstructionSlice, width: int, busy_glyph: str) -> str:
    def column(cycle: int) -> int:
        return min(width, cycle * width // max(1, run.activity.cycles))

    first, last = column(one.start), max(column(one.start) + 1, column(one.stop))
    work_first = column(one.work_start)
    work_last = max(column(one.work_stop), work_first + (one.work_start < one.work_stop))
    bar = "".join(
        busy_glyph if work_first <= n < work_last else _WAITING_GLYPHS[busy_glyph] for n in range(first, last)
    )
    name = f"{one.instruction} {run.names[one.instruction]}"
    free = width - last - 1
    if len(name) <= free or width - last >= first:
        short = name if len(name) <= free else name[: max(0, free - 3)] + "..."
        return " " * first + bar + " " + short
    short = name if len(name) < first else name[: max(0, first - 4)] + "..."
    return f"{short:>{first - 1}} {bar}"
