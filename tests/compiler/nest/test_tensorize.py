"""Tensorization: blocks that unify compute the right result, all others are refused with a reason."""

from collections import Counter
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import accel
from accel import te
from accel.base.errors import ScheduleError, TensorizeError
from accel.compiler.expr.scalar_expressions import Expr, IterVar
from accel.compiler.target.machine import machine
from accel.te import Schedule, Tensor
from tests.compiler import gemms
from tests.compiler.oracle import expected, some_inputs
from tests.expect import refused
from tests.strategies import examples
from tests.thorough import diagonal

M = machine("gemm8x8")
VTA = machine("vta")
NAMES = ("gemm8x8", "vta", "tiny", "ecp5")


# --- blocks that unify -----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "sizes"), diagonal(NAMES, gemms.SIZES))
@pytest.mark.parametrize(("transpose_a", "transpose_b"), gemms.TRANSPOSITIONS)
def test_all_transpositions_run(
    name: str, sizes: tuple[int, int, int], transpose_a: bool, transpose_b: bool
) -> None:
    g, m = gemms.gemm(*sizes, transpose_a, transpose_b), machine(name)
    inputs = gemms.operands(g, seed=sum(sizes))
    program = accel.build(gemms.tensorized(g, m), m)
    want = gemms.product(g, inputs, transpose_a, transpose_b)
    for backend in ("sim", "functional"):
        np.testing.assert_array_equal(program.run(inputs, backend=backend).outputs["C"], want)


def test_random_schedules() -> None:
    """Every accepted schedule has correct results, interpreted and on the machine."""
    tally = Counter[str]()

    @examples(80)
    @given(st.integers(0, 1 << 32))
    def check(seed: int) -> None:
        rng = Random(seed)
        m = machine(rng.choice(NAMES))
        rows, columns, depth = (rng.randint(1, rng.choice((6, 16, 30))) for _ in range(3))
        transposed = rng.choice(gemms.TRANSPOSITIONS)
        g = gemms.gemm(rows, columns, depth, *transposed)
        s = gemms.random_schedule(rng, g, m)
        inputs = gemms.operands(g, seed)
        want = gemms.product(g, inputs, *transposed)
        try:
            nests = [te.lower(s), te.tensorize(s)]
            program = accel.build(s, m)
        except ScheduleError as error:
            tally["refused"] += 1
            note(str(error))
            return
        note(te.format_nest(nests[1]))
        for nest in nests:
            np.testing.assert_array_equal(te.interpret(nest, inputs)["C"], want)
        np.testing.assert_array_equal(program.run(inputs).outputs["C"], want)
        tally["run"] += 1

    check()
    assert tally["run"] > 4 * tally["refused"]


def product_of(
    read: Callable[[Tensor, Tensor, IterVar, IterVar, IterVar], Expr], depth: int = 16
) -> gemms.Gemm:
    """Return a sum over ``depth`` of an expression that reads A and B, both 64 by 64."""
    A, B = te.placeholder((64, 64), name="A"), te.placeholder((64, 64), name="B")
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute((16, 16), lambda y, x: te.sum(read(A, B, y, x, k), axis=k), name="C", dtype="int8")
    return gemms.Gemm(A, B, C, k)


@pytest.mark.parametrize(
    "read",
    [
        lambda A, B, y, x, k: B[k, x] * A[y, k],
        lambda A, B, y, x, k: A[x, k] * B[k, y],
        lambda A, B, y, x, k: A[y + 8, k + 16] * B[k + 8, x + 48],
        lambda A, B, y, x, k: A[y, 0] * B[k, x],
        lambda A, B, y, x, k: A[y, k] * B[k, 3],
        lambda A, B, y, x, k: A[5, 5] * B[k, x],
    ],
    ids=[
        "commuted",
        "rows of B",
        "tiles of larger tensors",
        "A repeats along k",
        "B repeats along x",
        "A is one number",
    ],
)
def test_other_forms_that_unify(read: Callable[..., Expr]) -> None:
    g = product_of(read)
    inputs = some_inputs([g.C], 1)
    want = expected([g.C], inputs)["C"]
    s = gemms.tensorized(g, M)
    np.testing.assert_array_equal(te.interpret(te.tensorize(s), inputs)["C"], want)
    np.testing.assert_array_equal(accel.build(s, M).run(inputs).outputs["C"], want)


