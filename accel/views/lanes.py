"""The units of two runs one above the other on one scale, as text and as a picture."""

from collections.abc import Iterator

from accel.core.isa import Unit
from accel.views.saved import SavedRun
from accel.views.states import State
from accel.views.still import tick_step

_GLYPHS = {State.BUSY: "█", State.MEMORY: "▒", State.TOKEN: "·", State.IDLE: " "}
_ASCII = {State.BUSY: "#", State.MEMORY: "m", State.TOKEN: ".", State.IDLE: " "}
_DRAWN = tuple(state for state in State if state is not State.IDLE)
_WIDTH, _LABEL, _LANE, _GAP = 1240, 84, 16, 4


def lanes_text(a: SavedRun, b: SavedRun, columns: int, *, ascii_only: bool = False) -> Iterator[str]:
    """The units of both runs as lines of text, one above the other on one scale."""
    glyphs = _ASCII if ascii_only else _GLYPHS
    most = max(a.cycles, b.cycles, 1)
    width = max(10, columns - 12)
    for unit in Unit:
        for side, run in (("A", a), ("B", b)):
            length = max(1, round(run.cycles * width / most))
            parts = run.states[int(unit)]
            states = [int(parts[n * len(parts) // length].argmax()) for n in range(length)]
            yield f"{unit.label:<8} {side}  " + "".join(glyphs[State(n)] for n in states)


def lanes_html(a: SavedRun, b: SavedRun) -> str:
    """The same as a picture."""
    most = max(a.cycles, b.cycles, 1)
    scale = (_WIDTH - _LABEL - 12) / most
    parts, y = [], 6
    for unit in Unit:
        parts.append(f'<text x="0" y="{y + _LANE}" font-weight="600">{unit.label}</text>')
        for side, run in (("A", a), ("B", b)):
            parts.append(f'<text class="faint" x="{_LABEL - 16}" y="{y + 12}">{side}</text>')
            parts += _lane(run, unit, y, run.cycles * scale)
            y += _LANE + _GAP
        y += 2 * _GAP
    for cycle in range(0, most + 1, tick_step(most, 8)):
        x = _LABEL + cycle * scale
        parts.append(f'<path class="rule" d="M{x:.1f} 2V{y}"/>')
        parts.append(f'<text class="faint" x="{x:.1f}" y="{y + 14}" text-anchor="middle">{cycle:,}</text>')
    keys = "".join(f'<span class="key {s.name.lower()}"></span>{s.label} ' for s in _DRAWN)
    return (
        f'<div class="wide"><svg class="chart broad" viewBox="0 0 {_WIDTH} {y + 20}" width="{_WIDTH}" '
        f'role="img"><title>Timelines of both runs on one scale</title>{"".join(parts)}</svg></div>'
        f'<p class="keys">{keys} <span class="faint">nothing:&nbsp;idle</span></p>'
    )


def _lane(run: SavedRun, unit: Unit, y: int, width: float) -> Iterator[str]:
    """A unit's states, stacked in each part of the run as their shares are, as one area for each state."""
    shares = run.states[int(unit)].astype(float) / 1000
    part = width / len(shares)
    for state in _DRAWN:
        tops = _LANE * (1 - shares[:, int(state) :].sum(axis=1))
        heights = _LANE * shares[:, int(state)]
        path = "".join(
            f"M{_LABEL + n * part:.2f} {y + top:.2f}h{part:.2f}v{high:.2f}h{-part:.2f}z"
            for n, (top, high) in enumerate(zip(tops.tolist(), heights.tolist(), strict=True))
            if high
        )
        if path:
            told = f"{unit.label}: {state.label}"
            name = state.name.lower()
            yield f'<path class="{name}" d="{path}"><title>{told}</title></path>'
