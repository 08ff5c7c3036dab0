"""A stage's own loops: extents and names."""

from tests.compiler.nests import chain, prints


def test_splits_of_a_part_that_may_be_short() -> None:
    B, C, s = chain(lambda B, y: B[y] + B[y + 2], 98)
    yo, _ = s[C].split("y", 8)
    s[B].compute_at(s[C], yo)
    s[B].split("y", 4, names=("p", "q"))
    prints(
        s,
        """
        int32 B[10]
        for yo in range(13):
            for p in range(min(3, 25-yo*2)):
                for q in range(min(min(4, 10-p*4), 100-yo*8-p*4)):
                    B[p*4+q] = A[yo*8+p*4+q] * 2
            for yi in range(min(8, 98-yo*8)):
                C[yo*8+yi] = B[yi] + B[yi+2]
        """,
    )


def test_loops_have_names_that_no_loop_around_them_has() -> None:
    B, C, s = chain(lambda B, y: B[y] + B[y + 2], 98)
    s[B].compute_at(s[C], "y")
    prints(
        s,
        """
        int32 B[3]
        for y in range(98):
            for y2 in range(3):
                B[y2] = A[y+y2] * 2
            C[y] = B[0] + B[2]
        """,
    )
