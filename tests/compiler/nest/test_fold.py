"""Reset and bias in one pass: the same result for every bias that is let through, and only where it holds."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel import te
from accel.base.errors import ShapeError
from accel.compiler.expr.scalar import INT32_MAX, INT32_MIN
from accel.compiler.nest.fold import fold_bias
from accel.compiler.nest.nest import Alu, Nest, format_nest, walk_nodes
from accel.compiler.target.finish import preparation_for
from accel.core.isa import Loops
from accel.image.layout import Preparation
from accel.run.program import Program
from tests.expect import refused
from tests.reference import signed
from tests.strategies import examples

M = accel.machine("gemm8x8")


def tensorized(**options: Any) -> Nest:
    return te.tensorize(accel.build(accel.gemm(20, 40, 24, **options), M).schedule())


def mnemonics(program: Program) -> Counter[str]:
    return Counter(i.mnemonic for i in program.instructions if isinstance(i, Loops))


# --- where it is done --------------------------------------------------------------------------------


def test_reset_and_bias_become_one_step() -> None:
    nest = tensorized(bias=True, shift=8)
    assert [node.op for node in walk_nodes(nest.body) if isinstance(node, Alu)] == [
        "add",
        "shr",
        "max",
        "min",
    ]
    text = format_nest(fold_bias(nest))
    steps = ["fill_zero(S)", "min(S[", "fused_gemm8x8_add(S[", "shr(S[", "max(S[", "min(S["]
    places = [text.index(steps[0])]
    for step in steps[1:]:
        places.append(text.index(step, places[-1]))
    assert text.count("fill_zero") == 1
    assert text.index("for") > places[0]
    assert "add(S[" not in text.replace("fused_gemm8x8_add", "")
    assert ", -32640)" in text  # -128 - 127 * 256
    assert ", -32385)" in text


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": True},
        {"shift": 8},
        {"bias": True, "shift": 0},
        {"bias": True, "relu": True},
        {"relu": True, "shift": 3},
        {"bias": True, "shift": 22},
        {"bias": True, "shift": 31},
    ],
)
def test_what_cannot_be_folded_stays(options: dict[str, Any]) -> None:
    nest = tensorized(**options)
    assert fold_bias(nest) == nest


@pytest.mark.parametrize("options", [{"shift": 1}, {"shift": 21}, {"shift": 8, "relu": True}])
def test_one_pass_less(options: dict[str, Any]) -> None:
    """As many micro-ops as without a bias, and those that set the accumulators to zero once."""
    sizes = (64, 64, 64)
    with_bias, without = (accel.build(accel.gemm(*sizes, bias=b, **options), M) for b in (True, False))
    uops = [sum(i.uop_count for i in p.instructions if isinstance(i, Loops)) for p in (with_bias, without)]
    cleared = next(i.uop_count for i in with_bias.instructions if isinstance(i, Loops))
    assert uops[0] == uops[1] + cleared
    assert mnemonics(with_bias)["ALU.ADD"] == 0
    assert with_bias.folded


def test_a_residual_is_added_in_between() -> None:
    schedule = accel.build(accel.dense(20, 24, 40, bias=True, residual=True, shift=8), M).schedule()
    nest = fold_bias(te.tensorize(schedule))
    assert [node.op for node in walk_nodes(nest.body) if isinstance(node, Alu)] == [
        "min",
        "shr",
        "add",
        "max",
        "min",
    ]


@pytest.mark.parametrize("again", [True, False])
def test_a_bias_with_two_readers_stays_and_so_does_what_adds_any_value_behind_the_shift(again: bool) -> None:
    """One of the readers would find it changed; what is added must not lead beyond the clip's reach."""
    A, B = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
    bias = te.placeholder((8,), "int32", name="bias")
    other = te.placeholder((8,), "int32", name="other")
    k = te.reduce_axis((0, 8), name="k")
    S = te.compute((8, 8), lambda y, x: te.sum(A[y, k] * B[k, x], axis=k), name="S")
    C = te.compute(
        (8, 8),
        lambda y, x: te.clip(((S[y, x] + bias[x]) >> 4) + (bias if again else other)[x], -128, 127),
        name="C",
        dtype="int8",
    )
    s = te.create_schedule(C)
    s[S].set_scope(M.acc_buffer)
    CL = s[s.cache_write(C, M.acc_buffer)]
    s.cache_read(A, M.inp_buffer)
    s.cache_read(B, M.wgt_buffer)
    for added in (bias,) if again else (bias, other):
        s[s.cache_read(added, M.acc_buffer)].compute_at(s[C], "y")
    for stage in (CL, s[S]):
        stage.compute_at(s[C], "y")
    s[S].tensorize("y", M.gemm)
    CL.tensorize("y", M.alu)
    nest = te.tensorize(s)
    assert fold_bias(nest) == nest


# --- which biases it holds for -----------------------------------------------------------------------


def folded(
    bias: int, total: int, before: int, shift: int, added: int, low: int, high: int, lowered: int
) -> int:
    """The accumulator after an epilogue that began with ``min(before, bias)``; sums wrap."""
    acc = (signed(min(before, bias) + total, 32) >> shift) + added
    return min(max(acc, low - lowered), high - lowered)


