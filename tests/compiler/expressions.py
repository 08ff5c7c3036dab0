"""Random tensor expressions: computations that read one another at shifted, scaled and folded indices."""

from collections.abc import Sequence
from math import prod
from random import Random

from accel import te
from accel.compiler.expr.scalar_expressions import Const, Expr, Read
from accel.te import IterVar, Tensor

LARGEST_EXTENT = 64
LARGEST_GRID = 1500
"""Maximum number of iterations of one computation."""


def random_expression(rng: Random, stages: int = 3) -> Tensor:
    """Return the output of up to ``stages`` computations."""
    return _Builder(rng, stages).computed(_extents(rng, rng.randint(1, 3), LARGEST_GRID))


def _extents(rng: Random, count: int, most: int) -> tuple[int, ...]:
    """Return ``count`` extents with a product of at most ``most``. Many are not powers of two."""
    extents: list[int] = []
    for _ in range(count):
        room = min(LARGEST_EXTENT, most // prod(extents))
        extents.append(rng.randint(1, max(1, rng.choice((room, room, min(room, 12), min(room, 3))))))
    rng.shuffle(extents)
    return tuple(extents)


class _Builder:
    def __init__(self, rng: Random, stages: int) -> None:
        self.rng = rng
        self.left = stages
        self.number = 0

    def computed(self, shape: Sequence[int]) -> Tensor:
        """Return a computation of this shape. The tensors that it reads are made first."""
        rng = self.rng
        self.left -= 1
        name = self._name("T")
        summed = rng.random() < 0.5
        extents = _extents(rng, rng.randint(1, 2), LARGEST_GRID // prod(shape)) if summed else ()
        reduce = [te.reduce_axis((0, n), name=f"k{i}") for i, n in enumerate(extents)]

        def body(*axes: IterVar) -> Expr:
            every = [*axes, *reduce]
            sources = [self._reads(every) for _ in range(rng.randint(1, 2))]
            value = self._value([read for reads in sources for read in reads], every, 2)
            return te.sum(value, axis=reduce) if reduce else value

        return te.compute(shape, body, name=name, dtype=rng.choice((None, "int8", "int32")))

    def _name(self, letter: str) -> str:
        self.number += 1
        return f"{letter}{self.number}"

    # --- reads -----------------------------------------------------------------------------------

    def _reads(self, axes: Sequence[IterVar]) -> list[Read]:
        """Return one or two reads of one tensor, which is exactly large enough or slightly larger."""
        rng = self.rng
        rank = rng.randint(1, 3)
        forms = [self._index(axes) for _ in range(rank)]
        every = [forms]
        if rng.random() < 0.4:
            every.append(
                [(index + 1, high + 1) if rng.random() < 0.6 else (index, high) for index, high in forms]
            )
        if rng.random() < 0.2:
            every.append([self._index(axes) for _ in range(rank)])
        shape = [max(high for _, high in column) + 1 for column in zip(*every, strict=True)]
        shape = [n + rng.choice((0, 0, 0, 2)) for n in shape]
        tensor = self._tensor(shape)
        return [tensor[tuple(index for index, _ in indices)] for indices in every]

    def _tensor(self, shape: Sequence[int]) -> Tensor:
        if self.rng.random() < 0.15:
            return self._padded(shape)
        if self.left > 0 and prod(shape) <= LARGEST_GRID and self.rng.random() < 0.6:
            return self.computed(shape)
        return te.placeholder(shape, self.rng.choice(("int8", "int8", "int32")), name=self._name("P"))

    def _padded(self, shape: Sequence[int]) -> Tensor:
        """Return a tensor of this shape that is zero towards its ends."""
        before = [self.rng.randint(0, min(3, n - 1)) for n in shape]
        after = [self.rng.randint(0, min(3, n - 1 - b)) for n, b in zip(shape, before, strict=True)]
        inner = [n - b - a for n, b, a in zip(shape, before, after, strict=True)]
        return te.pad(self._tensor(inner), before, after, name=self._name("Z"))

    def _index(self, axes: Sequence[IterVar]) -> tuple[Expr, int]:
        rng = self.rng
        axis = rng.choice(axes)
        high = axis.extent - 1
        kind = rng.choice(("plain",) * 6 + ("offset", "scaled", "sum", "reversed", "folded", "part", "fixed"))
        if kind == "offset":
            return axis + 3, high + 3
        if kind == "scaled" and high <= LARGEST_EXTENT // 2:
            return axis * 2, high * 2
        if kind == "sum":
            other = rng.choice(axes)
            return axis + other, high + other.extent - 1
        if kind == "reversed":
            return high - axis, high
        if kind == "folded":
            return axis % 3, min(high, 2)
        if kind == "part":
            return axis // 4, high // 4
        if kind == "fixed":
            return Const(1), 1
        return axis, high

    # --- values ----------------------------------------------------------------------------------

    def _value(self, reads: list[Read], axes: Sequence[IterVar], depth: int) -> Expr:
        """Return a term that uses all of ``reads``."""
        rng = self.rng
        if len(reads) > 1:
            cut = rng.randint(1, len(reads) - 1)
            a, b = self._value(reads[:cut], axes, depth), self._value(reads[cut:], axes, depth)
            return rng.choice((a + b, a - b, a * b, a * b, te.max(a, b), te.min(a, b)))
        value: Expr = reads[0]
        for _ in range(rng.randint(0, depth)):
            value = rng.choice(
                (
                    value + rng.choice(list(axes)),
                    value * rng.randint(-3, 3),
                    rng.randint(-9, 9) - value,
                    -value,
                    value >> rng.randint(-2, 9),
                    value << rng.randint(0, 9),
                    te.clip(value, -50, 70),
                    value.astype("int8"),
                    value % 7,
                    value // 5,
                )
            )
        return value
