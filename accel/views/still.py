"""The pipeline chart of a whole run as SVG, for viewers that run no scripts."""

from collections.abc import Iterator
from html import escape

import numpy as np
import numpy.typing as npt

from accel.views.bins import shares
from accel.views.chart import (
    AXIS,
    GUTTER,
    KINDS,
    LEGEND,
    OVERVIEW,
    RIGHT,
    STRIP,
    WIDTH,
    Lane,
    height,
    kind,
    lanes,
)
from accel.views.scene import Scene
from accel.views.states import Slice, Span, State
from accel.views.verdict import stopped

_TOP = OVERVIEW + AXIS
_PLOT = WIDTH - GUTTER - RIGHT
_BAR = 4
"""Pixels that an instruction takes on average, below which shares of states are shown."""
_BIN = 3
_MOST_ARROWS = 150
_LETTER = 6.1
"""Pixels of a letter of a label, about."""
_TICKS = 10


def still(scene: Scene) -> str:
    """The picture's elements."""
    return "\n".join(_elements(scene))


def tick_step(cycles: float, ticks: int) -> int:
    """The smallest of 1, 2, 5, 10, 20, ... that makes at most ``ticks`` steps."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if cycles <= factor * power * ticks:
                return factor * power
        power *= 10


def _x(scene: Scene, cycle: float) -> float:
    return GUTTER + cycle / max(1, scene.seen.cycles) * _PLOT


def _elements(scene: Scene) -> Iterator[str]:
    every = lanes(scene.seen)
    bottom = _TOP + every[-1].bottom
    yield f'<rect class="ground" width="{WIDTH}" height="{height(scene.seen)}"/>'
    step = tick_step(scene.seen.cycles, _TICKS)
    for cycle in range(0, scene.seen.cycles + 1, step):
        x = _x(scene, cycle)
        yield f'<path class="rule" d="M{x:.1f} {_TOP - 5}V{bottom}"/>'
        yield f'<text class="faint" x="{x:.1f}" y="{_TOP - 9}" text-anchor="middle">{cycle:,}</text>'
    yield f'<text class="faint" x="4" y="{_TOP - 9}">cycle</text>'
    detailed = [list(_lane(scene, lane)) for lane in every]
    for elements in detailed:
        yield from elements
    yield from _arrows(scene, every)
    if why := stopped(scene):
        x = _x(scene, scene.seen.cycles)
        yield f'<path class="stop" d="M{x:.1f} {_TOP - 5}V{bottom}"/>'
        yield f'<text class="stop" x="{x:.1f}" y="{bottom + 9}" text-anchor="end">{escape(why)}</text>'


def _lane(scene: Scene, lane: Lane) -> Iterator[str]:
    top, tall = _TOP + lane.top, lane.rows * lane.row_height
    yield f'<rect class="lane" x="{GUTTER}" y="{top}" width="{_PLOT}" height="{tall + STRIP}"/>'
    yield f'<text class="unit" x="4" y="{top + max(STRIP, tall / 2 + 4):.1f}">{lane.unit.label}</text>'
    spans = scene.seen.spans[lane.unit]
    if not _has_bars(scene, lane):
        yield from _shares(scene, spans, top, tall + STRIP - 1)
        return
    for one in scene.seen.slices:
        if one.unit is lane.unit:
            yield from _bar(scene, lane, one)
    if len(spans) > _PLOT / 2:
        yield from _shares(scene, spans, top + tall, STRIP - 1)
        return
    for span in spans:
        if span.state is not State.IDLE:
            x, end = _x(scene, span.start), _x(scene, span.stop)
            yield (
                f'<rect class="{span.state.name.lower()}" x="{x:.1f}" y="{top + tall}" '
                f'width="{end - x:.1f}" height="{STRIP - 1}"/>'
            )


def _has_bars(scene: Scene, lane: Lane) -> bool:
    count = sum(one.unit is lane.unit for one in scene.seen.slices)
    return bool(lane.rows) and count <= _PLOT / _BAR


def _row(lane: Lane, one: Slice) -> float:
    return _TOP + lane.top + min(one.row, lane.rows - 1) * lane.row_height


def _bar(scene: Scene, lane: Lane, one: Slice) -> Iterator[str]:
    y, high = _row(lane, one), lane.row_height - 2
    a, b, c, d = (_x(scene, cycle) for cycle in (one.start, one.stop, one.begin, one.end))
    colour = kind(scene.instructions[one.instruction])
    name = scene.names[one.instruction]
    yield f"<g><title>#{one.instruction} {escape(name)}: cycles {one.start:,}–{one.stop - 1:,}</title>"  # noqa: RUF001
    yield f'<rect class="stay {colour}" x="{a:.1f}" y="{y}" width="{max(0.8, b - a):.1f}" height="{high}"/>'
    if d > c:
        yield f'<rect class="{colour}" x="{c:.1f}" y="{y}" width="{max(0.5, d - c):.1f}" height="{high}"/>'
    left, right = (c, d) if d - c >= (b - a) / 2 else max((a, c), (d, b), key=lambda gap: gap[1] - gap[0])
    fit = int((right - left - 6) / _LETTER)
    if text := _fitting(name, fit, whole=colour != "transfer"):
        style = "label dark" if left == c and d > c else "label"
        yield f'<text class="{style}" x="{left + 3:.1f}" y="{y + high / 2 + 3.5:.1f}">{escape(text)}</text>'
    yield "</g>"


def _fitting(name: str, letters: int, *, whole: bool) -> str:
    """As much of a name as fits: all of it, of a transfer what it moves, or what it begins with."""
    if letters < 4:
        return ""
    if len(name) <= letters:
        return name
    work = name.partition(" ")[2]
    return work if not whole and work and len(work) <= letters else name[: letters - 1] + "…"


def _shares(scene: Scene, spans: list[Span], top: float, tall: float) -> Iterator[str]:
    count = _PLOT // _BIN
    parts = shares(spans, 0, scene.seen.cycles, count) * tall
    base = np.zeros(count)
    for state in (State.BUSY, State.MEMORY, State.TOKEN):
        high = parts[:, state]
        base += high
        yield f'<path class="{state.name.lower()}" d="{_steps(top + tall - base, high)}"/>'


def _steps(tops: npt.NDArray[np.float64], heights: npt.NDArray[np.float64]) -> str:
    width = _PLOT / len(tops)
    return "".join(
        f"M{GUTTER + n * width:.1f} {y:.1f}h{width:.1f}v{high:.1f}h{-width:.1f}z"
        for n, (y, high) in enumerate(zip(tops.tolist(), heights.tolist(), strict=True))
        if high > 0
    )


def _arrows(scene: Scene, every: list[Lane]) -> Iterator[str]:
    if len(scene.seen.flows) > _MOST_ARROWS or not all(_has_bars(scene, lane) for lane in every[1:]):
        return
    place = {one.instruction: one for one in scene.seen.slices}
    lane_of = {lane.unit: lane for lane in every}
    for flow in scene.seen.flows:
        one, two = place[flow.source], place[flow.target]
        x1, x2 = _x(scene, one.stop), _x(scene, two.start)
        y1, y2 = (_row(lane_of[n.unit], n) + lane_of[n.unit].row_height / 2 for n in (one, two))
        bend = min(40.0, abs(x2 - x1) / 2 + 6)
        style = flow.counter.kind
        yield (
            f'<path class="arrow {style}" d="M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1:.1f} '
            f'{x2 - bend:.1f} {y2:.1f} {x2 - 5:.1f} {y2:.1f}"/>'
            f'<path class="head {style}" d="M{x2:.1f} {y2:.1f}l-6 -3v6z"/>'
        )


def legend(scene: Scene) -> str:
    """What the colours and arrows that appear mean."""
    y = height(scene.seen) - LEGEND + 12
    every = lanes(scene.seen)
    barred = {lane.unit for lane in every if _has_bars(scene, lane)}
    drawn = {kind(scene.instructions[one.instruction]) for one in scene.seen.slices if one.unit in barred}
    kinds = {style: text for style, text in KINDS.items() if style in drawn}
    states = {state.name.lower(): state.label for state in State if state is not State.IDLE}
    tokens = {flow.counter.kind for flow in scene.seen.flows} if any(_arrows(scene, every)) else set()
    parts, x = [], float(GUTTER)
    for style, text in (kinds | states).items():
        parts.append(f'<rect class="{style}" x="{x:.0f}" y="{y}" width="11" height="11"/>')
        parts.append(f'<text x="{x + 16:.0f}" y="{y + 9.5}">{escape(text)}</text>')
        x += 32 + _LETTER * len(text)
    for style, text in ((style, f"{style} token") for style in ("RAW", "WAR") if style in tokens):
        parts.append(f'<path class="arrow {style}" d="M{x:.0f} {y + 6}h22"/>')
        parts.append(f'<path class="head {style}" d="M{x + 28:.0f} {y + 6}l-6 -3v6z"/>')
        parts.append(f'<text x="{x + 34:.0f}" y="{y + 9.5}">{text}</text>')
        x += 48 + _LETTER * len(text)
    return "".join(parts)
