"""The loops of one stage: how far they run, and what its variables are in terms of them.

Shorter last tiles show as extents like ``min(8, 100-yo*8)``; a loop whose extent would depend on a loop
inside it runs to its largest extent behind a guard.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from accel.compiler.expr.linear import at_zero, bounds, ceil_div, linear, simplify, variables
from accel.compiler.expr.scalar import (
    Binary,
    Condition,
    Const,
    Expr,
    IterVar,
)
from accel.compiler.expr.window import Range
from accel.compiler.nest.nest import Buffer, Region
from accel.compiler.schedule.loops import Fuse, Split
from accel.compiler.schedule.schedule import Stage


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


def make_loops(nest: StageNest) -> None:
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


def first_reduce(nest: StageNest) -> int:
    """Position of the outermost reduce loop among the leaves; past the end if there is none."""
    leaves = nest.stage.leaves
    return next((i for i, leaf in enumerate(leaves) if leaf.kind == "reduce"), len(leaves) + 1)


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
