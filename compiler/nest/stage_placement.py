"""The loop inside which each stage is computed, and the part of its tensor there."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from accel.base.errors import ScheduleError
from accel.base.fast_unique import distinct
from accel.base.records import replace
from accel.compiler.expr.epilogue_operators import PostOp
from accel.compiler.expr.linear_expressions import (
    at_zero,
    bounds,
    linear,
    simplify,
    simplify_conditions,
    variables,
)
from accel.compiler.expr.numpy_reference import values_at
from accel.compiler.expr.scalar_expressions import (
    Binary,
    Const,
    Expr,
    IterVar,
    Read,
    rewrite,
    substitute,
)
from accel.compiler.expr.tensor_expressions import Tensor, guarded_reads
from accel.compiler.expr.window_expressions import Range
from accel.compiler.nest.nest import Buffer
from accel.compiler.nest.stage_loops import StageNest, make_loops
from accel.compiler.schedule.schedule import Schedule, Stage
from accel.compiler.schedule.stage_splits import Split


class Lowering:
    """The state of one lowering."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.buffers: dict[Tensor, Buffer] = {}
        self.starts: dict[Tensor, tuple[Expr, ...]] = {}
        self.buffer_extents: dict[Buffer, tuple[Expr, ...]] = {}
        self.views: dict[Tensor, tuple[tuple[IterVar, ...], Read]] = {}
        """Tensors that share another tensor's elements: the element in terms of the tensor's axes."""
        self.nests: dict[Stage, StageNest] = {}
        self.attachments: dict[Stage, tuple[Stage, IterVar]] = {}
        self.refill_loops: dict[Buffer, tuple[IterVar, ...]] = {}
        for tensor in schedule.inputs:
            self._add_buffer(
                tensor, tensor.shape, tuple(Range(Const(0), Const(n)) for n in tensor.shape), None
            )
        for stage in reversed(schedule.stages):
            self._place(stage)

    def root_stages(self) -> list[Stage]:
        return [stage for stage in self.schedule.stages if stage not in self.attachments]

    def attached_at(self, stage: Stage, leaf: IterVar) -> list[Stage]:
        return [s for s in self.schedule.stages if self.attachments.get(s) == (stage, leaf)]

    def lowered(self, expr: Expr, nest: StageNest) -> Expr:
        def change(node: Expr) -> Expr | None:
            if isinstance(node, Read) and isinstance(node.tensor, Tensor):
                element = self._resolve_views(node)
                assert isinstance(element.tensor, Tensor)
                return Read(self.buffers[element.tensor], self._buffer_indices(element, nest))
            if isinstance(node, IterVar):
                return self._value_of(node, nest)
            return None

        return rewrite(expr, change)

    def lowered_op(self, op: PostOp, nest: StageNest) -> PostOp:
        return op.rewritten(lambda part: simplify_conditions(self.lowered(part, nest)))

    def view(self, stage: Stage, element: Read) -> None:
        """Replace a stage's elements by ``element``, of another tensor. A copy of bytes becomes int32, as in
        accumulators."""
        assert isinstance(element.tensor, Tensor)
        old = self.buffers[element.tensor]
        buffer = old if old.dtype == "int32" else replace(old, dtype="int32")
        if buffer is not old:
            self.buffer_extents[buffer] = self.buffer_extents.pop(old)
            self.refill_loops[buffer] = self.refill_loops.pop(old)
            for nest in self.nests.values():
                nest.buffer = buffer if nest.buffer is old else nest.buffer
            self.buffers = {t: buffer if b is old else b for t, b in self.buffers.items()}
        self.buffers[stage.tensor] = buffer
        self.nests[stage].buffer = buffer
        self.views[stage.tensor] = stage.axis, element

    def _resolve_views(self, read: Read) -> Read:
        while isinstance(read.tensor, Tensor) and read.tensor in self.views:
            axes, element = self.views[read.tensor]
            found = substitute(element, dict(zip(axes, read.indices, strict=True)))
            assert isinstance(found, Read)
            read = found
        return read

    def _buffer_indices(self, read: Read, nest: StageNest) -> tuple[Expr, ...]:
        assert isinstance(read.tensor, Tensor)
        starts = self.starts[read.tensor]
        return tuple(
            simplify(Binary("-", self.tensor_index(index, nest), start))
            for index, start in zip(read.indices, starts, strict=True)
        )

    def tensor_index(self, index: Expr, nest: StageNest) -> Expr:
        values = {v: self._value_of(v, nest) for v in variables(index)}
        return simplify(substitute(index, values))

    def _value_of(self, v: IterVar, nest: StageNest) -> Expr:
        if v in nest.stage.axis:
            return nest.index(nest.stage.axis.index(v))
        return nest.values[v]

    def _place(self, stage: Stage) -> None:
        attach = stage.attach or (None if stage.is_root else self._automatic_attachment(stage))
        outer: tuple[IterVar, ...] = ()
        if attach is None:
            domain = tuple(Range(Const(0), Const(n)) for n in stage.tensor.shape)
        else:
            consumer, leaf = attach
            around = self.nests[consumer]
            outer = around.outside(consumer.leaves.index(leaf) + 1)
            self._check_readers(stage, consumer, leaf)
            domain = self._needed_region(stage.tensor, outer)
            self.attachments[stage] = attach
        shape = tuple(r.largest for r in domain)
        refill, resident, alternating = self._residency(stage, outer, domain)
        buffer = self._add_buffer(stage.tensor, shape, domain, stage, resident, alternating)
        self.refill_loops[buffer] = refill
        nest = StageNest(stage, domain, outer, buffer, self._is_optional(stage.tensor))
        make_loops(nest)
        self.nests[stage] = nest

    def _add_buffer(
        self,
        tensor: Tensor,
        shape: tuple[int, ...],
        domain: tuple[Range, ...],
        stage: Stage | None,
        resident: tuple[IterVar, ...] = (),
        alternating: tuple[IterVar, ...] = (),
    ) -> Buffer:
        scope = stage.scope if stage is not None else None
        is_resident = stage is not None and stage.is_resident
        buffer = Buffer(
            tensor.name,
            shape,
            tensor.dtype,
            scope,
            resident_loops=resident,
            is_resident=is_resident,
            alternating_loops=alternating,
        )
        self.buffers[tensor] = buffer
        self.starts[tensor] = tuple(r.start for r in domain)
        self.buffer_extents[buffer] = tuple(r.extent for r in domain)
        return buffer

    def _residency(
        self, stage: Stage, outer: tuple[IterVar, ...], domain: tuple[Range, ...]
    ) -> tuple[tuple[IterVar, ...], tuple[IterVar, ...], tuple[IterVar, ...]]:
        """Return the loops around a stage that refill its buffer, those of them with separate parts, and
        those that alternate between two sets."""
        if not stage.is_resident:
            return outer, (), ()
        around: tuple[IterVar, ...] = ()
        if stage.resident_at is not None:
            consumer, leaf = stage.resident_at
            around = self.nests[consumer].outside(consumer.leaves.index(leaf) + 1)
            if outer[: len(around)] != around:
                raise ScheduleError(
                    f"{stage.name} is resident throughout loop {leaf.name} of {consumer.name}, which is not "
                    f"around the loop that it is computed at"
                )
        used = {v for part in domain for v in (*variables(part.start), *variables(part.extent))}
        resident = tuple(v for v in outer[len(around) :] if v in used and v.extent > 1)
        alternating = tuple(v for v in around if v in used and v.extent > 1) if stage.prefetches else ()
        return (*around, *resident), resident, alternating

    def _automatic_attachment(self, stage: Stage) -> tuple[Stage, IterVar] | None:
        """Return the loop for a cache stage without ``compute_at``: the innermost one outside the tensorized
        block at which the stage holds exactly the intrinsic's operand."""
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
        block_shape = _block_shape(stage)
        for position in range(len(reader.leaves) - 1, -1, -1):
            needed = self._needed_region(stage.tensor, nest.outside(position + 1))
            if tuple(r.largest for r in needed) == block_shape:
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
        if stage is consumer:
            return True
        if stage not in self.attachments:
            return False
        around, at = self.attachments[stage]
        if around is consumer:
            return consumer.leaves.index(at) >= consumer.leaves.index(leaf)
        return self._is_inside(around, consumer, leaf)

    def _is_optional(self, tensor: Tensor) -> bool:
        """Whether the part that readers need may be empty: they skip padding, or are optional themselves."""
        readers = self.schedule.readers(tensor)
        every = (found for reader in readers for found in guarded_reads(reader.body))
        return any(conditions for read, conditions in every if read.tensor is tensor) or any(
            self.nests[reader].optional for reader in readers
        )

    def _needed_region(self, tensor: Tensor, outer: tuple[IterVar, ...]) -> tuple[Range, ...]:
        dimensions: list[_ReadRange | None] = [None] * len(tensor.shape)
        for reader in self.schedule.readers(tensor):
            nest = self.nests[reader]
            for read, conditions in guarded_reads(reader.body):
                if read.tensor is not tensor:
                    continue
                for d, index in enumerate(read.indices):
                    part = _read_range(self.tensor_index(index, nest), outer, guarded=bool(conditions))
                    known = dimensions[d]
                    dimensions[d] = part if known is None else _union(known, part, tensor.shape[d])
        return tuple(
            Range(Const(0), Const(n)) if read_range is None else _clipped(read_range, n)
            for read_range, n in zip(dimensions, tensor.shape, strict=True)
        )


