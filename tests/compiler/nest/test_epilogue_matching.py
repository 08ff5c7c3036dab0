"""Elementwise expressions as chains of ALU steps: equal values in the fewest steps."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel import te
from accel.base.errors import TensorizeError
from accel.compiler.expr.numpy_reference import apply
from accel.compiler.expr.scalar_expressions import Binary, Const, Expr, Read, format_expr
from accel.compiler.nest.epilogue_matching import Chain, chain_of
from accel.compiler.target.alu_epilogue import IMMEDIATE_HIGH, IMMEDIATE_LOW, passes
from tests.compiler.oracle import expected, operated, some_inputs, wrapped
from tests.expect import refused
from tests.strategies import examples

S, T, bias = (te.placeholder((4,), "int32", name=name) for name in ("S", "T", "bias"))
y = te.IterVar("y", 4)
s, t, b = S[y], T[y], bias[y]
OPERATIONS = {"add": "+", "mul": "*", "shr": ">>", "min": "min", "max": "max"}


def chained(body: Expr) -> Chain:
    return chain_of("C", body, lambda read: read.tensor is S)


def steps(body: Expr) -> list[tuple[str, int | str]]:
    return [
        (step.op, step.operand if isinstance(step.operand, int) else format_expr(step.operand))
        for op in chained(body).ops
        for step in passes(op)
    ]


@pytest.mark.parametrize(
    ("body", "expected_steps"),
    [
        (te.clip((s + b) >> 8, -128, 127), [("add", "bias[y]"), ("shr", 8), ("max", -128), ("min", 127)]),
        (te.max(b, 2 * s - 3), [("mul", 2), ("add", -3), ("max", "bias[y]")]),
        (s << 3, [("shr", -3)]),
        (3 - s, [("mul", -1), ("add", 3)]),
        (t + s * b, [("mul", "bias[y]"), ("add", "T[y]")]),
        (t + s, [("add", "T[y]")]),
        (s >> t, [("shr", "T[y]")]),
    ],
)
def test_one_step_per_operation(body: Expr, expected_steps: list[tuple[str, int | str]]) -> None:
    assert chained(body).root == s
    assert steps(body) == expected_steps


@pytest.mark.parametrize(
    ("body", "expected_steps"),
    [
        (s + 3 + 4 - 2, [("add", 5)]),
        (s + IMMEDIATE_HIGH + 1, [("add", IMMEDIATE_HIGH), ("add", 1)]),
        ((s >> 20) >> 20, [("shr", 31)]),
        ((s >> 2) << 2, [("shr", 2), ("shr", -2)]),
        (te.min(te.min(s, 9), 5), [("min", 5)]),
        (te.max(te.max(s, -9), 5), [("max", 5)]),
        (te.clip(te.max(s, 0), -128, 127), [("max", 0), ("min", 127)]),
        (te.clip(te.clip(s, -8, 7), -128, 127), [("max", -8), ("min", 7)]),
        (te.max(te.min(s, 5), 9), [("min", 5), ("max", 9)]),
        (te.max(te.clip(s, 3, 1 << 10), 2), [("max", 3), ("min", 1 << 10)]),
        (te.min(te.max(te.min(s, 5), 7), 6), [("min", 5), ("max", 7), ("min", 6)]),
        (s * 1 + 0 >> 0, [("add", 0)]),
        ((s + 0) * 3, [("mul", 3)]),
    ],
)
def test_needless_steps_are_left_out(body: Expr, expected_steps: list[tuple[str, int | str]]) -> None:
    assert steps(body) == expected_steps


# --- equal values ----------------------------------------------------------------------------------

near = st.integers(-9, 9)
immediates = (
    near | st.integers(IMMEDIATE_LOW, IMMEDIATE_HIGH) | st.sampled_from([IMMEDIATE_LOW, IMMEDIATE_HIGH])
)
sums = st.recursive(
    st.just(s),
    lambda parts: (
        st.builds(Binary, st.sampled_from(["+", "*", "min", "max"]), parts, near.map(Const))
        | st.builds(Binary, st.sampled_from(["+", "*", "min", "max"]), immediates.map(Const), parts)
        | st.builds(Binary, st.sampled_from(["-", "<<", ">>"]), parts, near.map(Const))
        | st.builds(Binary, st.just("-"), near.map(Const), parts)
        | st.builds(Binary, st.sampled_from(["+", "*", "min", "max", ">>"]), parts, st.sampled_from([t, b]))
    ),
    max_leaves=12,
)


@examples(500)
@given(sums, st.lists(near | st.integers(-(1 << 31), (1 << 31) - 1), min_size=3, max_size=3))
def test_chains_give_what_expressions_give(body: Expr, numbers: list[int]) -> None:
    values = dict(zip((S, T, bias), (np.array([n]) for n in numbers), strict=True))
    result = values[S]
    for step in (step for op in chained(body).ops for step in passes(op)):
        operand = np.array([step.operand]) if isinstance(step.operand, int) else values[step.operand.tensor]  # type: ignore[index]
        result = apply(OPERATIONS[step.op], result, operand)
        assert not isinstance(step.operand, int) or IMMEDIATE_LOW <= step.operand <= IMMEDIATE_HIGH
    assert result == value_of(body, values)


def value_of(expr: Expr, values: dict[te.Tensor, np.ndarray]) -> np.ndarray:
    if isinstance(expr, Const):
        return np.array([expr.value])
    if isinstance(expr, Read):
        return values[expr.tensor]  # type: ignore[index]
    assert isinstance(expr, Binary)
    return wrapped(operated(expr.op, value_of(expr.a, values), value_of(expr.b, values)), "int32")


# --- expressions without a chain -------------------------------------------------------------------

IN_PLACE = "the ALU changes one accumulator in place, by steps with an immediate or another accumulator"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            (s + 1) * (t + 1),
            "C combines S[y] + 1 with T[y] + 1; one of the two must be a constant or a tensor: "
            "make the other a computation of its own",
        ),
        (s - t, "C uses '-' on tensors; the ALU has + * >> min max, and - and << by constants"),
        (s << t, "C uses '<<' on tensors; the ALU has + * >> min max, and - and << by constants"),
        (s // 2, "C uses '//' on tensors; the ALU has + * >> min max, and - and << by constants"),
        (s + 40000, "C has the constant 40000; an immediate is in -32768..32767"),
        (s - -32768, "C has the constant -32768; an immediate is in -32768..32767"),
        (
            te.cast(s, "int8") + 1,
            f"C has int8(S[y]); {IN_PLACE}",
        ),
        (s + y, f"C has y; {IN_PLACE}"),
        (
            t + b,
            "C would change bias[y] in place; it must start from sums that are computed in acc_buffer inside "
            "the same loop, element by element, and that no other stage reads",
        ),
    ],
)
def test_expressions_without_a_chain(body: Expr, message: str) -> None:
    with refused(TensorizeError, message):
        chained(body)


# --- on the machine --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gemm8x8", "tiny"])
@pytest.mark.parametrize(
    "body",
    [
        lambda P, Q, W, b, r: te.clip(P + b >> 3, -128, 127),
        lambda P, Q, W, b, r: te.max(Q, P * r) + W,
        lambda P, Q, W, b, r: W * P * W,
        lambda P, Q, W, b, r: P,
        lambda P, Q, W, b, r: (P << 2) - 5,
        lambda P, Q, W, b, r: te.min(P >> W, r),
        lambda P, Q, W, b, r: te.max(W, W >> 3),
        lambda P, Q, W, b, r: (W + P) * W,
    ],
    ids=[
        "bias",
        "tensors",
        "read twice",
        "copy",
        "constants",
        "shift by a tensor",
        "root twice",
        "root last",
    ],
)
def test_chains_on_the_machine(name: str, body: Callable[..., Expr]) -> None:
    """Operands that repeat along rows or columns, and an int8 operand that LOAD widens."""
    m = accel.machine(name)
    P, Q = (te.placeholder((13, 11), "int32", name=n) for n in "PQ")
    w = te.placeholder((13, 11), name="w")
    W = te.compute((13, 11), lambda y, x: w[y, x].astype("int32"), name="W")
    b, r = te.placeholder((11,), "int32", name="b"), te.placeholder((13,), "int32", name="r")
    C = te.compute(
        (13, 11),
        lambda y, x: body(P[y, x], Q[y, x], W[y, x], b[x], r[y]),
        name="C",
        dtype="int8",
    )
    s = te.create_schedule(C)
    on_chip = [s.cache_write(C, m.acc_buffer)]
    on_chip += [s.cache_read(tensor, m.acc_buffer) for tensor in s.inputs if tensor.dtype == "int32"]
    if any(stage.tensor is W for stage in s.stages):
        s[W].set_scope(m.acc_buffer)
        on_chip.append(W)
    s[C].tile("y", "x", m.config.batch, 2 * m.config.block_out)
    for tensor in on_chip:
        s[tensor].compute_at(s[C], "xo")
    result = s[on_chip[0]]
    result.tensorize(result.tile(*result.axis, m.config.batch, m.config.block_out)[2], m.alu)
    inputs = some_inputs([C], 5)
    want = expected([C], inputs)["C"]
    for nest in (te.lower(s), te.tensorize(s)):
        np.testing.assert_array_equal(te.interpret(nest, inputs)["C"], want)
    np.testing.assert_array_equal(accel.build(s, m).run(inputs).outputs["C"], want)
