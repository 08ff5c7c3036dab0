"""Random inputs for which the outputs of a tensor expression seldom saturate.

Long sums of full-range int8 operands exceed int8 after any usual shift, and outputs at a bound hide errors.
So operands get the largest variance for which estimated values stay within the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.compiler.expr.applied_operations import Applied
from accel.compiler.expr.quantization import bounds_of
from accel.compiler.expr.quantized_expressions import Added, Requantized
from accel.compiler.expr.quantized_products import Multiplied
from accel.compiler.expr.scalar_expressions import (
    BYTES,
    Binary,
    Cast,
    Const,
    Expr,
    Guarded,
    IterVar,
    Read,
    Sum,
    walk,
)
from accel.compiler.expr.table_expressions import LookedUp
from accel.compiler.expr.tensor_expressions import Compute, Placeholder, Tensor, centered_of, producers

_SIGMAS = 3.0
"""Distance of a bound in standard deviations. Only 0.3 % of normally distributed values exceed it."""
_FULL_INT8 = (256.0**2 - 1) / 12
"""Variance of uniformly distributed int8 values."""
_STEPS = 60


def random_inputs(outputs: Sequence[Tensor], seed: int) -> dict[str, npt.NDArray[Any]]:
    """Equal seeds give equal values."""
    variance = _largest_variance(outputs)
    rng = np.random.default_rng(seed)
    variances = _estimate_variances(outputs, variance)[0]
    centers = _centers(outputs)
    return {
        tensor.name: _draw(rng, tensor, variances[tensor], centers.get(tensor, 0))
        for tensor in producers(outputs)
        if isinstance(tensor.op, Placeholder)
    }


def _centers(outputs: Sequence[Tensor]) -> dict[Tensor, int]:
    found: dict[Tensor, int] = {}
    for tensor in producers(outputs):
        centered = centered_of(tensor)
        if centered is not None:
            found[centered[0]] = centered[1]
        if isinstance(tensor.op, Compute):
            for node in walk(tensor.op.body):
                if isinstance(node, Added | Multiplied) and isinstance(node.right, Read):
                    assert isinstance(node.right.tensor, Tensor)
                    found[node.right.tensor] = node.how.right.zero
        elif tensor.dtype == "uint8":
            found[tensor] = 128
    return found


def _draw(rng: np.random.Generator, tensor: Tensor, variance: float, center: int) -> npt.NDArray[Any]:
    """Draw uniform integers around ``center``, or mostly zeros for less than the variance of -1, 0, 1."""
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


def _largest_variance(outputs: Sequence[Tensor]) -> float:
    if _estimate_variances(outputs, _FULL_INT8)[1]:
        return _FULL_INT8
    low, high = 0.0, _FULL_INT8
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _estimate_variances(outputs, middle)[1] else (low, middle)
    return low


def _estimate_variances(outputs: Sequence[Tensor], variance: float) -> tuple[dict[Tensor, float], bool]:
    """Return each tensor's variance if int8 inputs have ``variance``, and whether values seldom exceed
    bounds."""
    variances: dict[Tensor, float] = {}
    estimate = _VarianceEstimate(variances)
    for tensor in producers(outputs):
        if isinstance(tensor.op, Compute):
            variances[tensor] = estimate.variance(tensor.op.body)
        elif tensor.dtype in BYTES:
            variances[tensor] = variance
    for tensor in producers(outputs):
        variances.setdefault(tensor, variance)
    return variances, estimate.within_bounds


class _VarianceEstimate:
    """Estimates variances as if all values were independent with mean zero."""

    def __init__(self, variances: dict[Tensor, float]) -> None:
        self.variances = variances
        self.within_bounds = True

    def variance(self, expr: Expr) -> float:
        if isinstance(expr, Const | IterVar):
            return 0.0
        if isinstance(expr, Read):
            assert isinstance(expr.tensor, Tensor)
            return self.variances.get(expr.tensor, 0.0)
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
                self._check_bound(scaled, bound)
            return scaled
        if isinstance(expr, Added):
            ratios = (one.scale / expr.how.out.scale for one in (expr.how.left, expr.how.right))
            total = sum(self.variance(part) * r * r for part, r in zip(expr.parts(), ratios, strict=True))
            for bound in (expr.how.high - expr.how.out.zero, expr.how.out.zero - expr.how.low):
                self._check_bound(total, bound)
            return total
        if isinstance(expr, Multiplied):
            how = expr.how
            factor = how.left.scale * how.right.scale / how.out.scale
            total = self.variance(expr.left) * self.variance(expr.right) * factor * factor
            for bound in (how.high - how.out.zero, how.out.zero - how.low):
                self._check_bound(total, bound)
            return total
        if isinstance(expr, Applied):
            value = self.variance(expr.value)
            self._draw_alike(expr.operand, value)
            return max(value, self.variance(expr.operand))
        if isinstance(expr, LookedUp):
            return max(map(self.variance, expr.parts()))
        assert isinstance(expr, Binary)
        return self._binary(expr)

    def _binary(self, expr: Binary) -> float:
        a, b = self.variance(expr.a), self.variance(expr.b)
        constant = expr.b.value if isinstance(expr.b, Const) else None
        if expr.op in ("+", "-"):
            for operand, other in ((expr.a, b), (expr.b, a)):
                self._draw_alike(operand, other)
            return self.variance(expr.a) + self.variance(expr.b)
        if expr.op == "*":
            if constant is not None:
                return a * constant * constant
            return a * b
        if expr.op in ("<<", ">>") and constant is not None:
            return a * 4.0 ** (constant if expr.op == "<<" else -constant)
        if expr.op in ("min", "max") and constant is not None:
            self._check_bound(a, constant if expr.op == "min" else -constant)
            return a
        return max(a, b)

    def _draw_alike(self, operand: Expr, variance: float) -> None:
        """Give an int32 input the variance of the value that it is combined with first."""
        if isinstance(operand, Read) and operand.tensor not in self.variances:
            assert isinstance(operand.tensor, Tensor)
            self.variances[operand.tensor] = variance

    def _check_bound(self, variance: float, bound: int) -> None:
        if bound > 0 and _SIGMAS * sqrt(variance) > bound:
            self.within_bounds = False
