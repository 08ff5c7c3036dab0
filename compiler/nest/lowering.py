"""Where stages are computed, and which part of its tensor each computes there.

Stages are visited consumers first: the loops around a stage decide which part of its tensor is needed there,
and with it the extents of its own loops.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import NamedTuple

import numpy as np

from accel.base.errors import ScheduleError
from accel.compiler.expr.linear import at_zero, bounds, linear, simplify, variables
from accel.compiler.expr.reference import values_at
from accel.compiler.expr.scalar import (
    Binary,
    Const,
    Expr,
    IterVar,
    Read,
    rewrite,
    substitute,
)
from accel.compiler.expr.tensor import Tensor, guarded_reads
from accel.compiler.expr.window import Range
from accel.compiler.nest.nest import Buffer
from accel.compiler.nest.stage_nest import StageNest, make_loops
from accel.compiler.schedule.loops import Split
from accel.compiler.schedule.schedule import Schedule, Stage


class Lowering:
    """The state of one lowering: the stages' nests, and how reads turn into buffer accesses."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.buffers: dict[Tensor, Buffer] = {}
        self.starts: dict[Tensor, tuple[Expr, ...]] = {}
        self.held: dict[Buffer, tuple[Expr, ...]] = {}
        self.views: dict[Tensor, tuple[tuple[IterVar, ...], Read]] = {}
        """Tensors that lie among another one's elements: the element in terms of the tensor's axes."""
        self.nests: dict[Stage, StageNest] = {}
        self.places: dict[Stage, tuple[Stage, IterVar]] = {}
        self.around: dict[Buffer, tuple[IterVar, ...]] = {}
        """The loops that a buffer has another content for."""
        for tensor in schedule.inputs:
            self._add_buffer(
                tensor, tensor.shape, tuple(Range(Const(0), Const(n)) for n in tensor.shape), None
            )
        for stage in reversed(schedule.stages):
            self._place(stage)

    def root_stages(self) -> list[Stage]:
        """The stages outside of all loops, producers first."""
        return [stage for stage in self.schedule.stages if stage not in self.places]

    def attached_at(self, stage: Stage, leaf: IterVar) -> list[Stage]:
        """The stages computed inside a loop of ``stage``, producers first."""
        return [s for s in self.schedule.stages if self.places.get(s) == (stage, leaf)]

    def lowered(self, expr: Expr, nest: StageNest) -> Expr:
        """An expression of a stage's body, with buffer accesses in terms of loop variables."""

        def change(node: Expr) -> Expr | None:
            if isinstance(node, Read) and isinstance(node.tensor, Tensor):
                element = self._seen(node)
                assert isinstance(element.tensor, Tensor)
                return Read(self.buffers[element.tensor], self._relative(element, nest))
            if isinstance(node, IterVar):
                return self._absolute(node, nest)
            return None

        return rewrite(expr, change)

    def view(self, stage: Stage, element: Read) -> None:
        """Let a stage's elements be those of another tensor, ``element`` in terms of its axes. What is
        a copy of bytes there becomes int32, as accumulators are."""
        assert isinstance(element.tensor, Tensor)
        old = self.buffers[element.tensor]
        buffer = old if old.dtype == "int32" else replace(old, dtype="int32")
        if buffer is not old:
            self.held[buffer] = self.held.pop(old)
            self.around[buffer] = self.around.pop(old)
            for nest in self.nests.values():
                nest.buffer = buffer if nest.buffer is old else nest.buffer
            self.buffers = {t: buffer if b is old else b for t, b in self.buffers.items()}
        self.buffers[stage.tensor] = buffer
        self.nests[stage].buffer = buffer
        self.views[stage.tensor] = stage.axis, element

    def _seen(self, read: Read) -> Read:
        """The element that a read of a view is of."""
        while isinstance(read.tensor, Tensor) and read.tensor in self.views:
            axes, element = self.views[read.tensor]
            found = substitute(element, dict(zip(axes, read.indices, strict=True)))
            assert isinstance(found, Read)
            read = found
        return read

    def _relative(self, read: Read, nest: StageNest) -> tuple[Expr, ...]:
        assert isinstance(read.tensor, Tensor)
        starts = self.starts[read.tensor]
        return tuple(
            simplify(Binary("-", self.tensor_index(index, nest), start))
            for index, start in zip(read.indices, starts, strict=True)
        )

    def tensor_index(self, index: Expr, nest: StageNest) -> Expr:
        """An index expression of a stage's body in terms of loop variables."""
        values = {v: self._absolute(v, nest) for v in variables(index)}
        return simplify(substitute(index, values))

    def _absolute(self, v: IterVar, nest: StageNest) -> Expr:
        if v in nest.stage.axis:
            return nest.index(nest.stage.axis.index(v))
        return nest.values[v]

    # --- placing a stage -------------------------------------------------------------------------

    def _place(self, stage: Stage) -> None:
        attach = stage.attach or (None if stage.rooted else self._automatic(stage))
        outer: tuple[IterVar, ...] = ()
        if attach is None:
            domain = tuple(Range(Const(0), Const(n)) for n in stage.tensor.shape)
        else:
            consumer, leaf = attach
            around = self.nests[consumer]
            outer = around.outside(consumer.leaves.index(leaf) + 1)
            self._check_readers(stage, consumer, leaf)
            domain = self._needed(stage.tensor, outer)
            self.places[stage] = attach
        shape = tuple(r.largest for r in domain)
        differing, kept, turns = self._kept(stage, outer, domain)
        buffer = self._add_buffer(stage.tensor, shape, domain, stage, kept, turns)
        self.around[buffer] = differing
        nest = StageNest(stage, domain, outer, buffer, self._is_guarded(stage.tensor))
        make_loops(nest)
        self.nests[stage] = nest

    def _add_buffer(
        self,
        tensor: Tensor,
        shape: tuple[int, ...],
        domain: tuple[Range, ...],
        stage: Stage | None,
        kept: tuple[IterVar, ...] = (),
        turns: tuple[IterVar, ...] = (),
    ) -> Buffer:
        scope = stage.scope if stage is not None else None
        keeps = stage is not None and stage.keeps
        buffer = Buffer(tensor.name, shape, tensor.dtype, scope, kept=kept, keeps=keeps, turns=turns)
        self.buffers[tensor] = buffer
        self.starts[tensor] = tuple(r.start for r in domain)
        self.held[buffer] = tuple(r.extent for r in domain)
        return buffer

    def _kept(
        self, stage: Stage, outer: tuple[IterVar, ...], domain: tuple[Range, ...]
    ) -> tuple[tuple[IterVar, ...], tuple[IterVar, ...], tuple[IterVar, ...]]:
        """The loops of ``outer`` that a stage's buffer has another content for, those of them whose
        iterations each have a part of their own, and those whose iterations take turns."""
        if not stage.keeps:
            return outer, (), ()
        around: tuple[IterVar, ...] = ()
        if stage.keep is not None:
            consumer, leaf = stage.keep
            around = self.nests[consumer].outside(consumer.leaves.index(leaf) + 1)
            if outer[: len(around)] != around:
                raise ScheduleError(
                    f"{stage.name} is kept throughout loop {leaf.name} of {consumer.name}, which is not "
                    f"around the loop that it is computed at"
                )
        used = {v for part in domain for v in (*variables(part.start), *variables(part.extent))}
        kept = tuple(v for v in outer[len(around) :] if v in used and v.extent > 1)
        turns = tuple(v for v in around if v in used and v.extent > 1) if stage.ahead else ()
        return (*around, *kept), kept, turns

    def _automatic(self, stage: Stage) -> tuple[Stage, IterVar] | None:
        """Where a cache stage without ``compute_at`` goes: the innermost loop outside the tensorized block
        at which it holds exactly that intrinsic's operand."""
        readers = self.schedule.readers(stage.tensor)
        if stage.scope is None or len(readers) != 1:
            return None
        reader = readers[0]
        nest = self.nests[reader]
        if reader.tensorized is not None:
            block = reader.leaves.index(reader.tensorized[0])
            return (reader, reader.leaves[block - 1]) if block else None
        if stage.tensorized is None:
            return None
        held = _block_shape(stage)
        for position in range(len(reader.leaves) - 1, -1, -1):
            needed = self._needed(stage.tensor, nest.outside(position + 1))
            if tuple(r.largest for r in needed) == held:
                return reader, reader.leaves[position]
        return None

    def _check_readers(self, stage: Stage, consumer: Stage, leaf: IterVar) -> None:
        for reader in self.schedule.readers(stage.tensor):
            if not self._is_inside(reader, consumer, leaf):
                raise ScheduleError(
                    f"{stage.name} is computed inside loop {leaf.name} of {consumer.name}; "
                    f"{reader.name}, which reads it, is outside of that loop"
                )

    def _is_inside(self, stage: Stage, consumer: Stage, leaf: IterVar) -> bool:
        """Whether ``stage`` is computed within a loop of ``consumer``."""
        if stage is consumer:
            return True
        if stage not in self.places:
            return False
        around, at = self.places[stage]
        if around is consumer:
            return consumer.leaves.index(at) >= consumer.leaves.index(leaf)
        return self._is_inside(around, consumer, leaf)

    def _is_guarded(self, tensor: Tensor) -> bool:
        """Whether some read of a tensor takes place under conditions only."""
        every = (found for reader in self.schedule.readers(tensor) for found in guarded_reads(reader.body))
        return any(conditions for read, conditions in every if read.tensor is tensor)

    def _needed(self, tensor: Tensor, outer: tuple[IterVar, ...]) -> tuple[Range, ...]:
        """The part of a tensor that its readers read inside the loops ``outer``."""
        dimensions: list[_Reach | None] = [None] * len(tensor.shape)
        for reader in self.schedule.readers(tensor):
            nest = self.nests[reader]
            for read, conditions in guarded_reads(reader.body):
                if read.tensor is not tensor:
                    continue
                for d, index in enumerate(read.indices):
                    part = _reach_of(self.tensor_index(index, nest), outer, guarded=bool(conditions))
                    known = dimensions[d]
                    dimensions[d] = part if known is None else _hull(known, part, tensor.shape[d])
        return tuple(
            Range(Const(0), Const(n)) if reach is None else _clipped(reach, n)
            for reach, n in zip(dimensions, tensor.shape, strict=True)
        )


