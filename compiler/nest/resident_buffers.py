"""Resident parts in scratchpads: one buffer set for each iteration of the loops that load them.

For example, ``B[8]`` that a loop ``k`` of 4 iterations loads becomes ``B[4][8]``, and an access ``B[k]``. If
iterations of the outer loops alternate between two sets, the number of sets doubles. Iterations of several
outer loops are counted in order.
"""

from __future__ import annotations

from math import prod

from accel.base.records import replace
from accel.compiler.expr.linear_expressions import simplify
from accel.compiler.expr.scalar_expressions import Binary, Const, Expr, IterVar
from accel.compiler.nest.nest import (
    Buffer,
    For,
    Nest,
    Region,
    replace_regions,
    walk_nodes,
)


def lower_residency(nest: Nest) -> Nest:
    """Allocate buffer sets for all resident parts, not yet for threads."""
    resident = [buffer for buffer in nest.locals if buffer.resident_loops or buffer.alternating_loops]
    if not resident:
        return nest
    threads = {node.var for node in walk_nodes(nest.body) if isinstance(node, For) and node.is_vthread}
    expanded: dict[Buffer, tuple[Buffer, Expr]] = {}
    for buffer in resident:
        loops = [v for v in buffer.resident_loops if v not in threads]
        count, number = prod(v.extent for v in loops), _iteration_number(loops)
        alternating = [v for v in buffer.alternating_loops if v not in threads]
        if alternating:
            parity = Binary("%", _iteration_number(alternating), Const(2))
            number = simplify(Binary("+", Binary("*", parity, Const(count)), number))
            count *= 2
        expanded[buffer] = (
            replace(buffer, sets=buffer.sets * count, resident_loops=(), alternating_loops=()),
            number,
        )

    def moved(region: Region) -> Region:
        if region.buffer not in expanded:
            return region
        buffer, number = expanded[region.buffer]
        return replace(region, buffer=buffer, set_index=number)

    body = tuple(replace_regions(node, moved) for node in nest.body)
    return nest.with_buffers({old: new for old, (new, _) in expanded.items()}, body)


def _iteration_number(loops: list[IterVar]) -> Expr:
    number: Expr = Const(0)
    for v in loops:
        number = Binary("+", Binary("*", number, Const(v.extent)), v)
    return simplify(number)
