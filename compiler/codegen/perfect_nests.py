"""Perfect nests of loops around one call, which become few instructions.

In a perfect nest each loop contains only the next loop. If the extents do not depend on one another, its
iterations are a *box*, for which an instruction's two loops and micro-ops suffice. For example::

    for y in range(8):                  loops   y, x
        for x in range(8):              margin  7 - y - dy, which must not be negative
            if y + dy < 8:              leaf    gemm(...)
                gemm(...)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from accel.compiler.codegen.block_addresses import Addresses
from accel.compiler.expr.guarded_loops import Ranges
from accel.compiler.expr.linear_expressions import (
    Derived,
    Linear,
    evaluate,
    margins_of,
    values_of,
    variables,
    without,
)
from accel.compiler.expr.scalar_expressions import IterVar
from accel.compiler.nest.nest import AluCall, Call, For, Guard, Node, Region, TileEpilogue


class Box(NamedTuple):
    """A perfect nest's iterations for fixed outer loops."""

    ranges: Ranges
    margins: tuple[Linear, ...]


class PerfectNest(NamedTuple):
    """A perfect nest around one call.

    Attributes:
        outer: loops that run one iteration at a time, because the box depends on them.
        box: by values of the loops outside the box, or empty if one of its loops has no iteration.
    """

    outer: list[For]
    leaf: Call | AluCall
    box: Derived[Box | tuple[()]]


class PerfectNests:
    """Perfect nests, each analysed once. ``lowered`` returns an epilogue's nodes."""

    def __init__(self, addresses: Addresses, lowered: Callable[[TileEpilogue], Sequence[Node]]) -> None:
        self._addresses = addresses
        self._lowered = lowered
        self._found: dict[int, PerfectNest | None] = {}
        """By ``id`` of the outermost loop."""

    def at(self, node: For) -> PerfectNest | None:
        if id(node) not in self._found:
            self._found[id(node)] = self._analyse(node)
        return self._found[id(node)]

    def _analyse(self, node: For) -> PerfectNest | None:
        loops: list[For] = []
        margins: list[Linear] = []
        inner: Node = node
        while isinstance(inner, For | Guard) and len(inner.body) == 1:
            if isinstance(inner, Guard):
                margins += (part for condition in inner.conditions for part in margins_of(condition))
            elif inner.is_unrolled:
                break
            else:
                loops.append(inner)
            inner = inner.body[0]
            if isinstance(inner, TileEpilogue) and len(self._lowered(inner)) == 1:
                (inner,) = self._lowered(inner)
        if not isinstance(inner, Call | AluCall):
            return None
        outer = self._outer_count(loops, margins, inner)
        return PerfectNest(loops[:outer], inner, _box(loops[outer:], margins))

    def _outer_count(self, loops: Sequence[For], margins: Sequence[Linear], leaf: Call | AluCall) -> int:
        regions = operand_regions(leaf)
        places = [self._addresses.place(one, self._addresses.elements[one.buffer]) for one in regions]
        starts = [form for place in places for form in (place.copy, *(d.start for d in place.dimensions))]
        nonlinear = {
            var
            for form in (*starts, *margins)
            for atom, _ in form.terms
            if not isinstance(atom, IterVar)
            for var in variables(atom)
        }
        deciding = nonlinear | {var for loop in loops for var in variables(loop.extent)}
        return max((n + 1 for n, loop in enumerate(loops) if loop.var in deciding), default=0)


def _box(loops: Sequence[For], margins: Sequence[Linear]) -> Derived[Box | tuple[()]]:
    atoms = [atom for form in margins for atom, _ in form.terms]
    deciding = without({loop.var for loop in loops}, [*(loop.extent for loop in loops), *atoms])

    def box(env: Mapping[IterVar, int]) -> Box | tuple[()]:
        ranges = {loop.var: (0, evaluate(loop.extent, env)) for loop in loops}
        if any(end <= 0 for _, end in ranges.values()):
            return ()
        return Box(ranges, tuple(_with_values(form, ranges, env) for form in margins))

    return Derived(values_of(deciding), box)


def _with_values(form: Linear, ranges: Ranges, env: Mapping[IterVar, int]) -> Linear:
    known = [(atom, factor) for atom, factor in form.terms if atom not in ranges]
    constant = form.constant + sum(factor * evaluate(atom, env) for atom, factor in known)
    return Linear(constant, tuple(term for term in form.terms if term[0] in ranges))


def operand_regions(leaf: Call | AluCall) -> tuple[Region, ...]:
    """Return the regions that a call accesses, the written one first."""
    if isinstance(leaf, Call):
        return (leaf.output, *leaf.inputs)
    return (leaf.target,) if isinstance(leaf.operand, int) else (leaf.target, leaf.operand)
