"""What holds of every nest between passes: names are bound, memory is written before it is read, boxes lie
inside of what they are boxes of.

Loops are looked at in their first and last iterations, all together: where extents, conditions and indices
are linear, nothing else can go beyond a bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.compiler.expr.linear import variables
from accel.compiler.expr.post import Take
from accel.compiler.expr.reference import values_at
from accel.compiler.expr.scalar import (
    Condition,
    Expr,
    Guarded,
    IterVar,
    Read,
    arithmetic,
    children,
    format_expr,
)
from accel.compiler.nest.nest import (
    Alu,
    Assign,
    Buffer,
    Call,
    Clear,
    Copy,
    Fill,
    Finish,
    For,
    Guard,
    Identity,
    Nest,
    Node,
    Parameters,
    Post,
    Region,
    Store,
    Widen,
)
from accel.compiler.nest.packing import element_of
from accel.compiler.nest.text import format_node, format_region
from accel.compiler.target.finish import passes
from accel.compiler.target.registry import operand_scopes

Array = npt.NDArray[Any]

_MOST_PLACES = 1 << 12
"""Iterations that are looked at, of all loops around a statement together."""


class NestError(Exception):
    """A nest that means nothing; the pass that made it is wrong."""


def check_nest(nest: Nest, *, threads: bool = True) -> None:
    """Refuse a nest in which something cannot be.

    Args:
        nest: at any stage.
        threads: whether it may have loops over virtual threads.

    Raises:
        NestError: what is wrong, with the statement that it is wrong in.
    """
    _Check(nest, threads).run()


@dataclass(frozen=True)
class _Places:
    """Iterations of the loops around a statement: for each variable its value in each of them."""

    at: Mapping[IterVar, Array]
    count: int

    def values(self, expr: Expr) -> Array:
        return np.broadcast_to(values_at(expr, self.at), (self.count,))

    def where(self, mask: Array) -> _Places:
        return _Places({v: a[mask] for v, a in self.at.items()}, int(mask.sum()))

    def inside(self, conditions: Sequence[Condition]) -> _Places:
        """Those in which conditions hold."""
        mask = np.ones(self.count, dtype=bool)
        for a, b in conditions:
            mask &= self.values(a) < self.values(b)
        return self.where(mask)

    def in_loop(self, loop: For) -> _Places:
        """The first and the last iteration of a loop, in those in which it has any."""
        some = self.where(self.values(loop.extent) > 0)
        last = some.values(loop.extent) - 1
        apart = last > 0
        at = {v: np.concatenate([a, a[apart]]) for v, a in some.at.items()}
        at[loop.var] = np.concatenate([np.zeros_like(last), last[apart]])
        found = _Places(at, some.count + int(apart.sum()))
        step = -(-found.count // _MOST_PLACES)
        return found if step <= 1 else found.where(np.arange(found.count) % step == 0)


class _Check:
    def __init__(self, nest: Nest, threads: bool) -> None:
        self.nest = nest
        self.threads = threads
        self.declared = {*nest.inputs, *nest.outputs, *nest.locals}
        self.written = set(nest.inputs)
        self.statement: Node | None = None

    def run(self) -> None:
        nest = self.nest
        for buffer in (*nest.inputs, *nest.outputs):
            self._require(
                buffer.scope is None, f"{buffer.name}, which is given or kept, is in {buffer.scope}"
            )
        about = [*nest.around, *nest.sum_limits, *nest.prepared, *(b for pair in nest.starts for b in pair)]
        for buffer in about:
            self._require(buffer in self.declared, f"{buffer.name} is not declared")
        for buffer in nest.locals:
            self._require(buffer in nest.around, f"it is not said which loops are around {buffer.name}")
        for buffer in nest.prepared:
            self._require(buffer in nest.inputs, f"{buffer.name} is prepared, and no input")
        self._nodes(nest.body, _Places({}, 1))
        for buffer in nest.outputs:
            self._require(buffer in self.written, f"{buffer.name} is never written")

    def _require(self, holds: object, problem: str) -> None:
        if not holds:
            where = "" if self.statement is None else f", in {_shown(self.statement)!r}"
            raise NestError(problem + where)

    # --- loops -------------------------------------------------------------------------------------

    def _nodes(self, nodes: Sequence[Node], places: _Places) -> None:
        for node in nodes:
            self.statement = node
            if isinstance(node, For):
                self._loop(node, places)
            elif isinstance(node, Guard):
                self._require(node.conditions, "a guard has no conditions")
                for condition in node.conditions:
                    self._bound(condition, places)
                self._nodes(node.body, places.inside(node.conditions))
            elif isinstance(node, Post):
                self._nodes(node.body, places)
            else:
                self._leaf(node, places)

    def _loop(self, node: For, places: _Places) -> None:
        name = node.var.name
        self._require(node.var not in places.at, f"the variable {name} is bound inside of its own loop")
        self._require(self.threads or not node.threads, f"the virtual threads of {name} are left")
        self._bound([node.extent], places)
        longest = places.values(node.extent).max(initial=0)
        self._require(
            longest <= node.var.extent, f"{name} runs to {longest}; it has {node.var.extent} values"
        )
        self._nodes(node.body, places.in_loop(node))

    def _bound(self, exprs: Sequence[Expr], places: _Places) -> None:
        for expr in exprs:
            for v in variables(expr):
                self._require(v in places.at, f"{v.name} in {format_expr(expr)} is bound by no loop")

    # --- statements --------------------------------------------------------------------------------

    def _leaf(self, node: Node, places: _Places) -> None:
        if isinstance(node, Assign):
            self._element(node.target, places)
            for read, where in _reads(arithmetic(node.value), places, self):
                self._element(read, where)
                self._is_read(read.tensor)
            if node.accumulate:
                self._is_read(node.target.tensor)
            self._is_written(node.target.tensor)
        elif isinstance(node, Fill):
            self._region(node.region, places)
            self._is_written(node.region.buffer)
        elif isinstance(node, Clear | Identity | Parameters):
            self._is_written(node.buffer if isinstance(node, Clear) else node.target)
        elif isinstance(node, Widen):
            self._is_read(node.source)
            self._is_written(node.target)
        elif isinstance(node, Copy):
            self._copy(node, places)
        elif isinstance(node, Call):
            self._call(node, places)
        elif isinstance(node, Finish):
            self._finish(node, places)
        elif isinstance(node, Store):
            self._store(node, places)
        else:
            assert isinstance(node, Alu)
            self._require(False, "a pass of the ALU stands outside of what is emitted")

    def _is_read(self, buffer: object) -> None:
        assert isinstance(buffer, Buffer)
        self._require(buffer in self.written, f"{buffer.name} is read before anything is written to it")

    def _is_written(self, buffer: object) -> None:
        assert isinstance(buffer, Buffer)
        self._require(buffer in self.declared, f"{buffer.name} is not declared")
        self._require(buffer not in self.nest.inputs, f"{buffer.name} is given, and written to")
        self.written.add(buffer)

    def _element(self, read: Read, places: _Places) -> None:
        """One element: as many indices as dimensions, and none out of range."""
        assert isinstance(read.tensor, Buffer)
        self._require(read.tensor in self.declared, f"{read.tensor.name} is not declared")
        self._bound(read.indices, places)
        for index, size in zip(read.indices, read.tensor.shape, strict=True):
            values = places.values(index)
            low, high = values.min(initial=0), values.max(initial=0)
            self._require(
                low >= 0 and high < size,
                f"{format_expr(read)} is at {low if low < 0 else high} of {size} elements",
            )

    def _region(self, region: Region, places: _Places, block: Mapping[int, int] | None = None) -> _Places:
        """A box: inside of its buffer and of what that holds, but for the rest of a last block of ``block``
        elements along some dimensions. Returns where it is not empty."""
        buffer, name = region.buffer, format_region(region)
        self._require(buffer in self.declared, f"{buffer.name} is not declared")
        rank = len(buffer.shape)
        self._require(
            len(region.ranges) == len(region.held) == rank,
            f"{name} has not {rank} dimensions, as its buffer has",
        )
        self._bound([part for r in region.ranges for part in (r.start, r.extent)], places)
        self._bound([*region.held, region.copy], places)
        for r in region.ranges:
            places = places.where(places.values(r.extent) > 0)
        for d, (r, size, held) in enumerate(zip(region.ranges, buffer.shape, region.held, strict=True)):
            start, holds = places.values(r.start), places.values(held)
            width = (block or {}).get(d, 1)
            end = start + places.values(r.extent)
            self._require((start >= 0).all(), f"{name} starts at {start.min(initial=0)}")
            self._require((holds <= size).all(), f"{name} is of {holds.max(initial=0)} elements; {size} fit")
            self._require(
                (end <= -(-holds // width) * width).all(),
                f"{name} ends at {end.max(initial=0)} of {holds.max(initial=0)} elements",
            )
        copy = places.values(region.copy)
        self._require(
            ((copy >= 0) & (copy < buffer.copies)).all(),
            f"{name} is of copy {copy.max(initial=0)}; {buffer.name} has {buffer.copies}",
        )
        return places

    def _copy(self, node: Copy, places: _Places) -> None:
        target, source = node.target, node.source
        self._require(
            (target.buffer.scope is None) != (source.buffer.scope is None),
            f"{source.buffer.name} is copied to {target.buffer.name}; one of the two must be in DRAM",
        )
        filled = self._region(target, places)
        self._region(source, places)
        self._bound([side for zeros in node.padding for side in zeros], places)
        padding = node.padding or [(None, None)] * len(target.ranges)
        steps = node.steps or [1] * len(target.ranges)
        for a, b, zeros, step in zip(target.ranges, source.ranges, padding, steps, strict=True):
            found = (np.maximum(filled.values(b.extent), 0) + step - 1) // step
            around = sum((filled.values(side) for side in zeros if side is not None), start=np.array(0))
            wanted = filled.values(a.extent)
            self._require(
                (found + around == wanted).all(),
                f"{format_region(target)} and {format_region(source)} differ in size",
            )
        self._is_read(source.buffer)
        self._is_written(target.buffer)

    def _call(self, node: Call, places: _Places) -> None:
        intrin, scope = node.intrin, node.output.buffer.scope
        self._require(scope is not None, f"{intrin.name} writes to DRAM")
        assert scope is not None
        scopes = operand_scopes(intrin, scope.config)
        operands = [node.output, *node.inputs]
        inputs = () if node.form == "reset" else intrin.inputs
        self._require(len(node.inputs) == len(inputs), f"{intrin.name} has {len(node.inputs)} inputs")
        for region, tensor, dims in zip(operands, (intrin.op.tensor, *inputs), node.dims, strict=True):
            self._block(region, dims, tensor.shape, scopes.get(tensor), places)
        for region in node.inputs:
            self._is_read(region.buffer)
        if node.form == "update":
            self._is_read(node.output.buffer)
        self._is_written(node.output.buffer)

    def _finish(self, node: Finish, places: _Places) -> None:
        scope = node.target.buffer.scope
        self._require(scope is not None, "what follows sums is done in DRAM")
        assert scope is not None
        self._require(node.ops, "nothing is done to a tile")
        self._block(node.target, node.dims, scope.element, "acc_buffer", places)
        for one in node.ops:
            self._require(
                bool(one.op.elements()) == (one.operand is not None),
                f"{type(one.op).__name__} has no block to read",
            )
            if one.operand is not None:
                read = places
                for step in passes(one.op):
                    self._bound([side for condition in step.conditions for side in condition], places)
                    read = read.inside(step.conditions)
                where = "acc_buffer" if one.unit is None else "inp_buffer"
                self._block(one.operand, one.dims, scope.element, where, read)
                self._is_read(one.operand.buffer)
            if one.unit is not None:
                self._block(one.unit, (0, 1), (scope.element[1],) * 2, "wgt_buffer", places)
                self._is_read(one.unit.buffer)
        if not isinstance(node.ops[0].op, Take):
            self._is_read(node.target.buffer)
        self._is_written(node.target.buffer)

    def _store(self, node: Store, places: _Places) -> None:
        """Tiles of equal size, in the memories that the store unit has to do with."""
        self._require(node.ops, "nothing is done to a tile")
        filled = self._region(node.target, places)
        for region, scope in ((node.target, None), (node.source, "acc_buffer")):
            found = region.buffer.scope
            self._require((found and found.name) == scope, f"{region.buffer.name} is in {found}")
        tiles = [node.source, *(one.operand for one in node.ops[1:] if one.operand is not None)]
        for region in tiles:
            self._region(region, places)
            for a, b in zip(node.target.ranges, region.ranges, strict=True):
                self._require(
                    (filled.values(a.extent) == filled.values(b.extent)).all(),
                    f"{format_region(node.target)} and {format_region(region)} differ in size",
                )
            self._is_read(region.buffer)
        parameters, (d, _) = node.ops[0].operand, node.ops[0].dims
        self._require(parameters is not None and d is not None, "the store unit has no parameters")
        assert parameters is not None
        assert d is not None
        self._region(parameters, places)
        channels, given = node.target.ranges[d], filled.values(parameters.ranges[0].extent)
        repeated = (given == parameters.buffer.shape[0]).all() and not (
            filled.values(channels.start) % given
        ).any()
        self._require(
            repeated or (given == filled.values(channels.extent)).all(),
            f"{format_region(parameters)} is not of the channels of {format_region(node.target)}",
        )
        self._is_read(parameters.buffer)
        self._is_written(node.target.buffer)

    def _block(
        self,
        region: Region,
        dims: tuple[int | None, ...],
        shape: Sequence[int],
        scope: str | None,
        places: _Places,
    ) -> None:
        """A region as an intrinsic's operand: in its memory, and no larger."""
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
        places = self._region(region, places, filled_up)
        for d, r in enumerate(region.ranges):
            longest = places.values(r.extent).max(initial=0)
            self._require(longest <= sizes.get(d, 1), f"{name} is no block of {tuple(shape)}")


def _shown(node: Node) -> str:
    """A statement for a message, whatever is wrong with it."""
    if isinstance(node, Finish):
        return f"{format_region(node.target)}: {', '.join(type(one.op).__name__ for one in node.ops)}"
    return format_node(node)[0].strip()


def _reads(expr: Expr, places: _Places, check: _Check) -> Iterator[tuple[Read, _Places]]:
    """The elements that arithmetic reads, and where it does."""
    if isinstance(expr, Read):
        yield expr, places
    elif isinstance(expr, Guarded):
        for condition in expr.conditions:
            check._bound(condition, places)
        yield from _reads(expr.value, places.inside(expr.conditions), check)
    else:
        for child in children(expr):
            yield from _reads(child, places, check)
