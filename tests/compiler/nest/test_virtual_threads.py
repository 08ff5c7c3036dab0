"""Virtual threads: equal results, interleaved execution, and separate buffer sets."""

from random import Random
from textwrap import dedent

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import accel
from accel import te
from accel.base.errors import ScheduleError
from accel.base.records import replace
from accel.compiler.expr.scalar_expressions import Const
from accel.compiler.nest.nest import For, Nest, walk_nodes
from accel.compiler.nest.virtual_threads import lower_threads
from accel.compiler.target.machine import machine
from accel.core.token_rules import Counter
from accel.te import Schedule, thread_axis
from tests.compiler import gemms
from tests.expect import refused
from tests.strategies import examples
from tests.thorough import diagonal

M = machine("gemm8x8")
VTHREAD = thread_axis("vthread")


def threaded(
    sizes: tuple[int, int, int],
    threads: int,
    *,
    along: str = "xo",
    tile: tuple[int, int] = (8, 8),
    on: accel.Machine = M,
) -> Schedule:
    """Return a schedule whose threads run over tiles or reduce steps: ``along`` is yo, xo or ko."""
    g = gemms.gemm(*sizes)
    s = te.create_schedule(g.C)
    C, CL = s[g.C], s[gemms.cache(s, g, on)]
    yo, xo, *_ = C.tile(*C.axis, *tile)
    innermost = xo
    if along == "yo":
        outer, inner = C.split(yo, threads, names=("outer", "v"))
        C.reorder(outer, xo, inner)
        innermost = inner
    elif along == "xo":
        _, innermost = C.split(xo, threads, names=("outer", "v"))
    CL.compute_at(C, innermost)
    ym, xm, ko, yi, *_ = CL.tile(
        *CL.axis, g.k, *gemms.block(on.config), names=["ym", "xm", "ko", "yi", "xi", "ki"]
    )
    CL.reorder(ko, ym, xm)
    step = CL.split(ko, threads, names=("outer", "v"))[1] if along == "ko" else ko
    for copy in ("AL", "BL"):
        s[copy].compute_at(CL, step)
    CL.tensorize(yi, on.gemm)
    (CL if along == "ko" else C).bind("v", VTHREAD)
    return s


def same(s: Schedule, inputs: dict[str, np.ndarray]) -> Nest:
    """Return the lowered nest, after a check that its results are those of sequential threads."""
    nest = te.tensorize(s)
    lowered = lower_threads(nest)
    np.testing.assert_array_equal(te.interpret(lowered, inputs)["C"], te.interpret(nest, inputs)["C"])
    assert not any(isinstance(node, For) and node.is_vthread for node in walk_nodes(lowered.body))
    return lowered


def test_threads_alternate_tile_by_tile() -> None:
    s = threaded((8, 64, 64), 2)
    nest = te.tensorize(s)
    assert te.format_nest(nest) == dedent(
        """
        inp_buffer AL[8][8]
        wgt_buffer BL[8][8]
        acc_buffer CL[8][8]
        for outer in range(4):
            for v in vthread(2):
                vdla.fill_zero(CL)
                for ko in range(8):
                    vdla.dma_copy2d(AL, A[0:8][ko*8:ko*8+8])
                    vdla.dma_copy2d(BL, B[ko*8:ko*8+8][outer*16+v*8:outer*16+v*8+8])
                    vdla.fused_gemm8x8_add(CL, AL, BL)
                vdla.dma_copy2d(C[0:8][outer*16+v*8:outer*16+v*8+8], CL)
        """
    ).lstrip("\n")
    # the first and the last step are peeled off, so that a thread includes the statements around the loop
    assert te.format_nest(lower_threads(nest)) == dedent(
        """
        inp_buffer AL[2][8][8]
        wgt_buffer BL[2][8][8]
        acc_buffer CL[2][8][8]
        for outer in range(4):
            for v in range(2):
                vdla.fill_zero(CL[v])
                vdla.dma_copy2d(AL[v], A[0:8][0:8])
                vdla.dma_copy2d(BL[v], B[0:8][outer*16+v*8:outer*16+v*8+8])
                vdla.fused_gemm8x8_add(CL[v], AL[v], BL[v])
            for ko in range(6):
                for v in range(2):
                    vdla.dma_copy2d(AL[v], A[0:8][ko*8+8:ko*8+16])
                    vdla.dma_copy2d(BL[v], B[ko*8+8:ko*8+16][outer*16+v*8:outer*16+v*8+8])
                    vdla.fused_gemm8x8_add(CL[v], AL[v], BL[v])
            for v in range(2):
                vdla.dma_copy2d(AL[v], A[0:8][56:64])
                vdla.dma_copy2d(BL[v], B[56:64][outer*16+v*8:outer*16+v*8+8])
                vdla.fused_gemm8x8_add(CL[v], AL[v], BL[v])
                vdla.dma_copy2d(C[0:8][outer*16+v*8:outer*16+v*8+8], CL[v])
        """
    ).lstrip("\n")