@examples(2000)
@given(st.data())
def test_both_forms_agree_for_every_bias_that_is_accepted(data: st.DataObject) -> None:
    """At the edges of everything: sums, bias and what the accumulator held before."""
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
    acc = folded(start, total, before, shift, added, low, high, lowered)
    assert (acc - min(max(((bias + total) >> shift) + added, low), high)) % 256 == 0
    assert low - lowered <= acc <= high - lowered


@pytest.mark.parametrize("shift", [1, 8, 12, 16, 21])
@pytest.mark.parametrize("low", [-128, 0])
def test_ordinary_biases_are_accepted(low: int, shift: int) -> None:
    """Those that do not drive every output into saturation, for sums as long as in large networks."""
    found = preparation_for(low, 127, shift, 4608 << 14)
    assert found is not None
    least, most = found[0].accepted
    assert least <= max(-(1 << 30), -(256 << shift))
    assert most >= min(1 << 30, 256 << shift)


BIAS_EDGES = [INT32_MIN, INT32_MAX, -(1 << 30), 1 << 30, -(1 << 24), 1 << 24, 0, -1]


@pytest.mark.parametrize("shift", [1, 8, 15, 21])
@pytest.mark.parametrize("value", BIAS_EDGES)
def test_any_bias_gives_the_right_result(value: int, shift: int) -> None:
    """Those beyond what can be folded run unfolded."""
    program = accel.build(accel.gemm(9, 17, 30, bias=True, shift=shift), M)
    inputs = program.random_inputs() | {"bias": np.full(17, value, dtype=np.int32)}
    result = program.run(inputs)
    assert result.mismatches == 0
    constant = accel.build(
        accel.gemm(9, 17, 30, bias=True, shift=shift), M, constants={"bias": inputs["bias"]}
    )
    again = constant.run({name: inputs[name] for name in "AB"})
    assert again.mismatches == 0
    tensor = next(t for t in program.tensors if t.name == "bias")
    assert tensor.preparation is not None
    accepted = tensor.preparation.accepts(inputs["bias"])
    assert constant.folded == accepted
    assert (Counter(i.mnemonic for i in result.instructions)["ALU.ADD"] > 0) != accepted


@pytest.mark.parametrize("shift", [1, 8, 21])
@pytest.mark.parametrize("added", [-128, 127])
def test_any_bias_with_any_residual(added: int, shift: int) -> None:
    program = accel.build(accel.dense(9, 30, 17, bias=True, residual=True, shift=shift), M)
    biases = np.array([-(200 << shift), 200 << shift, -1, 0, *BIAS_EDGES], dtype=np.int64)
    bias = np.resize(biases.clip(INT32_MIN, INT32_MAX).astype(np.int32), 17)
    for chosen in (bias, bias.clip(-(1 << 24), 1 << 24)):
        inputs = program.random_inputs() | {"bias": chosen, "residual": np.full((9, 17), added, np.int8)}
        assert program.run(inputs).mismatches == 0


def test_the_edges_of_what_is_accepted() -> None:
    program = accel.build(accel.gemm(8, 8, 8, bias=True, shift=4), M)
    tensor = next(t for t in program.tensors if t.name == "bias")
    assert tensor.preparation is not None
    least, most = tensor.preparation.accepted
    bare = replace(program, source=None)
    inputs = {"A": np.zeros((8, 8), np.int8), "B": np.zeros((8, 8), np.int8)}
    for value, fine in ((least, True), (least - 1, False), (most, True), (most + 1, False)):
        given_bias = inputs | {"bias": np.full(8, value, dtype=np.int32)}
        assert program.run(given_bias).mismatches == 0
        if fine:
            expected = min(max(value >> 4, -128), 127)
            assert (bare.run(given_bias).outputs["C"] == expected).all()
            continue
        message = f"bias holds {value}; the program was compiled for {least}..{most}"
        with refused(ShapeError, message):
            bare.run(given_bias)


# --- what the host does ------------------------------------------------------------------------------


def test_a_preparation_clips_and_shifts() -> None:
    preparation = Preparation(accepted=(-100, 50), bounds=(-20, 40), offset=-7)
    values = np.array([-100, -21, -20, 0, 40, 41, 50], dtype=np.int32)
    assert preparation.apply("b", values).tolist() == [-27, -27, -27, -7, 33, 33, 33]
    assert preparation.undo(np.array([-27, 33], dtype=np.int32)).tolist() == [-20, 40]
    assert preparation.accepts(values)
    for bad in (-101, 51):
        assert not preparation.accepts(np.array([0, bad], dtype=np.int32))
        with refused(ShapeError, f"b holds {bad}; the program was compiled for -100..50"):
            preparation.apply("b", np.array([0, bad], dtype=np.int32))
    assert Preparation.from_dict(preparation.to_dict()) == preparation
    assert preparation.accepts(np.zeros(0, dtype=np.int32))


def test_the_interpreter_does_the_same() -> None:
    nest = tensorized(bias=True, shift=6)
    program = accel.build(accel.gemm(20, 40, 24, bias=True, shift=6), M)
    inputs = program.random_inputs()
    found = te.interpret(fold_bias(nest), inputs)["C"]
    np.testing.assert_array_equal(found, te.interpret(nest, inputs)["C"])
