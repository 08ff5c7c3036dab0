"""Loop nests: the meaning of a schedule, which the compiler's passes transform.

A nest can be printed (``nest_text``) and executed (``nest_interpreter``) at every stage.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.deprecated_modules import renamed_attributes
from accel.base.records import AbstractRecord, replace
from accel.compiler.expr.epilogue_operators import PostOp
from accel.compiler.expr.linear_expressions import bounds, simplify, simplify_conditions
from accel.compiler.expr.scalar_expressions import (
    Condition,
    Const,
    Dtype,
    Expr,
    IterVar,
    Read,
    rewrite,
    substitute,
)
from accel.compiler.expr.window_expressions import Range
from accel.compiler.target.memory_scope import Scope
from accel.image.packed_layout import BlockDiagonal, Interleaved, Preparation

if TYPE_CHECKING:
    from accel.compiler.target.intrinsic_declaration import Intrinsic, TensorIntrin


class Buffer(Struct, frozen=True, eq=False):
    """A tensor in DRAM, or the part of a tensor in a scratchpad.

    Attributes:
        shape: shape of the largest part that it holds at any time.
        scope: the scratchpad, or None for DRAM.
        sets: number of buffer sets, for virtual threads and resident iterations.
        resident_loops: loops whose iterations need separate sets that are not allocated yet.
        is_resident: whether its content outlives the iteration that loads it.
        alternating_loops: the same for iterations that alternate between two sets.
    """

    name: str
    shape: tuple[int, ...]
    dtype: Dtype
    scope: Scope | None
    sets: int = 1
    resident_loops: tuple[IterVar, ...] = ()
    is_resident: bool = False
    alternating_loops: tuple[IterVar, ...] = ()

    def __repr__(self) -> str:
        return f"Buffer({self.name}, {self.shape}, {self.scope or 'dram'})"


FIRST_SET = Const(0)


class Region(Struct, frozen=True):
    """A box of a buffer.

    Attributes:
        buffer_extents: extents of the part of its tensor that the buffer holds at this access.
    """

    buffer: Buffer
    ranges: tuple[Range, ...]
    buffer_extents: tuple[Expr, ...]
    set_index: Expr = FIRST_SET

    @property
    def is_whole(self) -> bool:
        return all(
            r.start == Const(0) and r.largest == size
            for r, size in zip(self.ranges, self.buffer.shape, strict=True)
        )


class Node: ...


class For(Node, Struct, frozen=True):
    """``for var in range(extent)``. The extent may depend on outer variables.

    Attributes:
        is_vthread: whether the iterations are virtual threads, which run in parallel.
        is_unrolled: whether it is printed and interpreted as :func:`unrolled_nodes`.
    """

    var: IterVar
    extent: Expr
    body: tuple[Node, ...]
    is_vthread: bool = False
    is_unrolled: bool = False


class Guard(Node, Struct, frozen=True):
    conditions: tuple[Condition, ...]
    body: tuple[Node, ...]


class Assign(Node, Struct, frozen=True):
    """``target = value``, or ``target += value``. The result wraps to the buffer's dtype."""

    target: Read
    value: Expr
    accumulate: bool = False


class ZeroRegion(Node, Struct, frozen=True):
    region: Region


@dataclass(frozen=True)
class ZeroBuffer(Node):
    """Unused parts are set to zero, too."""

    buffer: Buffer
    stage: str = field(default="", compare=False, kw_only=True)


@dataclass(frozen=True)
class Call(Node):
    """A declared intrinsic applied to blocks.

    Attributes:
        dims: per operand (output first), the region's dimension for each of the intrinsic's operand, or None
            where the operand repeats.
    """

    intrin: TensorIntrin
    form: str
    output: Region
    inputs: tuple[Region, ...]
    dims: tuple[tuple[int | None, ...], ...]
    stage: str = field(default="", compare=False, kw_only=True)


@dataclass(frozen=True)
class Copy(Node):
    """``dma_copy2d``: a box between DRAM and a scratchpad.

    Attributes:
        target, source: regions of equal shape, except for padding and strides.
        padding: per dimension, the zeros in the target before and after the source, or empty.
        strides: per dimension, the distance of copied elements in the source, or empty for 1.
        zero_point: subtracted from every value, except padding, on the way into a scratchpad.
    """

    target: Region
    source: Region
    padding: tuple[tuple[Expr, Expr], ...] = ()
    strides: tuple[int, ...] = ()
    zero_point: int = 0
    stage: str = field(default="", compare=False, kw_only=True)


class HostPack(Node, Struct, frozen=True):
    """The host makes ``target`` in DRAM from ``source``."""

    target: Buffer
    source: Buffer
    packing: BlockDiagonal | Interleaved


