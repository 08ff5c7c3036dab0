"""The loops of a stage, what a split or a fuse makes of them, and virtual threads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accel.base.arguments import check_integer, plain_integers
from accel.base.errors import ScheduleError, nearest
from accel.compiler.expr.scalar import IterVar
from accel.compiler.expr.tensor import check_name


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


class Loops(ABC):
    """The loops around the computation of one tensor, and the operators that change nothing but them.

    Attributes:
        name: of the tensor.
        axis, reduce_axis: its variables, which are the loops that there are to begin with.
        leaves: the loops, outermost first.
        relations: splits and fuses, in order of their making.
        unrolled, threads: those whose iterations are written out, or are virtual threads.
    """

    axis: tuple[IterVar, ...]
    leaves: list[IterVar]
    relations: list[Split | Fuse]
    unrolled: set[IterVar]
    threads: set[IterVar]

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def reduce_axis(self) -> tuple[IterVar, ...]: ...

    @abstractmethod
    def _check_unnamed(self, loop: IterVar) -> None:
        """Refuse a loop that compute_at or tensorize has named."""

    @abstractmethod
    def _record(self, op: str, **arguments: Any) -> None:
        """Keep an operator's call as a step of the schedule."""

    # --- operators -------------------------------------------------------------------------------

    def split(
        self, axis: IterVar | str, factor: int, *, names: tuple[str, str] | None = None
    ) -> tuple[IterVar, IterVar]:
        """Split a loop in two, the inner one of ``factor`` iterations; a last shorter one if need be.

            for x in range(10):         for xo in range(3):
                ...                         for xi in range(min(4, 10-xo*4)):
                                                ...

        Raises:
            ScheduleError: the axis is no loop of this stage, or one that compute_at, tensorize or unroll
                names; or the factor is not positive.
        """
        parent = self._free_leaf(axis)
        factor = self._check_factor(parent, factor)
        outer, inner = self._split(parent, factor, names)
        self._record("split", axis=parent.name, factor=factor, names=[outer.name, inner.name])
        return outer, inner

    def tile(
        self, *axes_and_factors: IterVar | str | int, names: Sequence[str] | None = None
    ) -> tuple[IterVar, ...]:
        """Split several loops and put all outer ones outside of all inner ones.

        ``tile(y, x, 8, 8)`` gives ``yo, xo, yi, xi``, or loops of the ``names`` given in that order; any
        number of axes, then as many factors.

            for y in range(64):         for yo in range(8):
                for x in range(64):         for xo in range(8):
                    ...                         for yi in range(8):
                                                    for xi in range(8):
                                                        ...

        Raises:
            ScheduleError: the numbers of axes and factors differ, or :meth:`split` would refuse one.
        """
        count = len(axes_and_factors) // 2
        axes, factors = axes_and_factors[:count], axes_and_factors[count:]
        plain = plain_integers(factors)
        if not count or plain is None or len(plain) != count:
            raise ScheduleError(
                f"tile of {self.name} is given {len(axes_and_factors)} arguments; "
                f"it takes axes and then as many integer factors"
            )
        parents = [self._free_leaf(a) for a in axes]  # type: ignore[arg-type]
        if len(set(parents)) != count:
            raise ScheduleError(f"tile of {self.name} names an axis twice")
        if names is not None and len(names) != 2 * count:
            raise ScheduleError(
                f"tile of {self.name} is given {len(names)} names; it makes {2 * count} loops"
            )
        for parent, factor in zip(parents, plain, strict=True):
            self._check_factor(parent, factor)
        named = [None] * count if names is None else list(zip(names[:count], names[count:], strict=True))
        pairs = [self._split(p, f, n) for p, f, n in zip(parents, plain, named, strict=True)]
        tiled = (*(outer for outer, _ in pairs), *(inner for _, inner in pairs))
        self._reorder(tiled)
        self._record(
            "tile", axes=[p.name for p in parents], factors=list(plain), names=[v.name for v in tiled]
        )
        return tiled

    def fuse(self, outer: IterVar | str, inner: IterVar | str, *, name: str | None = None) -> IterVar:
        """Make one loop of two that follow one another directly.

            for y in range(4):          for yx in range(32):
                for x in range(8):          ... with y = yx//8, x = yx%8
                    ...

        Raises:
            ScheduleError: they do not follow one another, one is a reduce axis and the other is not, or
                :meth:`split` would refuse one.
        """
        a, b = self._free_leaf(outer), self._free_leaf(inner)
        position = self.leaves.index(a)
        if self.leaves[position + 1 : position + 2] != [b]:
            raise ScheduleError(
                f"{a.name} and {b.name} of {self.name} do not follow one another; reorder them first"
            )
        if a.kind != b.kind:
            raise ScheduleError(
                f"{a.name} is a {a.kind} axis and {b.name} a {b.kind} axis; only like ones fuse"
            )
        fused = IterVar(self._fresh(name or a.name + b.name), a.extent * b.extent, a.kind)
        self.relations.append(Fuse(a, b, fused))
        self.leaves[position : position + 2] = [fused]
        self._record("fuse", outer=a.name, inner=b.name, name=fused.name)
        return fused

    def reorder(self, *axes: IterVar | str) -> None:
        """Put loops in the order given, in the places that they take together.

            for y in range(4):          for x in range(8):
                for x in range(8):          for y in range(4):
                    ...                         ...

        Raises:
            ScheduleError: an axis is no loop of this stage or stands twice.
        """
        loops = tuple(self._leaf(axis) for axis in axes)
        if len(set(loops)) != len(loops):
            raise ScheduleError(f"reorder of {self.name} names an axis twice")
        self._reorder(loops)
        self._record("reorder", axes=[v.name for v in loops])

    def unroll(self, axis: IterVar | str) -> None:
        """Write a loop's body out once per iteration.

            for x in range(2):          ... with x = 0
                ...                     ... with x = 1

        Raises:
            ScheduleError: the axis is no loop of this stage.
        """
        loop = self._leaf(axis)
        self.unrolled.add(loop)
        self._record("unroll", axis=loop.name)

    def bind(self, axis: IterVar | str, thread: ThreadAxis) -> None:
        """Make the iterations of a loop virtual threads, which hide each other's latencies.

        Each thread has its own part of the scratchpads for what is computed inside the loop; the threads
        take turns in every unit.

            for yv in vthread(2):           for ko in range(8):
                for ko in range(8):             for yv in range(2):
                    AL = A[...]                     AL[yv] = A[...]
                    CL += AL * BL                   CL[yv] += AL[yv] * BL[yv]

        Raises:
            ScheduleError: the axis is no loop of this stage.
        """
        if not isinstance(thread, ThreadAxis):
            raise ScheduleError(f"{axis!r} is bound to {thread!r}; bind to thread_axis('vthread')")
        loop = self._leaf(axis)
        self.threads.add(loop)
        self._record("bind", axis=loop.name, thread=thread.name)

    # --- helpers ---------------------------------------------------------------------------------

    def _check_factor(self, parent: IterVar, factor: object) -> int:
        return check_integer(f"the factor for {parent.name} of {self.name}", factor, error=ScheduleError)

    def _split(self, parent: IterVar, factor: int, names: tuple[str, str] | None) -> tuple[IterVar, IterVar]:
        first, second = names or (parent.name + "o", parent.name + "i")
        outer = IterVar(self._fresh(first), -(-parent.extent // factor), parent.kind)
        inner = IterVar(self._fresh(second, outer.name), min(factor, parent.extent), parent.kind)
        self.relations.append(Split(parent, outer, inner, factor))
        position = self.leaves.index(parent)
        self.leaves[position : position + 1] = [outer, inner]
        return outer, inner

    def _reorder(self, loops: Sequence[IterVar]) -> None:
        places = sorted(self.leaves.index(loop) for loop in loops)
        for place, loop in zip(places, loops, strict=True):
            self.leaves[place] = loop

    def _leaf(self, axis: IterVar | str) -> IterVar:
        """The loop itself, or the loop of that name: a cache stage's loops bear the originals' names."""
        if isinstance(axis, IterVar) and axis in self.leaves:
            return axis
        if not isinstance(axis, IterVar | str):
            raise ScheduleError(f"{axis!r} is no axis; give a loop of {self.name} or its name")
        name = axis if isinstance(axis, str) else axis.name
        for loop in self.leaves:
            if loop.name == name:
                return loop
        raise ScheduleError(
            f"{name!r} is no loop of {self.name}; {nearest(name, [v.name for v in self.leaves])}"
        )

    def _free_leaf(self, axis: IterVar | str) -> IterVar:
        """As :meth:`_leaf`; other loops may take its place, since no operator has named it."""
        loop = self._leaf(axis)
        self._check_unnamed(loop)
        if loop in self.unrolled:
            raise ScheduleError(f"{loop.name} of {self.name} is unrolled; split and fuse before unroll")
        return loop

    def _fresh(self, name: str, *taken: str) -> str:
        check_name(name)
        used = {v.name for v in [*self.axis, *self.reduce_axis, *self.leaves]} | set(taken)
        for relation in self.relations:
            made = (relation.outer, relation.inner) if isinstance(relation, Split) else (relation.fused,)
            used.update(v.name for v in made)
        candidate, number = name, 1
        while candidate in used:
            number += 1
            candidate = f"{name}{number}"
        return candidate
