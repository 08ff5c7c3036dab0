"""Averages that integers round as float32 does."""

import numpy as np

from accel.core.requantize import Scale, requantize
from accel.graph.average_rounding import rounded_means
from accel.graph.graph_tensor import Tensor


def exact_average_scale(data: Tensor, out: Tensor, taps: int, count: int) -> np.float32 | None:
    """Return the scale that requantizes all integer sums to float32's averages.

    Returns:
        None if float32's results depend on the order of operations, or if integers round some mean
        differently.
    """
    means = rounded_means(data, out, taps, count)
    if means is None:
        return None
    sums, expected = means
    (scale, _), (out_scale, out_zero) = data.scale_and_zero, out.scale_and_zero
    factor = np.float32(float(scale) / (count * float(out_scale)))
    word = Scale.of(float(factor))
    bounds = np.iinfo(out.dtype)
    limits = {"zero": int(out_zero), "low": int(bounds.min), "high": int(bounds.max)}
    integers = requantize(sums, 0, word.multiplier, word.exponent, **limits)
    return factor if np.array_equal(integers, expected) else None
