"""The pipeline chart as text."""

from collections.abc import Iterator
from textwrap import wrap

from accel.core.isa import Unit
from accel.views.bins import shares
from accel.views.scene import Scene
from accel.views.states import Slice, State
from accel.views.still import tick_step

_GLYPHS = {State.BUSY: "█", State.MEMORY: "▒", State.TOKEN: "·", State.IDLE: " "}
_ASCII = {State.BUSY: "#", State.MEMORY: "m", State.TOKEN: ".", State.IDLE: " "}
_STAY = {"█": "─", "#": "-"}
"""Where an instruction is in its unit, but nothing moves, by the glyph for what moves."""
_GUTTER = 9
_TICK_COLUMNS = 14
MOST_ROWS = 48
"""A program of more instructions is shown by units only."""


def timeline_text(scene: Scene, *, columns: int = 100, ascii_only: bool = False) -> str:
    """A line for each unit, and in short programs one for each instruction.

    Args:
        scene: the run.
        columns: of the whole picture.
        ascii_only: draw with letters and signs that every terminal has.
    """
    return "".join(line.rstrip() + "\n" for line in _lines(scene, max(columns, 40), ascii_only))


def _lines(scene: Scene, columns: int, ascii_only: bool) -> Iterator[str]:
    glyphs = _ASCII if ascii_only else _GLYPHS
    width = columns - _GUTTER
    cycles = max(1, scene.seen.cycles)
    yield from _axis(cycles, width)
    for unit in Unit:
        parts = shares(scene.seen.spans[unit], 0, cycles, width)
        yield f"{unit.label:<{_GUTTER}}" + "".join(glyphs[State(n)] for n in parts.argmax(axis=1).tolist())
    keys = {glyphs[s]: s.label for s in State if s is not State.IDLE}
    per_column = f"{cycles / width:,.0f} cycles" if cycles >= 2 * width else "about a cycle"
    yield " " * _GUTTER + "   ".join(f"{glyph} {label}" for glyph, label in keys.items())
    yield " " * _GUTTER + f"a column is {per_column} and shows what takes most of it"
    if scene.result.error is not None:
        told = f"the run stops here: {scene.result.error}"
        yield from (" " * _GUTTER + line for line in wrap(told, width))
    if len(scene.seen.slices) > MOST_ROWS:
        return
    yield ""
    for one in sorted(scene.seen.slices, key=lambda s: s.instruction):
        yield f"{one.unit.label:<{_GUTTER}}" + _row(scene, one, width, glyphs[State.BUSY])


def _axis(cycles: int, width: int) -> Iterator[str]:
    step = tick_step(cycles, max(2, width // _TICK_COLUMNS))
    numbers = [" "] * (width + _GUTTER)
    for cycle in range(0, cycles + 1, step):
        text = f"{cycle:,}"
        column = _GUTTER + cycle * width // cycles
        if column + len(text) <= len(numbers):
            numbers[column : column + len(text)] = text
    yield "cycle".ljust(_GUTTER) + "".join(numbers[_GUTTER:])


def _row(scene: Scene, one: Slice, width: int, full: str) -> str:
    """An instruction as a bar, and its name where there is room beside it."""

    def column(cycle: int) -> int:
        return min(width, cycle * width // max(1, scene.seen.cycles))

    first, last = column(one.start), max(column(one.start) + 1, column(one.stop))
    begin, end = column(one.begin), column(one.end)
    bar = "".join(
        full if begin <= n < max(end, begin + (one.begin < one.end)) else _STAY[full]
        for n in range(first, last)
    )
    name = f"{one.instruction} {scene.names[one.instruction]}"
    if last + 1 + len(name) <= width or width - last >= first:
        room = width - last - 1
        short = name if len(name) <= room else name[: max(0, room - 3)] + "..."
        return " " * first + bar + " " + short
    short = name if len(name) < first else name[: max(0, first - 4)] + "..."
    return f"{short:>{first - 1}} {bar}"
