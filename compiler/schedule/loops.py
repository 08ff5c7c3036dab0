"""What becomes of loops: those that a split or a fuse makes of others, and virtual threads."""

from dataclasses import dataclass

from accel.base.arguments import check_integer
from accel.base.errors import ScheduleError
from accel.compiler.expr.scalar import IterVar


@dataclass(frozen=True)
class Split:
    """``parent = outer * factor + inner``."""

    parent: IterVar
    outer: IterVar
    inner: IterVar
    factor: int


@dataclass(frozen=True)
class Fuse:
    """``fused = outer * inner's extent + inner``."""

    outer: IterVar
    inner: IterVar
    fused: IterVar


@dataclass(frozen=True)
class ThreadAxis:
    """What ``bind`` binds a loop to; made by :func:`thread_axis`."""

    name: str


def thread_axis(name: str = "vthread") -> ThreadAxis:
    """A kind of thread: ``vthread``, virtual threads that share the machine.

    Raises:
        ScheduleError: another name.
    """
    if name != "vthread":
        raise ScheduleError(f"the thread axis is {name!r}; only 'vthread' exists")
    return ThreadAxis(name)


def check_threads(threads: object) -> int:
    """A number of virtual threads.

    Raises:
        ScheduleError: it is no positive integer.
    """
    return check_integer("the number of virtual threads", threads, error=ScheduleError)
