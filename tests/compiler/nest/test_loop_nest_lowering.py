"""From schedules to nests: the part of a tensor that each loop computes, and the extents of loops."""

from accel import te
from accel.compiler.target.machine import machine
from accel.te import Schedule
from tests.compiler import gemms
from tests.compiler.nests import chain, prints

M = machine("gemm8x8")


# --- guards ----------------------------------------------------------------------------------------


def test_a_guard_also_guards_inner_stages() -> None:
    """Otherwise B would read beyond A's end."""
    B, C, s = chain(lambda B, y: B[y + 90], 10)
    yo, yi = s[C].split("y", 4)
    s[C].reorder(yi, yo)
    s[B].compute_at(s[C], yo)
    prints(
        s,
        """
        int32 B[1]
        for yi in range(4):
            for yo in range(3):
                if yi < min(4, 10-yo*4):
                    B[0] = A[yo*4+yi+90] * 2
                    C[yo*4+yi] = B[0]
        """,
    )


def reduction() -> Schedule:
    A = te.placeholder((6, 10), name="A")
    k = te.reduce_axis((0, 10), name="k")
    return te.create_schedule(te.compute((6,), lambda y: te.sum(A[y, k], axis=k), name="C", dtype="int8"))


def test_zeros_are_written_outside_of_the_outermost_reduce_loop() -> None:
    s = reduction()
    s["C"].reorder("k", "y")
    prints(
        s,
        """
        C[0:6] = 0
        for k in range(10):
            for y in range(6):
                C[y] += A[y][k]
        """,
    )


def test_zeros_do_not_wait_for_guards_of_reduce_loops() -> None:
    s = reduction()
    s["C"].fuse(*s["C"].split("k", 4))
    prints(
        s,
        """
        for y in range(6):
            C[y] = 0
            for koki in range(12):
                if koki%4 < min(4, 10-koki//4*4):
                    C[y] += A[y][koki//4*4+koki%4]
        """,
    )


def test_zeros_are_written_once_where_they_are_no_box() -> None:
    s = reduction()
    yo, yi = s["C"].split("y", 4)
    s["C"].reorder(yi, "k", yo)
    prints(
        s,
        """
        for yi in range(4):
            for yo in range(2):
                if yi < min(4, 6-yo*4):
                    C[yo*4+yi] = 0
            for k in range(10):
                for yo in range(2):
                    if yi < min(4, 6-yo*4):
                        C[yo*4+yi] += A[yo*4+yi][k]
        """,
    )


def test_every_buffer_is_declared_once() -> None:
    nest = te.lower(gemms.tensorized(gemms.gemm(20, 12, 9), M))
    assert [b.name for b in nest.inputs] == ["A", "B"]
    assert [b.name for b in nest.outputs] == ["C"]
    assert [b.name for b in nest.locals] == ["AL", "BL", "CL"]
