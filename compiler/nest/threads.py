"""Virtual threads: from threads that run side by side to one interleaved sequence.

The loop over the threads moves inward, past every loop that moves tiles between memories, so that the
threads take turns from tile to tile; each gets its own copy of the buffers that are filled inside. In every
unit the turns come in the same order, as anonymous tokens need.

    for yv in vthread(2):               inp_buffer AL[2][8][8]
        fill_zero(CL)                   for yv in range(2):
        for ko in range(8):                 fill_zero(CL[yv])
            dma_copy2d(AL, A[...])      for ko in range(8):
            gemm(CL, AL, BL)                for yv in range(2):
        dma_copy2d(C[...], CL)                  dma_copy2d(AL[yv], A[...])
                                                gemm(CL[yv], AL[yv], BL[yv])
                                        for yv in range(2):
                                            dma_copy2d(C[...], CL[yv])
"""

from collections.abc import Sequence
from dataclasses import replace

from accel.base.errors import ScheduleError
from accel.compiler.expr.linear import bounds, simplify, variables
from accel.compiler.expr.scalar import Binary, Const, Expr, IterVar
from accel.compiler.nest.nest import (
    Call,
    Clear,
    Copy,
    Finish,
    For,
    Guard,
    Nest,
    Node,
    Post,
    Region,
    Store,
    replace_regions,
    replace_vars,
    walk_nodes,
)
from accel.compiler.nest.text import format_region


def lower_threads(nest: Nest) -> Nest:
    """The same nest with ordinary loops in place of virtual threads.

    Raises:
        ScheduleError: threads would write the same memory.
    """
    while True:
        loop = _innermost_threads(nest.body)
        if loop is None:
            return nest
        nest = _Threads(nest, loop.var).lowered()


def _innermost_threads(nodes: Sequence[Node]) -> For | None:
    """A thread loop that holds no other, if there is any."""
    found = None
    for node in walk_nodes(nodes):
        if isinstance(node, For) and node.threads:
            found = node
    return found


def _iteration(loop: For, number: Expr) -> list[Node]:
    """One iteration of a loop."""
    return [replace_vars(node, {loop.var: number}) for node in loop.body]


class _Threads:
    """The lowering of the thread loops over one variable."""

    def __init__(self, nest: Nest, var: IterVar) -> None:
        self.nest = nest
        self.var = var
        self.copies = {
            buffer: replace(buffer, copies=buffer.copies * var.extent)
            for buffer in nest.locals
            if var in nest.around[buffer]
        }

    def lowered(self) -> Nest:
        return self.nest.with_buffers(self.copies, self._outside(self.nest.body))

    def _outside(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """Nodes outside of the thread loops, those rewritten."""
        result: list[Node] = []
        for node in nodes:
            if isinstance(node, For) and node.threads and node.var is self.var:
                result.extend(self._inward(node.extent, node.body))
            elif isinstance(node, For | Guard | Post):
                result.append(replace(node, body=self._outside(node.body)))
            elif isinstance(node, Clear):
                result.append(replace(node, buffer=self.copies.get(node.buffer, node.buffer)))
            else:
                result.append(node)
        return tuple(result)

    def _inward(self, extent: Expr, nodes: Sequence[Node]) -> list[Node]:
        """``for var in range(extent): nodes``, the loop as far inward as turns are to be taken.

        The first and the last iteration of a loop that it moves into are peeled off, so that a thread
        does what comes before and behind that loop in the same turn.
        """
        result: list[Node] = []
        turn: list[Node] = []

        def take_turn() -> None:
            if turn:
                result.append(For(self.var, extent, tuple(self._own(node) for node in turn)))
                turn.clear()

        def follow(node: Node) -> None:
            if not (isinstance(node, For) and self._moves_tiles(node)) or self.var in variables(node.extent):
                turn.append(node)
                return
            least, most = bounds(node.extent)
            if least < 1:
                take_turn()
                result.append(replace(node, body=tuple(self._inward(extent, node.body))))
                return
            for first in _iteration(node, Const(0)):
                follow(first)
            if most > 1:
                take_turn()
            if most > 2:
                middle = simplify(Binary("-", node.extent, Const(2)))
                body = _iteration(node, simplify(Binary("+", node.var, Const(1))))
                result.append(For(node.var, middle, tuple(self._inward(extent, body))))
            if least > 1:
                for last in _iteration(node, simplify(Binary("-", node.extent, Const(1)))):
                    follow(last)
            elif most > 1:
                last_one = simplify(Binary("-", node.extent, Const(1)))
                turn.append(Guard(((Const(1), node.extent),), tuple(_iteration(node, last_one))))

        for node in nodes:
            follow(node)
        take_turn()
        return result

    @staticmethod
    def _moves_tiles(loop: For) -> bool:
        return any(isinstance(node, Copy | Store) for node in walk_nodes(loop.body))

    def _own(self, node: Node) -> Node:
        """A node with each thread's own copies of buffers."""
        for one in walk_nodes([node]):
            self._check(one)
        return replace_regions(node, self._region)

    def _check(self, node: Node) -> None:
        """Of one node alone, see :meth:`_check_shared`."""
        if isinstance(node, Copy):
            if node.target.buffer.scope is None or self._differs(node.source):
                self._check_shared(node.target)
        elif isinstance(node, Call):
            if node.form != "update":
                self._check_shared(node.output)
        elif isinstance(node, Finish | Store):
            self._check_shared(node.target)

    def _region(self, region: Region) -> Region:
        if region.buffer not in self.copies:
            return region
        turn = Binary("+", Binary("*", region.copy, Const(self.var.extent)), self.var)
        return replace(region, buffer=self.copies[region.buffer], copy=simplify(turn))

    def _differs(self, source: Region) -> bool:
        """Whether threads copy different parts of a tensor."""
        return source.buffer in self.copies or any(
            self.var in (*variables(r.start), *variables(r.extent)) for r in source.ranges
        )

    def _check_shared(self, region: Region) -> None:
        """Threads may only add to what they share, and write different parts of a tensor."""
        own = region.buffer in self.copies
        apart = any(self.var in variables(r.start) for r in region.ranges)
        if not own and not apart:
            raise ScheduleError(
                f"the virtual threads of {self.var.name} all write {format_region(region)}; "
                f"compute it inside the loop over {self.var.name}, or bind another loop"
            )
