"""Reset and bias in one pass over the accumulators.

docs/explain/how-schedules-are-chosen.md shows both forms, and explains why their results are equal. The host
subtracts the offset when it packs the bias. It clips a bias that saturates every output, and refuses one that
could overflow a sum, because the two forms would then differ.
"""

from collections.abc import Iterator, Sequence
from types import UnionType

from msgspec import Struct

from accel.base.records import replace
from accel.compiler.nest.nest import (
    AppliedOp,
    BlockEpilogue,
    Buffer,
    Call,
    Copy,
    For,
    Guard,
    Nest,
    Node,
    StoreEpilogue,
    TileEpilogue,
    ZeroBuffer,
    walk_nodes,
)
from accel.compiler.target.alu_epilogue import Folded, folded
from accel.image.packed_layout import Preparation


class _Tile(Struct, frozen=True):
    """Positions of the reset of a tile's sums, and of its epilogues."""

    sums: Buffer
    reset: int
    epilogues: tuple[int, ...]


def fold_bias(nest: Nest) -> Nest:
    folding = _Folding(nest)
    body = folding.rewrite(nest.body)
    clears = tuple(ZeroBuffer(buffer, stage=buffer.name) for buffer in folding.cleared)
    return replace(nest, body=(*clears, *body), preparations=nest.preparations | folding.prepared)


class _Folding:
    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.cleared: list[Buffer] = []
        self.prepared: dict[Buffer, Preparation] = {}

    def rewrite(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        for tile in _tiles(nodes, self.nest):
            ops = [
                one
                for position in tile.epilogues
                for one in _tile_epilogue(nodes[position]).block_epilogue.ops
            ]
            found = folded([one.op for one in ops], self.nest.sum_limits[tile.sums])
            bias = ops[0].operand
            source = None if bias is None else self._source(bias.buffer)
            if found is not None and bias is not None and source is not None:
                self.cleared.append(tile.sums)
                self.prepared[source] = found.preparation
                return _start_from_bias(nodes, tile, found, bias.buffer)
        return tuple(
            replace(node, body=self.rewrite(node.body)) if isinstance(node, For | Guard) else node
            for node in nodes
        )

    def _source(self, local: Buffer) -> Buffer | None:
        copies = [n for n in walk_nodes(self.nest.body) if isinstance(n, Copy) and n.target.buffer is local]
        if len(copies) != 1 or copies[0].source.buffer not in self.nest.inputs:
            return None
        source = copies[0].source.buffer
        readers = [n for n in walk_nodes(self.nest.body) if isinstance(n, Copy) and n.source.buffer is source]
        users = [
            n
            for n in walk_nodes(self.nest.body)
            if isinstance(n, BlockEpilogue)
            for _ in _ops_reading(n, local)
        ]
        return source if len(readers) == len(users) == 1 else None


def _ops_reading(node: BlockEpilogue, buffer: Buffer) -> list[AppliedOp]:
    return [one for one in node.ops if one.operand is not None and one.operand.buffer is buffer]


def _tiles(nodes: Sequence[Node], nest: Nest) -> Iterator[_Tile]:
    """Return the sums that are reset, changed by epilogues and copied out in this body, and nowhere else."""
    for reset, leaf in enumerate(_only_statement(node, through=For | Guard) for node in nodes):
        if not isinstance(leaf, Call) or leaf.form != "reset":
            continue
        sums = leaf.output.buffer
        epilogues = [
            i for i, node in enumerate(nodes) if isinstance(node, TileEpilogue) and _changes(node, sums)
        ]
        copies = [_only_statement(node) for node in nodes]
        out = [i for i, copy in enumerate(copies) if isinstance(copy, Copy) and copy.source.buffer is sums]
        if (
            epilogues
            and len(out) == 1
            and reset < epilogues[0]
            and epilogues[-1] < out[0]
            and all(_is_unconditional(_tile_epilogue(nodes[i])) for i in epilogues)
            and sums in nest.sum_limits
            and _is_confined(nodes, sums, nest)
        ):
            yield _Tile(sums, reset, tuple(epilogues))


def _tile_epilogue(node: Node) -> TileEpilogue:
    assert isinstance(node, TileEpilogue)
    return node


def _changes(epilogue: TileEpilogue, sums: Buffer) -> bool:
    return epilogue.block_epilogue.target.buffer is sums


def _is_unconditional(epilogue: TileEpilogue) -> bool:
    return isinstance(_only_statement(epilogue.body[0]), BlockEpilogue)


def _is_confined(nodes: Sequence[Node], sums: Buffer, nest: Nest) -> bool:

    def touches(node: Node) -> bool:
        if isinstance(node, Call):
            return node.output.buffer is sums
        if isinstance(node, BlockEpilogue):
            return node.target.buffer is sums
        if isinstance(node, StoreEpilogue):
            return node.source.buffer is sums
        return isinstance(node, Copy) and sums in (node.source.buffer, node.target.buffer)

    return sum(map(touches, walk_nodes(nodes))) == sum(map(touches, walk_nodes(nest.body)))


def _only_statement(node: Node, through: type[For] | UnionType = For) -> Node | None:
    """Return the statement inside a perfect nest of loops, or None. A reset may be guarded: its guards only
    exclude elements that no loop over the tile reaches."""
    while isinstance(node, through):
        assert isinstance(node, For | Guard | TileEpilogue)
        if len(node.body) != 1:
            return None
        node = node.body[0]
    return node


def _with_ops(epilogue: TileEpilogue, ops: Sequence[AppliedOp]) -> TileEpilogue:

    def changed(node: Node) -> Node:
        if isinstance(node, BlockEpilogue):
            return replace(node, ops=tuple(ops))
        assert isinstance(node, For | Guard)
        return replace(node, body=tuple(map(changed, node.body)))

    return TileEpilogue(tuple(map(changed, epilogue.body)))


def _start_from_bias(nodes: Sequence[Node], tile: _Tile, found: Folded, bias: Buffer) -> tuple[Node, ...]:
    first = _tile_epilogue(nodes[tile.epilogues[0]])
    start = _with_ops(first, [replace(first.block_epilogue.ops[0], op=found.start)])
    loads = [n for n in nodes if isinstance(n, Copy) and n.target.buffer is bias]
    rest = iter(found.rest)
    result: list[Node] = []
    for position, node in enumerate(nodes):
        if position == tile.reset:
            result += [*loads, start]
        elif position in tile.epilogues:
            remaining = _tile_epilogue(node).block_epilogue.ops[position == tile.epilogues[0] :]
            if remaining:
                result.append(
                    _with_ops(_tile_epilogue(node), [replace(one, op=next(rest)) for one in remaining])
                )
        elif node not in loads:
            result.append(node)
    return tuple(result)
