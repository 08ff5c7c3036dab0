"""The loops of one stage: their extents, and the stage's variables in terms of them.

Shorter last tiles have extents like ``min(8, 100-yo*8)``. A loop whose extent depends on an inner loop has
its largest extent and a guard.
"""

from __future__ import annotations

from msgspec import Struct, field

from accel.compiler.expr.linear_expressions import at_zero, bounds, ceil_div, linear, simplify, variables
from accel.compiler.expr.scalar_expressions import (
    Binary,
    Condition,
    Const,
    Expr,
    IterVar,
)
from accel.compiler.expr.window_expressions import Range
from accel.compiler.nest.intrinsic_unification import BlockLoop
from accel.compiler.nest.nest import Buffer, Region
from accel.compiler.schedule.schedule import Stage
from accel.compiler.schedule.stage_splits import Fuse, Split


class StageNest(Struct, eq=False):
    """The loops of one stage that computes a known part of its tensor.

    Attributes:
        domain: the part of the tensor, per dimension.
        outer: variables of the loops around the stage, outermost first.
        optional: whether the part may be empty, since all of it is padding.
        values: the stage's variables in terms of loop variables. Axes count from the start of the domain.
        extents: the extent of every variable inside the outer loops.
        loops: per leaf, its loop variable, or None where it runs once outside a tensorized block.
        conditions: pairs of a value and the limit that a guard must keep it below.
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
    def buffer_extents(self) -> tuple[Expr, ...]:
        return tuple(r.extent for r in self.domain)

    def inside(self, position: int) -> set[IterVar]:
        found = (self.loops[leaf] for leaf in self.stage.leaves[position:])
        return {v for v in found if v is not None}

    def outside(self, position: int) -> tuple[IterVar, ...]:
        found = (self.loops[leaf] for leaf in self.stage.leaves[:position])
        return self.outer + tuple(v for v in found if v is not None)

    def conditions_at(self, position: int) -> list[Condition]:
        """Return the conditions whose last variable is that of the leaf before ``position``."""
        known = set(self.outside(position))
        before = set(self.outside(position - 1)) if position else None
        used = [(c, {*variables(c[0]), *variables(c[1])}) for c in self.conditions]
        return [c for c, v in used if v <= known and (before is None or not v <= before)]

    def space_conditions(self, begin: int, end: int | None = None) -> list[Condition]:
        """Return the conditions on space loops whose last variable is in leaves ``begin`` to ``end - 1``."""
        later = set() if end is None else self.inside(end)
        summed = {self.loops[leaf] for leaf in self.stage.leaves if leaf.kind == "reduce"}
        used = [(c, {*variables(c[0]), *variables(c[1])}) for c in self.conditions]
        return [c for c, v in used if v & self.inside(begin) and not v & (summed | later)]

    def index(self, dimension: int) -> Expr:
        relative = self.values[self.stage.axis[dimension]]
        return simplify(Binary("+", self.domain[dimension].start, relative))


def make_loops(nest: StageNest) -> None:
    """Determine a stage's extents and values from its domain, splits and fuses."""
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
    """Return ``min(most, whole - done)``, also if ``whole`` is itself a minimum."""
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


def first_reduce(nest: StageNest) -> int:
    """Return the position of the outermost reduce loop, or one past the end."""
    leaves = nest.stage.leaves
    return next((i for i, leaf in enumerate(leaves) if leaf.kind == "reduce"), len(leaves) + 1)


def inner_region(nest: StageNest, position: int) -> Region | None:
    """Return the box that the loops from ``position`` inward cover, or None if it is no box."""
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
    return Region(nest.buffer, tuple(ranges), nest.buffer_extents)


def block_loops(nest: StageNest, block: int) -> list[BlockLoop]:
    stage = nest.stage
    widths = {r.inner: r.factor for r in stage.relations if isinstance(r, Split)}
    roots = {*stage.axis, *stage.reduce_axis}
    found = []
    for leaf in stage.leaves[block:]:
        var = nest.loops[leaf]
        assert var is not None
        found.append(BlockLoop(var, nest.extents[leaf], widths.get(leaf, leaf.extent), leaf in roots))
    return found
