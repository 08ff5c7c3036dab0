"""Rules of constants and common subexpressions, and of operators that compute each value by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from accel.graph.elementwise_operators import (
    Add,
    Binary,
    Cast,
    Clip,
    Dequantize,
    Function,
    Mul,
    Quantize,
    Reinterpret,
    Requantize,
    Table,
)
from accel.graph.foreign_operator import Foreign
from accel.graph.graph import Graph, Node
from accel.graph.graph_evaluation import evaluate_operator
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import QUANTIZED, Array, Tensor
from accel.graph.movement_operators import (
    Concat,
    DepthToSpace,
    Identity,
    Reshape,
    Slice,
    SpaceToDepth,
    Take,
    Transpose,
)
from accel.graph.pooling_operators import MaxPool
from accel.graph.quantize_values import all_values
from accel.rewriting import elementwise_instances as instances
from accel.rewriting.movement_rules import BINARY, definition, is_per_tensor
from accel.rewriting.pattern import (
    Match,
    NewConstant,
    NewNode,
    Term,
    Value,
    constant,
    constants,
    make,
    op,
    rest,
    tensor,
)
from accel.rewriting.rule import Rule

UNARY = (Quantize, Dequantize, Requantize, Reinterpret, Cast, Clip, Function, Table)
"""Operators that compute each value from one value, all in the same way if the scale is the same."""
_MONOTONE = (Clip, Requantize)
"""Functions that never make a larger value the smaller one."""
_RESHAPES = (Reshape, Identity)
_LAYOUTS = (*_RESHAPES, Transpose)
_PARTS = (Slice, Take, DepthToSpace, SpaceToDepth)


# ---- Constants and common subexpressions


def _folded(match: Match) -> Term:
    out = match.root.tensor
    node = Node(name=out.name, operator=match.named["operator"], inputs=(), output=out.name)
    operands = match.rest("operands")
    arrays = [one.array for one in operands]
    return NewConstant(
        evaluate_operator(node, [one.tensor for one in operands], arrays, out), out.quantization
    )


CONSTANT_FOLDING = Rule(
    name="constant-folding",
    text="An operator of constants becomes a constant.",
    pattern=op(Operator, constants("operands"), name="operator"),
    replacement=_folded,
    instance=instances.operators_of_constants,
    simplifies=True,
)


def _common(match: Match) -> tuple[Term, Term] | None:
    operator, (first, second) = match.named["first"], match.roots
    is_equal = match.named["second"] == operator and (first.shape, first.dtype, first.quantization) == (
        second.shape,
        second.dtype,
        second.quantization,
    )
    if not is_equal or isinstance(operator, Foreign):  # an operator of ONNX Runtime may draw random numbers
        return None
    both = NewNode(operator, (match["x"], *match.rest("others")), first.tensor)
    return both, both


def _common_rule(
    name: str,
    text: str,
    kinds: type[Operator] | tuple[type[Operator], ...],
    instance: Callable[[np.random.Generator], Graph],
) -> Rule:
    operands = tensor("x"), rest("others")
    return Rule(
        name=name,
        text=text,
        pattern=(op(kinds, *operands, name="first"), op(kinds, *operands, name="second")),
        replacement=_common,
        instance=instance,
        simplifies=True,
    )


COMMON_SUBEXPRESSION = _common_rule(
    "common-subexpression",
    "Equal operators of the same operands become one. Those of ONNX Runtime stay.",
    Operator,
    instances.equal_operators,
)

EQUAL_QUANTIZES = _common_rule(
    "equal-quantizes",
    "Equal Quantize or Requantize operators of one tensor become one.",
    (Quantize, Requantize),
    instances.equal_quantizes,
)

IDENTITY = Rule(
    name="identity",
    text="An Identity disappears, unless it gives an input or a constant the name of an output.",
    pattern=op(Identity, tensor("x")),
    replacement=lambda match: match["x"],
    instance=instances.identities,
    simplifies=True,
)


# ---- Functions and moves


def _has_one_scale(match: Match) -> bool:
    return is_per_tensor(match["x"], match["function"], match["move"])


def _function_before_move(match: Match) -> Term:
    inner = make(match.named["function"], match["x"], like=match.root)
    return make(match.named["move"], inner)


def _function_after_move(match: Match) -> Term:
    return make(match.named["function"], make(match.named["move"], match["x"]), like=match.root)


def _before(moves: tuple[type[Operator], ...], name: str, text: str) -> Rule:
    return Rule(
        name=name,
        text=text,
        pattern=op(UNARY, op(moves, tensor("x"), name="move"), name="function"),
        condition=lambda match: match.has_one_reader("move") and _has_one_scale(match),
        replacement=_function_before_move,
        instance=instances.functions_of(moves),
    )


def _after(moves: tuple[type[Operator], ...], name: str, text: str) -> Rule:
    return Rule(
        name=name,
        text=text,
        pattern=op(moves, op(UNARY, tensor("x"), name="function"), name="move"),
        condition=lambda match: match.has_one_reader("function") and _has_one_scale(match),
        replacement=_function_after_move,
        instance=instances.moves_of_functions(moves),
    )


FUNCTION_BEFORE_TRANSPOSE = _before(
    (Transpose,), "function-before-transpose", "A function of a transposed tensor is computed before it."
)
FUNCTION_AFTER_TRANSPOSE = _after(
    (Transpose,), "function-after-transpose", "A Transpose moves before the function whose result it reads."
)
FUNCTION_BEFORE_RESHAPE = _before(
    _RESHAPES, "function-before-reshape", "A function of a Reshape is computed before it."
)
FUNCTION_AFTER_RESHAPE = _after(
    _RESHAPES, "function-after-reshape", "A Reshape moves before the function whose result it reads."
)
FUNCTION_BEFORE_PART = _before(
    _PARTS, "function-before-part", "A function of a Slice, Take or move of pixels is computed before it."
)
FUNCTION_AFTER_PART = _after(
    _PARTS, "function-after-part", "A Slice, Take or move of pixels moves before the function that it reads."
)

FUNCTION_BEFORE_REPEATS = Rule(
    name="function-before-repeats",
    text="A function of one byte is computed before a Take repeats values that nothing else reads.",
    pattern=op((Clip, Function, Requantize, Table), op(Take, tensor("x"), name="move"), name="function"),
    condition=lambda match: (
        match.root.dtype in QUANTIZED
        and is_per_tensor(match.root)
        and match["move"].tensor.size > match["x"].tensor.size
        and match.has_one_reader("move")
    ),
    replacement=_function_before_move,
    instance=instances.functions_of_repeats,
    simplifies=True,
)


def _scalar_before_move(swapped: bool) -> Callable[[Match], Term | None]:
    def replacement(match: Match) -> Term | None:
        x, value, out = match["x"], match["constant"], match.root
        if value.tensor.size != 1 or len(value.shape) > len(x.shape) or not is_per_tensor(x, out):
            return None
        if out.shape != match["move"].shape or not match.has_one_reader("move"):
            return None
        operands = (value, x) if swapped else (x, value)
        return make(match.named["move"], make(match.named["binary"], *operands, like=out))

    return replacement


SCALAR_BEFORE_MOVE = Rule(
    name="scalar-before-move",
    text="A binary operator of a moved tensor and a single constant is computed before the move.",
    pattern=op(BINARY, op(_LAYOUTS, tensor("x"), name="move"), constant("constant"), name="binary"),
    replacement=_scalar_before_move(swapped=False),
    instance=instances.moves_with_scalars,
)

FIRST_SCALAR_BEFORE_MOVE = Rule(
    name="first-scalar-before-move",
    text="A binary operator of a single constant and a moved tensor is computed before the move.",
    pattern=op(BINARY, constant("constant"), op(_LAYOUTS, tensor("x"), name="move"), name="binary"),
    replacement=_scalar_before_move(swapped=True),
    instance=instances.moves_with_first_scalars,
)


def _functions_before_concat(match: Match) -> Term | None:
    operands = match.rest("operands")
    if not is_per_tensor(*operands, match.root) or not match.has_one_reader("concat"):
        return None
    results = [make(match.named["function"], one, like=match.root) for one in operands]
    return make(match.operator("concat", Concat), *results)


FUNCTIONS_BEFORE_CONCAT = Rule(
    name="functions-before-concat",
    text="A function of a Concat is computed of each operand.",
    pattern=op(UNARY, op(Concat, rest("operands"), name="concat"), name="function"),
    replacement=_functions_before_concat,
    instance=instances.functions_of_concats,
)


def _function_after_concat(match: Match) -> Term | None:
    function, x = match.named["function"], match["x"]
    operands = [x]
    for value in match.rest("others"):
        found = definition(match, value, type(function))
        if found is None or found[0] != function:
            return None
        source = found[1][0]
        if (source.dtype, source.quantization) != (x.dtype, x.quantization):
            return None
        operands.append(source)
    if not is_per_tensor(x, match.root):
        return None
    return make(function, make(match.operator("concat", Concat), *operands), like=match.root)


FUNCTION_AFTER_CONCAT = Rule(
    name="function-after-concat",
    text="A Concat of equal functions of tensors with one scale becomes one function of their Concat.",
    pattern=op(Concat, op(UNARY, tensor("x"), name="function"), rest("others"), name="concat"),
    replacement=_function_after_concat,
    instance=instances.concats_of_functions,
)


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
    # the larger of 0 and -0 is either of both
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
    """Return the results of all 256 values of an operand, ascending, or those of some values."""
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
    """Return a Table of a binary operator, given the operands' results for all values of ``x``."""
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


