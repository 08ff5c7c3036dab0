"""Fusion: which nodes of a graph are carried out as one.

A convolution or a product takes with it padding of zeros before it, and bounds, an addition and its bounds
behind it, where nothing else needs what lies between.
"""

from collections.abc import Mapping, Sequence

from accel.graph.elementwise import Add, Clip
from accel.graph.graph import Graph, Node
from accel.graph.movement import Pad
from accel.graph.pools import GlobalAveragePool
from accel.graph.products import Conv, MatMul
from accel.graph.tensor import QUANTIZED
from accel.network.stage import Stage


def fuse(graph: Graph) -> tuple[Stage, ...]:
    """A graph's nodes in stages, each behind those whose results it takes; every node is in one stage.

    Args:
        graph: any.
    """
    taken: set[str] = set()
    stages: dict[str, Stage] = {}
    consumers = graph.consumers()
    places = {node.output: place for place, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        if not _leads(graph, node):
            continue
        pad = _pad(graph, node, consumers)
        clips = _clips(graph, node.output, consumers)
        end = clips[-1].output if clips else node.output
        addition = None
        if isinstance(node.operator, Conv | MatMul):
            addition = _addition(graph, end, consumers, places, taken)
        behind = [] if addition is None else _clips(graph, addition.output, consumers)
        stage = Stage(main=node, pad=pad, clips=tuple(clips), addition=addition, sum_clips=tuple(behind))
        taken.update(one.output for one in stage.nodes)
        stages[stage.output] = stage
    for node in graph.nodes:
        if node.output not in taken:
            stages[node.output] = Stage(main=node)
    return tuple(stages[node.output] for node in graph.nodes if node.output in stages)


def apart(graph: Graph) -> tuple[Stage, ...]:
    """Each node as a stage of its own."""
    return tuple(Stage(main=node) for node in graph.nodes)


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


def _addition(
    graph: Graph,
    name: str,
    consumers: Mapping[str, Sequence[Node]],
    places: Mapping[str, int],
    taken: set[str],
) -> Node | None:
    """The sum that a tensor goes into, if its other operand has the same shape.

    Of two operands whose stages could take the sum with them the later one gets it: the other is there then.
    """
    node = _only(graph, name, consumers)
    if node is None or not isinstance(node.operator, Add) or node.output in taken:
        return None
    other = next(one for one in node.inputs if one != name)
    shape = graph.tensors[name].shape
    if graph.tensors[node.output].shape != shape or graph.tensors[other].shape != shape:
        return None
    if other in graph.constants or places.get(other, -1) < places[name]:
        return node
    return None if _could_take(graph, other, consumers) else node


def _could_take(graph: Graph, name: str, consumers: Mapping[str, Sequence[Node]]) -> bool:
    """Whether a tensor comes from a stage that can take the sum with it."""
    node: Node | None = graph.producers.get(name)
    while node is not None and _only(graph, node.output, consumers) is not None:
        if isinstance(node.operator, Conv | MatMul):
            return _leads(graph, node)
        if not isinstance(node.operator, Clip):
            return False
        node = graph.producers.get(node.inputs[0])
    return False
