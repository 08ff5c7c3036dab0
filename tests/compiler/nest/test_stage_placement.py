"""Where stages are computed, and which part of their tensors."""

from collections.abc import Callable

import pytest

from accel import te
from accel.base.errors import ScheduleError
from accel.compiler.nest.stage_placement import Lowering
from accel.compiler.target.machine import machine
from accel.te import Schedule, Tensor
from tests.compiler import gemms
from tests.compiler.nests import chain, prints
from tests.expect import refused

M = machine("gemm8x8")


# --- the region that a loop needs ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "size", "declared", "loop"),
    [
        (lambda B, y: B[y], 100, "B[8]", "range(min(8, 100-yo*8))"),
        (lambda B, y: B[y + 5], 50, "B[8]", "range(8)"),
        (lambda B, y: B[y] + B[y + 2], 98, "B[10]", "range(min(10, 100-yo*8))"),
        (lambda B, y: B[y + 2] + B[y], 98, "B[10]", "range(min(10, 100-yo*8))"),
        (lambda B, y: B[y * 2], 50, "B[15]", "range(min(15, 100-yo*16))"),
        (lambda B, y: B[99 - y], 100, "B[8]", "range(8)"),
        (lambda B, y: B[y * 2] + B[99 - y], 50, "B[100]", "range(100)"),
        (lambda B, y: B[y // 3], 50, "B[19]", "range(19)"),
        (lambda B, y: B[y % 7], 50, "B[7]", "range(7)"),
        (lambda B, y: B[7], 50, "B[1]", None),
    ],
)
def test_a_stage_computes_what_the_loop_it_is_attached_to_needs(
    read: Callable[[Tensor, te.IterVar], object], size: int, declared: str, loop: str | None
) -> None:
    """It computes the whole tensor if the distance between two accesses is not constant."""
    B, C, s = chain(read, size)
    yo, _ = s[C].split("y", 8)
    s[B].compute_at(s[C], yo)
    text = te.format_nest(te.lower(s))
    assert f"int32 {declared}\n" in text
    assert (f"    for y in {loop}:\n        B[y] =" in text) == (loop is not None)


def test_several_readers_share_a_computation() -> None:
    B, C, s = chain(lambda B, y: B[y] + B[y + 2], 98)
    D = te.compute((98,), lambda y: C[y] + B[y], name="D")
    s = te.create_schedule(D)
    yo, _ = s[D].split("y", 10)
    s[C].compute_at(s[D], yo)
    s[B].compute_at(s[D], yo)
    prints(
        s,
        """
        int32 B[12]
        int32 C[10]
        for yo in range(10):
            for y in range(min(12, 100-yo*10)):
                B[y] = A[yo*10+y] * 2
            for y in range(min(10, 98-yo*10)):
                C[y] = B[y] + B[y+2]
            for yi in range(min(10, 98-yo*10)):
                D[yo*10+yi] = C[yi] + B[yi]
        """,
    )


def test_a_reader_outside_of_the_loop() -> None:
    B, C, _ = chain(lambda B, y: B[y] + B[y + 2], 98)
    D = te.compute((98,), lambda y: C[y] + B[y], name="D")
    s = te.create_schedule(D)
    s[C].compute_at(s[D], "y")
    s[B].compute_at(s[C], "y")
    with refused(
        ScheduleError, "B is computed inside loop y of C; D, which reads it, is outside of that loop"
    ):
        te.lower(s)


def test_a_reader_in_an_outer_loop() -> None:
    """D reads B in its loop yo, but B is computed further inside."""
    B, C, _ = chain(lambda B, y: B[y], 100)
    D = te.compute((100,), lambda y: C[y], name="D")
    s = te.create_schedule(D)
    yo, yi = s[D].split("y", 10)
    s[C].compute_at(s[D], yo)
    s[B].compute_at(s[D], yi)
    with refused(
        ScheduleError, "B is computed inside loop yi of D; C, which reads it, is outside of that loop"
    ):
        te.lower(s)


def test_parts_begin_inside_the_tensor() -> None:
    """The last tile of a reversed access would begin before the tensor."""
    B, C, s = chain(lambda B, y: B[99 - y], 100)
    yo, _ = s[C].split("y", 8)
    s[B].compute_at(s[C], yo)
    prints(
        s,
        """
        int32 B[8]
        for yo in range(13):
            for y in range(8):
                B[y] = A[max(92-yo*8, 0)+y] * 2
            for yi in range(min(8, 100-yo*8)):
                C[yo*8+yi] = B[99-yo*8-yi-max(92-yo*8, 0)]
        """,
    )


# --- placement of caches ---------------------------------------------------------------------------


def test_caches_without_compute_at_go_to_the_innermost_loop_that_holds_one_operand() -> None:
    """This also holds for short last tiles."""
    g = gemms.gemm(20, 12, 9)
    prints(
        gemms.tensorized(g, M),
        """
        inp_buffer AL[8][8]
        wgt_buffer BL[8][8]
        acc_buffer CL[8][8]
        for yo in range(3):
            for xo in range(2):
                CL = 0
                for ko in range(2):
                    for i0 in range(min(8, 20-yo*8)):
                        for i1 in range(min(8, 9-ko*8)):
                            AL[i0][i1] = A[yo*8+i0][ko*8+i1]
                    for i0 in range(min(8, 9-ko*8)):
                        for i1 in range(min(8, 12-xo*8)):
                            BL[i0][i1] = B[ko*8+i0][xo*8+i1]
                    for yi in range(min(8, 20-yo*8)):
                        for xi in range(min(8, 12-xo*8)):
                            for ki in range(min(8, 9-ko*8)):
                                CL[yi][xi] += AL[yi][ki] * BL[ki][xi]
                for yi in range(min(8, 20-yo*8)):
                    for xi in range(min(8, 12-xo*8)):
                        C[yo*8+yi][xo*8+xi] = CL[yi][xi]
        """,
    )


def test_caches_without_tensorized_readers_stay_outside() -> None:
    B, C, s = chain(lambda B, y: B[y], 100)
    s.cache_read(B, M.acc_buffer)
    s[C].split("y", 10)
    assert [stage.name for stage in root_stages(s)] == ["B", "BL", "C"]


def root_stages(s: Schedule) -> list[te.Stage]:
    return Lowering(s).root_stages()


def test_sums_that_are_not_tiled_like_the_output_stay_outside() -> None:
    """No loop of the output contains exactly one block of the sums."""
    g = gemms.gemm(16, 16, 16)
    s = te.create_schedule(g.C)
    CL = s.cache_write(g.C, M.acc_buffer)
    s.cache_read(g.A, M.inp_buffer)
    s.cache_read(g.B, M.wgt_buffer)
    y, x = s[CL].axis
    s[CL].tile(y, x, g.k, 8, 8, 8)
    s[CL].tensorize("yi", M.gemm)
    assert [stage.name for stage in root_stages(s)] == ["CL", "C"]
    found = te.lower(s).locals
    assert {buffer.name: buffer.shape for buffer in found} == {"AL": (8, 8), "BL": (8, 8), "CL": (16, 16)}


def test_an_explicit_place_wins() -> None:
    g = gemms.gemm(16, 16, 16)
    s = gemms.tensorized(g, M)
    s["AL"].compute_at(s["CL"], "xo")
    assert "inp_buffer AL[8][16]" in te.format_nest(te.lower(s))
