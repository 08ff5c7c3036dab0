"""Fusion: which nodes of a graph may be carried out as one, and in which ways.

A convolution or a product can take with it padding of zeros before it, and bounds, an addition and its bounds
behind it, where nothing else needs what lies between. Which of the ways is taken is decided in
:mod:`accel.network.choose`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from accel.graph.elementwise import Add, Clip
from accel.graph.graph import Graph, Node
from accel.graph.movement import Pad
from accel.graph.pools import GlobalAveragePool
from accel.graph.products import Conv, MatMul
from accel.graph.tensor import QUANTIZED
from accel.network.stage import Stage


@dataclass(frozen=True, kw_only=True)
class Group:
    """Neighbouring nodes, and the ways to divide them into stages.

    Attributes:
        alternatives: each has every node in one stage. The first one fuses most, the last one nothing.
    """

    alternatives: tuple[tuple[Stage, ...], ...]

    @property
    def apart(self) -> tuple[Stage, ...]:
        """Each node as a stage of its own."""
        return self.alternatives[-1]


@dataclass(frozen=True, kw_only=True)
class _Lead:
    """A node that others can go with: padding before it, bounds behind it, and behind these a sum."""

    main: Node
    pad: Node | None
    clips: tuple[Node, ...]
    addition: Node | None


def fuse(graph: Graph) -> tuple[Group, ...]:
    """A graph's nodes in groups; every node is in one group.

    A group has one product or two whose results are added, so that it has few alternatives.

    Args:
        graph: any.
    """
    consumers = graph.consumers()
    leads = [_lead(graph, node, consumers) for node in graph.nodes if _leads(graph, node)]
    by_addition: dict[str, list[_Lead]] = {}
    for lead in leads:
        key = lead.main.output if lead.addition is None else lead.addition.output
        by_addition.setdefault(key, []).append(lead)
    places = {node.output: place for place, node in enumerate(graph.nodes)}
    groups = []
    taken: set[str] = set()
    for together in by_addition.values():
        addition = together[0].addition
        behind = [] if addition is None else _clips(graph, addition.output, consumers)
        alternatives = _alternatives(together, addition, tuple(behind), places)
        groups.append(Group(alternatives=tuple(alternatives)))
        taken.update(stage.output for stage in groups[-1].apart)
    groups += [Group(alternatives=((Stage(main=node),),)) for node in graph.nodes if node.output not in taken]
    return tuple(groups)


def apart(graph: Graph) -> tuple[Group, ...]:
    """Each node in a group of its own."""
    return tuple(Group(alternatives=((Stage(main=node),),)) for node in graph.nodes)


def _alternatives(
    leads: Sequence[_Lead], addition: Node | None, behind: tuple[Node, ...], places: Mapping[str, int]
) -> Iterator[tuple[Stage, ...]]:
    """The ways to divide nodes into stages, each in an order in which they can run.

    Args:
        leads: one, or two whose results are added, in the order of the graph.
        addition: of them.
        behind: bounds behind it.
        places: of all nodes in the graph.
    """
    both = (True, False)
    takers = [] if addition is None else list(reversed(leads))  # of two the later: the other is there then
    for taker in (*takers, None):
        for with_behind in both if taker is not None and behind else (False,):
            around = [
                product(both if one.pad else (False,), both if one.clips and one is not taker else (True,))
                for one in leads
            ]
            for each in product(*around):
                stages: list[Stage] = []
                for lead, (with_pad, with_clips) in zip(leads, each, strict=True):
                    takes = lead is taker
                    stages.append(
                        Stage(
                            main=lead.main,
                            pad=lead.pad if with_pad else None,
                            clips=lead.clips if with_clips else (),
                            addition=addition if takes else None,
                            sum_clips=behind if takes and with_behind else (),
                        )
                    )
                    if lead.pad is not None and not with_pad:
                        stages.append(Stage(main=lead.pad))
                    stages += [] if with_clips else [Stage(main=node) for node in lead.clips]
                if addition is not None and taker is None:
                    stages.append(Stage(main=addition))
                if not with_behind:
                    stages += [Stage(main=node) for node in behind]
                yield tuple(sorted(stages, key=lambda stage: places[stage.output]))


def _lead(graph: Graph, node: Node, consumers: Mapping[str, Sequence[Node]]) -> _Lead:
    clips = tuple(_clips(graph, node.output, consumers))
    end = clips[-1].output if clips else node.output
    takes = isinstance(node.operator, Conv | MatMul)
    return _Lead(
        main=node,
        pad=_pad(graph, node, consumers),
        clips=clips,
        addition=_addition(graph, end, consumers) if takes else None,
    )


def _leads(graph: Graph, node: Node) -> bool:
    """Whether a node's sums are finished by scales and bounds."""
    return isinstance(node.operator, Conv | MatMul | GlobalAveragePool) and (
        graph.tensors[node.output].dtype in QUANTIZED
    )


def _only(graph: Graph, name: str, consumers: Mapping[str, Sequence[Node]]) -> Node | None:
    """The one node that needs a tensor, if nothing else does."""
    found = consumers[name]
    return found[0] if len(found) == 1 and name not in graph.outputs else None


def _clips(graph: Graph, name: str, consumers: Mapping[str, Sequence[Node]]) -> list[Node]:
    """The bounds that a tensor goes through before anything else."""
    found: list[Node] = []
    node = _only(graph, name, consumers)
    while node is not None and isinstance(node.operator, Clip):
        found.append(node)
        node = _only(graph, node.output, consumers)
    return found


def _pad(graph: Graph, node: Node, consumers: Mapping[str, Sequence[Node]]) -> Node | None:
    """Padding before a convolution that the convolution can do: of its windows' axes, with the zero point."""
    before = graph.producers.get(node.inputs[0])
    if before is None or not isinstance(node.operator, Conv) or not isinstance(before.operator, Pad):
        return None
    pad, data = before.operator, graph.tensors[before.output]
    if (
        _only(graph, before.output, consumers) is not node
        or pad.mode != "constant"
        or any((*pad.begin[:2], *pad.end[:2]))
        or pad.value != data.per_tensor[1]
    ):
        return None
    return before


def _addition(graph: Graph, name: str, consumers: Mapping[str, Sequence[Node]]) -> Node | None:
    """The sum that a tensor goes into, if its other operand has the same shape."""
    node = _only(graph, name, consumers)
    if node is None or not isinstance(node.operator, Add):
        return None
    shapes = {graph.tensors[one].shape for one in (*node.inputs, node.output)}
    return node if len(shapes) == 1 else None