_MAX_VALUES = 1 << 12
"""Limit of values to enumerate for the distance between reads."""


class _ReadRange(NamedTuple):
    """Guarded reads may lie outside the tensor."""

    start: Expr
    length: int
    guarded: bool


def _read_range(index: Expr, outer: tuple[IterVar, ...], *, guarded: bool) -> _ReadRange:
    """Return the range of an index over all variables that are not in ``outer``."""
    inner = {v for v in variables(index) if v not in outer}
    start = at_zero(index, inner)
    low, high = bounds(simplify(Binary("-", index, start)))
    if low < 0:
        start = simplify(Binary("+", start, Const(low)))
        high -= low
    mixed = (set(variables(atom)) for atom, _ in linear(index).terms if isinstance(atom, Binary))
    if any(used & inner and not used <= inner for used in mixed):
        low, high = bounds(index)  # not linear in the inner loops: assume all values
        start, high = Const(low), high - low
    return _ReadRange(start, high + 1, guarded)


def _clipped(read_range: _ReadRange, size: int) -> Range:
    start, extent = read_range.start, Const(read_range.length)
    if read_range.guarded and bounds(start)[0] < 0:
        shorter_one = Binary("min", extent, Binary("+", start, extent))
        return clip_range(simplify(Binary("max", start, Const(0))), shorter_one, Const(size))
    return clip_range(simplify(Binary("max", start, Const(0))), extent, Const(size))


def clip_range(start: Expr, extent: Expr, size: Expr) -> Range:
    rest = simplify(Binary("-", size, start))
    return Range(start, simplify(Binary("min", extent, rest)))


def _union(a: _ReadRange, b: _ReadRange, size: int) -> _ReadRange:
    distance = simplify(Binary("-", b.start, a.start))
    every = [distance.value] if isinstance(distance, Const) else _values(distance)
    length = max((max(a.length, apart + b.length) - min(0, apart) for apart in every), default=size)
    if len(every) != 1 and length >= size:
        return _ReadRange(Const(0), size, guarded=False)
    start = a.start if min(every) >= 0 else b.start if max(every) <= 0 else Binary("min", a.start, b.start)
    return _ReadRange(simplify(start), length, a.guarded or b.guarded)


def _values(index: Expr) -> list[int]:
    every = variables(index)
    if prod(v.extent for v in every) > _MAX_VALUES:
        return []
    axes = np.meshgrid(*(np.arange(v.extent) for v in every), indexing="ij")
    found: list[int] = distinct(values_at(index, dict(zip(every, axes, strict=True)))).tolist()
    return found


def _block_shape(stage: Stage) -> tuple[int, ...]:
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
