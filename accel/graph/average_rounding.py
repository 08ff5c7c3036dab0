"""Averages of windows whose rounding does not depend on the order of float32 operations."""

import numpy as np
import numpy.typing as npt

from accel.graph.graph_tensor import Tensor

_RELATIVE_ERROR = 2.0**-24 * 1.01
"""Largest relative error of a float32 operation, with a margin for products of errors."""
_SAFE_SCALES = (1e-25, 1e25)
"""No float32 operation overflows or underflows between these scales."""

_Integers = npt.NDArray[np.int64]


def rounded_means(
    data: Tensor, out: Tensor, taps: int, count: int, *, roundings: int | None = None
) -> tuple[_Integers, _Integers] | None:
    """Return all sums of ``taps`` values minus their zero points, and the integer that each mean becomes.

    Args:
        count: divisor of each sum. It exceeds ``taps`` where padding counts.
        roundings: float32 roundings from a value to the sum, ``taps`` by default.

    Returns:
        None if an exact mean is within float32's error of a rounding threshold.
    """
    (scale, zero), (out_scale, out_zero) = data.scale_and_zero, out.scale_and_zero
    if not all(_SAFE_SCALES[0] < float(one) < _SAFE_SCALES[1] for one in (scale, out_scale)):
        return None
    values, results = np.iinfo(data.dtype), np.iinfo(out.dtype)
    least, most = values.min - int(zero), values.max - int(zero)
    sums = np.arange(taps * min(least, 0), taps * max(most, 0) + 1)
    factor = float(scale) / (count * float(out_scale))
    means = sums * factor
    # the largest sum of magnitudes for each sum
    positive = np.minimum(taps * max(most, 0), sums - taps * min(least, 0))
    magnitudes = 2 * positive - sums
    error = _RELATIVE_ERROR * (
        magnitudes * factor * (taps if roundings is None else roundings)
        + 2 * np.abs(means)
        + np.abs(means + float(out_zero))
    )
    thresholds = np.clip(np.floor(means) + 0.5, results.min - out_zero + 0.5, results.max - out_zero - 0.5)
    if (np.abs(means - thresholds) <= error + 1e-9).any():
        return None
    expected = np.clip(np.rint(means) + int(out_zero), results.min, results.max)
    return sums, expected.astype(np.int64)
