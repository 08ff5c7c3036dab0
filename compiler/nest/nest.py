"""Loop nests: what a schedule means, and what the passes of the compiler transform.

A nest can be printed (:mod:`accel.compiler.nest.text`) and executed (:mod:`accel.compiler.nest.interpret`) at
every stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from accel.compiler.expr.linear import bounds, simplify, simplify_conditions
from accel.compiler.expr.post import PostOp
from accel.compiler.expr.scalar import (
    Condition,
    Const,
    Dtype,
    Expr,
    IterVar,
    Read,
    rewrite,
    substitute,
)
from accel.compiler.expr.window import Range
from accel.compiler.target.scope import Scope
from accel.image.layout import BlockDiagonal, Interleaved, Preparation

if TYPE_CHECKING:
    from accel.compiler.target.intrin import Intrinsic, TensorIntrin


@dataclass(frozen=True, eq=False)
class Buffer:
    """An array: a tensor in DRAM, or the part of one that a scratchpad holds.

    Attributes:
        name: the tensor's.
        shape: of the largest part that is held at any time.
        scope: the scratchpad, or None for DRAM.
        copies: one per virtual thread, and per iteration of loops throughout which parts are kept, that has a
            part of its own.
        kept: loops that there are no copies for yet, each of whose iterations has a part of its own.
        keeps: whether what it holds stays there for longer than where it is brought.
        turns: loops whose iterations take turns in two sets of copies, which there are not yet.
    """

    name: str
    shape: tuple[int, ...]
    dtype: Dtype
    scope: Scope | None
    copies: int = 1
    kept: tuple[IterVar, ...] = ()
    keeps: bool = False
    turns: tuple[IterVar, ...] = ()

    def __repr__(self) -> str:
        return f"Buffer({self.name}, {self.shape}, {self.scope or 'dram'})"


FIRST = Const(0)
"""The only copy of a buffer that has one."""


@dataclass(frozen=True)
class Region:
    """A box of a buffer.

    Attributes:
        held: extents of the part of its tensor that a scratchpad buffer holds where the box is accessed.
        copy: of which thread's copy of the buffer it is a part.
    """

    buffer: Buffer
    ranges: tuple[Range, ...]
    held: tuple[Expr, ...]
    copy: Expr = FIRST

    @property
    def whole(self) -> bool:
        """Whether it is all of the buffer, at its largest."""
        return all(
            r.start == Const(0) and r.largest == size
            for r, size in zip(self.ranges, self.buffer.shape, strict=True)
        )


class Node:
    """Base of what a nest consists of."""


@dataclass(frozen=True)
class For(Node):
    """``for var in range(extent)``; the extent may depend on outer variables.

    The iterations of a loop with ``threads`` are virtual threads: they run side by side. An unrolled loop is
    printed and interpreted as :func:`written_out`.
    """

    var: IterVar
    extent: Expr
    body: tuple[Node, ...]
    threads: bool = False
    unrolled: bool = False


@dataclass(frozen=True)
class Guard(Node):
    """Run the body if all conditions hold."""

    conditions: tuple[Condition, ...]
    body: tuple[Node, ...]


@dataclass(frozen=True)
class Assign(Node):
    """``target = value``, or ``target += value``; the result wraps to the buffer's dtype."""

    target: Read
    value: Expr
    accumulate: bool = False


@dataclass(frozen=True)
class Fill(Node):
    """Set a region to zero."""

    region: Region


@dataclass(frozen=True)
class Clear(Node):
    """Set all of a scratchpad buffer to zero, whatever part of it is in use.

    Attributes:
        stage: of the schedule, whose sums need it.
    """

    buffer: Buffer
    stage: str = field(default="", compare=False, kw_only=True)


@dataclass(frozen=True)
class Call(Node):
    """A declared intrinsic applied to blocks.

    Attributes:
        form: ``compute``, ``reset`` or ``update``.
        output: the block that is written.
        inputs: the blocks that are read, in order of the declaration; none for ``reset``.
        dims: per operand (output first), the region's dimension behind each dimension of the
            intrinsic's operand, or None where the operand repeats along it.
        stage: of the schedule, which it computes.
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
        target, source: of equal shape, but for padding and steps.
        padding: per dimension, how much of the target in front of and behind the source is zero; nothing
            anywhere if empty.
        steps: per dimension, the distance in the source between what is copied; 1 everywhere if empty.
        zero: what is subtracted from every value on the way into a scratchpad; padding is zero nevertheless.
        stage: of the schedule, which it computes.
    """

    target: Region
    source: Region
    padding: tuple[tuple[Expr, Expr], ...] = ()
    steps: tuple[int, ...] = ()
    zero: int = 0
    stage: str = field(default="", compare=False, kw_only=True)


