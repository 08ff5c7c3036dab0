"""Virtual threads: from parallel threads to one interleaved sequence.

The loop over threads moves inward, past every loop that moves tiles between memories, so that threads
alternate tile by tile. Each thread has its own set of the buffers that are filled inside. Threads have the
same order in every unit, since tokens are anonymous. docs/explain/latency-hiding.md shows an example.
"""

from collections.abc import Sequence

from accel.base.errors import ScheduleError
from accel.base.records import replace
from accel.compiler.expr.linear_expressions import bounds, simplify, variables
from accel.compiler.expr.scalar_expressions import Binary, Const, Expr, IterVar
from accel.compiler.nest.nest import (
    BlockEpilogue,
    Call,
    Copy,
    For,
    Guard,
    Nest,
    Node,
    Region,
    StoreEpilogue,
    TileEpilogue,
    ZeroBuffer,
    replace_regions,
    replace_vars,
    walk_nodes,
)
from accel.compiler.nest.nest_text import format_region


def lower_threads(nest: Nest) -> Nest:
    while True:
        loop = _innermost_thread_loop(nest.body)
        if loop is None:
            return nest
        nest = _ThreadLowering(nest, loop.var).lowered()


def _innermost_thread_loop(nodes: Sequence[Node]) -> For | None:
    found = None
    for node in walk_nodes(nodes):
        if isinstance(node, For) and node.is_vthread:
            found = node
    return found


def _iteration(loop: For, number: Expr) -> list[Node]:
    return [replace_vars(node, {loop.var: number}) for node in loop.body]


class _ThreadLowering:
    def __init__(self, nest: Nest, var: IterVar) -> None:
        self.nest = nest
        self.var = var
        self.thread_buffers = {
            buffer: replace(buffer, sets=buffer.sets * var.extent)
            for buffer in nest.locals
            if var in nest.refill_loops[buffer]
        }

    def lowered(self) -> Nest:
        return self.nest.with_buffers(self.thread_buffers, self._outside(self.nest.body))

    def _outside(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        result: list[Node] = []
        for node in nodes:
            if isinstance(node, For) and node.is_vthread and node.var is self.var:
                result.extend(self._inward(node.extent, node.body))
            elif isinstance(node, For | Guard | TileEpilogue):
                result.append(replace(node, body=self._outside(node.body)))
            elif isinstance(node, ZeroBuffer):
                result.append(replace(node, buffer=self.thread_buffers.get(node.buffer, node.buffer)))
            else:
                result.append(node)
        return tuple(result)

    def _inward(self, extent: Expr, nodes: Sequence[Node]) -> list[Node]:
        """Move the thread loop around ``nodes`` as far inward as threads interleave.

        The first and the last iteration of a loop that it moves into are peeled off. So a thread executes the
        statements before and after that loop together with these iterations.
        """
        result: list[Node] = []
        group: list[Node] = []

        def end_group() -> None:
            if group:
                result.append(For(self.var, extent, tuple(self._with_thread_buffers(node) for node in group)))
                group.clear()

        def follow(node: Node) -> None:
            if not (isinstance(node, For) and self._moves_tiles(node)) or self.var in variables(node.extent):
                group.append(node)
                return
            least, most = bounds(node.extent)
            if least < 1:
                end_group()
                result.append(replace(node, body=tuple(self._inward(extent, node.body))))
                return
            for first in _iteration(node, Const(0)):
                follow(first)
            if most > 1:
                end_group()
            if most > 2:
                middle = simplify(Binary("-", node.extent, Const(2)))
                body = _iteration(node, simplify(Binary("+", node.var, Const(1))))
                result.append(For(node.var, middle, tuple(self._inward(extent, body))))
            if least > 1:
                for last in _iteration(node, simplify(Binary("-", node.extent, Const(1)))):
                    follow(last)
            elif most > 1:
                last_one = simplify(Binary("-", node.extent, Const(1)))
                group.append(Guard(((Const(1), node.extent),), tuple(_iteration(node, last_one))))

        for node in nodes:
            follow(node)
        end_group()
        return result

    @staticmethod
    def _moves_tiles(loop: For) -> bool:
        return any(isinstance(node, Copy | StoreEpilogue) for node in walk_nodes(loop.body))

    def _with_thread_buffers(self, node: Node) -> Node:
        for one in walk_nodes([node]):
            self._check(one)
        return replace_regions(node, self._region)

    def _check(self, node: Node) -> None:
        if isinstance(node, Copy):
            if node.target.buffer.scope is None or self._differs_by_thread(node.source):
                self._check_shared(node.target)
        elif isinstance(node, Call):
            if node.form != "update":
                self._check_shared(node.output)
        elif isinstance(node, BlockEpilogue | StoreEpilogue):
            self._check_shared(node.target)

    def _region(self, region: Region) -> Region:
        if region.buffer not in self.thread_buffers:
            return region
        index = Binary("+", Binary("*", region.set_index, Const(self.var.extent)), self.var)
        return replace(region, buffer=self.thread_buffers[region.buffer], set_index=simplify(index))

    def _differs_by_thread(self, source: Region) -> bool:
        return source.buffer in self.thread_buffers or any(
            self.var in (*variables(r.start), *variables(r.extent)) for r in source.ranges
        )

    def _check_shared(self, region: Region) -> None:
        """Check that threads only add to shared sums, and write different parts of a tensor."""
        own = region.buffer in self.thread_buffers
        apart = any(self.var in variables(r.start) for r in region.ranges)
        if not own and not apart:
            raise ScheduleError(
                f"the virtual threads of {self.var.name} all write {format_region(region)}; "
                f"compute it inside the loop over {self.var.name}, or bind another loop"
            )
