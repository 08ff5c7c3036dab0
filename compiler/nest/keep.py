"""Parts that scratchpads keep: a copy of a buffer for each iteration of the loops that bring them.

    for y in range(64):                     inp_buffer B[4][8]
        for k in range(4):                  for y in range(64):
            dma_copy2d(B, A[k*8:k*8+8])         for k in range(4):
            gemm(C, B)                              dma_copy2d(B[k], A[k*8:k*8+8])
                                                    gemm(C, B[k])

Where the iterations of the loop throughout which it is kept take turns, there are as many copies again, and
every other iteration has those; of several loops around it all iterations are counted, one after the other.

That a copy holds what a LOAD would bring is noticed when instructions are emitted.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from accel.compiler.expr.linear import simplify
from accel.compiler.expr.scalar import Binary, Const, Expr, IterVar
from accel.compiler.nest.nest import (
    Buffer,
    For,
    Nest,
    Region,
    replace_regions,
    walk_nodes,
)


def lower_kept(nest: Nest) -> Nest:
    """The same nest with copies of all buffers that keep something. Loops over virtual threads are left out:
    what differs between threads gets copies when those are lowered."""
    kept = [buffer for buffer in nest.locals if buffer.kept or buffer.turns]
    if not kept:
        return nest
    threads = {node.var for node in walk_nodes(nest.body) if isinstance(node, For) and node.threads}
    copies: dict[Buffer, tuple[Buffer, Expr]] = {}
    for buffer in kept:
        loops = [v for v in buffer.kept if v not in threads]
        count, number = prod(v.extent for v in loops), _number(loops)
        turns = [v for v in buffer.turns if v not in threads]
        if turns:
            turn = Binary("%", _number(turns), Const(2))
            number = simplify(Binary("+", Binary("*", turn, Const(count)), number))
            count *= 2
        copies[buffer] = replace(buffer, copies=buffer.copies * count, kept=(), turns=()), number

    def moved(region: Region) -> Region:
        if region.buffer not in copies:
            return region
        buffer, number = copies[region.buffer]
        return replace(region, buffer=buffer, copy=number)

    body = tuple(replace_regions(node, moved) for node in nest.body)
    return nest.with_buffers({old: new for old, (new, _) in copies.items()}, body)


def _number(loops: list[IterVar]) -> Expr:
    """That of an iteration among those of some loops."""
    number: Expr = Const(0)
    for v in loops:
        number = Binary("+", Binary("*", number, Const(v.extent)), v)
    return simplify(number)