@dataclass(frozen=True)
class Widen(Node):
    """What the host does to an input when it packs it: ``target``, in DRAM, is read instead of ``source``."""

    target: Buffer
    source: Buffer
    how: BlockDiagonal | Interleaved


@dataclass(frozen=True)
class Parameters(Node):
    """What the compiler puts into DRAM: the store unit's parameters of channels without a bias.

    Attributes:
        bias: what is added nevertheless, to all alike.
    """

    target: Buffer
    how: Interleaved
    bias: int

    @property
    def value(self) -> npt.NDArray[np.int32]:
        plain: npt.NDArray[np.int32] = np.full(self.how.channels, self.bias, dtype=np.int32)
        return self.how.widen(plain)


@dataclass(frozen=True)
class Identity(Node):
    """What the compiler puts into DRAM: one on the diagonal of ``target``, else zero."""

    target: Buffer

    @property
    def value(self) -> npt.NDArray[np.int8]:
        return np.eye(self.target.shape[0], dtype=np.int8)


@dataclass(frozen=True)
class Alu(Node):
    """An in-place vector operation on accumulators, ``target = op(target, operand)``, or ``zero``: what
    :class:`Finish` becomes when instructions are emitted."""

    op: str
    target: Region
    operand: Region | int
    dims: tuple[tuple[int | None, ...], tuple[int | None, ...]]
    """As in :class:`Call`, for target and operand."""
    stage: str = field(default="", compare=False, kw_only=True)
    """Of the schedule, a part of which it computes."""


@dataclass(frozen=True)
class Operated:
    """A post-operator on blocks of accumulators.

    Attributes:
        op: what is done; its expressions are in terms of buffers and loop variables.
        operand: the block behind the element that ``op`` reads, if it reads one.
        dims: as in :class:`Call`, for the operand; in a :class:`Store`, of parameters, the dimension of
            the tile behind each of theirs.
        unit: the identity matrix that the operand is multiplied by, if it is.
    """

    op: PostOp
    operand: Region | None = None
    dims: tuple[int | None, ...] = ()
    unit: Region | None = None

    def moved(self, change: Callable[[Region], Region]) -> Operated:
        """The same on other blocks."""
        return replace(
            self,
            operand=None if self.operand is None else change(self.operand),
            unit=None if self.unit is None else change(self.unit),
        )


@dataclass(frozen=True)
class Finish(Node):
    """Post-operators on one block of accumulators.

    Attributes:
        intrin: what carries them out.
        target: the block.
        dims: as in :class:`Call`, for the target.
        ops: in order.
        stage: of the schedule, which they compute.
    """

    intrin: Intrinsic
    target: Region
    dims: tuple[int | None, ...]
    ops: tuple[Operated, ...]
    stage: str = field(default="", compare=False, kw_only=True)


@dataclass(frozen=True)
class Store(Node):
    """Post-operators on a tile of accumulators, carried out by the store unit on the way to DRAM.

    Attributes:
        target: the tile in DRAM.
        source: the accumulators, of equal shape.
        ops: first one with parameters in ``par_buffer``, then perhaps one with a residual in DRAM.
        stage: of the schedule, which they compute.
    """

    target: Region
    source: Region
    ops: tuple[Operated, ...]
    stage: str = field(default="", compare=False, kw_only=True)


@dataclass(frozen=True)
class Post(Node):
    """What follows the sums of a tile: loops and conditions around one :class:`Finish`. Each post-operator is
    applied to all blocks before the next one is."""

    body: tuple[Node, ...]

    @property
    def finish(self) -> Finish:
        """What is done to each block."""
        (found,) = (node for node in walk_nodes(self.body) if isinstance(node, Finish))
        return found


