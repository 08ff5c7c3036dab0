"""Quantized layers with ONNX Runtime's semantics, in numpy, and random ones."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

import accel
from accel.base.errors import ShapeError
from accel.compiler.expr.quantized_expressions import QuantizedSum, float_add
from accel.compiler.expr.quantized_products import float_multiply
from accel.compiler.ops.quantized_layers import ResidualOperation

Array = npt.NDArray[Any]


def finished(sums: Array, inputs: Mapping[str, Array], quantized: accel.Quantized) -> Array:
    """Requantize exact sums whose second dimension is the channels."""
    along = (1, -1, *[1] * (sums.ndim - 2))
    x = sums + inputs["bias"].astype(np.int64).reshape(along) if "bias" in inputs else sums
    scale = np.broadcast_to(np.array(quantized.scales, np.float32), sums.shape[1]).reshape(along)
    with np.errstate(over="ignore"):
        y = np.rint(x.astype(np.int32).astype(np.float32) * scale).astype(np.float64) + quantized.output_zero
    y = y.clip(*quantized.bounds)
    if quantized.table is not None:
        y = np.array(quantized.table.entries)[y.astype(np.int64) & 255]
    how = quantized.sum or quantized.product
    if how is None:
        return y.astype(quantized.dtype)
    function = float_add if isinstance(how, QuantizedSum) else float_multiply
    table = function(how.left, how.right, how.out, how.low, how.high)
    left, right = y.astype(np.int64) - how.left.low, inputs["residual"].astype(np.int64) - how.right.low
    return table[left, right].astype(quantized.dtype)


def products(a: Array, b: Array, quantized: accel.Quantized) -> Array:
    left, right = a.astype(np.int64) - quantized.input_zero, b.astype(np.int64) - quantized.weight_zero
    found: Array = left @ right
    return found


def convolved(workload: accel.Workload, inputs: Mapping[str, Array], quantized: accel.Quantized) -> Array:
    """Sums of a convolution, with the zero point as padding."""
    p = workload.parameters
    (top, left, bottom, right), (sy, sx), (dy, dx) = p["padding"], p["stride"], p["dilation"]
    around = ((0, 0), (0, 0), (top, bottom), (left, right))
    padded = np.pad(inputs["data"], around, constant_values=quantized.input_zero)
    data = padded.astype(np.int64) - quantized.input_zero
    weight = inputs["weight"].astype(np.int64)
    N, OC, OH, OW = workload.output.shape
    groups = p["groups"]
    sums = np.zeros((N, OC, OH, OW), np.int64)
    for ky, kx in np.ndindex(*p["kernel"]):
        seen = data[:, :, ky * dy :, kx * dx :][:, :, ::sy, ::sx][:, :, :OH, :OW]
        for g in range(groups):
            of = slice(g * OC // groups, (g + 1) * OC // groups)
            read = slice(g * data.shape[1] // groups, (g + 1) * data.shape[1] // groups)
            sums[:, of] += np.einsum("nchw,oc->nohw", seen[:, read], weight[of, :, ky, kx])
    return sums


def any_inputs(workload: accel.Workload, seed: int) -> dict[str, Array]:
    """Random values for all inputs, uniform over their types. A bias is small or as large as
    possible."""
    rng = np.random.default_rng(seed)
    source = accel.te.create_schedule(workload.output).inputs
    found = {}
    for tensor in source:
        info = np.iinfo(tensor.dtype)
        found[tensor.name] = rng.integers(info.min, info.max, tensor.shape, tensor.dtype, endpoint=True)
    if "bias" in found and rng.random() < 0.7:
        found["bias"] = rng.integers(-5000, 5000, found["bias"].shape, np.int32)
    return found


def _zero(draw: st.DrawFn, dtype: str) -> int:
    low, high = (0, 255) if dtype == "uint8" else (-128, 127)
    return draw(st.sampled_from([0, low, high]) | st.integers(low, high))


def _table(draw: st.DrawFn, dtype: str) -> accel.QuantizedTable:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    entries = rng.integers(info.min, info.max, 256, endpoint=True).tolist()
    return accel.QuantizedTable(entries=entries, dtype=dtype, zero=_zero(draw, dtype))


@st.composite
def epilogues(
    draw: st.DrawFn,
    channels: int,
    *,
    residual: bool = True,
    table: bool = False,
    weights: bool = False,
    operations: Sequence[ResidualOperation] = ("add",),
    per_channel: bool = False,
) -> accel.Quantized:
    """Draw scales, types, zero points and bounds, with or without a residual, and perhaps with a table.

    Args:
        weights: whether the weights also have a type and a zero point.
        operations: of the residual.
        per_channel: whether the residual may have one value for each channel.
    """
    types = st.sampled_from(["int8", "uint8"])
    count = draw(st.sampled_from([1, channels]))
    exponents = st.floats(-4, 1) | st.floats(-11, 3)
    scales = [float(np.float32(10 ** draw(exponents))) for _ in range(count)]
    input_dtype, output_dtype = draw(types), draw(types)
    low, high = (0, 255) if output_dtype == "uint8" else (-128, 127)
    clip = draw(st.none() | st.tuples(st.integers(low, high), st.integers(low, high)).map(sorted).map(tuple))
    values: dict[str, Any] = {
        "scale": scales if count > 1 else scales[0],
        "input_zero": _zero(draw, input_dtype),
        "input_dtype": input_dtype,
        "output_zero": _zero(draw, output_dtype),
        "output_dtype": output_dtype,
        "clip": clip,
        "table": _table(draw, draw(types)) if table else None,
    }
    if weights:
        values["weight_dtype"] = draw(types)
        values["weight_zero"] = _zero(draw, values["weight_dtype"])
    if not residual or not draw(st.booleans()):
        return accel.Quantized(**values)
    dtype, sum_dtype = draw(types), draw(types)
    operation = draw(st.sampled_from(operations))
    is_held = per_channel and draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    for _ in range(10):
        result, other, total = (float(np.float32(10**x)) for x in rng.uniform(-1.5, 0, 3))
        added = accel.QuantizedResidual(
            result_scale=result,
            scale=other,
            zero=_zero(draw, dtype),
            dtype=dtype,
            sum_scale=total,
            sum_zero=_zero(draw, sum_dtype),
            sum_dtype=sum_dtype,
            operation=operation,
            per_channel=is_held,
        )
        try:
            return accel.Quantized(**values, residual=added)
        except ShapeError:  # no exact integer form exists
            continue
    return accel.Quantized(**values)