_MOST_VALUES = 1 << 12
"""Of variables, that are gone through to see how far reads are apart."""


class _Reach(NamedTuple):
    """Indices ``[start, start + length)`` that reads ask for; guarded ones may lie outside of the tensor."""

    start: Expr
    length: int
    guarded: bool


def _reach_of(index: Expr, outer: tuple[IterVar, ...], *, guarded: bool) -> _Reach:
    """The values of an index while the variables not in ``outer`` run."""
    inner = {v for v in variables(index) if v not in outer}
    start = at_zero(index, inner)
    low, high = bounds(simplify(Binary("-", index, start)))
    if low < 0:
        start = simplify(Binary("+", start, Const(low)))
        high -= low
    mixed = (set(variables(atom)) for atom, _ in linear(index).terms if isinstance(atom, Binary))
    if any(used & inner and not used <= inner for used in mixed):
        low, high = bounds(index)  # not linear in what runs, apart from what does not: all that may occur
        start, high = Const(low), high - low
    return _Reach(start, high + 1, guarded)


def _clipped(reach: _Reach, size: int) -> Range:
    """What of a reach is in the tensor; what a guarded one has in front of it is cut off."""
    start, extent = reach.start, Const(reach.length)
    if reach.guarded and bounds(start)[0] < 0:
        shorter_one = Binary("min", extent, Binary("+", start, extent))
        return clip_range(simplify(Binary("max", start, Const(0))), shorter_one, Const(size))
    return clip_range(simplify(Binary("max", start, Const(0))), extent, Const(size))