@dataclass(frozen=True)
class Nest:
    """A whole computation: scratchpad buffers, then statements.

    Attributes:
        inputs: the tensors that are given.
        outputs: the tensors that are computed.
        locals: all other buffers.
        around: per local buffer, the loop variables around the place where it is computed.
        sum_limits: per local buffer that holds sums, the largest magnitude that they can have.
        prepared: per input, how the host changes its values before it packs them.
        starts: pairs of local buffers; the first copy into the first one waits till that into the second one,
            which is in acc_buffer, has been asked for.
    """

    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    locals: tuple[Buffer, ...]
    body: tuple[Node, ...]
    around: dict[Buffer, tuple[IterVar, ...]] = field(default_factory=dict)
    sum_limits: dict[Buffer, int] = field(default_factory=dict)
    prepared: dict[Buffer, Preparation] = field(default_factory=dict)
    starts: tuple[tuple[Buffer, Buffer], ...] = ()

    def with_buffers(self, replaced: Mapping[Buffer, Buffer], body: tuple[Node, ...]) -> Nest:
        """The same nest with a body that has other local buffers in place of some."""

        def new(buffer: Buffer) -> Buffer:
            return replaced.get(buffer, buffer)

        return replace(
            self,
            locals=tuple(map(new, self.locals)),
            around={new(b): around for b, around in self.around.items()},
            sum_limits={new(b): limit for b, limit in self.sum_limits.items()},
            starts=tuple((new(held), new(ahead)) for held, ahead in self.starts),
            body=body,
        )


def walk_nodes(nodes: Sequence[Node]) -> Iterator[Node]:
    """All nodes of a nest, outer before inner."""
    for node in nodes:
        yield node
        if isinstance(node, For | Guard | Post):
            yield from walk_nodes(node.body)


def written_out(node: For) -> list[Node]:
    """The body of an unrolled loop once per iteration, guarded where that may be too many."""
    nodes: list[Node] = []
    surely, most = bounds(node.extent)
    for number in range(most):
        copies = tuple(replace_vars(child, {node.var: Const(number)}) for child in node.body)
        guard = Guard(((Const(number), node.extent),), copies)
        nodes.extend(copies if number < surely else (guard,))
    return nodes


def replace_regions(node: Node, change: Callable[[Region], Region]) -> Node:
    """A node with the regions changed that its copies, calls, stores and finished sums name."""
    if isinstance(node, For | Guard | Post):
        return replace(node, body=tuple(replace_regions(n, change) for n in node.body))
    if isinstance(node, Copy):
        return replace(node, target=change(node.target), source=change(node.source))
    if isinstance(node, Call):
        return replace(node, output=change(node.output), inputs=tuple(map(change, node.inputs)))
    if isinstance(node, Store):
        ops = tuple(one.moved(change) for one in node.ops)
        return replace(node, target=change(node.target), source=change(node.source), ops=ops)
    if isinstance(node, Finish):
        return replace(node, target=change(node.target), ops=tuple(one.moved(change) for one in node.ops))
    return node


def replace_vars(node: Node, values: dict[IterVar, Expr]) -> Node:
    """A node with loop variables replaced."""

    def change(expr: Expr) -> Expr:
        return simplify(rewrite(expr, lambda n: _replaced(n, values)))

    def change_element(expr: Expr) -> Expr:
        return simplify_conditions(rewrite(expr, lambda n: _replaced(n, values)))

    def change_region(region: Region) -> Region:
        ranges = tuple(Range(change(r.start), change(r.extent)) for r in region.ranges)
        held = tuple(change(extent) for extent in region.held)
        return replace(region, ranges=ranges, held=held, copy=change(region.copy))

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
    if isinstance(node, Fill):
        return Fill(change_region(node.region))
    if isinstance(node, Copy):
        padding = tuple((change(a), change(b)) for a, b in node.padding)
        return replace(
            node, target=change_region(node.target), source=change_region(node.source), padding=padding
        )
    if isinstance(node, Call):
        inputs = tuple(change_region(region) for region in node.inputs)
        return replace(node, output=change_region(node.output), inputs=inputs)
    if isinstance(node, Post):
        return Post(tuple(replace_vars(n, values) for n in node.body))
    if isinstance(node, Finish | Store):
        ops = tuple(
            replace(one.moved(change_region), op=one.op.rewritten(change_element)) for one in node.ops
        )
        if isinstance(node, Store):
            source = change_region(node.source)
            return replace(node, target=change_region(node.target), source=source, ops=ops)
        return replace(node, target=change_region(node.target), ops=ops)
    assert isinstance(node, Alu)
    operand = node.operand if isinstance(node.operand, int) else change_region(node.operand)
    return replace(node, target=change_region(node.target), operand=operand)


def _replaced(node: Expr, values: dict[IterVar, Expr]) -> Expr | None:
    if isinstance(node, Read):
        return Read(node.tensor, tuple(simplify(substitute(i, values)) for i in node.indices))
    return values.get(node) if isinstance(node, IterVar) else None
