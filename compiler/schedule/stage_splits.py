"""Operators that split, fuse, reorder, unroll or bind the loops of a stage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from accel.base.arguments import check_integer, plain_integers
from accel.base.errors import ScheduleError, nearest
from accel.compiler.expr.scalar_expressions import IterVar
from accel.compiler.expr.tensor_expressions import check_name


class Split(Struct, frozen=True):
    """``parent = outer * factor + inner``."""

    parent: IterVar
    outer: IterVar
    inner: IterVar
    factor: int


class Fuse(Struct, frozen=True):
    """``fused = outer * inner's extent + inner``."""

    outer: IterVar
    inner: IterVar
    fused: IterVar


class ThreadAxis(Struct, frozen=True):
    name: str


def thread_axis(name: str = "vthread") -> ThreadAxis:
    """Return the thread axis ``vthread``: virtual threads that share the machine.

    Raises:
        ScheduleError: the name is not ``vthread``.
    """
    if name != "vthread":
        raise ScheduleError(f"the thread axis is {name!r}; only 'vthread' exists")
    return ThreadAxis(name)


def check_threads(threads: object) -> int:
    return check_integer("the number of virtual threads", threads, error=ScheduleError)


class Loops(ABC):
    """The loops of a stage. ``Stage`` describes the attributes."""

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
    def _check_unclaimed(self, loop: IterVar) -> None:
        """Refuse a loop that compute_at or tensorize has named."""

    @abstractmethod
    def _record_step(self, op: str, **arguments: Any) -> None: ...

    def split(
        self, axis: IterVar | str, factor: int, *, names: tuple[str, str] | None = None
    ) -> tuple[IterVar, IterVar]:
        """Split a loop into two. The inner loop has ``factor`` iterations, fewer in the last tile.

            for x in range(10):         for xo in range(3):
                ...                         for xi in range(min(4, 10-xo*4)):
                                                ...

        Raises:
            ScheduleError: the axis is not a loop of this stage, compute_at, tensorize or unroll has named it,
                or the factor is not positive.
            ShapeError: a name is not an identifier.
        """
        parent = self._free_loop(axis)
        factor = self._check_factor(parent, factor)
        outer, inner = self._split(parent, factor, names)
        self._record_step("split", axis=parent.name, factor=factor, names=[outer.name, inner.name])
        return outer, inner

    def tile(
        self, *axes_and_factors: IterVar | str | int, names: Sequence[str] | None = None
    ) -> tuple[IterVar, ...]:
        """Split several loops, and move all outer ones outside all inner ones.

        ``tile(y, x, 8, 8)`` gives ``yo, xo, yi, xi``, or these ``names``. Any number of axes come first, then
        one factor for each.

            for y in range(64):         for yo in range(8):
                for x in range(64):         for xo in range(8):
                    ...                         for yi in range(8):
                                                    for xi in range(8):
                                                        ...

        Raises:
            ScheduleError: the numbers of axes, factors and names do not match, an axis occurs twice, or
                :meth:`split` would refuse one.
            ShapeError: a name is not an identifier.
        """
        count = len(axes_and_factors) // 2
        axes, factors = axes_and_factors[:count], axes_and_factors[count:]
        plain = plain_integers(factors)
        if not count or plain is None or len(plain) != count:
            raise ScheduleError(
                f"tile of {self.name} is given {len(axes_and_factors)} arguments; "
                f"it takes axes, and one integer factor for each"
            )
        parents = [self._free_loop(a) for a in axes]  # type: ignore[arg-type]
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
        self._record_step(
            "tile", axes=[p.name for p in parents], factors=list(plain), names=[v.name for v in tiled]
        )
        return tiled

    def fuse(self, outer: IterVar | str, inner: IterVar | str, *, name: str | None = None) -> IterVar:
        """Fuse two adjacent loops into one.

            for y in range(4):          for yx in range(32):
                for x in range(8):          ... with y = yx//8, x = yx%8
                    ...

        Raises:
            ScheduleError: they are not adjacent, only one is a reduce axis, or :meth:`split` would refuse
                one.
            ShapeError: the name is not an identifier.
        """
        a, b = self._free_loop(outer), self._free_loop(inner)
        position = self.leaves.index(a)
        if self.leaves[position + 1 : position + 2] != [b]:
            raise ScheduleError(f"{a.name} and {b.name} of {self.name} are not adjacent; reorder them first")
        if a.kind != b.kind:
            raise ScheduleError(
                f"{a.name} is a {a.kind} axis and {b.name} a {b.kind} axis; only axes of the same kind fuse"
            )
        fused = IterVar(self._unused_name(name or a.name + b.name), a.extent * b.extent, a.kind)
        self.relations.append(Fuse(a, b, fused))
        self.leaves[position : position + 2] = [fused]
        self._record_step("fuse", outer=a.name, inner=b.name, name=fused.name)
        return fused

    def reorder(self, *axes: IterVar | str) -> None:
        """Permute loops into the order given. Other loops keep their positions.

            for y in range(4):          for x in range(8):
                for x in range(8):          for y in range(4):
                    ...                         ...

        Raises:
            ScheduleError: an axis is not a loop of this stage, or is named twice.
        """
        loops = tuple(self._find_loop(axis) for axis in axes)
        if len(set(loops)) != len(loops):
            raise ScheduleError(f"reorder of {self.name} names an axis twice")
        self._reorder(loops)
        self._record_step("reorder", axes=[v.name for v in loops])

    def unroll(self, axis: IterVar | str) -> None:
        """Repeat a loop's body once per iteration.

            for x in range(2):          ... with x = 0
                ...                     ... with x = 1

        Raises:
            ScheduleError: the axis is not a loop of this stage.
        """
        loop = self._find_loop(axis)
        self.unrolled.add(loop)
        self._record_step("unroll", axis=loop.name)

    def bind(self, axis: IterVar | str, thread: ThreadAxis) -> None:
        """Make a loop's iterations virtual threads, which hide each other's latencies.

        Each has its own buffers for stages inside the loop. The threads alternate in every unit.

            for yv in vthread(2):           for ko in range(8):
                for ko in range(8):             for yv in range(2):
                    AL = A[...]                     AL[yv] = A[...]
                    CL += AL * BL                   CL[yv] += AL[yv] * BL[yv]

        Raises:
            ScheduleError: the axis is not a loop of this stage, or ``thread`` is not a thread axis.
        """
        if not isinstance(thread, ThreadAxis):
            raise ScheduleError(f"{axis!r} is bound to {thread!r}; bind to thread_axis('vthread')")
        loop = self._find_loop(axis)
        self.threads.add(loop)
        self._record_step("bind", axis=loop.name, thread=thread.name)

    def _check_factor(self, parent: IterVar, factor: object) -> int:
        return check_integer(f"the factor for {parent.name} of {self.name}", factor, error=ScheduleError)

    def _split(self, parent: IterVar, factor: int, names: tuple[str, str] | None) -> tuple[IterVar, IterVar]:
        first, second = names or (parent.name + "o", parent.name + "i")
        outer = IterVar(self._unused_name(first), -(-parent.extent // factor), parent.kind)
        inner = IterVar(self._unused_name(second, outer.name), min(factor, parent.extent), parent.kind)
        self.relations.append(Split(parent, outer, inner, factor))
        position = self.leaves.index(parent)
        self.leaves[position : position + 1] = [outer, inner]
        return outer, inner

    def _reorder(self, loops: Sequence[IterVar]) -> None:
        places = sorted(self.leaves.index(loop) for loop in loops)
        for place, loop in zip(places, loops, strict=True):
            self.leaves[place] = loop

    def _find_loop(self, axis: IterVar | str) -> IterVar:
        """Return the loop itself, or the one with its name, which loops of a cache stage keep."""
        if isinstance(axis, IterVar) and axis in self.leaves:
            return axis
        if not isinstance(axis, IterVar | str):
            raise ScheduleError(f"{axis!r} is not an axis; give a loop of {self.name} or its name")
        name = axis if isinstance(axis, str) else axis.name
        for loop in self.leaves:
            if loop.name == name:
                return loop
        raise ScheduleError(
            f"{name!r} is not a loop of {self.name}; {nearest(name, [v.name for v in self.leaves])}"
        )

    def _free_loop(self, axis: IterVar | str) -> IterVar:
        loop = self._find_loop(axis)
        self._check_unclaimed(loop)
        if loop in self.unrolled:
            raise ScheduleError(f"{loop.name} of {self.name} is unrolled; split and fuse before unroll")
        return loop

    def _unused_name(self, name: str, *taken: str) -> str:
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
