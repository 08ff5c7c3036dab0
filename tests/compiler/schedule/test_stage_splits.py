"""Splits and fuses of a stage's loops, and invalid thread numbers."""

import pytest

from accel.base.errors import ScheduleError
from accel.compiler.schedule.stage_splits import check_threads
from tests.compiler.nests import matrix, prints
from tests.expect import refused


def test_split() -> None:
    s, C = matrix(4, 10)
    xo, xi = C.split("x", 4)
    assert [(v.name, v.extent) for v in C.leaves] == [("y", 4), ("xo", 3), ("xi", 4)]
    assert C.leaves[1:] == [xo, xi]
    prints(
        s,
        """
        for y in range(4):
            for xo in range(3):
                for xi in range(min(4, 10-xo*4)):
                    C[y][xo*4+xi] = A[y][xo*4+xi] + 1
        """,
    )


def test_split_by_more_than_the_extent() -> None:
    s, C = matrix(1, 3)
    assert [v.extent for v in C.split("x", 8)] == [1, 3]
    prints(
        s,
        """
        for xi in range(3):
            C[0][xi] = A[0][xi] + 1
        """,
    )


def test_tile() -> None:
    s, C = matrix(20, 10)
    assert [v.name for v in C.tile("y", "x", 8, 5)] == ["yo", "xo", "yi", "xi"]
    prints(
        s,
        """
        for yo in range(3):
            for xo in range(2):
                for yi in range(min(8, 20-yo*8)):
                    for xi in range(5):
                        C[yo*8+yi][xo*5+xi] = A[yo*8+yi][xo*5+xi] + 1
        """,
    )


def test_fuse() -> None:
    s, C = matrix(4, 8)
    fused = C.fuse("y", "x", name="f")
    assert (fused.name, fused.extent) == ("f", 32)
    prints(
        s,
        """
        for f in range(32):
            C[f//8][f%8] = A[f//8][f%8] + 1
        """,
    )


def test_fuse_of_a_short_last_tile_is_guarded() -> None:
    s, C = matrix(1, 10)
    C.fuse(*C.split("x", 4))
    prints(
        s,
        """
        for xoxi in range(12):
            if xoxi%4 < min(4, 10-xoxi//4*4):
                C[0][xoxi//4*4+xoxi%4] = A[0][xoxi//4*4+xoxi%4] + 1
        """,
    )


def test_reorder() -> None:
    s, C = matrix(4, 8)
    C.reorder("x", "y")
    prints(
        s,
        """
        for x in range(8):
            for y in range(4):
                C[y][x] = A[y][x] + 1
        """,
    )


def test_reorder_keeps_the_positions_of_other_loops() -> None:
    _, C = matrix(8, 8)
    C.tile("y", "x", 2, 2)
    C.reorder("xi", "yo")
    assert [v.name for v in C.leaves] == ["xi", "xo", "yi", "yo"]


def test_reorder_of_a_short_last_tile_is_guarded() -> None:
    s, C = matrix(1, 10)
    xo, xi = C.split("x", 4)
    C.reorder(xi, xo)
    prints(
        s,
        """
        for xi in range(4):
            for xo in range(3):
                if xi < min(4, 10-xo*4):
                    C[0][xo*4+xi] = A[0][xo*4+xi] + 1
        """,
    )


def test_unroll() -> None:
    s, C = matrix(2, 3)
    C.unroll("y")
    prints(
        s,
        """
        for x in range(3):
            C[0][x] = A[0][x] + 1
        for x in range(3):
            C[1][x] = A[1][x] + 1
        """,
    )


def test_unroll_of_a_short_last_tile() -> None:
    """The second iteration is guarded. If the outer loop is also unrolled, the guard is known."""
    s, C = matrix(1, 3)
    xo, xi = C.split("x", 2)
    C.unroll(xi)
    prints(
        s,
        """
        for xo in range(2):
            C[0][xo*2] = A[0][xo*2] + 1
            if 1 < min(2, 3-xo*2):
                C[0][xo*2+1] = A[0][xo*2+1] + 1
        """,
    )
    C.unroll(xo)
    prints(
        s,
        """
        C[0][0] = A[0][0] + 1
        C[0][1] = A[0][1] + 1
        C[0][2] = A[0][2] + 1
        """,
    )


@pytest.mark.parametrize("threads", [0, -1, True, 2.0, "2", None])
def test_invalid_numbers_of_threads(threads: object) -> None:
    with refused(
        ScheduleError, f"the number of virtual threads is {threads!r}; it must be a positive integer"
    ):
        check_threads(threads)
