"""Means of windows that integers take as floating point does, whatever the values."""

import numpy as np

from accel.core.requantize import Scale, requantize
from accel.graph.tensor import Tensor

_UNIT = 2.0**-24 * 1.01
"""The largest relative error of an operation in float32, and something for its squares."""
_PLAIN = (1e-25, 1e25)
"""Scales with which nothing leaves the range of float32."""


def exact_mean_scale(data: Tensor, out: Tensor, taps: int, count: int) -> np.float32 | None:
    """The scale that makes means of sums of integers, equal to those in float32 for all values.

    In float32, each value becomes a number, these are summed up, divided, and rounded in the end. How far
    that is from the exact mean is bounded for each sum; where no sum's mean is that close to where rounding
    turns, integers round alike.

    Args:
        data: what windows are of, int8 or uint8.
        out: their means.
        taps: values in a window, with those that are padding.
        count: what the sum is divided by.

    Returns:
        None where a mean is too close.
    """
    (scale, zero), (out_scale, out_zero) = data.per_tensor, out.per_tensor
    if not all(_PLAIN[0] < float(one) < _PLAIN[1] for one in (scale, out_scale)):
        return None
    values, results = np.iinfo(data.dtype), np.iinfo(out.dtype)
    least, most = values.min - int(zero), values.max - int(zero)
    sums = np.arange(taps * min(least, 0), taps * max(most, 0) + 1)
    factor = float(scale) / (count * float(out_scale))
    means = sums * factor
    # the most that magnitudes of values with a sum come to
    positive = np.minimum(taps * max(most, 0), sums - taps * min(least, 0))
    error = _UNIT * (
        (2 * positive - sums) * factor * taps + 2 * np.abs(means) + np.abs(means + float(out_zero))
    )
    turns = np.clip(np.floor(means) + 0.5, results.min - out_zero + 0.5, results.max - out_zero - 0.5)
    if (np.abs(means - turns) <= error + 1e-9).any():
        return None
    found = np.float32(factor)
    word = Scale.of(float(found))
    bounds = {"zero": int(out_zero), "low": int(results.min), "high": int(results.max)}
    integers = requantize(sums, 0, word.multiplier, word.exponent, **bounds)
    wanted = np.clip(np.rint(means) + int(out_zero), results.min, results.max)
    return found if np.array_equal(integers, wanted) else None
