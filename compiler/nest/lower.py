"""From a schedule to its loop nest.

Stages are visited consumers first: the loops around a stage decide which part of its tensor is needed
there, and with it the extents of its own loops. Shorter last tiles show as extents like
``min(8, 100-yo*8)``; a loop whose extent would depend on a loop inside it runs to its largest extent
behind a guard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from accel.base.errors import ScheduleError
from accel.compiler.expr.linear import at_zero, bounds, ceil_div, linear, simplify, variables
from accel.compiler.expr.scalar import (
    Binary,
    Cast,
    Condition,
    Const,
    Expr,
    IterVar,
    Read,
    Sum,
    rewrite,
    substitute,
)
from accel.compiler.expr.tensor import Tensor, guarded_reads
from accel.compiler.expr.window import Range
from accel.compiler.nest.nest import Assign, Buffer, Fill, For, Guard, Nest, Node, Region, replace_vars
from accel.compiler.schedule.loops import Fuse, Split
from accel.compiler.schedule.schedule import Schedule, Stage


@dataclass(eq=False)
class StageNest:
    """One stage's loops, once the part that it computes is known.

    Attributes:
        domain: the part of the tensor, per dimension.
        outer: loop variables around the place where the stage is attached, outermost first.
        buffer: where the part goes.
        optional: whether it may be that nothing of the part is read, since all of it is padding.
        values: every variable of the stage (axes, loops) in terms of loop variables; axes count from the
            start of the domain.
        extents: of every variable, as the enclosing loops let it run.
        loops: per leaf, its loop variable, or None where it runs only once outside of a tensorized block.
        conditions: values that guards must keep below limits.
    """

    stage: Stage
    domain: tuple[Range, ...]
    outer: tuple[IterVar, ...]
    buffer: Buffer
    optional: bool = False
    values: dict[IterVar, Expr] = field(default_factory=dict)
    extents: dict[IterVar, Expr] = field(default_factory=dict)
    loops: dict[IterVar, IterVar | None] = field(default_factory=dict)
    conditions: list[Condition] = field(default_factory=list)

    @property
    def held(self) -> tuple[Expr, ...]:
        """Extents of the domain."""
        return tuple(r.extent for r in self.domain)

    def inside(self, position: int) -> set[IterVar]:
        """Loop variables of the leaves from ``position`` inward."""
        found = (self.loops[leaf] for leaf in self.stage.leaves[position:])
        return {v for v in found if v is not None}

    def outside(self, position: int) -> tuple[IterVar, ...]:
        """All loop variables around the leaf at ``position``, outermost first."""
        found = (self.loops[leaf] for leaf in self.stage.leaves[:position])
        return self.outer + tuple(v for v in found if v is not None)

    def conditions_at(self, position: int) -> list[Condition]:
        """The conditions that are decided just inside the leaf before ``position``."""
        known = set(self.outside(position))
        before = set(self.outside(position - 1)) if position else None
        used = [(c, {*variables(c[0]), *variables(c[1])}) for c in self.conditions]
        return [c for c, v in used if v <= known and (before is None or not v <= before)]

    def space_conditions(self, begin: int, end: int | None = None) -> list[Condition]:
        """The conditions on space loops that the leaves from ``begin`` to before ``end`` decide."""
        later = set() if end is None else self.inside(end)
        summed = {self.loops[leaf] for leaf in self.stage.leaves if leaf.kind == "reduce"}
        used = [(c, {*variables(c[0]), *variables(c[1])}) for c in self.conditions]
        return [c for c, v in used if v & self.inside(begin) and not v & (summed | later)]

    def index(self, dimension: int) -> Expr:
        """The tensor's index in a dimension, counted from the start of the tensor."""
        relative = self.values[self.stage.axis[dimension]]
        return simplify(Binary("+", self.domain[dimension].start, relative))


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
        buffer = self._add_buffer(stage.tensor, tuple(r.largest for r in domain), domain, stage)
        nest = StageNest(stage, domain, outer, buffer, self._is_guarded(stage.tensor))
        _make_loops(nest)
        self.nests[stage] = nest

    def _add_buffer(
        self, tensor: Tensor, shape: tuple[int, ...], domain: tuple[Range, ...], stage: Stage | None
    ) -> Buffer:
        buffer = Buffer(tensor.name, shape, tensor.dtype, stage.scope if stage is not None else None)
        self.buffers[tensor] = buffer
        self.starts[tensor] = tuple(r.start for r in domain)
        self.held[buffer] = tuple(r.extent for r in domain)
        return buffer

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
    if not isinstance(distance, Const):
        return _Reach(Const(0), size, guarded=False)
    first = a if distance.value >= 0 else b
    length = max(a.length, distance.value + b.length) - min(0, distance.value)
    return _Reach(first.start, length, a.guarded or b.guarded)


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


