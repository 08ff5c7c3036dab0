"""Checks of a nest between passes: names are bound, memory is written before it is read, boxes lie inside
their buffers.

Only the first and last iterations of all loops are evaluated, since no other can exceed a bound where
extents, conditions and indices are linear.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.compiler.expr.epilogue_operators import Take
from accel.compiler.expr.linear_expressions import variables
from accel.compiler.expr.numpy_reference import values_at
from accel.compiler.expr.scalar_expressions import (
    Condition,
    Expr,
    Guarded,
    IterVar,
    Read,
    arithmetic,
    children,
    format_expr,
)
from accel.compiler.nest.element_packing import element_of
from accel.compiler.nest.nest import (
    AluCall,
    Assign,
    BlockEpilogue,
    Buffer,
    Call,
    Copy,
    For,
    Guard,
    HostConstant,
    HostPack,
    Nest,
    Node,
    Region,
    StoreEpilogue,
    TileEpilogue,
    ZeroBuffer,
    ZeroRegion,
    has_channel_shape,
)
from accel.compiler.nest.nest_text import format_node, format_region
from accel.compiler.target.alu_epilogue import passes
from accel.compiler.target.emitter_registry import operand_scopes

Array = npt.NDArray[Any]

_MAX_ITERATIONS = 1 << 12
"""Maximum number of iterations to check around a statement."""


class NestError(Exception):
    """A pass made an invalid nest, so it has a bug."""


def verify_nest(nest: Nest, *, allows_vthreads: bool = True) -> None:
    """Raise a NestError for an invalid nest."""
    _Verifier(nest, allows_vthreads).run()


class _Iterations(Struct, frozen=True):
    """Each loop variable's values around a statement."""

    at: Mapping[IterVar, Array]
    count: int

    def values(self, expr: Expr) -> Array:
        return np.broadcast_to(values_at(expr, self.at), (self.count,))

    def where(self, mask: Array) -> _Iterations:
        return _Iterations({v: a[mask] for v, a in self.at.items()}, int(mask.sum()))

    def inside(self, conditions: Sequence[Condition]) -> _Iterations:
        mask = np.ones(self.count, dtype=bool)
        for a, b in conditions:
            mask &= self.values(a) < self.values(b)
        return self.where(mask)

    def in_loop(self, loop: For) -> _Iterations:
        some = self.where(self.values(loop.extent) > 0)
        last = some.values(loop.extent) - 1
        apart = last > 0
        at = {v: np.concatenate([a, a[apart]]) for v, a in some.at.items()}
        at[loop.var] = np.concatenate([np.zeros_like(last), last[apart]])
        found = _Iterations(at, some.count + int(apart.sum()))
        step = -(-found.count // _MAX_ITERATIONS)
        return found if step <= 1 else found.where(np.arange(found.count) % step == 0)


class _Verifier:
    def __init__(self, nest: Nest, allows_vthreads: bool) -> None:
        self.nest = nest
        self.allows_vthreads = allows_vthreads
        self.declared = {*nest.inputs, *nest.outputs, *nest.locals}
        self.written = set(nest.inputs)
        self.statement: Node | None = None

    def run(self) -> None:
        nest = self.nest
        for buffer in (*nest.inputs, *nest.outputs):
            self._require(buffer.scope is None, f"{buffer.name}, an input or output, is in {buffer.scope}")
        about = [
            *nest.refill_loops,
            *nest.sum_limits,
            *nest.preparations,
            *(b for pair in nest.load_orders for b in pair),
        ]
        for buffer in about:
            self._require(buffer in self.declared, f"{buffer.name} is not declared")
        for buffer in nest.locals:
            self._require(buffer in nest.refill_loops, f"{buffer.name} has no refill loops")
        for buffer in nest.preparations:
            self._require(buffer in nest.inputs, f"{buffer.name} is prepared, but is not an input")
        self._nodes(nest.body, _Iterations({}, 1))
        for buffer in nest.outputs:
            self._require(buffer in self.written, f"{buffer.name} is never written")

    def _require(self, holds: object, problem: str) -> None:
        if not holds:
            where = "" if self.statement is None else f", in {_shown(self.statement)!r}"
            raise NestError(problem + where)

    # --- loops -------------------------------------------------------------------------------------

    def _nodes(self, nodes: Sequence[Node], iterations: _Iterations) -> None:
        for node in nodes:
            self.statement = node
            if isinstance(node, For):
                self._loop(node, iterations)
            elif isinstance(node, Guard):
                self._require(node.conditions, "a guard has no conditions")
                for condition in node.conditions:
                    self._require_bound(condition, iterations)
                self._nodes(node.body, iterations.inside(node.conditions))
            elif isinstance(node, TileEpilogue):
                self._nodes(node.body, iterations)
            else:
                self._leaf(node, iterations)

    def _loop(self, node: For, iterations: _Iterations) -> None:
        name = node.var.name
        self._require(node.var not in iterations.at, f"the variable {name} is bound inside its own loop")
        self._require(
            self.allows_vthreads or not node.is_vthread, f"the virtual threads of {name} are not lowered"
        )
        self._require_bound([node.extent], iterations)
        longest = iterations.values(node.extent).max(initial=0)
        self._require(
            longest <= node.var.extent, f"{name} runs to {longest}; it has {node.var.extent} values"
        )
        self._nodes(node.body, iterations.in_loop(node))

    def _require_bound(self, exprs: Sequence[Expr], iterations: _Iterations) -> None:
        for expr in exprs:
            for v in variables(expr):
                self._require(v in iterations.at, f"{v.name} in {format_expr(expr)} is bound by no loop")

    # --- statements --------------------------------------------------------------------------------

    def _leaf(self, node: Node, iterations: _Iterations) -> None:
        if isinstance(node, Assign):
            self._element(node.target, iterations)
            for read, where in _reads(arithmetic(node.value), iterations, self):
                self._element(read, where)
                self._require_written(read.tensor)
            if node.accumulate:
                self._require_written(node.target.tensor)
            self._mark_written(node.target.tensor)
        elif isinstance(node, ZeroRegion):
            self._region(node.region, iterations)
            self._mark_written(node.region.buffer)
        elif isinstance(node, ZeroBuffer | HostConstant):
            self._mark_written(node.buffer if isinstance(node, ZeroBuffer) else node.target)
        elif isinstance(node, HostPack):
            self._require_written(node.source)
            self._mark_written(node.target)
        elif isinstance(node, Copy):
            self._copy(node, iterations)
        elif isinstance(node, Call):
            self._call(node, iterations)
        elif isinstance(node, BlockEpilogue):
            self._block_epilogue(node, iterations)
        elif isinstance(node, StoreEpilogue):
            self._store_epilogue(node, iterations)
        else:
            assert isinstance(node, AluCall)
            self._require(False, "an ALU call is outside an epilogue")

    def _require_written(self, buffer: object) -> None:
        assert isinstance(buffer, Buffer)
        self._require(buffer in self.written, f"{buffer.name} is read before anything is written to it")

    def _mark_written(self, buffer: object) -> None:
        assert isinstance(buffer, Buffer)
        self._require(buffer in self.declared, f"{buffer.name} is not declared")
        self._require(buffer not in self.nest.inputs, f"{buffer.name} is an input, and written to")
        self.written.add(buffer)

    def _element(self, read: Read, iterations: _Iterations) -> None:
        assert isinstance(read.tensor, Buffer)
        self._require(read.tensor in self.declared, f"{read.tensor.name} is not declared")
        self._require_bound(read.indices, iterations)
        for index, size in zip(read.indices, read.tensor.shape, strict=True):
            values = iterations.values(index)
            low, high = values.min(initial=0), values.max(initial=0)
            self._require(
                low >= 0 and high < size,
                f"{format_expr(read)} is at {low if low < 0 else high} of {size} elements",
            )

    def _region(
        self, region: Region, iterations: _Iterations, block: Mapping[int, int] | None = None
    ) -> _Iterations:
        """Check that a box is inside its buffer's content, except for the rest of a last block of ``block``
        elements. Return the iterations in which it is not empty."""
        buffer, name = region.buffer, format_region(region)
        self._require(buffer in self.declared, f"{buffer.name} is not declared")
        rank = len(buffer.shape)
        self._require(
            len(region.ranges) == len(region.buffer_extents) == rank,
            f"{name} does not have {rank} dimensions like its buffer",
        )
        self._require_bound([part for r in region.ranges for part in (r.start, r.extent)], iterations)
        self._require_bound([*region.buffer_extents, region.set_index], iterations)
        for r in region.ranges:
            iterations = iterations.where(iterations.values(r.extent) > 0)
        for d, (r, size, held) in enumerate(
            zip(region.ranges, buffer.shape, region.buffer_extents, strict=True)
        ):
            start, holds = iterations.values(r.start), iterations.values(held)
            width = (block or {}).get(d, 1)
            end = start + iterations.values(r.extent)
            self._require((start >= 0).all(), f"{name} starts at {start.min(initial=0)}")
            self._require((holds <= size).all(), f"{name} is of {holds.max(initial=0)} elements; {size} fit")
            self._require(
                (end <= -(-holds // width) * width).all(),
                f"{name} ends at {end.max(initial=0)} of {holds.max(initial=0)} elements",
            )
        set_index = iterations.values(region.set_index)
        self._require(
            ((set_index >= 0) & (set_index < buffer.sets)).all(),
            f"{name} is in set {set_index.max(initial=0)}; {buffer.name} has {buffer.sets}",
        )
        return iterations

    def _copy(self, node: Copy, iterations: _Iterations) -> None:
        target, source = node.target, node.source
        self._require(
            (target.buffer.scope is None) != (source.buffer.scope is None),
            f"{source.buffer.name} is copied to {target.buffer.name}; one of the two must be in DRAM",
        )
        filled = self._region(target, iterations)
        self._region(source, iterations)
        self._require_bound([side for zeros in node.padding for side in zeros], iterations)
        padding = node.padding or [(None, None)] * len(target.ranges)
        steps = node.strides or [1] * len(target.ranges)
        for a, b, zeros, step in zip(target.ranges, source.ranges, padding, steps, strict=True):
            found = (np.maximum(filled.values(b.extent), 0) + step - 1) // step
            around = sum((filled.values(side) for side in zeros if side is not None), start=np.array(0))
            wanted = filled.values(a.extent)
            self._require(
                (found + around == wanted).all(),
                f"{format_region(target)} and {format_region(source)} differ in size",
            )
        self._require_written(source.buffer)
        self._mark_written(target.buffer)

    def _call(self, node: Call, iterations: _Iterations) -> None:
        intrin, scope = node.intrin, node.output.buffer.scope
        self._require(scope is not None, f"{intrin.name} writes to DRAM")
        assert scope is not None
        scopes = operand_scopes(intrin, scope.config)
        operands = [node.output, *node.inputs]
        inputs = () if node.form == "reset" else intrin.inputs
        self._require(len(node.inputs) == len(inputs), f"{intrin.name} has {len(node.inputs)} inputs")
        for region, tensor, dims in zip(operands, (intrin.op.tensor, *inputs), node.dims, strict=True):
            self._block(region, dims, tensor.shape, scopes.get(tensor), iterations)
        for region in node.inputs:
            self._require_written(region.buffer)
        if node.form == "update":
            self._require_written(node.output.buffer)
        self._mark_written(node.output.buffer)

    def _block_epilogue(self, node: BlockEpilogue, iterations: _Iterations) -> None:
        scope = node.target.buffer.scope
        self._require(scope is not None, "an epilogue is computed in DRAM")
        assert scope is not None
        self._require(node.ops, "an epilogue has no operators")
        self._block(node.target, node.dims, scope.element, "acc_buffer", iterations)
        for one in node.ops:
            self._require(
                bool(one.op.elements()) == (one.operand is not None),
                f"{type(one.op).__name__} has no block to read",
            )
            if one.operand is not None:
                read = iterations
                for step in passes(one.op):
                    self._require_bound(
                        [side for condition in step.conditions for side in condition], iterations
                    )
                    read = read.inside(step.conditions)
                where = "acc_buffer" if one.identity is None else "inp_buffer"
                self._block(one.operand, one.dims, scope.element, where, read)
                self._require_written(one.operand.buffer)
            if one.identity is not None:
                self._block(one.identity, (0, 1), (scope.element[1],) * 2, "wgt_buffer", iterations)
                self._require_written(one.identity.buffer)
        if not isinstance(node.ops[0].op, Take):
            self._require_written(node.target.buffer)
        self._mark_written(node.target.buffer)

    def _store_epilogue(self, node: StoreEpilogue, iterations: _Iterations) -> None:
        self._require(node.ops, "an epilogue has no operators")
        filled = self._region(node.target, iterations)
        for region, scope in ((node.target, None), (node.source, "acc_buffer")):
            found = region.buffer.scope
            self._require((found and found.name) == scope, f"{region.buffer.name} is in {found}")
        others = [one.operand for one in node.ops[1:] if one.operand is not None]
        tables = [region for region in others if region.buffer.scope is not None]
        for region in tables:
            self._block(region, (0, 1), region.buffer.shape, "tab_buffer", iterations)
            self._require_written(region.buffer)
        tiles = [node.source, *(region for region in others if region not in tables)]
        for region in tiles:
            self._region(region, iterations)
            is_held = region in others and has_channel_shape(region.buffer.shape, node.target.buffer.shape)
            ranges = list(zip(node.target.ranges, region.ranges, strict=True))
            for a, b in ranges[:2] if is_held else ranges:
                self._require(
                    (filled.values(a.extent) == filled.values(b.extent)).all(),
                    f"{format_region(node.target)} and {format_region(region)} differ in size",
                )
            self._require_written(region.buffer)
        parameters, (d, _) = node.ops[0].operand, node.ops[0].dims
        self._require(parameters is not None and d is not None, "the store unit has no parameters")
        assert parameters is not None
        assert d is not None
        self._region(parameters, iterations)
        channels, given = node.target.ranges[d], filled.values(parameters.ranges[0].extent)
        repeated = (given == parameters.buffer.shape[0]).all() and not (
            filled.values(channels.start) % given
        ).any()
        self._require(
            repeated or (given == filled.values(channels.extent)).all(),
            f"{format_region(parameters)} is not of the channels of {format_region(node.target)}",
        )
        self._require_written(parameters.buffer)
        self._mark_written(node.target.buffer)

    def _block(
        self,
        region: Region,
        dims: tuple[int | None, ...],
        shape: Sequence[int],
        scope: str | None,
        iterations: _Iterations,
    ) -> None:
        name, found = format_region(region), region.buffer.scope
        if scope is not None:
            self._require(found is not None and found.name == scope, f"{name} is not in {scope}")
        used = [d for d in dims if d is not None]
        rank = len(region.ranges)
        self._require(
            len(dims) == len(shape) and len(set(used)) == len(used) and all(0 <= d < rank for d in used),
            f"{name} has the dimensions {dims} of a block",
        )
        sizes = {d: size for d, size in zip(dims, shape, strict=True) if d is not None}
        filled_up = {d: size for d, size in element_of(region, dims, tuple(shape)) if d is not None}
        iterations = self._region(region, iterations, filled_up)
        for d, r in enumerate(region.ranges):
            longest = iterations.values(r.extent).max(initial=0)
            self._require(longest <= sizes.get(d, 1), f"{name} is not a block of {tuple(shape)}")


def _shown(node: Node) -> str:
    if isinstance(node, BlockEpilogue):
        return f"{format_region(node.target)}: {', '.join(type(one.op).__name__ for one in node.ops)}"
    return format_node(node)[0].strip()


def _reads(expr: Expr, iterations: _Iterations, check: _Verifier) -> Iterator[tuple[Read, _Iterations]]:
    if isinstance(expr, Read):
        yield expr, iterations
    elif isinstance(expr, Guarded):
        for condition in expr.conditions:
            check._require_bound(condition, iterations)
        yield from _reads(expr.value, iterations.inside(expr.conditions), check)
    else:
        for child in children(expr):
            yield from _reads(child, iterations, check)