def test_a_vector_times_a_matrix() -> None:
    """With one row per element the block needs no loop over rows."""
    A, B = te.placeholder((32,), name="A"), te.placeholder((32, 16), name="B")
    k = te.reduce_axis((0, 32), name="k")
    C = te.compute((16,), lambda x: te.sum(A[k] * B[k, x], axis=k), name="C", dtype="int8")
    s = te.create_schedule(C)
    s[C].tile("x", k, 16, 16)
    s[gemms.cache(s, gemms.Gemm(A, B, C, k), VTA)].tensorize("xi", VTA.gemm)
    inputs = some_inputs([C], 1)
    result = accel.build(s, VTA).run(inputs)
    np.testing.assert_array_equal(result.outputs["C"], expected([C], inputs)["C"])


def test_a_block_without_reduce_loops_outside_uses_the_compute_form() -> None:
    g = gemms.gemm(16, 16, 8)
    s = gemms.tensorized(g, M)
    assert "vdla.gemm8x8(CL, AL, BL)" not in te.format_nest(te.tensorize(s))
    s = te.create_schedule(g.C)
    y, x = s[g.C].op.axis
    s[g.C].tile(y, x, 8, 8)
    CL = gemms.cache(s, g, M)
    s[CL].tensorize("yi", M.gemm)
    text = te.format_nest(te.tensorize(s))
    assert "vdla.gemm8x8(CL, AL, BL)" in text
    assert "fill_zero" not in text
    inputs = gemms.operands(g)
    result = accel.build(s, M).run(inputs)
    np.testing.assert_array_equal(result.outputs["C"], gemms.product(g, inputs, False, False))


def test_copies_can_be_cut() -> None:
    """``dma_copy2d`` at an inner loop keeps the outer loops. So does a split copy."""
    g = gemms.gemm(16, 16, 16)
    s = gemms.tensorized(g, M)
    s["AL"].compute_at(s["CL"], "xo")
    i1o, i1i = s["AL"].split("i1", 8)
    s["AL"].reorder(i1o, "i0", i1i)
    s["AL"].tensorize("i0", M.dma_copy2d)
    assert "for i1o in range(2):\n            vdla.dma_copy2d(AL[0:8][i1o*8:i1o*8+8]" in te.format_nest(
        te.tensorize(s)
    )
    inputs = gemms.operands(g)
    result = accel.build(s, M).run(inputs)
    np.testing.assert_array_equal(result.outputs["C"], gemms.product(g, inputs, False, False))


def test_zeros() -> None:
    C = te.compute((20, 9), lambda y, x: 0, name="C", dtype="int8")
    s = te.create_schedule(C)
    s[C].tile("y", "x", 8, 8)
    s[s.cache_write(C, M.acc_buffer)].tensorize("yi", M.fill_zero)
    assert "vdla.fill_zero(CL)" in te.format_nest(te.tensorize(s))
    assert not accel.build(s, M).run({}).outputs["C"].any()


def test_one_tensor_in_both_operands() -> None:
    """A @ A.T needs A in two scratchpads, so the second copy is a separate computation."""
    A = te.placeholder((16, 24), name="A")
    A2 = te.compute((16, 24), lambda y, x: A[y, x], name="A2")
    k = te.reduce_axis((0, 24), name="k")
    C = te.compute((16, 16), lambda y, x: te.sum(A[y, k] * A2[x, k], axis=k), name="C", dtype="int8")
    s = te.create_schedule(C)
    gemms.tile(s, gemms.Gemm(A, A2, C, k), M)
    CL = s.cache_write(C, M.acc_buffer)
    s.cache_read(A, M.inp_buffer, [CL])
    s[A2].set_scope(M.wgt_buffer)
    s[CL].tensorize("yi", M.gemm)
    inputs = some_inputs([C], 2)
    result = accel.build(s, M).run(inputs)
    np.testing.assert_array_equal(result.outputs["C"], expected([C], inputs)["C"])


# --- errors ----------------------------------------------------------------------------------------


