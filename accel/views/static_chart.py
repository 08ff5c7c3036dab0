"""The pipeline chart as SVG elements, without scripts."""

from collections.abc import Iterator
from html import escape

import numpy as np
import numpy.typing as npt

from accel.core.unit_states import State
from accel.views.activity_records import InstructionSlice, StateSpan
from accel.views.analyzed_run import AnalyzedRun
from accel.views.axis_ticks import tick_step
from accel.views.pipeline_chart import (
    AXIS_HEIGHT,
    CHART_WIDTH,
    GUTTER,
    INSTRUCTION_KINDS,
    LEGEND_HEIGHT,
    OVERVIEW_HEIGHT,
    RIGHT_MARGIN,
    STATE_BAND_HEIGHT,
    Track,
    chart_height,
    instruction_kind,
    tracks,
)
from accel.views.run_verdict import stop_reason
from accel.views.state_shares import state_shares

_TOP = OVERVIEW_HEIGHT + AXIS_HEIGHT
_PLOT_WIDTH = CHART_WIDTH - GUTTER - RIGHT_MARGIN
_MIN_BAR_PIXELS = 4
"""Average width of an instruction below which a track shows shares of states."""
_SHARE_PIXELS = 3
_MAX_ARROWS = 150
_LETTER_PIXELS = 6.1
_MAX_TICKS = 10


def static_elements(run: AnalyzedRun) -> str:
    return "\n".join(_elements(run))


def _x(run: AnalyzedRun, cycle: float) -> float:
    return GUTTER + cycle / max(1, run.activity.cycles) * _PLOT_WIDTH


def _elements(run: AnalyzedRun) -> Iterator[str]:
    every = tracks(run.activity)
    cycles = run.activity.cycles
    bottom = _TOP + every[-1].bottom
    yield f'<rect class="ground" width="{CHART_WIDTH}" height="{chart_height(run.activity)}"/>'
    for cycle in range(0, cycles + 1, tick_step(cycles, _MAX_TICKS)):
        x = _x(run, cycle)
        yield f'<path class="rule" d="M{x:.1f} {_TOP - 5}V{bottom}"/>'
        yield f'<text class="faint" x="{x:.1f}" y="{_TOP - 9}" text-anchor="middle">{cycle:,}</text>'
    yield f'<text class="faint" x="4" y="{_TOP - 9}">cycle</text>'
    for track in every:
        yield from _track(run, track)
    yield from _arrows(run, every)
    if reason := stop_reason(run):
        x = _x(run, cycles)
        yield f'<path class="stop" d="M{x:.1f} {_TOP - 5}V{bottom}"/>'
        yield f'<text class="stop" x="{x:.1f}" y="{bottom + 9}" text-anchor="end">{escape(reason)}</text>'


def _track(run: AnalyzedRun, track: Track) -> Iterator[str]:
    top, rows_height = _TOP + track.top, track.rows * track.row_height
    height = rows_height + STATE_BAND_HEIGHT
    yield f'<rect class="track" x="{GUTTER}" y="{top}" width="{_PLOT_WIDTH}" height="{height}"/>'
    middle = top + max(STATE_BAND_HEIGHT, rows_height / 2 + 4)
    yield f'<text class="unit" x="4" y="{middle:.1f}">{track.unit.label}</text>'
    spans = run.activity.spans[track.unit]
    if not _has_bars(run, track):
        yield from _share_paths(run, spans, top, height - 1)
        return
    for one in run.activity.slices:
        if one.unit is track.unit:
            yield from _bar(run, track, one)
    if len(spans) > _PLOT_WIDTH / 2:
        yield from _share_paths(run, spans, top + rows_height, STATE_BAND_HEIGHT - 1)
        return
    for span in spans:
        if span.state is not State.IDLE:
            x, end = _x(run, span.start), _x(run, span.stop)
            yield (
                f'<rect class="{span.state.name.lower()}" x="{x:.1f}" y="{top + rows_height}" '
                f'width="{end - x:.1f}" height="{STATE_BAND_HEIGHT - 1}"/>'
            )


def _has_bars(run: AnalyzedRun, track: Track) -> bool:
    count = sum(one.unit is track.unit for one in run.activity.slices)
    return bool(track.rows) and count <= _PLOT_WIDTH / _MIN_BAR_PIXELS


def _row_top(track: Track, one: InstructionSlice) -> float:
    return _TOP + track.top + min(one.row, track.rows - 1) * track.row_height