# ---- Constants of float32 and int32


def _grows_exactly(values: Any) -> bool:
    """Whether all float32 values are powers of two of at least 1, or their negatives."""
    fractions, exponents = np.frexp(values)
    return bool(np.isfinite(values).all() and (np.abs(fractions) == 0.5).all() and (exponents >= 1).all())


def _factor_pair(match: Match) -> Term | None:
    left, right, x, out = match.values("left"), match.values("right"), match["x"], match.root
    if out.dtype != "float32" or x.shape != out.shape:
        return None
    with np.errstate(over="ignore"):
        product = np.asarray(left * right)
    # smaller factors would round twice where results are subnormal
    if not all(map(_grows_exactly, (left, right, product))):
        return None
    return make(Mul(), x, NewConstant(product))


FACTOR_PAIR = Rule(
    name="factor-pair",
    text="Two float32 factors in sequence that are powers of two and at least 1 become one.",
    pattern=op(Mul, op(Mul, tensor("x"), constant("left")), constant("right")),
    replacement=_factor_pair,
    instance=instances.factor_pairs,
    simplifies=True,
)


def _is_neutral(match: Match) -> bool:
    values, operator = match.values("constant"), match.named["binary"]
    x, out = match["x"], match.root
    if (x.shape, x.quantization) != (out.shape, out.quantization) or out.dtype not in {"float32", "int32"}:
        return False
    if isinstance(operator, Mul):
        return bool((values == 1).all())
    if isinstance(operator, Add):  # -0 + 0 is 0
        is_negative = np.signbit(values).all() or out.dtype == "int32"
        return bool((values == 0).all() and is_negative)
    if not isinstance(operator, Binary):
        return False
    if operator.function == "Sub":  # -0 - -0 is 0
        return bool((values == 0).all() and not np.signbit(values).any())
    return operator.function == "Div" and bool((values == 1).all())


