"""One pass over the accumulators instead of two: reset and bias at once.

Once a tile has been clipped to ``low - D .. high - D``, its accumulators are all above
``T = bias - (D << shift)``, so ``acc = min(acc, T)`` sets them to T whatever they hold. The next tile's
sums then start from the bias less an offset that the shift turns into D; where D is a multiple of 256, it
vanishes in the low byte that STORE writes.

    fill_zero(S)                    min(S, bias)              with bias - (D << 8) in DRAM
    ... gemm(S, A, B) ...           ... gemm(S, A, B) ...
    add(S, bias)
    shr(S, 8)                       shr(S, 8)
    add(S, R)                       add(S, R)                 if an int8 tensor is added
    max(S, -128)                    max(S, -128 - D)
    min(S, 127)                     min(S, 127 - D)
    dma_copy2d(C, S)                dma_copy2d(C, S)

The host subtracts the offset when it packs the bias. A bias so large that every output saturates is clipped
there; one that could overflow a sum is refused, since the two forms would then differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import UnionType

from accel.compiler.nest.nest import (
    Alu,
    Buffer,
    Call,
    Clear,
    Copy,
    For,
    Guard,
    Nest,
    Node,
    Region,
    walk_nodes,
)
from accel.compiler.target.finish import BYTE, preparation_for
from accel.image.layout import Preparation


@dataclass(frozen=True)
class _Epilogue:
    """Where the steps stand among the nodes of one body, and what they do."""

    reset: int
    add: int
    shift: int
    amount: int
    clips: tuple[int, int]
    low: int
    high: int
    between: tuple[int, int]
    sums: Buffer
    bias: Region


def fold_bias(nest: Nest) -> Nest:
    """The same nest with reset and bias folded wherever that is possible."""
    folding = _Folding(nest)
    body = folding.rewrite(nest.body)
    clears = tuple(Clear(buffer) for buffer in folding.cleared)
    return replace(nest, body=(*clears, *body), prepared=nest.prepared | folding.prepared)


class _Folding:
    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.cleared: list[Buffer] = []
        self.prepared: dict[Buffer, Preparation] = {}

    def rewrite(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        found = _find(nodes, self.nest)
        if found is not None:
            preparation = preparation_for(
                found.low, found.high, found.amount, self.nest.sum_limits[found.sums], found.between
            )
            source = self._source(found.bias.buffer)
            if preparation is not None and source is not None:
                self.cleared.append(found.sums)
                self.prepared[source] = preparation[0]
                return _folded(nodes, found, preparation[1])
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
        users = [n for n in walk_nodes(self.nest.body) if isinstance(n, Alu) and _reads(n, local)]
        return source if len(readers) == len(users) == 1 else None


def _reads(node: Alu, buffer: Buffer) -> bool:
    return isinstance(node.operand, Region) and node.operand.buffer is buffer


def _find(nodes: Sequence[Node], nest: Nest) -> _Epilogue | None:
    """The epilogue among the nodes of one body: reset, sums, then add, shift, maybe an add of bytes,
    two clips and a copy out."""
    leaves = [_leaf(node) for node in nodes]
    for reset, leaf in enumerate(_leaf(node, through=For | Guard) for node in nodes):
        if not isinstance(leaf, Call) or leaf.form != "reset":
            continue
        sums = leaf.output.buffer
        steps = [
            i for i, other in enumerate(leaves) if isinstance(other, Alu) and other.target.buffer is sums
        ]
        out = [i for i, other in enumerate(leaves) if isinstance(other, Copy) and other.source.buffer is sums]
        if (
            len(steps) not in (4, 5)
            or len(out) != 1
            or sums not in nest.sum_limits
            or not _only_here(nodes, sums, nest)
        ):
            continue
        add, shift, *between, _, _ = (leaves[i] for i in steps)
        clips = (leaves[i] for i in steps[-2:])
        bounds = {c.op: c.operand for c in clips if isinstance(c, Alu) and isinstance(c.operand, int)}
        if (
            isinstance(add, Alu)
            and isinstance(shift, Alu)
            and (add.op, shift.op, sorted(bounds)) == ("add", "shr", ["max", "min"])
            and isinstance(add.operand, Region)
            and isinstance(shift.operand, int)
            and all(map(_adds_bytes, between))
            and reset < steps[0] < out[0]
        ):
            return _Epilogue(
                reset,
                steps[0],
                steps[1],
                shift.operand,
                (steps[-2], steps[-1]),
                bounds["max"],
                bounds["min"],
                (-BYTE // 2, BYTE // 2 - 1) if between else (0, 0),
                sums,
                add.operand,
            )
    return None


def _adds_bytes(node: Node | None) -> bool:
    """Whether a step adds values that were loaded from an int8 tensor."""
    return (
        isinstance(node, Alu)
        and node.op == "add"
        and isinstance(node.operand, Region)
        and node.operand.buffer.dtype == "int8"
    )


def _only_here(nodes: Sequence[Node], sums: Buffer, nest: Nest) -> bool:
    """Whether nothing outside of ``nodes`` touches the sums."""

    def touches(node: Node) -> bool:
        if isinstance(node, Call):
            return node.output.buffer is sums
        if isinstance(node, Alu):
            return node.target.buffer is sums
        return isinstance(node, Copy) and sums in (node.source.buffer, node.target.buffer)

    return sum(map(touches, walk_nodes(nodes))) == sum(map(touches, walk_nodes(nest.body)))


def _leaf(node: Node, through: type[For] | UnionType = For) -> Node | None:
    """The statement inside a perfect nest of loops, or None. A reset may stand behind guards, too: these only
    cut off what no loop over the tile reaches."""
    while isinstance(node, through):
        assert isinstance(node, For | Guard)
        if len(node.body) != 1:
            return None
        node = node.body[0]
    return node


def _with_leaf(node: Node, leaf: Node) -> Node:
    return replace(node, body=(_with_leaf(node.body[0], leaf),)) if isinstance(node, For) else leaf


def _folded(nodes: Sequence[Node], found: _Epilogue, lowered: int) -> tuple[Node, ...]:
    add = _leaf(nodes[found.add])
    assert isinstance(add, Alu)
    result = list(nodes)
    result[found.add] = _with_leaf(nodes[found.add], replace(add, op="min"))
    for position in found.clips:
        clip = _leaf(nodes[position])
        assert isinstance(clip, Alu)
        assert isinstance(clip.operand, int)
        result[position] = _with_leaf(nodes[position], replace(clip, operand=clip.operand - lowered))
    start = result[found.add]
    loads = [n for n in nodes if isinstance(n, Copy) and n.target.buffer is found.bias.buffer]
    folded: list[Node] = []
    for position, node in enumerate(result):
        if position == found.reset:
            folded.extend([*loads, start])
        elif position != found.add and node not in loads:
            folded.append(node)
    return tuple(folded)
