"""Epilogues as ALU passes: the same values, in as few passes as possible."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel import te
from accel.compiler.expr.epilogue_operators import (
    RELU,
    AtLeast,
    AtMost,
    Bias,
    Combine,
    Finished,
    Offset,
    PostOp,
    Residual,
    Scale,
    Shift,
    Take,
    saturate,
)
from accel.compiler.expr.numpy_reference import apply, evaluate
from accel.compiler.expr.scalar_expressions import (
    INT32_MAX,
    INT32_MIN,
    Const,
    Expr,
    Guarded,
    IterVar,
    substitute,
)
from accel.compiler.target.alu_epilogue import (
    IMMEDIATE_HIGH,
    IMMEDIATE_LOW,
    folded,
    passes,
    preparation_for,
    simplified,
)
from tests.reference import signed
from tests.strategies import examples

S, T = (te.placeholder((4,), "int32", name=name) for name in "ST")
R = te.placeholder((4,), name="R")
y = IterVar("y", 4)
HERE = ((Const(0), y), (y, Const(3)))
"""Conditions of a guard that hold in the middle of y."""
OPERATIONS = {"zero": "*", "add": "+", "mul": "*", "shr": ">>", "min": "min", "max": "max"}

# --- passes -----------------------------------------------------------------------------------------

near = st.integers(-9, 9)
immediates = near | st.integers(IMMEDIATE_LOW, IMMEDIATE_HIGH)
factors = st.builds(
    lambda a, b: Guarded(Const(a), ((y, Const(2)),)) + Guarded(Const(b), ((Const(1), y),)), near, near
)
elements = st.sampled_from([T[y], R[y]])
operators = st.one_of(
    st.just(Bias(T[y])),
    st.just(Bias(Guarded(T[y], HERE))),
    st.just(Residual(R[y])),
    st.builds(Offset, immediates),
    st.builds(Scale, near.map(Const) | factors),
    st.builds(Shift, near),
    st.builds(AtLeast, immediates),
    st.builds(AtMost, immediates),
    st.builds(Combine, st.sampled_from(["*", ">>", "min", "max"]), elements),
    st.just(Combine("max", Guarded(T[y], HERE, INT32_MIN))),
    st.builds(Take, elements),
)


def in_passes(ops: Sequence[PostOp], values: dict[str, np.ndarray]) -> np.ndarray:
    """Values that the ALU passes compute from S."""
    result = values["S"]
    places = {y: np.arange(4)}
    for one in (one for op in ops for one in passes(op)):
        operand = one.operand if isinstance(one.operand, int) else values[one.operand.tensor.name]
        changed = apply(OPERATIONS[one.op], result, np.asarray(operand))
        met = [np.asarray(_at(a, places) < _at(b, places)) for a, b in one.conditions]
        result = np.where(np.logical_and.reduce(met), changed, result) if met else changed
    return result


def _at(side: Expr, places: dict[IterVar, np.ndarray]) -> np.ndarray:
    return places[side] if isinstance(side, IterVar) else np.array(side.value)  # type: ignore[attr-defined]


@examples(400)
@given(st.lists(operators, max_size=7), st.integers(0, 2**32 - 1))
def test_passes_equal_the_operators(ops: list[PostOp], seed: int) -> None:
    """This includes the smallest numbers of passes."""
    rng = np.random.default_rng(seed)
    wide = rng.integers(INT32_MIN, INT32_MAX, (2, 4), dtype=np.int32, endpoint=True)
    wide[:, :2] >>= 24
    values = {"S": wide[0], "T": wide[1], "R": rng.integers(-128, 128, 4, dtype=np.int8)}
    C = te.compute((4,), lambda i: substitute(Finished(S[y], tuple(ops)), {y: i}), name="C")
    want = evaluate([C], values)["C"]
    np.testing.assert_array_equal(in_passes(ops, values), want)
    few = simplified(ops)
    assert len(few) <= len(ops)
    np.testing.assert_array_equal(in_passes(few, values), want)


@pytest.mark.parametrize(
    ("ops", "fewer"),
    [
        ([RELU, *saturate(-128, 127)], [AtLeast(0), AtMost(127)]),
        ([*saturate(-8, 7), *saturate(-128, 127)], [AtLeast(-8), AtMost(7)]),
        ([Shift(0), Offset(0), Scale(Const(1))], []),
        ([Shift(20), Shift(20)], [Shift(31)]),
        ([Shift(2), Shift(-2)], [Shift(2), Shift(-2)]),
        ([Offset(IMMEDIATE_HIGH), Offset(1)], [Offset(IMMEDIATE_HIGH), Offset(1)]),
        ([AtMost(5), AtLeast(9)], [AtMost(5), AtLeast(9)]),
    ],
)
def test_needless_operators_are_left_out(ops: list[PostOp], fewer: list[PostOp]) -> None:
    assert simplified(ops) == tuple(fewer)


# --- reset and bias at once --------------------------------------------------------------------------


@pytest.mark.parametrize("between", [[], [Residual(R[y])]])
@pytest.mark.parametrize("clip", [saturate(-128, 127), saturate(-128, 127)[::-1]])
def test_sums_start_from_a_bias(between: list[PostOp], clip: list[PostOp]) -> None:
    """Each bound, wherever it is in the list, is lowered by the amount that the host
    subtracts from the bias."""
    found = folded([Bias(T[y]), Shift(8), *between, *clip], 576 << 14)
    assert found is not None
    assert found.start == Combine("min", T[y])
    low, high = (-128 - 127 * 256, 127 - 127 * 256)
    lowered = {AtLeast: AtLeast(low), AtMost: AtMost(high)}
    assert found.rest == (Shift(8), *between, *(lowered[type(op)] for op in clip))
    assert found.preparation.offset == -(127 * 256) << 8


@pytest.mark.parametrize(
    "ops",
    [
        [Bias(T[y]), Shift(8)],
        [Bias(T[y]), *saturate(-128, 127)],
        [Bias(T[y]), Shift(8), AtLeast(0)],
        [Bias(T[y]), Shift(8), AtMost(127), AtMost(12)],
        [Bias(T[y]), Shift(-3), *saturate(-128, 127)],
        [Bias(T[y]), Shift(8), Bias(S[y]), *saturate(-128, 127)],
        [Bias(T[y]), Shift(8), Combine("max", R[y]), *saturate(-128, 127)],
        [Bias(T[y]), Shift(8), Residual(R[y]), Residual(R[y]), *saturate(-128, 127)],
        [Residual(R[y]), Shift(8), *saturate(-128, 127)],
        [Bias(Guarded(T[y], HERE)), Shift(8), *saturate(-128, 127)],
        [Shift(8), Bias(T[y]), *saturate(-128, 127)],
    ],
)
def test_other_lists_start_from_zero(ops: list[PostOp]) -> None:
    assert folded(ops, 576 << 14) is None


# --- which biases it holds for -----------------------------------------------------------------------


def finished(
    bias: int, total: int, before: int, shift: int, added: int, low: int, high: int, lowered: int
) -> int:
    """The accumulator after an epilogue that began with ``min(before, bias)``. Sums wrap."""
    acc = (signed(min(before, bias) + total, 32) >> shift) + added
    return min(max(acc, low - lowered), high - lowered)


@examples(2000)
@given(st.data())
def test_both_forms_agree_for_every_bias_that_is_accepted(data: st.DataObject) -> None:
    """The values are extremes of sums, bias and previous accumulator."""
    low = data.draw(st.sampled_from([-128, 0, -1, 100, -3000]))
    high = data.draw(st.sampled_from([127, low, 255, 3000].copy()).filter(lambda n: n >= low))
    shift, limit = data.draw(st.integers(0, 31)), data.draw(st.integers(0, 31).map(lambda n: (1 << n) - 1))
    between = data.draw(st.sampled_from([(0, 0), (-128, 127)]))
    found = preparation_for(low, high, shift, limit, between)
    if found is None:
        return
    preparation, lowered = found
    assert lowered % 256 == 0
    assert low - lowered >= -(1 << 15)
    least, most = preparation.accepted
    near = [least, most, *preparation.bounds, 0, low << shift, high << shift]
    bias = data.draw(st.sampled_from(near).flatmap(lambda n: st.integers(n - 2, n + 2)))
    bias = min(max(bias, least), most)
    total = data.draw(st.sampled_from([-limit, limit, 0]) | st.integers(-limit, limit))
    added = data.draw(st.sampled_from([*between, 0]))
    before = data.draw(st.sampled_from([low - lowered, high - lowered, 0]))
    (start,) = preparation.apply("bias", np.array([bias], dtype=np.int32)).tolist()
    assert start <= min(before, 0)
    acc = finished(start, total, before, shift, added, low, high, lowered)
    assert (acc - min(max(((bias + total) >> shift) + added, low), high)) % 256 == 0
    assert low - lowered <= acc <= high - lowered


@pytest.mark.parametrize("shift", [1, 8, 12, 16, 21])
@pytest.mark.parametrize("low", [-128, 0])
def test_ordinary_biases_are_accepted(low: int, shift: int) -> None:
    """Ordinary means that not every output saturates, for sums as long as in large networks."""
    found = preparation_for(low, 127, shift, 4608 << 14)
    assert found is not None
    least, most = found[0].accepted
    assert least <= max(-(1 << 30), -(256 << shift))
    assert most >= min(1 << 30, 256 << shift)
