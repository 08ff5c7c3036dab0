"""Rules of functions of one byte."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from accel.graph.elementwise_operators import (
    Clip,
    Reinterpret,
    Requantize,
    Table,
)
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import QUANTIZED, Array, Tensor
from accel.graph.pooling_operators import MaxPool
from accel.graph.quantize_values import all_values
from accel.rewriting import elementwise_instances as instances
from accel.rewriting.operator_classes import BINARY, UNARY
from accel.rewriting.pattern import (
    Match,
    Term,
    Value,
    constant,
    is_per_tensor,
    make,
    op,
    tensor,
)
from accel.rewriting.rule import Rule

_MONOTONE = (Clip, Requantize)
"""They keep the order of values."""


# ---- Clip, Requantize and Reinterpret


def _is_byte(*values: Value) -> bool:
    return all(one.dtype in QUANTIZED for one in values)


def _function_before_maximum(match: Match) -> Term:
    return make(match.operator("pool", MaxPool), make(match.named["function"], match["x"], like=match.root))


FUNCTION_BEFORE_MAXIMUM = Rule(
    name="function-before-maximum",
    text="A Clip or Requantize of the maxima of bytes is computed before them.",
    pattern=op(_MONOTONE, op(MaxPool, tensor("x"), name="pool"), name="function"),
    condition=lambda match: _is_byte(match["x"], match.root) and match.has_one_reader("pool"),
    replacement=_function_before_maximum,
    instance=instances.functions_of_maxima,
)


def _function_after_maximum(match: Match) -> Term:
    return make(match.named["function"], make(match.operator("pool", MaxPool), match["x"]), like=match.root)


FUNCTION_AFTER_MAXIMUM = Rule(
    name="function-after-maximum",
    text="The maxima of bytes after a Clip or Requantize are found before it.",
    pattern=op(MaxPool, op(_MONOTONE, tensor("x"), name="function"), name="pool"),
    condition=lambda match: _is_byte(match["x"], match.root) and match.has_one_reader("function"),
    replacement=_function_after_maximum,
    instance=instances.maxima_of_functions,
)


def _clip_pair(match: Match) -> Term | None:
    first, second = match.operator("first", Clip), match.operator("second", Clip)
    bounds = (first.low, first.high, second.low, second.high)
    # max and min may return either of 0 and -0
    if match.root.dtype == "float32" and any(one is not None and np.float32(one) == 0 for one in bounds):
        return None

    def clipped(bound: float, clip: Clip) -> float:
        bound = bound if clip.low is None else max(bound, clip.low)
        return bound if clip.high is None else min(bound, clip.high)

    low = clipped(-np.inf if first.low is None else clipped(first.low, first), second)
    high = clipped(np.inf if first.high is None else first.high, second)
    return make(Clip(low=None if low == -np.inf else low, high=None if high == np.inf else high), match["x"])


CLIP_PAIR = Rule(
    name="clip-pair",
    text="Two Clips in sequence become one. Those of float32 values with a bound of 0 stay.",
    pattern=op(Clip, op(Clip, tensor("x"), name="first"), name="second"),
    replacement=_clip_pair,
    instance=instances.clip_pairs,
    simplifies=True,
)


def _bounds_nothing(match: Match) -> bool:
    clip, dtype = match.operator("clip", Clip), match.root.dtype
    if np.dtype(dtype).kind == "f":
        least, most = -np.inf, np.inf
    else:
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    return (clip.low is None or clip.low <= least) and (clip.high is None or clip.high >= most)


CLIP_OF_NOTHING = Rule(
    name="clip-of-nothing",
    text="A Clip whose bounds include all values disappears.",
    pattern=op(Clip, tensor("x"), name="clip"),
    condition=_bounds_nothing,
    replacement=lambda match: match["x"],
    instance=instances.clips,
    simplifies=True,
)


def _results(operator: Operator, operand: Value, out: Tensor, values: Array | None = None) -> Array:
    numbers = all_values(operand.dtype) if values is None else values
    return operator.evaluate([operand.tensor], [numbers], out)


def _requantize_pair(match: Match) -> Term | None:
    x, between, out = match["x"], match["between"], match.root
    both = _results(Requantize(), between, out.tensor, _results(Requantize(), x, between.tensor))
    if not np.array_equal(both, _results(Requantize(), x, out.tensor)):
        return None
    return make(Requantize(), x, like=out)


REQUANTIZE_PAIR = Rule(
    name="requantize-pair",
    text="Two Requantizes in sequence become one if all 256 results are equal.",
    pattern=op(Requantize, op(Requantize, tensor("x"), name="between")),
    replacement=_requantize_pair,
    instance=instances.requantize_pairs,
    simplifies=True,
)


def _requantizes_nothing(match: Match) -> bool:
    x, out = match["x"], match.root
    if (x.dtype, x.quantization) != (out.dtype, out.quantization):
        return False
    return np.array_equal(_results(Requantize(), x, out.tensor), all_values(x.dtype))


REQUANTIZE_OF_NOTHING = Rule(
    name="requantize-of-nothing",
    text="A Requantize to the operand's quantization disappears if all 256 values stay.",
    pattern=op(Requantize, tensor("x")),
    condition=_requantizes_nothing,
    replacement=lambda match: match["x"],
    instance=instances.requantizes,
    simplifies=True,
)


def _reinterpret(match: Match) -> Term:
    x, out = match["x"], match.root
    return x if x.quantization == out.quantization else make(Reinterpret(), x, like=out)


REINTERPRET_PAIR = Rule(
    name="reinterpret-pair",
    text="Two Reinterprets in sequence become one, or none.",
    pattern=op(Reinterpret, op(Reinterpret, tensor("x"))),
    replacement=_reinterpret,
    instance=instances.reinterpret_pairs,
    simplifies=True,
)

REINTERPRET_OF_NOTHING = Rule(
    name="reinterpret-of-nothing",
    text="A Reinterpret with the operand's quantization disappears.",
    pattern=op(Reinterpret, tensor("x")),
    condition=lambda match: match["x"].quantization == match.root.quantization,
    replacement=lambda match: match["x"],
    instance=instances.reinterprets,
    simplifies=True,
)


# ---- Functions of one byte


def _table(match: Match, results: Array) -> Term:
    return make(Table(values=tuple(map(int, results))), match["x"], like=match.root)


def _is_function_of_byte(*values: Value) -> bool:
    return _is_byte(*values) and is_per_tensor(*values)


def _function_pair(match: Match) -> Term | None:
    x, between, out = match["x"], match["first"], match.root
    if not _is_function_of_byte(x, between, out):
        return None
    inner = _results(match.named["first"], x, between.tensor)
    return _table(match, _results(match.named["second"], between, out.tensor, inner))


FUNCTION_PAIR = Rule(
    name="function-pair",
    text="Two functions of one byte in sequence become a Table.",
    pattern=op(UNARY, op(UNARY, tensor("x"), name="first"), name="second"),
    replacement=_function_pair,
    instance=instances.function_pairs,
)


def _binary_results(match: Match, operands: tuple[tuple[Value, Array], ...]) -> Term | None:
    x, out = match["x"], match.root
    if not _is_function_of_byte(x, out) or out.shape != x.shape:
        return None
    tensors, arrays = [one.tensor for one, _ in operands], [values for _, values in operands]
    found = match.named["binary"].evaluate(tensors, arrays, out.tensor)
    return _table(match, np.broadcast_to(found, 256).astype(out.dtype))


def _scalar_table(swapped: bool) -> Callable[[Match], Term | None]:
    def replacement(match: Match) -> Term | None:
        x, value = match["x"], match["constant"]
        if not _is_function_of_byte(x) or value.tensor.size != 1:
            return None
        operands = (x, all_values(x.dtype)), (value, value.array.reshape(1))
        return _binary_results(match, operands[::-1] if swapped else operands)

    return replacement


SCALAR_TABLE = Rule(
    name="scalar-table",
    text="A binary operator of bytes and a single constant becomes a Table.",
    pattern=op(BINARY, tensor("x"), constant("constant"), name="binary"),
    replacement=_scalar_table(swapped=False),
    instance=instances.bytes_with_scalars,
)

FIRST_SCALAR_TABLE = Rule(
    name="first-scalar-table",
    text="A binary operator of a single constant and bytes becomes a Table.",
    pattern=op(BINARY, constant("constant"), tensor("x"), name="binary"),
    replacement=_scalar_table(swapped=True),
    instance=instances.bytes_with_first_scalars,
)


def _gated_table(swapped: bool) -> Callable[[Match], Term | None]:
    def replacement(match: Match) -> Term | None:
        x, value = match["x"], match["function"]
        if not _is_function_of_byte(x, value):
            return None
        operands = (x, all_values(x.dtype)), (value, _results(match.named["function"], x, value.tensor))
        return _binary_results(match, operands[::-1] if swapped else operands)

    return replacement


GATED_TABLE = Rule(
    name="gated-table",
    text="A binary operator of bytes and a function of them becomes a Table, for example x * Sigmoid(x).",
    pattern=op(BINARY, tensor("x"), op(UNARY, tensor("x"), name="function"), name="binary"),
    replacement=_gated_table(swapped=False),
    instance=instances.gated_bytes,
)

FIRST_GATED_TABLE = Rule(
    name="first-gated-table",
    text="A binary operator of a function of bytes and the bytes becomes a Table: Sigmoid(x) * x.",
    pattern=op(BINARY, op(UNARY, tensor("x"), name="function"), tensor("x"), name="binary"),
    replacement=_gated_table(swapped=True),
    instance=instances.first_gated_bytes,
)

BYTE_RULES: tuple[Rule, ...] = (
    CLIP_OF_NOTHING,
    CLIP_PAIR,
    REQUANTIZE_OF_NOTHING,
    REQUANTIZE_PAIR,
    REINTERPRET_OF_NOTHING,
    REINTERPRET_PAIR,
    FUNCTION_BEFORE_MAXIMUM,
    FUNCTION_AFTER_MAXIMUM,
    FUNCTION_PAIR,
    SCALAR_TABLE,
    FIRST_SCALAR_TABLE,
    GATED_TABLE,
    FIRST_GATED_TABLE,
)
