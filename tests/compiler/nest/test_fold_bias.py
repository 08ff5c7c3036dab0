"""Reset and bias in one pass: equal results for every accepted bias, and only where that is exact."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import accel
from accel import te
from accel.base.errors import ShapeError
from accel.base.records import replace
from accel.compiler.expr.epilogue_operators import (
    AtLeast,
    AtMost,
    Bias,
    Combine,
    PostOp,
    ResidualProduct,
    Shift,
)
from accel.compiler.expr.scalar_expressions import INT32_MAX, INT32_MIN, Expr
from accel.compiler.nest.fold_bias import fold_bias
from accel.compiler.nest.nest import BlockEpilogue, Nest, walk_nodes
from accel.compiler.nest.nest_text import format_nest
from accel.core.isa import Loops
from accel.image.packed_layout import Preparation
from accel.run.program import Program
from accel.te import Schedule
from tests.compiler.running import as_it_is
from tests.expect import refused
from tests.thorough import diagonal

M = accel.machine("gemm8x8")


def tensorized(**options: Any) -> Nest:
    return te.tensorize(as_it_is(accel.gemm(20, 40, 24, **options), M).schedule())


def post_operators(nest: Nest) -> list[list[type[PostOp]]]:
    """Return the epilogue operators of each tile, in order."""
    finishes = [node for node in walk_nodes(nest.body) if isinstance(node, BlockEpilogue)]
    return [[type(one.op) for one in node.ops] for node in finishes]


def mnemonics(program: Program) -> Counter[str]:
    return Counter(i.mnemonic for i in program.instructions if isinstance(i, Loops))


# --- folded and unfolded epilogues -------------------------------------------------------------------


def test_reset_and_bias_become_one_step() -> None:
    nest = tensorized(bias=True, shift=8)
    assert post_operators(nest) == [[Bias, Shift, AtLeast, AtMost]]
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
def test_epilogues_that_cannot_be_folded_stay(options: dict[str, Any]) -> None:
    nest = tensorized(**options)
    assert fold_bias(nest) == nest


@pytest.mark.parametrize("options", [{"shift": 1}, {"shift": 21}, {"shift": 8, "relu": True}])
def test_folding_saves_one_pass(options: dict[str, Any]) -> None:
    """The number of micro-ops is that without a bias, plus those that clear the accumulators once."""
    sizes = (64, 64, 64)
    with_bias, without = (as_it_is(accel.gemm(*sizes, bias=b, **options), M) for b in (True, False))
    uops = [sum(i.uop_count for i in p.instructions if isinstance(i, Loops)) for p in (with_bias, without)]
    cleared = next(i.uop_count for i in with_bias.instructions if isinstance(i, Loops))
    assert uops[0] == uops[1] + cleared
    assert mnemonics(with_bias)["ALU.ADD"] == 0
    assert with_bias.folded


def test_a_residual_is_added_in_between() -> None:
    schedule = as_it_is(accel.dense(20, 24, 40, bias=True, residual=True, shift=8), M).schedule()
    nest = fold_bias(te.tensorize(schedule))
    assert post_operators(nest) == [[Combine], [Shift, ResidualProduct, AtLeast, AtMost]]


@pytest.mark.parametrize("again", [True, False])
def test_a_bias_with_two_readers_stays(again: bool) -> None:
    """A second reader would read the changed bias. A later addend must not exceed the range of the clip."""
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


# --- epilogues that a user has written ----------------------------------------------------------------


def written(epilogue: Callable[..., Expr], dtypes: Sequence[str]) -> Schedule:
    """Return a schedule of ``epilogue(sums, *added)`` for one product, where ``added`` are vectors in
    accumulators."""
    A, B = te.placeholder((16, 16), name="A"), te.placeholder((16, 8), name="B")
    added = [te.placeholder((8,), dtype, name=f"t{n}") for n, dtype in enumerate(dtypes)]
    k = te.reduce_axis((0, 16), name="k")
    S = te.compute((16, 8), lambda y, x: te.sum(A[y, k] * B[k, x], axis=k), name="S")
    C = te.compute((16, 8), lambda y, x: epilogue(S[y, x], *(t[x] for t in added)), name="C", dtype="int8")
    s = te.create_schedule(C)
    s[S].set_scope(M.acc_buffer)
    finished = s[s.cache_write(C, M.acc_buffer)]
    yo, _ = s[C].split("y", 8)
    for tensor in added:
        s[s.cache_read(tensor, M.acc_buffer)].compute_at(s[C], yo)
    for stage in (finished, s[S]):
        stage.compute_at(s[C], yo)
    s[S].tile(*s[S].axis, "k", 8, 8, 8)
    s[s.cache_read(A, M.inp_buffer)].compute_at(s[S], "ko")
    s[s.cache_read(B, M.wgt_buffer)].compute_at(s[S], "ko")
    s[S].tensorize("yi", M.gemm)
    finished.tensorize(finished.split("y", 8)[1], M.alu)
    return s


@pytest.mark.parametrize(
    ("epilogue", "dtypes", "folds"),
    [
        (lambda s, b: te.clip((s + b) >> 4, -128, 127), ["int32"], True),
        (lambda s, b: te.max(te.min((s + b) >> 4, 127), -128), ["int32"], True),
        (lambda s, b: te.clip((s + b) >> 4, -128, 127), ["int8"], False),
        (lambda s, b: te.clip((s + b) << 3, -128, 127), ["int32"], False),
        (lambda s, b, r: te.clip(((s + b) >> 4) + r, -128, 127), ["int32", "int8"], True),
        (lambda s, b, r: te.clip(te.max((s + b) >> 4, r), -128, 127), ["int32", "int8"], False),
    ],
    ids=["bias", "upper bound first", "of bytes", "to the left", "residual", "maximum in between"],
)
def test_user_written_epilogues_are_folded_where_exact(
    epilogue: Callable[..., Expr], dtypes: list[str], folds: bool
) -> None:
    """The host cannot prepare an addend of bytes, and a left shift has no offset."""
    program = as_it_is(written(epilogue, dtypes), M)
    assert any(tensor.preparation is not None for tensor in program.tensors) == folds
    assert program.run(seed=3).mismatches == 0


# --- the range of accepted biases ---------------------------------------------------------------------


def test_the_limit_of_sums_is_that_of_all_axes() -> None:
    """The largest sum just overflows with this bias. It has more terms than the 16 channels."""
    workload = accel.conv2d(1, 16, 3, 3, 16, 3, bias=True, shift=8)
    program = as_it_is(workload, "vta")
    limit = 16 * 3 * 3 << 14
    extremes = {name: np.full_like(value, -128) for name, value in program.random_inputs().items()}
    for bias in (INT32_MAX - limit, INT32_MAX - limit + 1, INT32_MAX):
        inputs = extremes | {"bias": np.full(16, bias, dtype=np.int32)}
        assert program.run(inputs).mismatches == 0
    tensor = next(t for t in program.tensors if t.name == "bias")
    assert tensor.preparation is not None
    assert tensor.preparation.accepted[1] == INT32_MAX - limit


@pytest.mark.parametrize("sign", [1, -1])
def test_a_residual_can_undo_saturation(sign: int) -> None:
    """Sums with bias saturate, but the residual brings them back into range."""
    program = as_it_is(accel.dense(8, 8, 8, bias=True, residual=True, shift=4), M)
    sums = 8 * 128 * 127
    inputs = {
        "data": np.full((8, 8), -128, dtype=np.int8),
        "weight": np.full((8, 8), 127 * sign, dtype=np.int8),
        "bias": np.full(8, sign * (sums + (200 << 4)), dtype=np.int32),
        "residual": np.full((8, 8), -128 if sign > 0 else 127, dtype=np.int8),
    }
    assert program.folded
    result = program.run(inputs)
    assert result.mismatches == 0
    assert (result.outputs["out"] == (72 if sign > 0 else -73)).all()


def test_a_bias_that_is_copied_twice_stays() -> None:
    """Two products read the bias. One of them does not shift, so it needs the original bias."""
    A, B = te.placeholder((16, 16), name="A"), te.placeholder((16, 8), name="B")
    bias = te.placeholder((8,), "int32", name="bias")
    k, j = te.reduce_axis((0, 16), name="k"), te.reduce_axis((0, 16), name="j")
    S = te.compute((16, 8), lambda y, x: te.sum(A[y, k] * B[k, x], axis=k), name="S")
    R = te.compute((16, 8), lambda y, x: te.sum(A[y, j] * B[j, x], axis=j), name="R")
    C = te.compute((16, 8), lambda y, x: te.clip((S[y, x] + bias[x]) >> 6, -128, 127), name="C", dtype="int8")
    D = te.compute((16, 8), lambda y, x: te.clip(R[y, x] + bias[x], -128, 127), name="D", dtype="int8")
    s = te.create_schedule([C, D])
    for output, sums in ((C, S), (D, R)):
        finished = s[s.cache_write(output, M.acc_buffer)]
        yo, _ = s[output].split("y", 8)
        s[s.cache_read(bias, M.acc_buffer, [finished])].compute_at(s[output], yo)
        s[sums].set_scope(M.acc_buffer)
        for stage in (finished, s[sums]):
            stage.compute_at(s[output], yo)
        (axis,) = s[sums].reduce_axis
        _, _, ko, yi, _, _ = s[sums].tile(*s[sums].axis, axis, 8, 8, 8)
        s[s.cache_read(A, M.inp_buffer, [s[sums]])].compute_at(s[sums], ko)
        s[s.cache_read(B, M.wgt_buffer, [s[sums]])].compute_at(s[sums], ko)
        s[sums].tensorize(yi, M.gemm)
        finished.tensorize(finished.split("y", 8)[1], M.alu)
    nest = te.tensorize(s)
    assert fold_bias(nest) == nest
    program = as_it_is(s, M)
    assert program.run(program.random_inputs(seed=1)).mismatches == 0


# --- any bias on the machine ----------------------------------------------------------------------

BIAS_EDGES = [INT32_MIN, INT32_MAX, -(1 << 30), 1 << 30, -(1 << 24), 1 << 24, 0, -1]


@pytest.mark.parametrize(("value", "shift"), diagonal(BIAS_EDGES, (1, 8, 15, 21)))
def test_any_bias_gives_the_right_result(value: int, shift: int) -> None:
    """Biases that are too large to fold run unfolded."""
    program = as_it_is(accel.gemm(9, 17, 30, bias=True, shift=shift), M)
    inputs = program.random_inputs() | {"bias": np.full(17, value, dtype=np.int32)}
    result = program.run(inputs)
    assert result.mismatches == 0
    constant = as_it_is(accel.gemm(9, 17, 30, bias=True, shift=shift), M, constants={"bias": inputs["bias"]})
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
    program = as_it_is(accel.dense(9, 30, 17, bias=True, residual=True, shift=shift), M)
    biases = np.array([-(200 << shift), 200 << shift, -1, 0, *BIAS_EDGES], dtype=np.int64)
    bias = np.resize(biases.clip(INT32_MIN, INT32_MAX).astype(np.int32), 17)
    for chosen in (bias, bias.clip(-(1 << 24), 1 << 24)):
        inputs = program.random_inputs() | {"bias": chosen, "residual": np.full((9, 17), added, np.int8)}
        assert program.run(inputs).mismatches == 0


def test_the_largest_accepted_biases() -> None:
    program = as_it_is(accel.gemm(8, 8, 8, bias=True, shift=4), M)
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


# --- preparation by the host -------------------------------------------------------------------------


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
    program = as_it_is(accel.gemm(20, 40, 24, bias=True, shift=6), M)
    inputs = program.random_inputs()
    found = te.interpret(fold_bias(nest), inputs)["C"]
    np.testing.assert_array_equal(found, te.interpret(nest, inputs)["C"])