def refuse(s: Schedule, message: str) -> None:
    with refused(TensorizeError, message):
        te.tensorize(s)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (
            lambda A, B, y, x, k: A[2 * y, k] * B[k, x],
            "the block for gemm8x8: AL[yi*2][ki] is indexed by yi*2 in dimension 0; "
            "w[i][k] needs one loop of the block there, with step 1",
        ),
        (
            lambda A, B, y, x, k: A[y + k, k] * B[k, x],
            "the block for gemm8x8: AL[yi+ki][ki] is indexed by yi+ki in dimension 0; "
            "w[i][k] needs one loop of the block there, with step 1",
        ),
        (
            lambda A, B, y, x, k: A[y, 15 - k] * B[k, x],
            "the block for gemm8x8: AL[yi][7-ki] is indexed by 7-ki in dimension 1; "
            "w[i][k] needs one loop of the block there, with step 1",
        ),
        (
            lambda A, B, y, x, k: A[y // 2, k] * B[k, x],
            "the block for gemm8x8: AL[yi//2][ki] is indexed by yi//2 in dimension 0; "
            "w[i][k] needs one loop of the block there, with step 1",
        ),
        (
            lambda A, B, y, x, k: A[y, y] * B[k, x],
            "the block for gemm8x8: AL[yi][yi] depends on yi twice; w[i][k] does only once",
        ),
        (
            lambda A, B, y, x, k: A[x, k] * B[k, x],
            "the block for gemm8x8: AL[xi][ki] depends on xi; w[i][k] has no such axis",
        ),
        (
            lambda A, B, y, x, k: A[y, k] * B[k, x] * 2,
            "CL computes sum(AL[y][k] * BL[k][x] * 2, axis=[k]); "
            "gemm8x8 computes sum(w[i][k] * x[j][k], axis=[k]), which has another form",
        ),
        (
            lambda A, B, y, x, k: A[y, k] - B[k, x],
            "CL computes sum(AL[y][k] - BL[k][x], axis=[k]); "
            "gemm8x8 computes sum(w[i][k] * x[j][k], axis=[k]), which has another form",
        ),
    ],
    ids=[
        "stride",
        "convolution",
        "reversed",
        "halved",
        "diagonal",
        "wrong axis",
        "third factor",
        "no product",
    ],
)
def test_accesses_that_do_not_fit(read: Callable[..., Expr], message: str) -> None:
    refuse(gemms.tensorized(product_of(read), M), message)


def test_a_transposed_output_where_rows_and_columns_differ() -> None:
    A, B = te.placeholder((16, 32), name="A"), te.placeholder((32, 16), name="B")
    k = te.reduce_axis((0, 32), name="k")
    C = te.compute((16, 16), lambda x, y: te.sum(A[y, k] * B[k, x], axis=k), name="C", dtype="int8")
    s = te.create_schedule(C)
    s[C].tile("x", "y", k, 1, 16, 16)
    s[C].reorder("yo", "xo", "ko")
    CL = s.cache_write(C, VTA.acc_buffer)
    s.cache_read(A, VTA.inp_buffer)
    s.cache_read(B, VTA.wgt_buffer)
    s[CL].tensorize("xi", VTA.gemm)
    refuse(s, "the block for gemm1x16x16: AL[yi][ki] depends on yi; w[i][k] has no such axis")


@pytest.mark.parametrize(
    ("factors", "at", "found"),
    [
        ((4, 8, 8), "yi", "yi(4), xi(8), ki(8, reduce)"),
        ((8, 16, 8), "yi", "yi(8), xi(16), ki(8, reduce)"),
        ((8, 8, 4), "yi", "yi(8), xi(8), ki(4, reduce)"),
        ((8, 8, 8), "xi", "xi(8), ki(8, reduce)"),
    ],
    ids=["rows", "columns", "depth", "missing loop"],
)
def test_blocks_of_another_size(factors: tuple[int, int, int], at: str, found: str) -> None:
    g = gemms.gemm(32, 32, 32)
    s = te.create_schedule(g.C)
    y, x = s[g.C].op.axis
    s[g.C].tile(y, x, g.k, *factors)
    s[gemms.cache(s, g, M)].tensorize(at, M.gemm)
    refuse(
        s,
        f"the block for gemm8x8 has the loops {found}; gemm8x8 needs i(8), j(8), k(8, reduce): "
        f"split by these factors and tensorize at the outermost of the inner loops",
    )


def tiled(sizes: tuple[int, int, int] = (32, 32, 32)) -> tuple[gemms.Gemm, Schedule, Tensor]:
    g = gemms.gemm(*sizes)
    s = te.create_schedule(g.C)
    gemms.tile(s, g, M)
    return g, s, gemms.cache(s, g, M)


def test_too_many_loops() -> None:
    _, s, CL = tiled()
    s[CL].tensorize("ko", M.gemm)
    refuse(
        s,
        "the block for gemm8x8 has 4 loops (ko(4, reduce), yi(8), xi(8), ki(8, reduce)); "
        "gemm8x8 has 3 axes (i(8), j(8), k(8, reduce)): tensorize an inner loop",
    )