def clip_range(start: Expr, extent: Expr, size: Expr) -> Range:
    """``[start, start + extent)``, ending at ``size`` at the latest."""
    rest = simplify(Binary("-", size, start))
    return Range(start, simplify(Binary("min", extent, rest)))


def _hull(a: _Reach, b: _Reach, size: int) -> _Reach:
    """Both and all in between; the whole tensor if it is not known how far they are apart."""
    distance = simplify(Binary("-", b.start, a.start))
    every = [distance.value] if isinstance(distance, Const) else _values(distance)
    length = max((max(a.length, apart + b.length) - min(0, apart) for apart in every), default=size)
    if len(every) != 1 and length >= size:
        return _Reach(Const(0), size, guarded=False)
    start = a.start if min(every) >= 0 else b.start if max(every) <= 0 else Binary("min", a.start, b.start)
    return _Reach(simplify(start), length, a.guarded or b.guarded)


def _values(index: Expr) -> list[int]:
    """All values that an index has while its variables run; nothing if these are very many."""
    every = variables(index)
    if prod(v.extent for v in every) > _MOST_VALUES:
        return []
    axes = np.meshgrid(*(np.arange(v.extent) for v in every), indexing="ij")
    found: list[int] = np.unique(values_at(index, dict(zip(every, axes, strict=True)))).tolist()
    return found


def _block_shape(stage: Stage) -> tuple[int, ...]:
    """The part of a tensor that the tensorized block covers, by the loops' own extents."""
    assert stage.tensorized is not None
    block = set(stage.leaves[stage.leaves.index(stage.tensorized[0]) :])
    sizes: dict[IterVar, int] = {}
    for leaf in stage.leaves:
        sizes[leaf] = leaf.extent if leaf in block else 1
    for relation in reversed(stage.relations):
        if isinstance(relation, Split):
            outer, inner = sizes.get(relation.outer, 1), sizes.get(relation.inner, 1)
            sizes[relation.parent] = (outer - 1) * relation.factor + inner
        else:
            sizes[relation.outer] = relation.outer.extent if sizes.get(relation.fused, 1) > 1 else 1
            sizes[relation.inner] = min(relation.inner.extent, sizes.get(relation.fused, 1))
    return tuple(sizes.get(axis, 1) for axis in stage.axis)
