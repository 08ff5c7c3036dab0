"""The evaluation of a graph in numpy, which defines the network's results."""

from collections.abc import Iterator, Mapping, Sequence

from accel.base.arguments import check_array
from accel.base.errors import ShapeError
from accel.graph.graph import Graph, Node
from accel.graph.graph_tensor import Array, Tensor


def evaluate(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return all tensors except constants, by name."""
    return dict(evaluate_stepwise(graph, inputs))


def evaluate_stepwise(graph: Graph, inputs: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
    """Yield inputs, then results in order."""
    values: dict[str, Array] = {**graph.constants, **check_inputs(graph, inputs)}
    for name in graph.inputs:
        yield name, values[name]
    for node in graph.nodes:
        values[node.output] = evaluate_node(graph, node, [values[name] for name in node.inputs])
        yield node.output, values[node.output]


def evaluate_node(graph: Graph, node: Node, arrays: list[Array]) -> Array:
    return evaluate_operator(node, graph.operands(node), arrays, graph.tensors[node.output])


def evaluate_operator(node: Node, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
    """Arrays become row-major, because numpy adds in the order of memory."""
    ordered = [one if one.flags.c_contiguous else one.copy(order="C") for one in arrays]
    result = node.operator.evaluate(operands, ordered, out)
    assert result.shape == out.shape, f"{node.name}: {result.shape}, not {out.shape}"
    assert result.dtype == out.dtype, f"{node.name}: {result.dtype}, not {out.dtype}"
    return result


def check_inputs(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the inputs in the graph's order, or raise a ShapeError."""
    graph.check_names(inputs=inputs)
    found = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        if name not in inputs:
            raise ShapeError(
                f"input {name!r} is missing; the network takes {tensor.dtype}{list(tensor.shape)}"
            )
        found[name] = check_array(f"input {name!r}", inputs[name], tensor.shape, tensor.dtype)
    return found
