"""Random inputs for a tensor expression, drawn so that its outputs seldom saturate.

Full-range int8 operands drive long sums far beyond what a shift brings back into int8; nearly every
output would be one of the two bounds and hide errors. The spread of the values is followed through the
expression, and operands are drawn as wide as the bounds allow.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.compiler.expr.quantized import Added, Requantized, bounds_of
from accel.compiler.expr.scalar import BYTES, Binary, Cast, Const, Expr, Guarded, IterVar, Read, Sum, walk
from accel.compiler.expr.tensor import Compute, Placeholder, Tensor, centered_of, producers

_SIGMAS = 3.0
"""A bound this many standard deviations away is seldom passed: by 0.3 % of normal values."""
_FULL_INT8 = (256.0**2 - 1) / 12
"""Variance of int8 values, all equally likely."""
_STEPS = 60


def random_inputs(outputs: Sequence[Tensor], seed: int) -> dict[str, npt.NDArray[Any]]:
    """A value for every placeholder that ``outputs`` depend on.

    Args:
        outputs: the computed tensors.
        seed: equal seeds give equal inputs.
    """
    variance = _widest(outputs)
    rng = np.random.default_rng(seed)
    spreads = _spreads(outputs, variance)[0]
    centers = _centers(outputs)
    return {
        tensor.name: _draw(rng, tensor, spreads[tensor], centers.get(tensor, 0))
        for tensor in producers(outputs)
        if isinstance(tensor.op, Placeholder)
    }


def _centers(outputs: Sequence[Tensor]) -> dict[Tensor, int]:
    """The zero points that inputs are known to have; uint8 values without one are drawn around the middle."""
    found: dict[Tensor, int] = {}
    for tensor in producers(outputs):
        centered = centered_of(tensor)
        if centered is not None:
            found[centered[0]] = centered[1]
        if isinstance(tensor.op, Compute):
            for node in walk(tensor.op.body):
                if isinstance(node, Added) and isinstance(node.right, Read):
                    assert isinstance(node.right.tensor, Tensor)
                    found[node.right.tensor] = node.how.right.zero
        elif tensor.dtype == "uint8":
            found[tensor] = 128
    return found


def _draw(rng: np.random.Generator, tensor: Tensor, variance: float, center: int) -> npt.NDArray[Any]:
    """Integers of about this variance: uniform, or mostly zero where less than -1, 0, 1 is asked for; bytes
    around ``center``, as far as their type reaches."""
    dtype = np.dtype(tensor.dtype)
    if center or dtype == np.uint8:
        radius = max(1, int((sqrt(1 + 12 * variance) - 1) / 2))
        drawn = center + rng.integers(-radius, radius + 1, tensor.shape)
        return drawn.clip(*bounds_of(tensor.dtype)).astype(dtype)
    if dtype == np.int8 and variance >= _FULL_INT8:
        return rng.integers(-128, 128, tensor.shape, dtype=np.int8)
    radius = int((sqrt(1 + 12 * variance) - 1) / 2)
    if radius < 1:
        sign = rng.integers(0, 2, tensor.shape) * 2 - 1
        return (sign * (rng.random(tensor.shape) < variance)).astype(dtype)
    return rng.integers(-radius, radius + 1, tensor.shape).astype(dtype)


def _widest(outputs: Sequence[Tensor]) -> float:
    """The largest variance of int8 inputs at which no bound is passed often."""
    if _spreads(outputs, _FULL_INT8)[1]:
        return _FULL_INT8
    low, high = 0.0, _FULL_INT8
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _spreads(outputs, middle)[1] else (low, middle)
    return low


def _spreads(outputs: Sequence[Tensor], variance: float) -> tuple[dict[Tensor, float], bool]:
    """The variance of every tensor if int8 inputs have ``variance``, and whether bounds are kept.

    An int32 input is as wide as what it is combined with; that is settled when it is first read.
    """
    spreads: dict[Tensor, float] = {}
    follow = _Follow(spreads)
    for tensor in producers(outputs):
        if isinstance(tensor.op, Compute):
            spreads[tensor] = follow.variance(tensor.op.body)
        elif tensor.dtype in BYTES:
            spreads[tensor] = variance
    for tensor in producers(outputs):
        spreads.setdefault(tensor, variance)
    return spreads, follow.kept


class _Follow:
    """Follows variances through an expression; values are taken as independent, with mean zero."""

    def __init__(self, spreads: dict[Tensor, float]) -> None:
        self.spreads = spreads
        self.kept = True

    def variance(self, expr: Expr) -> float:
        if isinstance(expr, Const | IterVar):
            return 0.0
        if isinstance(expr, Read):
            assert isinstance(expr.tensor, Tensor)
            return self.spreads.get(expr.tensor, 0.0)
        if isinstance(expr, Sum):
            count = 1
            for axis in expr.axes:
                count *= axis.extent
            return count * self.variance(expr.body)
        if isinstance(expr, Cast | Guarded):
            return self.variance(expr.value)
        if isinstance(expr, Requantized):
            scaled = self.variance(expr.value) * float(np.mean(np.square(expr.scales)))
            for bound in (expr.high - expr.zero, expr.zero - expr.low):
                self._keep(scaled, bound)
            return scaled
        if isinstance(expr, Added):
            ratios = (one.scale / expr.how.out.scale for one in (expr.how.left, expr.how.right))
            total = sum(self.variance(part) * r * r for part, r in zip(expr.parts(), ratios, strict=True))
            for bound in (expr.how.high - expr.how.out.zero, expr.how.out.zero - expr.how.low):
                self._keep(total, bound)
            return total
        assert isinstance(expr, Binary)
        return self._binary(expr)

    def _binary(self, expr: Binary) -> float:
        a, b = self.variance(expr.a), self.variance(expr.b)
        constant = expr.b.value if isinstance(expr.b, Const) else None
        if expr.op in ("+", "-"):
            for operand, other in ((expr.a, b), (expr.b, a)):
                if isinstance(operand, Read) and operand.tensor not in self.spreads:
                    assert isinstance(operand.tensor, Tensor)
                    self.spreads[operand.tensor] = other
            return self.variance(expr.a) + self.variance(expr.b)
        if expr.op == "*":
            if constant is not None:
                return a * constant * constant
            return a * b
        if expr.op in ("<<", ">>") and constant is not None:
            return a * 4.0 ** (constant if expr.op == "<<" else -constant)
        if expr.op in ("min", "max") and constant is not None:
            self._keep(a, constant if expr.op == "min" else -constant)
            return a
        return max(a, b)

    def _keep(self, variance: float, bound: int) -> None:
        """A bound that far from zero is not to be passed often."""
        if bound > 0 and _SIGMAS * sqrt(variance) > bound:
            self.kept = False
