from collections.abc import Callable
from textwrap import dedent

from accel import te
from accel.te import Schedule, Stage, Tensor


def prints(s: Schedule, text: str) -> None:
    assert te.format_nest(te.lower(s)) == dedent(text).lstrip("\n")


def chain(read: Callable[[Tensor, te.IterVar], object], size: int) -> tuple[Tensor, Tensor, Schedule]:
    """``C`` reads ``B``, which doubles ``A``."""
    A = te.placeholder((100,), name="A")
    B = te.compute((100,), lambda y: A[y] * 2, name="B")
    C = te.compute((size,), lambda y: read(B, y), name="C")  # type: ignore[arg-type, return-value]
    return B, C, te.create_schedule(C)


def matrix(rows: int, columns: int) -> tuple[Schedule, Stage]:
    """Return a computation that adds one to each element of a matrix."""
    A = te.placeholder((rows, columns), name="A")
    C = te.compute((rows, columns), lambda y, x: A[y, x] + 1, name="C")
    s = te.create_schedule(C)
    return s, s[C]
