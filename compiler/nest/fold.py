"""One pass over the accumulators instead of two: reset and bias at once.

    fill_zero(S)                    min(S, bias)              with bias - (D << 8) in DRAM
    ... gemm(S, A, B) ...           ... gemm(S, A, B) ...
    add(S, bias)
    shr(S, 8)                       shr(S, 8)
    add(S, R)                       add(S, R)                 if an int8 tensor is added
    max(S, -128)                    max(S, -128 - D)
    min(S, 127)                     min(S, 127 - D)
    dma_copy2d(C, S)                dma_copy2d(C, S)

Why this is the same is said in :mod:`accel.compiler.target.finish`. The host subtracts the offset when it
packs the bias. A bias so large that every output saturates is clipped there; one that could overflow a sum is
refused, since the two forms would then differ.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import UnionType

from accel.compiler.nest.nest import (
    Buffer,
    Call,
    Clear,
    Copy,
    Finish,
    For,
    Guard,
    Nest,
    Node,
    Operated,
    Post,
    Store,
    walk_nodes,
)
from accel.compiler.target.finish import Folded, folded
from accel.image.layout import Preparation


@dataclass(frozen=True)
class _Tile:
    """Where in a body the sums of a tile are set to zero, and where something follows them."""

    sums: Buffer
    reset: int
    posts: tuple[int, ...]


def fold_bias(nest: Nest) -> Nest:
    """The same nest with reset and bias folded wherever that is possible."""
    folding = _Folding(nest)
    body = folding.rewrite(nest.body)
    clears = tuple(Clear(buffer, stage=buffer.name) for buffer in folding.cleared)
    return replace(nest, body=(*clears, *body), prepared=nest.prepared | folding.prepared)


class _Folding:
    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.cleared: list[Buffer] = []
        self.prepared: dict[Buffer, Preparation] = {}

    def rewrite(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        for tile in _tiles(nodes, self.nest):
            ops = [one for position in tile.posts for one in _post(nodes[position]).finish.ops]
            found = folded([one.op for one in ops], self.nest.sum_limits[tile.sums])
            bias = ops[0].operand
            source = None if bias is None else self._source(bias.buffer)
            if found is not None and bias is not None and source is not None:
                self.cleared.append(tile.sums)
                self.prepared[source] = found.preparation
                return _rewritten(nodes, tile, found, bias.buffer)
        return tuple(
            replace(node, body=self.rewrite(node.body)) if isinstance(node, For | Guard) else node
            for node in nodes
        )

    def _source(self, local: Buffer) -> Buffer | None:
        """The input that a scratchpad buffer is a copy of, if nothing else reads it."""
        copies = [n for n in walk_nodes(self.nest.body) if isinstance(n, Copy) and n.target.buffer is local]
        if len(copies) != 1 or copies[0].source.buffer not in self.nest.inputs:
            return None
        source = copies[0].source.buffer
        readers = [n for n in walk_nodes(self.nest.body) if isinstance(n, Copy) and n.source.buffer is source]
        users = [n for n in walk_nodes(self.nest.body) if isinstance(n, Finish) for _ in _uses(n, local)]
        return source if len(readers) == len(users) == 1 else None


def _uses(node: Finish, buffer: Buffer) -> list[Operated]:
    """The post-operators that read a buffer."""
    return [one for one in node.ops if one.operand is not None and one.operand.buffer is buffer]


def _tiles(nodes: Sequence[Node], nest: Nest) -> Iterator[_Tile]:
    """Sums that are set to zero, finished and copied out among the nodes of one body, and nowhere else."""
    for reset, leaf in enumerate(_leaf(node, through=For | Guard) for node in nodes):
        if not isinstance(leaf, Call) or leaf.form != "reset":
            continue
        sums = leaf.output.buffer
        posts = [i for i, node in enumerate(nodes) if isinstance(node, Post) and _is_of(node, sums)]
        copies = [_leaf(node) for node in nodes]
        out = [i for i, copy in enumerate(copies) if isinstance(copy, Copy) and copy.source.buffer is sums]
        if (
            posts
            and len(out) == 1
            and reset < posts[0]
            and posts[-1] < out[0]
            and all(_is_unconditional(_post(nodes[i])) for i in posts)
            and sums in nest.sum_limits
            and _only_here(nodes, sums, nest)
        ):
            yield _Tile(sums, reset, tuple(posts))


def _post(node: Node) -> Post:
    assert isinstance(node, Post)
    return node


def _is_of(post: Post, sums: Buffer) -> bool:
    return post.finish.target.buffer is sums


def _is_unconditional(post: Post) -> bool:
    """Whether nothing but loops stands around what is done to a block."""
    return isinstance(_leaf(post.body[0]), Finish)


def _only_here(nodes: Sequence[Node], sums: Buffer, nest: Nest) -> bool:
    """Whether nothing outside of ``nodes`` touches the sums."""

    def touches(node: Node) -> bool:
        if isinstance(node, Call):
            return node.output.buffer is sums
        if isinstance(node, Finish):
            return node.target.buffer is sums
        if isinstance(node, Store):
            return node.source.buffer is sums
        return isinstance(node, Copy) and sums in (node.source.buffer, node.target.buffer)

    return sum(map(touches, walk_nodes(nodes))) == sum(map(touches, walk_nodes(nest.body)))


def _leaf(node: Node, through: type[For] | UnionType = For) -> Node | None:
    """The statement inside a perfect nest of loops, or None. A reset may stand behind guards, too: these only
    cut off what no loop over the tile reaches."""
    while isinstance(node, through):
        assert isinstance(node, For | Guard | Post)
        if len(node.body) != 1:
            return None
        node = node.body[0]
    return node


def _with_ops(post: Post, ops: Sequence[Operated]) -> Post:
    """The same loops around other post-operators."""

    def changed(node: Node) -> Node:
        if isinstance(node, Finish):
            return replace(node, ops=tuple(ops))
        assert isinstance(node, For | Guard)
        return replace(node, body=tuple(map(changed, node.body)))

    return Post(tuple(map(changed, post.body)))


def _rewritten(nodes: Sequence[Node], tile: _Tile, found: Folded, bias: Buffer) -> tuple[Node, ...]:
    """The nodes with sums that start from the bias, which is loaded before."""
    first = _post(nodes[tile.posts[0]])
    start = _with_ops(first, [replace(first.finish.ops[0], op=found.start)])
    loads = [n for n in nodes if isinstance(n, Copy) and n.target.buffer is bias]
    rest = iter(found.rest)
    result: list[Node] = []
    for position, node in enumerate(nodes):
        if position == tile.reset:
            result += [*loads, start]
        elif position in tile.posts:
            behind = _post(node).finish.ops[position == tile.posts[0] :]
            if behind:
                result.append(_with_ops(_post(node), [replace(one, op=next(rest)) for one in behind]))
        elif node not in loads:
            result.append(node)
    return tuple(result)
