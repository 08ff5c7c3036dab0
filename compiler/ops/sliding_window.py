"""Sliding windows: their number, and the part of a padded input that they cover.

For example, windows of 3 x 3 with stride 2 over 112 x 112 elements with a padding of 1 give 56 x 56 outputs.
"""

from msgspec import Struct

from accel.base.arguments import plain_integer, plain_integers
from accel.base.errors import ShapeError
from accel.compiler.expr.scalar_expressions import Condition, Const, Expr, Guarded, IterVar
from accel.compiler.expr.tensor_expressions import Tensor, compute


class Sliding(Struct, frozen=True):
    """Windows over inputs with zeros around them.

    Attributes:
        padding: zeros at the top, left, bottom and right.
        dilation: vertical and horizontal distance of a window's elements.
    """

    size: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int]
    dilation: tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        for name, whole, length in zip(("high", "wide"), self._padded, self.reach, strict=True):
            if length > whole:
                raise ShapeError(f"the kernel is {length} {name}; the input with its padding is {whole}")

    @property
    def _padded(self) -> tuple[int, int]:
        top, left, bottom, right = self.padding
        return self.size[0] + top + bottom, self.size[1] + left + right

    @property
    def reach(self) -> tuple[int, int]:
        (KH, KW), (DY, DX) = self.kernel, self.dilation
        return (KH - 1) * DY + 1, (KW - 1) * DX + 1

    @property
    def outputs(self) -> tuple[int, int]:
        (height, width), (down, across), (SY, SX) = self._padded, self.reach, self.stride
        return (height - down) // SY + 1, (width - across) // SX + 1

    @property
    def is_inside(self) -> bool:
        (top, left, _, _), (OH, OW) = self.padding, self.outputs
        (SY, SX), (down, across) = self.stride, self.reach
        within = (OH - 1) * SY + down <= self.size[0] and (OW - 1) * SX + across <= self.size[1]
        return not (top or left) and within

    def places(
        self, output: tuple[IterVar, IterVar], tap: tuple[IterVar, IterVar], skip: int = 1
    ) -> tuple[Expr, Expr]:
        """Return the row and the column in :func:`window`."""
        (SY, SX), (DY, DX) = self.stride, self.dilation
        rows = _times(output[0], SY // skip) + _times(tap[0], DY)
        return rows, _times(output[1], SX) + _times(tap[1], DX)

    def to_dict(self) -> dict[str, list[int]]:
        return {
            "kernel": [*self.kernel],
            "stride": [*self.stride],
            "padding": [*self.padding],
            "dilation": [*self.dilation],
        }


def sliding(
    size: tuple[int, int],
    kernel: int | tuple[int, ...],
    stride: int | tuple[int, ...],
    padding: int | tuple[int, ...],
    dilation: int | tuple[int, ...] = 1,
) -> Sliding:
    """All arguments except ``size`` may be one number for all directions."""
    return Sliding(
        size, pair("kernel", kernel), pair("stride", stride), sides(padding), pair("dilation", dilation)
    )


def _times(axis: IterVar, step: int) -> Expr:
    return axis if step == 1 else axis * step


def window(data: Tensor, slide: Sliding, skip: int = 1) -> Tensor:
    """Return every ``skip``-th row of the read part of the padded input, or ``data`` if it is the same."""
    N, IC, H, W = data.shape
    (OH, OW), (down, across), (SY, SX) = slide.outputs, slide.reach, slide.stride
    rows, columns = (OH - 1) * (SY // skip) + down, (OW - 1) * SX + across
    top, left, _, _ = slide.padding
    below, on_right = max(0, (rows - 1) * skip + 1 - top - H), max(0, columns - left - W)
    if skip == 1 and not (top or left or below or on_right):
        return data

    def element(n: IterVar, c: IterVar, y: IterVar, x: IterVar) -> Expr:
        conditions: list[Condition] = []
        for axis, before, after, size in ((y, top, below, H), (x, left, on_right, W)):
            conditions += [(Const(before - 1), axis)] * bool(before)
            conditions += [(axis, Const(before + size))] * bool(after)
        row = y * skip if skip > 1 else y - top if top else y
        value = data[n, c, row, x - left if left else x]
        return Guarded(value, tuple(conditions)) if conditions else value

    return compute((N, IC, rows, columns), element, name="window")


def pair(name: str, value: int | tuple[int, ...], least: int = 1) -> tuple[int, int]:
    numbers = _integers(value, (1, 2), least)
    if numbers is None:
        kind = "a positive integer" if least == 1 else f"an integer from {least} on"
        raise ShapeError(f"{name} is {_text(value)}; it must be {kind} or two of them")
    return numbers[0], numbers[-1]


def sides(padding: int | tuple[int, ...]) -> tuple[int, int, int, int]:
    numbers = _integers(padding, (1, 2, 4), 0)
    if numbers is None:
        raise ShapeError(f"padding is {_text(padding)}; it must be 1, 2 or 4 integers, none negative")
    top, left, bottom, right = (numbers * 4)[:4]
    return top, left, bottom, right


def _integers(value: object, counts: tuple[int, ...], least: int) -> tuple[int, ...] | None:
    alone = plain_integer(value)
    numbers = plain_integers(value) if alone is None else (alone,)
    return numbers if numbers is not None and len(numbers) in counts and min(numbers) >= least else None


def _text(value: object) -> str:
    return repr(value[0] if isinstance(value, tuple) and len(value) == 1 else value)