@pytest.mark.parametrize(
    ("along", "threads", "sizes"),
    diagonal(["yo", "xo", "ko"], [1, 2, 3, 4, 7], [(32, 32, 32), (20, 50, 9), (9, 17, 8), (7, 40, 25)]),
)
def test_threads_do_not_change_results(sizes: tuple[int, int, int], threads: int, along: str) -> None:
    s = threaded(sizes, threads, along=along)
    lowered = same(s, gemms.operands(gemms.gemm(*sizes)))
    own = {buffer.name for buffer in lowered.locals if buffer.sets > 1}
    turns = -(-sizes[{"yo": 0, "xo": 1, "ko": 2}[along]] // 8)
    expected = {"AL", "BL"} if along == "ko" else {"AL", "BL", "CL"}
    assert own == (expected if min(turns, threads) > 1 else set())
    program = accel.build(s, M)
    assert program.run().mismatches == 0


def test_sums_are_shared_by_threads_along_the_reduce_axis() -> None:
    nest = lower_threads(te.tensorize(threaded((8, 8, 64), 2, along="ko")))
    assert {buffer.name: buffer.sets for buffer in nest.locals} == {"AL": 2, "BL": 2, "CL": 1}


def test_two_kinds_of_threads_at_once() -> None:
    """2 tiles of the result, each with 2 threads over reduce steps: 2 sets of sums, 4 sets of operands."""
    g = gemms.gemm(8, 64, 64)
    s = te.create_schedule(g.C)
    C, CL = s[g.C], s[gemms.cache(s, g, M)]
    _, xo, *_ = C.tile(*C.axis, 8, 8)
    _, xv = C.split(xo, 2, names=("xo", "xv"))
    C.bind(xv, VTHREAD)
    CL.compute_at(C, xv)
    _, _, ko, yi, *_ = CL.tile(*CL.axis, g.k, 8, 8, 8)
    _, kv = CL.split(ko, 2, names=("ko", "kv"))
    CL.bind(kv, VTHREAD)
    for copy in ("AL", "BL"):
        s[copy].compute_at(CL, kv)
    CL.tensorize(yi, M.gemm)
    nest = same(s, gemms.operands(g))
    assert {buffer.name: buffer.sets for buffer in nest.locals} == {"AL": 4, "BL": 4, "CL": 2}
    assert accel.build(s, M).run().mismatches == 0


def test_latency_is_hidden() -> None:
    """With one buffer set the units wait for one another. Two sets let them work in parallel."""
    cycles = {}
    for threads in (1, 2, 4):
        program = accel.build(threaded((64, 128, 128), threads, tile=(32, 32)), M)
        cycles[threads] = program.run().cycles or 0
        serial = program.with_timing(M.config.override({"serial": 1}))
        assert (serial.run(check=False).cycles or 0) > cycles[threads]
    assert cycles[1] > 1.2 * cycles[2]
    assert cycles[2] > 0.95 * cycles[4]


@pytest.mark.parametrize("name", ["gemm8x8", "tiny", "vta"])
@pytest.mark.parametrize("threads", [2, 4])
def test_a_unit_is_one_step_ahead_per_thread(name: str, threads: int) -> None:
    """Each thread has its own buffer set, which is filled before the first GEMM needs it."""
    on = machine(name)
    rows, columns, depth = gemms.block(on.config)
    s = threaded((rows, 8 * columns, 4 * depth), threads, tile=(rows, columns), on=on)
    report = accel.build(s, on).check()
    assert report.peak[Counter.LOAD_TO_COMPUTE] == threads


@examples(40)
@given(st.integers(0, 1 << 32))
def test_any_loop_of_any_schedule_may_be_bound(seed: int) -> None:
    """The result is correct and proven, or the schedule is refused."""
    rng = Random(seed)
    on = machine(rng.choice(("tiny", "gemm8x8")))
    g = gemms.gemm(*(rng.randint(1, 4 * width) for width in gemms.block(on.config)))
    s = gemms.random_schedule(rng, g, on)
    for _ in range(rng.randint(1, 2)):
        stage = rng.choice(s.stages)
        stage.bind(rng.choice(stage.leaves), VTHREAD)
    try:
        program = accel.build(s, on)
    except ScheduleError:
        reject()
    assert program.run(backend="functional").mismatches == 0


# --- errors ------------------------------------------------------------------------------------------


def test_threads_may_not_write_the_same() -> None:
    """Stages inside the loop belong to no thread."""
    nest = te.tensorize(gemms.tensorized(gemms.gemm(8, 8, 8), M))
    twice = replace(nest, body=(For(te.IterVar("t", 2), Const(2), nest.body, is_vthread=True),))
    with refused(
        ScheduleError,
        "the virtual threads of t all write CL; compute it inside the loop over t, or bind another loop",
    ):
        lower_threads(twice)


def test_loops_that_can_be_bound() -> None:
    with refused(ScheduleError, "the thread axis is 'threadIdx.x'; only 'vthread' exists"):
        thread_axis("threadIdx.x")
    s = te.create_schedule(gemms.gemm(8, 8, 8).C)
    with refused(ScheduleError, "'y' is bound to 'vthread'; bind to thread_axis('vthread')"):
        s["C"].bind("y", "vthread")  # type: ignore[arg-type]
    with refused(ScheduleError, "'z' is not a loop of C; valid are k, x, y"):
        s["C"].bind("z", VTHREAD)