def _bar(run: AnalyzedRun, track: Track, one: InstructionSlice) -> Iterator[str]:
    """Pale in flight, strong where data moves."""
    y, height = _row_top(track, one), track.row_height - 2
    start, stop, work_start, work_stop = (
        _x(run, cycle) for cycle in (one.start, one.stop, one.work_start, one.work_stop)
    )
    style = instruction_kind(run.instructions[one.instruction])
    name = run.names[one.instruction]

    def rect(css: str, left: float, right: float, min_width: float) -> str:
        width = max(min_width, right - left)
        return f'<rect class="{css}" x="{left:.1f}" y="{y}" width="{width:.1f}" height="{height}"/>'

    yield f"<g><title>#{one.instruction} {escape(name)}: cycles {one.start:,}–{one.stop - 1:,}</title>"  # noqa: RUF001
    yield rect(f"stay {style}", start, stop, 0.8)
    if work_stop > work_start:
        yield rect(style, work_start, work_stop, 0.5)
    if work_stop - work_start >= (stop - start) / 2:
        left, right = work_start, work_stop
    else:
        left, right = max((start, work_start), (work_stop, stop), key=lambda gap: gap[1] - gap[0])
    letters = int((right - left - 6) / _LETTER_PIXELS)
    if text := _fitting(name, letters, is_transfer=style == "transfer"):
        css = "label dark" if left == work_start and work_stop > work_start else "label"
        yield f'<text class="{css}" x="{left + 3:.1f}" y="{y + height / 2 + 3.5:.1f}">{escape(text)}</text>'
    yield "</g>"


def _fitting(name: str, letters: int, *, is_transfer: bool) -> str:
    if letters < 4:
        return ""
    if len(name) <= letters:
        return name
    tile = name.partition(" ")[2]
    return tile if is_transfer and tile and len(tile) <= letters else name[: letters - 1] + "…"


def _share_paths(run: AnalyzedRun, spans: list[StateSpan], top: float, height: float) -> Iterator[str]:
    count = _PLOT_WIDTH // _SHARE_PIXELS
    parts = state_shares(spans, 0, run.activity.cycles, count) * height
    base = np.zeros(count)
    for state in (State.BUSY, State.MEMORY, State.TOKEN):
        base += parts[:, state]
        path = _steps(top + height - base, parts[:, state])
        yield f'<path class="{state.name.lower()}" d="{path}"/>'


def _steps(tops: npt.NDArray[np.float64], heights: npt.NDArray[np.float64]) -> str:
    width = _PLOT_WIDTH / len(tops)
    return "".join(
        f"M{GUTTER + n * width:.1f} {y:.1f}h{width:.1f}v{high:.1f}h{-width:.1f}z"
        for n, (y, high) in enumerate(zip(tops.tolist(), heights.tolist(), strict=True))
        if high > 0
    )


def _arrows(run: AnalyzedRun, every: list[Track]) -> Iterator[str]:
    flows = run.activity.flows
    if len(flows) > _MAX_ARROWS or not all(_has_bars(run, track) for track in every[1:]):
        return
    slices = {one.instruction: one for one in run.activity.slices}
    track_of = {track.unit: track for track in every}
    for flow in flows:
        source, target = slices[flow.source], slices[flow.target]
        x1, x2 = _x(run, source.stop), _x(run, target.start)
        y1, y2 = (
            _row_top(track_of[one.unit], one) + track_of[one.unit].row_height / 2 for one in (source, target)
        )
        bend = min(40.0, abs(x2 - x1) / 2 + 6)
        style = flow.counter.kind
        yield (
            f'<path class="arrow {style}" d="M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1:.1f} '
            f'{x2 - bend:.1f} {y2:.1f} {x2 - 5:.1f} {y2:.1f}"/>'
            f'<path class="head {style}" d="M{x2:.1f} {y2:.1f}l-6 -3v6z"/>'
        )


def legend(run: AnalyzedRun) -> str:
    """Return the legend of colours and arrows."""
    y = chart_height(run.activity) - LEGEND_HEIGHT + 12
    every = tracks(run.activity)
    with_bars = {track.unit for track in every if _has_bars(run, track)}
    drawn = {
        instruction_kind(run.instructions[one.instruction])
        for one in run.activity.slices
        if one.unit in with_bars
    }
    kinds = {style: text for style, text in INSTRUCTION_KINDS.items() if style in drawn}
    states = {state.name.lower(): state.label for state in State if state is not State.IDLE}
    tokens = {flow.counter.kind for flow in run.activity.flows} if any(_arrows(run, every)) else set()
    parts, x = [], float(GUTTER)
    for style, text in (kinds | states).items():
        parts.append(f'<rect class="{style}" x="{x:.0f}" y="{y}" width="11" height="11"/>')
        parts.append(f'<text x="{x + 16:.0f}" y="{y + 9.5}">{escape(text)}</text>')
        x += 32 + _LETTER_PIXELS * len(text)
    for style in ("RAW", "WAR"):
        if style in tokens:
            text = f"{style} token"
            parts.append(f'<path class="arrow {style}" d="M{x:.0f} {y + 6}h22"/>')
            parts.append(f'<path class="head {style}" d="M{x + 28:.0f} {y + 6}l-6 -3v6z"/>')
            parts.append(f'<text x="{x + 34:.0f}" y="{y + 9.5}">{text}</text>')
            x += 48 + _LETTER_PIXELS * len(text)
    return "".join(parts)
