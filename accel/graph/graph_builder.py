"""A builder of graphs."""

from collections.abc import Iterable, Sequence

from accel.base.errors import GraphError
from accel.base.unique_names import Names
from accel.graph.elementwise_operators import Clip, Reinterpret
from accel.graph.graph import Graph, Node, build_graph
from accel.graph.graph_evaluation import evaluate_operator
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Array, Quantization, Tensor
from accel.graph.movement_operators import Movement
from accel.graph.pooling_operators import MaxPool


class Builder:
    """A graph under construction."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.constants: dict[str, Array] = {}
        self.nodes: dict[str, Node] = {}
        self.inputs: list[str] = []
        self._names = Names()

    @classmethod
    def like(cls, graph: Graph) -> "Builder":
        """Copy inputs and constants, and reserve all names."""
        made = cls()
        made.reserve([*graph.tensors, *(node.name for node in graph.nodes)])
        for name in graph.inputs:
            made.input(graph.tensors[name])
        for name, values in graph.constants.items():
            made.constant(name, values, graph.tensors[name].quantization)
        return made

    def reserve(self, names: Iterable[str]) -> None:
        self._names.reserve(names)

    def fresh(self, name: str) -> str:
        return self._names.fresh(name)

    def input(self, tensor: Tensor) -> None:
        self._add(tensor)
        self.inputs.append(tensor.name)

    def constant(self, name: str, values: Array, quantization: Quantization | None = None) -> str:
        self._add(Tensor(name=name, shape=values.shape, dtype=values.dtype.name, quantization=quantization))
        self.constants[name] = values
        return name

    def emit(
        self,
        operator: Operator,
        inputs: Sequence[str],
        output: str,
        *,
        dtype: str | None = None,
        quantization: Quantization | None = None,
        name: str | None = None,
    ) -> str:
        """Add a node, and return the name of its result.

        Args:
            quantization: of the result. Moves keep the first operand's.
        """
        operands = [self.tensors[one] for one in inputs]
        if not operands:
            raise GraphError(f"node {name or output!r} has no operands")
        if keeps_quantization(operator) and operands[0].dtype != "float32":
            quantization = operands[0].quantization
            if quantization is not None:
                operands = [
                    one
                    if one.quantization is not None
                    else self.tensors[self.require_quantization(one.name, quantization)]
                    for one in operands
                ]
        label = name or output
        try:
            out = Tensor(
                name=output,
                shape=operator.result_shape(operands),
                dtype=dtype or operands[0].dtype,
                quantization=quantization,
            )
            operator.check(operands, out)
        except GraphError as error:
            raise GraphError(f"node {label!r}: {error}") from None
        self._add(out)
        self.nodes[output] = Node(
            name=label, operator=operator, inputs=tuple(one.name for one in operands), output=output
        )
        return output

    def fold(self, output: str) -> bool:
        """Replace a node with constant operands by its result. Return whether it is replaced."""
        node = self.nodes[output]
        if not all(name in self.constants for name in node.inputs):
            return False
        out = self.tensors[output]
        operands = [self.tensors[name] for name in node.inputs]
        arrays = [self.constants[name] for name in node.inputs]
        self.constants[output] = evaluate_operator(node, operands, arrays, out)
        del self.nodes[output]
        return True

    def require_quantization(self, name: str, quantization: Quantization) -> str:
        """Return the integers of ``name`` with a quantization.

        A tensor without quantization gets this one, and so do those from which its values were moved. A
        Reinterpret follows another quantization.
        """
        tensor = self.tensors[name]
        if tensor.quantization == quantization:
            return name
        changed = Tensor(name=name, shape=tensor.shape, dtype=tensor.dtype, quantization=quantization)
        if tensor.quantization is None:
            node = self.nodes.get(name)
            if node is None:
                self.tensors[name] = changed
                return name
            if (
                keeps_quantization(node.operator)
                and quantization.is_per_tensor
                and all(self.tensors[one].quantization in {None, quantization} for one in node.inputs)
            ):
                sources = tuple(self.require_quantization(one, quantization) for one in node.inputs)
                if sources == node.inputs:
                    self.tensors[name] = changed
                    return name
        reinterpreted = self.fresh(f"{name}/reinterpreted")
        if name in self.constants:
            return self.constant(reinterpreted, self.constants[name], quantization)
        return self.emit(Reinterpret(), [name], reinterpreted, dtype=tensor.dtype, quantization=quantization)

    def graph(self, name: str, outputs: Sequence[str]) -> Graph:
        # a later quantization of an operand also holds for the result
        for output, node in self.nodes.items():
            result, source = self.tensors[output], self.tensors[node.inputs[0]]
            if keeps_quantization(node.operator) and result.quantization is None and source.quantization:
                self.tensors[output] = Tensor(
                    name=output,
                    shape=result.shape,
                    dtype=result.dtype,
                    quantization=source.quantization,
                )
        return build_graph(
            name, self.tensors.values(), self.constants, self.nodes.values(), self.inputs, outputs
        )

    def _add(self, tensor: Tensor) -> None:
        if tensor.name in self.tensors:
            raise GraphError(f"tensor {tensor.name!r} is there twice; names must be unique")
        self._names.reserve([tensor.name])
        self.tensors[tensor.name] = tensor


def keeps_quantization(operator: Operator) -> bool:
    """Whether integers stand for the same numbers in result and operands."""
    return isinstance(operator, Movement | MaxPool | Clip)
