"""Two runs on one scale."""

from collections.abc import Iterator

from accel.core.isa import Unit
from accel.core.unit_states import State
from accel.views.axis_ticks import tick_step
from accel.views.saved_run import SavedRun
from accel.views.text_timeline import state_glyphs

_DRAWN = tuple(state for state in State if state is not State.IDLE)
_WIDTH, _LABEL_WIDTH, _RIGHT_MARGIN = 1240, 84, 12
_TRACK_HEIGHT, _TRACK_GAP = 16, 4
_TEXT_LABEL_COLUMNS = 12
_MIN_TEXT_COLUMNS = 10


def paired_timelines_text(
    a: SavedRun, b: SavedRun, columns: int, *, ascii_only: bool = False
) -> Iterator[str]:
    """Return a line for each unit of either run."""
    glyphs = state_glyphs(ascii_only=ascii_only)
    cycles = max(a.cycles, b.cycles, 1)
    width = max(_MIN_TEXT_COLUMNS, columns - _TEXT_LABEL_COLUMNS)
    for unit in Unit:
        for side, run in (("A", a), ("B", b)):
            length = max(1, round(run.cycles * width / cycles))
            parts = run.states[int(unit)]
            states = [int(parts[n * len(parts) // length].argmax()) for n in range(length)]
            yield f"{unit.label:<8} {side}  " + "".join(glyphs[State(n)] for n in states)


def paired_timelines_html(a: SavedRun, b: SavedRun) -> str:
    """Return a track for each unit of either run."""
    cycles = max(a.cycles, b.cycles, 1)
    scale = (_WIDTH - _LABEL_WIDTH - _RIGHT_MARGIN) / cycles
    parts, y = [], 6
    for unit in Unit:
        parts.append(f'<text x="0" y="{y + _TRACK_HEIGHT}" font-weight="600">{unit.label}</text>')
        for side, run in (("A", a), ("B", b)):
            parts.append(f'<text class="faint" x="{_LABEL_WIDTH - 16}" y="{y + 12}">{side}</text>')
            parts += _track(run, unit, y, run.cycles * scale)
            y += _TRACK_HEIGHT + _TRACK_GAP
        y += 2 * _TRACK_GAP
    for cycle in range(0, cycles + 1, tick_step(cycles, 8)):
        x = _LABEL_WIDTH + cycle * scale
        parts.append(f'<path class="rule" d="M{x:.1f} 2V{y}"/>')
        parts.append(f'<text class="faint" x="{x:.1f}" y="{y + 14}" text-anchor="middle">{cycle:,}</text>')
    keys = "".join(f'<span class="key {s.name.lower()}"></span>{s.label} ' for s in _DRAWN)
    return (
        f'<div class="wide"><svg class="chart broad" viewBox="0 0 {_WIDTH} {y + 20}" width="{_WIDTH}" '
        f'role="img"><title>Timelines of both runs on one scale</title>{"".join(parts)}</svg></div>'
        f'<p class="keys">{keys} <span class="faint">blank:&nbsp;idle</span></p>'
    )


def _track(run: SavedRun, unit: Unit, y: int, width: float) -> Iterator[str]:
    shares = run.states[int(unit)].astype(float) / 1000
    part = width / len(shares)
    for state in _DRAWN:
        tops = _TRACK_HEIGHT * (1 - shares[:, int(state) :].sum(axis=1))
        heights = _TRACK_HEIGHT * shares[:, int(state)]
        path = "".join(
            f"M{_LABEL_WIDTH + n * part:.2f} {y + top:.2f}h{part:.2f}v{height:.2f}h{-part:.2f}z"
            for n, (top, height) in enumerate(zip(tops.tolist(), heights.tolist(), strict=True))
            if height
        )
        if path:
            yield (
                f'<path class="{state.name.lower()}" d="{path}">'
                f"<title>{unit.label}: {state.label}</title></path>"
            )
