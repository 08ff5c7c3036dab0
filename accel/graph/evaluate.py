"""What a graph computes, in numpy: the reading that everything else is held against."""

from collections.abc import Iterator, Mapping, Sequence

from accel.base.arguments import check_array
from accel.base.errors import ShapeError, nearest
from accel.graph.graph import Graph, Node
from accel.graph.tensor import Array, Tensor


def evaluate(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Every tensor of a graph, constants left out, by name.

    Args:
        graph: with its inputs' shapes and dtypes.
        inputs: an array for each input.

    Raises:
        ShapeError: an input is missing, unknown, or has another shape or dtype.
    """
    return dict(step_by_step(graph, inputs))


def step_by_step(graph: Graph, inputs: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
    """The tensors as they come: inputs first, then each node's result.

    Args:
        graph, inputs: as for :func:`evaluate`.

    Raises:
        ShapeError: as :func:`evaluate`.
    """
    values: dict[str, Array] = {**graph.constants, **check_inputs(graph, inputs)}
    for name in graph.inputs:
        yield name, values[name]
    for node in graph.nodes:
        values[node.output] = evaluate_node(graph, node, [values[name] for name in node.inputs])
        yield node.output, values[node.output]


def evaluate_node(graph: Graph, node: Node, arrays: list[Array]) -> Array:
    """One node's result.

    Args:
        graph: the node's.
        node: one of the graph's.
        arrays: its operands, in the shapes and dtypes that the graph has them in.
    """
    return carry_out(node, graph.operands(node), arrays, graph.tensors[node.output])


def carry_out(node: Node, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
    """A node's result, outside a graph.

    Args:
        node: the node.
        operands, arrays, out: as for :meth:`~accel.graph.operator.Operator.evaluate`.
    """
    result = node.operator.evaluate(operands, arrays, out)
    assert result.shape == out.shape, f"{node.name}: {result.shape}, not {out.shape}"
    assert result.dtype == out.dtype, f"{node.name}: {result.dtype}, not {out.dtype}"
    return result


def check_inputs(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays of a run's inputs.

    Raises:
        ShapeError: one is missing, unknown, or has another shape or dtype than the graph says.
    """
    for name in inputs:
        if name not in graph.inputs:
            raise ShapeError(f"{name!r} is no input of the network; {nearest(name, graph.inputs)}")
    found = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        if name not in inputs:
            raise ShapeError(
                f"input {name!r} is missing; the network takes {tensor.dtype}{list(tensor.shape)}"
            )
        found[name] = check_array(f"input {name!r}", inputs[name], tensor.shape, tensor.dtype)
    return found
