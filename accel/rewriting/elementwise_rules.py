"""Rules that exchange elementwise operators with moves and Concats."""

from __future__ import annotations

from collections.abc import Callable

from accel.graph.elementwise_operators import (
    Clip,
    Function,
    Requantize,
    Table,
)
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import QUANTIZED
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
from accel.rewriting import elementwise_instances as instances
from accel.rewriting.operator_classes import BINARY, UNARY
from accel.rewriting.pattern import (
    Match,
    Term,
    constant,
    is_per_tensor,
    make,
    op,
    rest,
    tensor,
)
from accel.rewriting.rule import Rule

_RESHAPES = (Reshape, Identity)
_LAYOUTS = (*_RESHAPES, Transpose)
_PARTS = (Slice, Take, DepthToSpace, SpaceToDepth)


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
        condition=_has_one_scale,
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
        if out.shape != match["move"].shape:
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
        found = match.definition(value, type(function))
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

ELEMENTWISE_RULES: tuple[Rule, ...] = (
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
)