NEUTRAL_CONSTANT = Rule(
    name="neutral-constant",
    text="A product or quotient with 1, a sum with -0, and a difference with 0 disappear.",
    pattern=op(BINARY, tensor("x"), constant("constant"), name="binary"),
    condition=_is_neutral,
    replacement=lambda match: match["x"],
    instance=instances.neutral_constants,
    simplifies=True,
)


def _quotient(match: Match) -> Term | None:
    values = match.values("constant")
    if match.operator("binary", Binary).function != "Div":
        return None
    with np.errstate(all="ignore"):
        factors = np.asarray(np.float32(1) / values)
        is_exact = (np.abs(np.frexp(values)[0]) == 0.5) & np.isfinite(factors) & np.isfinite(values)
        is_exact &= np.float32(1) / factors == values
    return make(Mul(), match["x"], NewConstant(factors)) if is_exact.all() else None


QUOTIENT_AS_PRODUCT = Rule(
    name="quotient-as-product",
    text="A float32 quotient by powers of two becomes a product.",
    pattern=op(Binary, tensor("x"), constant("constant"), name="binary"),
    replacement=_quotient,
    instance=instances.quotients,
    simplifies=True,
)


def _summand_pair(match: Match) -> Term | None:
    left, right, x, out = match.values("left"), match.values("right"), match["x"], match.root
    if out.dtype != "int32" or x.shape != out.shape:
        return None
    return make(Add(), x, NewConstant(np.asarray(left + right)), like=out)


SUMMAND_PAIR = Rule(
    name="summand-pair",
    text="Two int32 constants that are added in sequence become one. float32 would round differently.",
    pattern=op(Add, op(Add, tensor("x"), constant("left")), constant("right")),
    replacement=_summand_pair,
    instance=instances.summand_pairs,
    simplifies=True,
)

SINKING_RULES: tuple[Rule, ...] = tuple(
    replace(one, simplifies=True)
    for one in (
        FUNCTION_BEFORE_TRANSPOSE,
        FUNCTION_BEFORE_RESHAPE,
        SCALAR_BEFORE_MOVE,
        FIRST_SCALAR_BEFORE_MOVE,
    )
)
"""Rules that :mod:`accel.rewriting.sunk_moves` applies where a product reads the result."""

ELEMENTWISE_RULES: tuple[Rule, ...] = (
    CONSTANT_FOLDING,
    COMMON_SUBEXPRESSION,
    EQUAL_QUANTIZES,
    IDENTITY,
    CLIP_OF_NOTHING,
    CLIP_PAIR,
    REQUANTIZE_OF_NOTHING,
    REQUANTIZE_PAIR,
    REINTERPRET_OF_NOTHING,
    REINTERPRET_PAIR,
    NEUTRAL_CONSTANT,
    FACTOR_PAIR,
    SUMMAND_PAIR,
    QUOTIENT_AS_PRODUCT,
    FUNCTION_BEFORE_REPEATS,
    FUNCTION_BEFORE_TRANSPOSE,
    FUNCTION_AFTER_TRANSPOSE,
    FUNCTION_BEFORE_RESHAPE,
    FUNCTION_AFTER_RESHAPE,
    FUNCTION_BEFORE_PART,
    FUNCTION_AFTER_PART,
    SCALAR_BEFORE_MOVE,
    FIRST_SCALAR_BEFORE_MOVE,
    FUNCTIONS_BEFORE_CONCAT,
    FUNCTION_AFTER_CONCAT,
    FUNCTION_BEFORE_MAXIMUM,
    FUNCTION_AFTER_MAXIMUM,
    FUNCTION_PAIR,
    SCALAR_TABLE,
    FIRST_SCALAR_TABLE,
    GATED_TABLE,
    FIRST_GATED_TABLE,
)
