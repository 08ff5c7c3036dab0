"""The state of a graph while its QDQ regions are replaced."""

from collections.abc import Callable, Collection, Sequence

from accel.graph.graph import Graph
from accel.graph.graph_builder import Builder
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import QUANTIZED, Array, Tensor
from accel.graph.quantize_values import dequantize

MAX_CONSTANT_DEPTH = 3
"""Nodes between constants and a float tensor that is treated as a constant."""

Emitter = Callable[[str], str]
"""Adds a node with the given result name to the new graph. Returns the integers' name."""


TableEvaluator = Callable[[Graph, Array], Array]
"""Computes a table's entries ``y`` from all 256 values ``x``."""


class QdqRewriting:
    """``separated`` are float tensors that ONNX Runtime computes in float32."""

    def __init__(self, graph: Graph, opaque: Collection[str], evaluate_table: TableEvaluator) -> None:
        self.evaluate_table = evaluate_table
        self.old = graph
        self.opaque = opaque
        self.new = Builder.like(graph)
        self.consumers = graph.consumers()
        self.integers: dict[str, str] = {}
        self.separated: set[str] = set()
        self.new_names: set[str] = set()

    def source(self, name: str) -> Tensor | None:
        """Return the dequantized integer tensor, if any."""
        integers = self.integers.get(name)
        return None if integers is None else self.new.tensors[integers]

    def byte_source(self, name: str) -> Tensor | None:
        """Return the same if int8 or uint8 with one scale."""
        tensor = self.source(name)
        if tensor is None or tensor.dtype not in QUANTIZED:
            return None
        return tensor if tensor.required_quantization.is_per_tensor else None

    def has_one_consumer(self, name: str) -> bool:
        return len(self.consumers[name]) == 1 and name not in self.old.outputs

    def constant_numbers(self, name: str, depth: int = MAX_CONSTANT_DEPTH) -> Array | None:
        """Evaluate a float tensor that depends on constants only, by at most ``depth`` nodes."""
        if name in self.new.constants:
            return self.new.constants[name]
        source = self.source(name)
        if source is not None:
            constant = self.new.constants.get(source.name)
            return None if constant is None else dequantize(constant, source)
        node = self.old.producers.get(name)
        if node is None or not depth:
            return None
        arrays: list[Array] = []
        for one in node.inputs:
            values = self.constant_numbers(one, depth - 1)
            if values is None:
                return None
            arrays.append(values)
        tensors = [self.old.tensors[one] for one in node.inputs]
        return node.operator.evaluate(tensors, arrays, self.old.tensors[name])

    def integer_name(self, name: str) -> str:
        found = self.new.fresh(f"{name}/quantized")
        self.new_names.add(found)
        return found

    def emitter(self, operator: Operator, inputs: Sequence[str], out: Tensor, name: str) -> Emitter:
        def emit(output: str) -> str:
            return self.new.emit(
                operator, inputs, output, dtype=out.dtype, quantization=out.quantization, name=name
            )

        return emit