def test_a_guard_in_the_block() -> None:
    g = gemms.gemm(32, 32, 32)
    s = te.create_schedule(g.C)
    CL = s[gemms.cache(s, g, M)]
    yo, yi = CL.split("y", 5)
    xo, xi = CL.split("x", 8)
    both = CL.fuse(yo, yi)
    CL.reorder(xo, both, xi, "k")
    CL.tensorize(both, M.gemm)
    refuse(
        s,
        "CL is guarded by yoyi%5 < min(5, 32-yoyi//5*5) inside the tensorized block; "
        "its loops must be whole axes, or the inner loops of splits",
    )


def test_a_copy_inside_the_block() -> None:
    _, s, CL = tiled()
    s["AL"].compute_at(CL, "yi")
    s[CL].tensorize("yi", M.gemm)
    refuse(s, "AL is computed at yi of CL, inside the tensorized block")


@pytest.mark.parametrize(
    ("scopes", "message"),
    [
        (
            ("inp_buffer", "inp_buffer", "acc_buffer"),
            "BL[ki][xi] is in inp_buffer; x[j][k] of gemm8x8 is in wgt_buffer",
        ),
        (
            ("inp_buffer", None, "acc_buffer"),
            "B[ko*8+ki][xo*8+xi] is in DRAM; x[j][k] of gemm8x8 is in wgt_buffer",
        ),
        (
            ("inp_buffer", "wgt_buffer", "wgt_buffer"),
            "C copies CL from wgt_buffer to DRAM; STORE reads acc_buffer only",
        ),
        (
            ("inp_buffer", "wgt_buffer", None),
            "C is in DRAM; gemm8x8 writes to a scratchpad: use cache_write first",
        ),
    ],
    ids=["both in inp", "B in DRAM", "sums in wgt", "sums in DRAM"],
)
def test_operands_in_the_wrong_memory(
    scopes: tuple[str | None, str | None, str | None], message: str
) -> None:
    g = gemms.gemm(16, 16, 16)
    s = te.create_schedule(g.C)
    gemms.tile(s, g, M)
    for tensor, scope in ((g.A, scopes[0]), (g.B, scopes[1])):
        if scope is not None:
            s.cache_read(tensor, M.scope(scope))
    sums = g.C if scopes[2] is None else s.cache_write(g.C, M.scope(scopes[2]))
    s[sums].tensorize("yi", M.gemm)
    refuse(s, message)


def test_swapped_memories_swap_the_operands() -> None:
    """A product is commutative. The scopes determine which operand is which."""
    g = gemms.gemm(16, 16, 16)
    s = te.create_schedule(g.C)
    gemms.tile(s, g, M)
    CL = s.cache_write(g.C, M.acc_buffer)
    s.cache_read(g.A, M.wgt_buffer)
    s.cache_read(g.B, M.inp_buffer)
    s[CL].tensorize("yi", M.gemm)
    assert "vdla.fused_gemm8x8_add(CL, BL, AL)" in te.format_nest(te.tensorize(s))
    inputs = gemms.operands(g)
    result = accel.build(s, M).run(inputs)
    np.testing.assert_array_equal(result.outputs["C"], gemms.product(g, inputs, False, False))


def test_an_int32_output() -> None:
    A, B = te.placeholder((16, 16), name="A"), te.placeholder((16, 16), name="B")
    k = te.reduce_axis((0, 16), name="k")
    C = te.compute((16, 16), lambda y, x: te.sum(A[y, k] * B[k, x], axis=k), name="C")
    refuse(
        gemms.tensorized(gemms.Gemm(A, B, C, k), M),
        "C copies CL to DRAM as int32; STORE writes the low bytes of acc_buffer as int8: "
        "give the output dtype='int8', or clip it. Machines with post=1 also store int32",
    )


def test_an_int32_operand() -> None:
    A, B = te.placeholder((16, 16), "int32", name="A"), te.placeholder((16, 16), name="B")
    k = te.reduce_axis((0, 16), name="k")
    C = te.compute((16, 16), lambda y, x: te.sum(A[y, k] * B[k, x], axis=k), name="C", dtype="int8")
    refuse(gemms.tensorized(gemms.Gemm(A, B, C, k), M), "AL copies A, which is int32; inp_buffer holds int8")


def test_stages_that_are_not_tensorized() -> None:
    _, s, _ = tiled()
    rest = "tensorize it, or compute it in acc_buffer (cache_write) and tensorize that with the machine's alu"
    refuse(s, f"CL in acc_buffer is neither tensorized nor a plain copy; {rest}")
    refuse(
        te.create_schedule(gemms.gemm(8, 8, 8).C), f"C in DRAM is neither tensorized nor a plain copy; {rest}"
    )


