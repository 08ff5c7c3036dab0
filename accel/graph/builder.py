"""A graph under construction."""

from collections.abc import Iterable, Sequence

from accel.base.errors import GraphError
from accel.base.names import Names
from accel.graph.elementwise import Clip, Reinterpret
from accel.graph.evaluate import carry_out
from accel.graph.graph import Graph, Node, build_graph
from accel.graph.movement import Movement
from accel.graph.operator import Operator
from accel.graph.pools import MaxPool
from accel.graph.tensor import Array, Quantization, Tensor


class Builder:
    """Tensors, constants and nodes, each node behind its operands.

    Shapes follow from the operators. A tensor's quantization is known from the node that makes it or, where
    that only moves values, from the first that takes it.
    """

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.constants: dict[str, Array] = {}
        self.nodes: dict[str, Node] = {}
        """By the tensors that they make."""
        self.inputs: list[str] = []
        self._names = Names()

    def reserve(self, names: Iterable[str]) -> None:
        """Names that :meth:`fresh` is not to make up."""
        self._names.reserve(names)

    def fresh(self, name: str) -> str:
        """A name like the one given that no tensor has."""
        return self._names.fresh(name)

    def input(self, tensor: Tensor) -> None:
        """Declare an input."""
        self._add(tensor)
        self.inputs.append(tensor.name)

    def constant(self, name: str, values: Array, quantization: Quantization | None = None) -> str:
        """Declare a constant.

        Raises:
            GraphError: a dtype or a shape that graphs do not have, or a name that is taken.
        """
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
        """Add a node.

        Args:
            operator: what it does.
            inputs: names of tensors that are there.
            output: the name of its result.
            dtype: the result's; the first operand's, if not given.
            quantization: the result's; the first operand's where values are only moved.
            name: the node's; the result's, if not given.

        Returns:
            The result's name.

        Raises:
            GraphError: operands do not fit.
        """
        operands = [self.tensors[one] for one in inputs]
        if not operands:
            raise GraphError(f"node {name or output!r} has no operands")
        if keeps(operator) and operands[0].dtype != "float32":
            for place, one in enumerate(operands):
                if one.quantization is None and operands[0].quantization is not None:
                    operands[place] = self.tensors[self.demand(one.name, operands[0].quantization)]
            quantization = operands[0].quantization
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
        """Put a constant in the place of a node whose operands are constants; whether they are."""
        node = self.nodes[output]
        if not all(name in self.constants for name in node.inputs):
            return False
        out = self.tensors[output]
        operands = [self.tensors[name] for name in node.inputs]
        self.constants[output] = carry_out(
            node, operands, [self.constants[name] for name in node.inputs], out
        )
        del self.nodes[output]
        return True

    def demand(self, name: str, quantization: Quantization) -> str:
        """The tensor that holds the integers of ``name``, read by a quantization.

        Where nobody has given the tensor one, it gets it, and so do those that its values were moved from.
        Where it has another one, a :class:`~accel.graph.elementwise.Reinterpret` stands in between.

        Raises:
            GraphError: the quantization does not fit the tensor.
        """
        tensor = self.tensors[name]
        if tensor.quantization == quantization:
            return name
        other = Tensor(name=name, shape=tensor.shape, dtype=tensor.dtype, quantization=quantization)
        if tensor.quantization is None:
            node = self.nodes.get(name)
            if node is None:
                self.tensors[name] = other
                return name
            if (
                keeps(node.operator)
                and quantization.per_tensor
                and all(self.tensors[one].quantization in {None, quantization} for one in node.inputs)
            ):
                sources = tuple(self.demand(one, quantization) for one in node.inputs)
                if sources == node.inputs:
                    self.tensors[name] = other
                    return name
        again = self.fresh(f"{name}/reinterpreted")
        if name in self.constants:
            return self.constant(again, self.constants[name], quantization)
        return self.emit(Reinterpret(), [name], again, dtype=tensor.dtype, quantization=quantization)

    def graph(self, name: str, outputs: Sequence[str]) -> Graph:
        """What was built.

        Args:
            name: the graph's.
            outputs: names of tensors.

        Raises:
            GraphError: as :func:`~accel.graph.graph.build_graph`.
        """
        for output, node in self.nodes.items():  # inputs' quantizations that were found later
            source = self.tensors[node.inputs[0]]
            if keeps(node.operator) and self.tensors[output].quantization is None and source.quantization:
                self.tensors[output] = Tensor(
                    name=output,
                    shape=self.tensors[output].shape,
                    dtype=self.tensors[output].dtype,
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


def keeps(operator: Operator) -> bool:
    """Whether an operator's integers mean what its operands' do."""
    return isinstance(operator, Movement | MaxPool | Clip)
