"""Small charts as SVG."""

import math
from collections.abc import Sequence
from html import escape


class Chart:
    """A chart of two axes. Styles are CSS classes. Margins are left, right, top and bottom."""

    def __init__(
        self,
        width: int,
        height: int,
        *,
        x: tuple[float, float],
        y: tuple[float, float],
        margins: tuple[int, int, int, int],
        is_logarithmic: bool = False,
    ) -> None:
        self._size = width, height
        self._left, self._right, self._top, self._bottom = margins
        self._ranges = x, y
        self._scale = math.log if is_logarithmic else float
        self._rules: list[str] = []
        self._parts: list[str] = []

    def _x(self, value: float) -> float:
        return self._left + self._share(0, value) * (self._size[0] - self._left - self._right)

    def _y(self, value: float) -> float:
        return (
            self._size[1] - self._bottom - self._share(1, value) * (self._size[1] - self._top - self._bottom)
        )

    def _share(self, axis: int, value: float) -> float:
        low, high = map(self._scale, self._ranges[axis])
        return (self._scale(value) - low) / (high - low or 1)

    def x_tick(self, value: float, text: str) -> None:
        x, bottom = self._x(value), self._size[1] - self._bottom
        self._rules.append(f'<path class="rule" d="M{x:.1f} {self._top}V{bottom}"/>')
        self._rules.append(
            f'<text class="faint" x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{escape(text)}</text>'
        )

    def y_tick(self, value: float, text: str) -> None:
        y = self._y(value)
        self._rules.append(f'<path class="rule" d="M{self._left} {y:.1f}H{self._size[0] - self._right}"/>')
        position = f'x="{self._left - 6}" y="{y + 4:.1f}" text-anchor="end"'
        self._rules.append(f'<text class="faint" {position}>{escape(text)}</text>')

    def x_title(self, text: str) -> None:
        middle = (self._left + self._size[0] - self._right) / 2
        self._parts.append(
            f'<text x="{middle:.1f}" y="{self._size[1] - 8}" text-anchor="middle">{escape(text)}</text>'
        )

    def y_title(self, text: str) -> None:
        y = (self._top + self._size[1] - self._bottom) / 2
        self._parts.append(
            f'<text transform="translate(14 {y:.1f}) rotate(-90)" text-anchor="middle">{escape(text)}</text>'
        )

    def line(self, points: Sequence[tuple[float, float]], style: str) -> None:
        path = "L".join(f"{self._x(x):.1f} {self._y(y):.1f}" for x, y in points)
        self._parts.append(f'<path class="{style}" d="M{path}"/>')

    def steps(self, levels: Sequence[float], style: str) -> None:
        """Draw the area below levels of equal width."""
        left, right = self._ranges[0]
        width = (self._x(right) - self._x(left)) / max(1, len(levels))
        base = self._y(self._ranges[1][0])
        path = "".join(f"V{self._y(level):.1f}h{width:.3f}" for level in levels)
        self._parts.append(f'<path class="{style}" d="M{self._x(left):.1f} {base:.1f}{path}V{base:.1f}z"/>')

    def mark(self, x: float, y: float, style: str, text: str, *, anchor: str) -> None:
        self._parts.append(f'<circle class="{style}" cx="{self._x(x):.1f}" cy="{self._y(y):.1f}" r="6"/>')
        self.text(x, y, text, dx={"start": -5, "end": 5}[anchor], dy=21, anchor=anchor)

    def point(self, x: float, y: float, style: str, name: str) -> None:
        self._parts.append(
            f'<circle class="{style}" cx="{self._x(x):.1f}" cy="{self._y(y):.1f}" r="5">'
            f"<title>{escape(name)}</title></circle>"
        )

    def text(self, x: float, y: float, text: str, *, dx: float, dy: float, anchor: str) -> None:
        self._parts.append(
            f'<text x="{self._x(x) + dx:.1f}" y="{self._y(y) + dy:.1f}" text-anchor="{anchor}">'
            f"{escape(text)}</text>"
        )

    def svg(self, title: str) -> str:
        width, height = self._size
        return (
            f'<svg class="chart figure" viewBox="0 0 {width} {height}" width="{width}" '
            f'role="img"><title>{escape(title)}</title>' + "".join(self._rules + self._parts) + "</svg>"
        )
