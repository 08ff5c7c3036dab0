"""Windows: computations that only move elements, pad with zeros, or skip elements.

``P[n, c, y, x] = A[n, c, y - 1, x - 1] if 0 < y and y < 57 ... else 0`` and ``A[n, c, 2*y, x]`` are windows
on A. One LOAD fills a window: it reads rows at a fixed distance and writes the zeros without reading DRAM.
"""

from collections.abc import Sequence

from msgspec import Struct

from accel.compiler.expr.linear_expressions import Linear, bounds, linear, margin, simplify
from accel.compiler.expr.scalar_expressions import (
    Cast,
    Condition,
    Const,
    Expr,
    Guarded,
    IterVar,
    Read,
    maximum,
    minimum,
    without_zero,
)

NO_PADDING = (Const(0), Const(0))
Padding = tuple[tuple[Expr, Expr], ...]


class Range(Struct, frozen=True):
    """Indices ``[start, start + extent)`` of one dimension."""

    start: Expr
    extent: Expr

    @property
    def largest(self) -> int:
        return bounds(self.extent)[1]


class Window(Struct, frozen=True):
    """Element ``[i, ...]`` is ``read``'s tensor at ``[i * step + offset, ...]``, or zero outside it.

    Attributes:
        padded: whether some indices are outside the tensor.
        zero: subtracted from every element that is read, or None.
    """

    read: Read
    steps: tuple[int, ...]
    offsets: tuple[int, ...]
    padded: bool
    zero: int | None = None

    def source(self, first: Sequence[Expr], extents: Sequence[Expr]) -> tuple[tuple[Range, ...], Padding]:
        """Return the part of the tensor (with skipped elements) under a box, and any zeros around."""
        ranges: list[Range] = []
        padding: list[tuple[Expr, Expr]] = []
        for d, (begin, extent) in enumerate(zip(first, extents, strict=True)):
            step, size = self.steps[d], self.read.tensor.shape[d]
            start = simplify(begin * step + self.offsets[d])
            if step > 1 or not self.padded:
                ranges.append(Range(start, extent if step == 1 else simplify((extent - 1) * step + 1)))
                padding.append(NO_PADDING)
                continue
            before = simplify(minimum(maximum(-start, 0), extent))
            behind = simplify(minimum(maximum(start + extent - size, 0), extent))
            end = simplify(minimum(start + extent, size))
            ranges.append(Range(simplify(maximum(start, 0)), simplify(end - maximum(start, 0))))
            padding.append((before, behind))
        return tuple(ranges), tuple(padding) if any(p != NO_PADDING for p in padding) else ()


def window_of(axes: Sequence[IterVar], body: Expr) -> Window | None:
    """The window that a computation is, or None. A window that skips elements must have no zeros."""
    body, zero = without_zero(body)
    body = body.value if isinstance(body, Cast) else body
    conditions: tuple[Condition, ...] = ()
    read = body
    if isinstance(body, Guarded) and body.otherwise == 0 and zero is None:
        conditions = body.conditions
        read, zero = without_zero(body.value)
    if not isinstance(read, Read) or len(read.indices) != len(axes):
        return None
    steps, offsets = [], []
    inside: list[Linear] = []
    for axis, index, size in zip(axes, read.indices, read.tensor.shape, strict=True):
        form = linear(index)
        step = form.factor(axis)
        if step < 1 or len(form.terms) > 1:
            return None
        low, high = bounds(index)
        if step > 1 and (low < 0 or high >= size):
            return None
        steps.append(step)
        offsets.append(form.constant)
        inside += [form, linear(Const(size - 1) - index)]
    deciding = [form for form in map(margin, conditions) if bounds(form.expr())[0] < 0]
    if not all(form in inside for form in deciding):
        return None
    return Window(read, tuple(steps), tuple(offsets), bool(deciding), zero)
