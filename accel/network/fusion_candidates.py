"""The ways in which nodes of a graph can be fused.

Convolutions can take over padding of zeros. Convolutions, matrix products, global averages and functions with
a table for each channel can bound their result, and look it up in a table. All except global averages can
also add a residual or multiply by one, and bound the sum or product. A fused node is the only reader of its
operand.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from msgspec import Struct

from accel.graph.byte_functions import byte_function
from accel.graph.elementwise_operators import Add, ChannelTable, Clip, Mul
from accel.graph.graph import Graph, Node
from accel.graph.graph_tensor import QUANTIZED
from accel.graph.movement_operators import Pad
from accel.graph.pooling_operators import GlobalAveragePool
from accel.graph.product_operators import Conv, Product
from accel.network.fused_nodes import FusedNodes
from accel.network.lowering.quantized_epilogue import is_channel_vector


class FusionGroup(Struct, frozen=True, kw_only=True):
    """Neighbouring nodes, and the ways to fuse them.

    Attributes:
        alternatives: each has every node once. The first fuses most nodes, the last none.
    """

    alternatives: tuple[tuple[FusedNodes, ...], ...]

    @property
    def unfused(self) -> tuple[FusedNodes, ...]:
        return self.alternatives[-1]


class _Anchor(Struct, frozen=True, kw_only=True):
    main: Node
    pad: Node | None
    clips: tuple[Node, ...]
    lookup: Node | None
    combination: Node | None

    def ways(self, *, combines: bool) -> list[tuple[bool, bool, bool]]:
        """Return whether padding, bounds and look-up are fused in each way, with the most fused nodes first.

        A fused combination needs bounds and look-up in the same layer.
        """
        pads = (True, False) if self.pad else (False,)
        afters = [(True, True)]
        if self.lookup and not combines:
            afters.append((True, False))
        if self.clips and not combines:
            afters.append((False, False))
        return [(pad, *after) for pad in pads for after in afters]


def fusion_groups(graph: Graph) -> tuple[FusionGroup, ...]:
    """Groups are fused independently."""
    consumers = graph.consumers()
    anchors = [_anchor(graph, node, consumers) for node in graph.nodes if _is_anchor(graph, node)]
    by_combination: dict[str, list[_Anchor]] = {}
    for anchor in anchors:
        key = anchor.main.output if anchor.combination is None else anchor.combination.output
        by_combination.setdefault(key, []).append(anchor)
    positions = {node.output: position for position, node in enumerate(graph.nodes)}
    groups: list[FusionGroup] = []
    grouped: set[str] = set()
    for together in by_combination.values():
        combination = together[0].combination
        combination_clips = () if combination is None else _clips(graph, combination.output, consumers)
        alternatives = _alternatives(together, combination, combination_clips, positions)
        groups.append(FusionGroup(alternatives=tuple(alternatives)))
        grouped.update(fused.output for fused in groups[-1].unfused)
    rest = [node for node in graph.nodes if node.output not in grouped]
    return (*groups, *map(_single, rest))


def unfused_groups(graph: Graph) -> tuple[FusionGroup, ...]:
    return tuple(map(_single, graph.nodes))


def _single(node: Node) -> FusionGroup:
    return FusionGroup(alternatives=((FusedNodes(main=node),),))


def _alternatives(
    anchors: Sequence[_Anchor],
    combination: Node | None,
    combination_clips: tuple[Node, ...],
    positions: Mapping[str, int],
) -> Iterator[tuple[FusedNodes, ...]]:
    """Yield the ways to fuse one anchor, or two whose results are added or multiplied."""
    yes_or_no = (True, False)
    # the later of two anchors first: when it runs, the other operand exists
    combiners = [] if combination is None else list(reversed(anchors))
    for combiner in (*combiners, None):
        for fuses_last_clips in yes_or_no if combiner is not None and combination_clips else (False,):
            for chosen in product(*(one.ways(combines=one is combiner) for one in anchors)):
                pieces: list[FusedNodes] = []
                for anchor, (fuses_pad, fuses_clips, looks_up) in zip(anchors, chosen, strict=True):
                    combines = anchor is combiner
                    pieces.append(
                        FusedNodes(
                            main=anchor.main,
                            pad=anchor.pad if fuses_pad else None,
                            clips=anchor.clips if fuses_clips else (),
                            lookup=anchor.lookup if looks_up else None,
                            combination=combination if combines else None,
                            combination_clips=combination_clips if combines and fuses_last_clips else (),
                        )
                    )
                    if anchor.pad is not None and not fuses_pad:
                        pieces.append(FusedNodes(main=anchor.pad))
                    pieces += [] if fuses_clips else [FusedNodes(main=node) for node in anchor.clips]
                    if anchor.lookup is not None and not looks_up:
                        pieces.append(FusedNodes(main=anchor.lookup))
                if combination is not None and combiner is None:
                    pieces.append(FusedNodes(main=combination))
                if not fuses_last_clips:
                    pieces += [FusedNodes(main=node) for node in combination_clips]
                yield tuple(sorted(pieces, key=lambda fused: positions[fused.output]))


def _is_anchor(graph: Graph, node: Node) -> bool:
    return isinstance(node.operator, Product | GlobalAveragePool | ChannelTable) and (
        graph.tensors[node.output].dtype in QUANTIZED
    )


def _anchor(graph: Graph, node: Node, consumers: Mapping[str, Sequence[Node]]) -> _Anchor:
    clips = _clips(graph, node.output, consumers)
    bounded = clips[-1].output if clips else node.output
    lookup = _lookup(graph, bounded, consumers)
    result = bounded if lookup is None else lookup.output
    combines = isinstance(node.operator, Product | ChannelTable)
    return _Anchor(
        main=node,
        pad=_pad(graph, node, consumers),
        clips=clips,
        lookup=lookup,
        combination=_combination(graph, result, consumers) if combines else None,
    )


def _only_consumer(graph: Graph, name: str, consumers: Mapping[str, Sequence[Node]]) -> Node | None:
    nodes = consumers[name]
    return nodes[0] if len(nodes) == 1 and name not in graph.outputs else None


def _clips(graph: Graph, name: str, consumers: Mapping[str, Sequence[Node]]) -> tuple[Node, ...]:
    clips: list[Node] = []
    node = _only_consumer(graph, name, consumers)
    while node is not None and isinstance(node.operator, Clip):
        clips.append(node)
        node = _only_consumer(graph, node.output, consumers)
    return tuple(clips)


def _lookup(graph: Graph, name: str, consumers: Mapping[str, Sequence[Node]]) -> Node | None:
    node = _only_consumer(graph, name, consumers)
    return node if node is not None and byte_function(graph, node) is not None else None


def _pad(graph: Graph, node: Node, consumers: Mapping[str, Sequence[Node]]) -> Node | None:
    """Return a convolution's padding: spatial axes only, with the zero point."""
    before = graph.producers.get(node.inputs[0])
    if before is None or not isinstance(node.operator, Conv) or not isinstance(before.operator, Pad):
        return None
    pad, data = before.operator, graph.tensors[before.output]
    if (
        _only_consumer(graph, before.output, consumers) is not node
        or pad.mode != "constant"
        or any((*pad.begin[:2], *pad.end[:2]))
        or pad.value != data.scale_and_zero[1]
    ):
        return None
    return before


def _combination(graph: Graph, name: str, consumers: Mapping[str, Sequence[Node]]) -> Node | None:
    node = _only_consumer(graph, name, consumers)
    if node is None or not isinstance(node.operator, Add | Mul) or node.inputs[0] == node.inputs[1]:
        return None
    (other,) = (graph.tensors[one] for one in node.inputs if one != name)
    shape, out = graph.tensors[name].shape, graph.tensors[node.output]
    return node if shape == out.shape and (other.shape == shape or is_channel_vector(other, out)) else None