class HostConstant(Node, AbstractRecord, frozen=True):
    """A constant in DRAM that the program file contains."""

    target: Buffer

    @property
    @abstractmethod
    def value(self) -> npt.NDArray[Any]: ...


class ConstantParameters(HostConstant, frozen=True):
    """The store unit's parameters of channels that all have the same ``bias``."""

    packing: Interleaved
    bias: int

    @property
    def value(self) -> npt.NDArray[np.int32]:
        plain: npt.NDArray[np.int32] = np.full(self.packing.channels, self.bias, dtype=np.int32)
        return self.packing.widen(plain)


class ConstantTable(HostConstant, frozen=True):
    entries: tuple[int, ...]

    @property
    def value(self) -> npt.NDArray[np.uint8]:
        return np.array([self.entries], dtype=np.uint8)


class IdentityMatrix(HostConstant, frozen=True):
    @property
    def value(self) -> npt.NDArray[np.int8]:
        return np.eye(self.target.shape[0], dtype=np.int8)


@dataclass(frozen=True)
class AluCall(Node):
    """``target = op(target, operand)`` on accumulators, or ``zero``. Part of a :class:`BlockEpilogue`."""

    op: str
    target: Region
    operand: Region | int
    dims: tuple[tuple[int | None, ...], tuple[int | None, ...]]
    """As in :class:`Call`, for target and operand."""
    stage: str = field(default="", compare=False, kw_only=True)


class AppliedOp(Struct, frozen=True):
    """An epilogue operator on blocks of accumulators.

    Attributes:
        op: the operator, in terms of buffers and loop variables.
        operand: the block that it reads, or None.
        identity: the identity matrix that multiplies the operand, or None.
        dims: as in :class:`Call`, for the operand. For parameters of a :class:`StoreEpilogue`: the tile's
            dimension for each of theirs.
    """

    op: PostOp
    operand: Region | None = None
    dims: tuple[int | None, ...] = ()
    identity: Region | None = None

    def with_regions(self, change: Callable[[Region], Region]) -> AppliedOp:
        return replace(
            self,
            operand=None if self.operand is None else change(self.operand),
            identity=None if self.identity is None else change(self.identity),
        )


@dataclass(frozen=True)
class BlockEpilogue(Node):
    """Epilogue operators on one block of accumulators, in order."""

    intrin: Intrinsic
    target: Region
    dims: tuple[int | None, ...]
    ops: tuple[AppliedOp, ...]
    stage: str = field(default="", compare=False, kw_only=True)


def has_channel_shape(shape: Sequence[int], result: Sequence[int]) -> bool:
    """Return whether a residual has one value for several pixels of a channel, as ``(1, 64, 1, 1)`` for
    ``(1, 64, 7, 7)``."""
    return tuple(shape) != tuple(result) and tuple(shape) == (*result[:2], *(1 for _ in result[2:]))


@dataclass(frozen=True)
class StoreEpilogue(Node):
    """Epilogue operators that the store unit applies to a tile on its way to DRAM.

    The first operator has parameters in ``par_buffer``, a look-up a table in ``tab_buffer``, an addition or
    multiplication a residual in DRAM, perhaps one element per channel.
    """

    target: Region
    source: Region
    ops: tuple[AppliedOp, ...]
    stage: str = field(default="", compare=False, kw_only=True)


class TileEpilogue(Node, Struct, frozen=True):
    """The epilogue of a tile: loops and conditions around one :class:`BlockEpilogue`."""

    body: tuple[Node, ...]

    @property
    def block_epilogue(self) -> BlockEpilogue:
        (found,) = (node for node in walk_nodes(self.body) if isinstance(node, BlockEpilogue))
        return found


@dataclass(frozen=True)
class Nest:
    """A whole computation: scratchpad buffers, then statements.

    Attributes:
        locals: all buffers except inputs and outputs.
        refill_loops: per local buffer, the loops whose iterations fill it with different content.
        sum_limits: per local buffer of sums, their largest magnitude.
        preparations: per input, how the host changes its values before it packs them.
        load_orders: pairs of local buffers. The first copy into the first one waits until one into the second
            one, in acc_buffer, is issued.
    """

    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    locals: tuple[Buffer, ...]
    body: tuple[Node, ...]
    refill_loops: dict[Buffer, tuple[IterVar, ...]] = field(default_factory=dict)
    sum_limits: dict[Buffer, int] = field(default_factory=dict)
    preparations: dict[Buffer, Preparation] = field(default_factory=dict)
    load_orders: tuple[tuple[Buffer, Buffer], ...] = ()

    def with_buffers(self, replaced: Mapping[Buffer, Buffer], body: tuple[Node, ...]) -> Nest:
        """Return the nest with another body and some local buffers replaced."""

        def new(buffer: Buffer) -> Buffer:
            return replaced.get(buffer, buffer)

        return replace(
            self,
            locals=tuple(map(new, self.locals)),
            refill_loops={new(b): around for b, around in self.refill_loops.items()},
            sum_limits={new(b): limit for b, limit in self.sum_limits.items()},
            load_orders=tuple((new(held), new(ahead)) for held, ahead in self.load_orders),
            body=body,
        )

    if not TYPE_CHECKING:
        __getattr__ = renamed_attributes(
            {"around": "refill_loops", "prepared": "preparations", "starts": "load_orders"}
        )