# --- a stage's own loops -----------------------------------------------------------------------------


def _make_loops(nest: StageNest) -> None:
    """Extents and values of all variables of a stage, from its domain and its splits and fuses."""
    stage = nest.stage
    largest: dict[IterVar, int] = {}
    exact: dict[IterVar, Expr] = {}
    for axis, part in zip(stage.axis, nest.domain, strict=True):
        largest[axis], exact[axis] = part.largest, part.extent
    for axis in stage.reduce_axis:
        largest[axis], exact[axis] = axis.extent, Const(axis.extent)
    for relation in stage.relations:
        if isinstance(relation, Split):
            largest[relation.outer] = -(-largest[relation.parent] // relation.factor)
            largest[relation.inner] = min(relation.factor, largest[relation.parent])
        else:
            largest[relation.fused] = largest[relation.outer] * largest[relation.inner]
    block = stage.tensorized[0] if stage.tensorized is not None else None
    in_block = False
    for leaf in stage.leaves:
        in_block = in_block or leaf is block
        empty = nest.optional and leaf in exact and bounds(exact[leaf])[0] < 1
        runs = in_block or largest[leaf] > 1 or empty
        loop = IterVar(_distinct_name(nest, leaf), largest[leaf], leaf.kind) if runs else None
        nest.loops[leaf] = loop
        nest.values[leaf] = loop if loop is not None else Const(0)
    for relation in reversed(stage.relations):
        if isinstance(relation, Split):
            scaled = Binary("*", nest.values[relation.outer], Const(relation.factor))
            nest.values[relation.parent] = simplify(Binary("+", scaled, nest.values[relation.inner]))
        else:
            width = Const(largest[relation.inner])
            nest.values[relation.outer] = simplify(Binary("//", nest.values[relation.fused], width))
            nest.values[relation.inner] = simplify(Binary("%", nest.values[relation.fused], width))
    for relation in stage.relations:
        if isinstance(relation, Split):
            _split_extents(nest, relation, exact)
        else:
            _fuse_extents(nest, relation, exact, largest)
    known = set(nest.outer)
    for leaf in stage.leaves:
        extent = exact[leaf]
        if not set(variables(extent)) <= known:
            nest.conditions.append((nest.values[leaf], extent))
            extent = Const(largest[leaf])
        nest.extents[leaf] = extent
        loop = nest.loops[leaf]
        if loop is not None:
            known.add(loop)


def _distinct_name(nest: StageNest, leaf: IterVar) -> str:
    """The leaf's name, with a number if a loop around the stage bears it."""
    around = {v.name for v in nest.outer}
    taken = around | {other.name for other in nest.stage.leaves if other is not leaf}
    name, number = leaf.name, 1
    while name in (around if number == 1 else taken):
        number += 1
        name = f"{leaf.name}{number}"
    return name


def _split_extents(nest: StageNest, relation: Split, exact: dict[IterVar, Expr]) -> None:
    parent = exact[relation.parent]
    exact[relation.outer] = ceil_div(parent, relation.factor)
    done = simplify(Binary("*", nest.values[relation.outer], Const(relation.factor)))
    exact[relation.inner] = shorter(parent, done, Const(relation.factor))


def shorter(whole: Expr, done: Expr, most: Expr) -> Expr:
    """``min(most, whole - done)``, also where ``whole`` is itself a minimum."""
    if isinstance(whole, Binary) and whole.op == "min":
        return simplify(Binary("min", shorter(whole.a, done, most), shorter(whole.b, done, most)))
    return simplify(Binary("min", most, simplify(Binary("-", whole, done))))


def _fuse_extents(
    nest: StageNest, relation: Fuse, exact: dict[IterVar, Expr], largest: dict[IterVar, int]
) -> None:
    inner, outer = exact[relation.inner], exact[relation.outer]
    width = largest[relation.inner]
    if inner != Const(width):
        nest.conditions.append((nest.values[relation.inner], inner))
    exact[relation.fused] = simplify(Binary("*", outer, Const(width)))


# --- statements ----------------------------------------------------------------------------------------


def lower(schedule: Schedule) -> Nest:
    """The loop nest of a schedule, with scalar statements; intrinsics and copies are not applied yet.

    Raises:
        ScheduleError: a stage is computed where not all of its readers can see it.
    """
    lowering = Lowering(schedule)
    body: list[Node] = []
    for stage in lowering.root_stages():
        body.extend(_stage_nodes(lowering, stage))
    return finish(lowering, body)


def finish(lowering: Lowering, body: Sequence[Node]) -> Nest:
    """A nest of ``body`` with the buffers of a lowering declared."""
    schedule = lowering.schedule
    local = [s for s in schedule.stages if s.tensor not in schedule.outputs]
    around = {lowering.buffers[s.tensor]: lowering.nests[s].outer for s in local}
    held = [(s, s.starts_after) for s in local if s.starts_after is not None]
    return Nest(
        inputs=tuple(lowering.buffers[t] for t in schedule.inputs),
        outputs=tuple(lowering.buffers[t] for t in schedule.outputs),
        locals=tuple(around),
        body=tuple(body),
        around=around,
        starts=tuple((lowering.buffers[s.tensor], lowering.buffers[first.tensor]) for s, first in held),
    )


def _stage_nodes(lowering: Lowering, stage: Stage) -> list[Node]:
    nest = lowering.nests[stage]
    return guarded(nest.conditions_at(0), _emit(lowering, nest, 0))


def _emit(lowering: Lowering, nest: StageNest, position: int) -> list[Node]:
    """The loops of a stage from a leaf inward."""
    stage = nest.stage
    if position == len(stage.leaves):
        return [_statement(lowering, nest)]
    nodes: list[Node] = []
    if position == first_reduce(nest):
        nodes.extend(initial(lowering, nest, position))
    leaf = stage.leaves[position]
    inner: list[Node] = []
    for producer in lowering.attached_at(stage, leaf):
        inner.extend(_stage_nodes(lowering, producer))
    inner.extend(_emit(lowering, nest, position + 1))
    nodes.extend(wrap_loop(nest, leaf, guarded(nest.conditions_at(position + 1), inner)))
    return nodes


def first_reduce(nest: StageNest) -> int:
    """Position of the outermost reduce loop among the leaves; past the end if there is none."""
    leaves = nest.stage.leaves
    return next((i for i, leaf in enumerate(leaves) if leaf.kind == "reduce"), len(leaves) + 1)


def wrap_loop(nest: StageNest, leaf: IterVar, inner: Sequence[Node]) -> list[Node]:
    """``inner`` inside the loop of a leaf; bare if it runs once."""
    loop = nest.loops[leaf]
    if loop is None:
        return list(inner)
    if loop.extent == 1 and bounds(nest.extents[leaf])[0] == 1:
        return [replace_vars(node, {loop: Const(0)}) for node in inner]
    threads, unrolled = leaf in nest.stage.threads, leaf in nest.stage.unrolled
    return [For(loop, nest.extents[leaf], tuple(inner), threads=threads, unrolled=unrolled)]


def guarded(conditions: Sequence[Condition], nodes: list[Node]) -> list[Node]:
    """``nodes`` behind ``conditions``, if there are any."""
    return [Guard(tuple(conditions), tuple(nodes))] if conditions else nodes


def _statement(lowering: Lowering, nest: StageNest) -> Node:
    stage = nest.stage
    target = Read(nest.buffer, tuple(nest.values[axis] for axis in stage.axis))
    body = stage.body
    if isinstance(body, Cast) and isinstance(body.value, Sum):
        body = body.value  # the buffer's dtype wraps each partial sum alike
    if isinstance(body, Sum):
        return Assign(target, lowering.lowered(body.body, nest), accumulate=True)
    if isinstance(body, Cast) and body.to == nest.buffer.dtype:
        body = body.value
    return Assign(target, lowering.lowered(body, nest))


def initial(lowering: Lowering, nest: StageNest, position: int) -> list[Node]:
    """Zero for what the loops from ``position`` inward sum up: one region if they cover one."""
    region = inner_region(nest, position)
    if region is not None:
        return [Fill(region)]
    stage = nest.stage
    target = Read(nest.buffer, tuple(nest.values[axis] for axis in stage.axis))
    nodes = guarded(nest.space_conditions(position), [Assign(target, Const(0))])
    for leaf in reversed(stage.leaves[position:]):
        if leaf.kind == "space":
            nodes = wrap_loop(nest, leaf, nodes)
    return nodes


def inner_region(nest: StageNest, position: int) -> Region | None:
    """The box of the buffer that the loops from ``position`` inward cover; None if it is no box."""
    inner = nest.inside(position)
    ranges = []
    for axis, part in zip(nest.stage.axis, nest.domain, strict=True):
        form = linear(nest.values[axis])
        running = [(v, f) for v, f in form.terms if set(variables(v)) & inner]
        reach = 1
        for v, factor in sorted(running, key=lambda term: term[1]):
            if not isinstance(v, IterVar) or factor > reach:
                return None
            reach += factor * (v.extent - 1)
        start = at_zero(nest.values[axis], inner)
        ranges.append(Range(start, shorter(part.extent, start, Const(reach))))
    if not all(value in inner for value, _ in nest.space_conditions(position)):
        return None
    return Region(nest.buffer, tuple(ranges), nest.held)