def test_intrinsics_that_compute_something_else() -> None:
    _, s, CL = tiled()
    s[CL].tensorize("yi", M.fill_zero)
    refuse(
        s,
        "CL computes sum(AL[y][k] * BL[k][x], axis=[k]); fill_zero computes 0, which has another form",
    )
    s[CL].tensorize("yi", M.alu)
    refuse(
        s,
        "CL has sum(AL[y][k] * BL[k][x], axis=[k]); the ALU changes one accumulator in place, "
        "by steps with an immediate or another accumulator",
    )


def test_copies_between_scratchpads() -> None:
    _, s, CL = tiled()
    s[CL].tensorize("yi", M.gemm)
    s.cache_read(s.tensor("AL"), M.inp_buffer)
    refuse(
        s,
        "ALL copies from inp_buffer to inp_buffer; dma_copy2d goes between DRAM and a scratchpad",
    )


def test_accumulators_do_not_truncate_sums() -> None:
    g = gemms.gemm(8, 8, 8)
    k = te.reduce_axis((0, 8), name="k")
    S = te.compute((8, 8), lambda y, x: te.sum(g.A[y, k] * g.B[k, x], axis=k), name="S")
    D = te.compute((8, 8), lambda y, x: te.max(S[y, x] + g.C[y, x], 0), name="D", dtype="int8")
    s = te.create_schedule(D)
    for sums in (g.C, S):
        s[sums].set_scope(M.acc_buffer)
        s[sums].tensorize("y", M.gemm)
    s[s.cache_write(D, M.acc_buffer)].tensorize("y", M.alu)
    s.cache_read(g.A, M.inp_buffer)
    s.cache_read(g.B, M.wgt_buffer)
    refuse(
        s,
        "DL reads C[y][x] from acc_buffer, where sums are not truncated to int8; "
        "store C and load it again (cache_read), or make it int32",
    )


def test_copies_that_are_not_a_box() -> None:
    """The inner loops of C access every 8th row."""
    g, s, CL = tiled()
    s[g.C].reorder("yi", "xo", "yo")
    s[CL].compute_at(s[g.C], "yi")
    s[CL].tensorize("yi", M.gemm)
    refuse(s, "the inner loops of C do not cover a box; only boxes can be copied")


# --- short last blocks -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "accesses"),
    [
        (lambda A, B, y, x, k: A[y, k] * B[k, x], "AL[yi][ki] and BL[ki][xi]"),
        (lambda A, B, y, x, k: A[y, 0] * B[0, x], "AL[yi][0] and BL[0][xi]"),
        (lambda A, B, y, x, k: A[y, k] * B[k, 8], "AL[yi][ki] and BL[ki][0]"),
    ],
)
def test_sums_beyond_the_end_of_all_operands(read: Callable[..., Expr], accesses: str) -> None:
    """The last block includes three extra products, in which no operand is zero."""
    refuse(
        gemms.tensorized(product_of(read, depth=13), M),
        f"the block for gemm8x8: {accesses} do not end with ki, whose last block is short; "
        f"gemm8x8 sums whole blocks of 8: end a tensor there, or sum a multiple of it",
    )


@pytest.mark.parametrize(("a_columns", "b_rows"), [(13, 13), (13, 64), (64, 13)])
def test_one_operand_that_ends_there_is_enough(a_columns: int, b_rows: int) -> None:
    A, B = te.placeholder((16, a_columns), name="A"), te.placeholder((b_rows, 16), name="B")
    k = te.reduce_axis((0, 13), name="k")
    C = te.compute((16, 16), lambda y, x: te.sum(A[y, k] * B[k, x], axis=k), name="C", dtype="int8")
    inputs = some_inputs([C], 3)
    result = accel.build(gemms.tensorized(gemms.Gemm(A, B, C, k), M), M).run(inputs)
    np.testing.assert_array_equal(result.outputs["C"], expected([C], inputs)["C"])


def test_tiles_that_begin_inside_an_element() -> None:
    g = product_of(lambda A, B, y, x, k: A[y + 1, k] * B[k, x])
    with refused(
        TensorizeError,
        "A[yo*8+1:yo*8+9][ko*8:ko*8+8] starts inside an element of 8; "
        "tiles must be multiples of the intrinsic's block",
    ):
        accel.build(gemms.tensorized(g, M), M)