def walk_nodes(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        if isinstance(node, For | Guard | TileEpilogue):
            yield from walk_nodes(node.body)


def unrolled_nodes(node: For) -> list[Node]:
    """Iterations that may not run are guarded."""
    nodes: list[Node] = []
    surely, most = bounds(node.extent)
    for number in range(most):
        copies = tuple(replace_vars(child, {node.var: Const(number)}) for child in node.body)
        guard = Guard(((Const(number), node.extent),), copies)
        nodes.extend(copies if number < surely else (guard,))
    return nodes


def replace_regions(node: Node, change: Callable[[Region], Region]) -> Node:
    """Change the regions of a node."""
    if isinstance(node, For | Guard | TileEpilogue):
        return replace(node, body=tuple(replace_regions(n, change) for n in node.body))
    if isinstance(node, Copy):
        return replace(node, target=change(node.target), source=change(node.source))
    if isinstance(node, Call):
        return replace(node, output=change(node.output), inputs=tuple(map(change, node.inputs)))
    if isinstance(node, StoreEpilogue):
        ops = tuple(one.with_regions(change) for one in node.ops)
        return replace(node, target=change(node.target), source=change(node.source), ops=ops)
    if isinstance(node, BlockEpilogue):
        return replace(
            node, target=change(node.target), ops=tuple(one.with_regions(change) for one in node.ops)
        )
    return node


def replace_vars(node: Node, values: dict[IterVar, Expr]) -> Node:
    """Replace loop variables."""

    def change(expr: Expr) -> Expr:
        return simplify(rewrite(expr, lambda n: _replaced(n, values)))

    def change_element(expr: Expr) -> Expr:
        return simplify_conditions(rewrite(expr, lambda n: _replaced(n, values)))

    def change_region(region: Region) -> Region:
        ranges = tuple(Range(change(r.start), change(r.extent)) for r in region.ranges)
        held = tuple(change(extent) for extent in region.buffer_extents)
        return replace(region, ranges=ranges, buffer_extents=held, set_index=change(region.set_index))

    if isinstance(node, For):
        body = tuple(replace_vars(n, values) for n in node.body)
        return replace(node, extent=change(node.extent), body=body)
    if isinstance(node, Guard):
        conditions = tuple((change(a), change(b)) for a, b in node.conditions)
        return Guard(conditions, tuple(replace_vars(n, values) for n in node.body))
    if isinstance(node, Assign):
        target = rewrite(node.target, lambda n: _replaced(n, values))
        assert isinstance(target, Read)
        return replace(node, target=target, value=rewrite(node.value, lambda n: _replaced(n, values)))
    if isinstance(node, ZeroRegion):
        return ZeroRegion(change_region(node.region))
    if isinstance(node, Copy):
        padding = tuple((change(a), change(b)) for a, b in node.padding)
        return replace(
            node, target=change_region(node.target), source=change_region(node.source), padding=padding
        )
    if isinstance(node, Call):
        inputs = tuple(change_region(region) for region in node.inputs)
        return replace(node, output=change_region(node.output), inputs=inputs)
    if isinstance(node, TileEpilogue):
        return TileEpilogue(tuple(replace_vars(n, values) for n in node.body))
    if isinstance(node, BlockEpilogue | StoreEpilogue):
        ops = tuple(
            replace(one.with_regions(change_region), op=one.op.rewritten(change_element)) for one in node.ops
        )
        if isinstance(node, StoreEpilogue):
            source = change_region(node.source)
            return replace(node, target=change_region(node.target), source=source, ops=ops)
        return replace(node, target=change_region(node.target), ops=ops)
    assert isinstance(node, AluCall)
    operand = node.operand if isinstance(node.operand, int) else change_region(node.operand)
    return replace(node, target=change_region(node.target), operand=operand)


def _replaced(node: Expr, values: dict[IterVar, Expr]) -> Expr | None:
    if isinstance(node, Read):
        return Read(node.tensor, tuple(simplify(substitute(i, values)) for i in node.indices))
    return values.get(node) if isinstance(node, IterVar) else None
