"""Rules of constants, common subexpressions and Identities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accel.graph.elementwise_operators import (
    Add,
    Binary,
    Mul,
    Quantize,
    Requantize,
)
from accel.graph.foreign_operator import Foreign
from accel.graph.graph import Graph, Node
from accel.graph.graph_evaluation import evaluate_operator
from accel.graph.graph_operator import Operator
from accel.graph.movement_operators import (
    Identity,
)
from accel.rewriting import elementwise_instances as instances
from accel.rewriting.operator_classes import BINARY
from accel.rewriting.pattern import (
    Match,
    NewConstant,
    NewNode,
    Term,
    constant,
    constants,
    make,
    op,
    rest,
    tensor,
)
from accel.rewriting.rule import Rule

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
    if not is_equal or isinstance(operator, Foreign):  # ONNX Runtime may draw random numbers
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

CONSTANT_RULES: tuple[Rule, ...] = (
    CONSTANT_FOLDING,
    COMMON_SUBEXPRESSION,
    EQUAL_QUANTIZES,
    IDENTITY,
    NEUTRAL_CONSTANT,
    FACTOR_PAIR,
    SUMMAND_PAIR,
    QUOTIENT_AS_PRODUCT,
)
