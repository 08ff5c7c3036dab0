"""The replacement of QDQ regions by quantized operators.

A region begins at Dequantize nodes and ends at a Quantize. For example, Dequantize, Conv, Clip(0, 6),
Quantize become a Conv and a Clip of integers.

- Moves of values move the integers (:mod:`accel.graph.qdq_moves`).
- An operator between dequantized operands and a quantized result becomes quantized.
- Functions of one tensor become a table, or a table for each channel (:mod:`accel.graph.qdq_tables`).
- A max pool after any other float operator moves after the Quantize.

Bounds, moves and maxima may follow a quantized operator or a table, since they commute with rounding. Other
regions remain in float32.
"""

from collections.abc import Collection, Sequence

from accel.base.records import replace
from accel.graph.elementwise_operators import Add, Clip, Dequantize, Function, Mul, Quantize, Requantize
from accel.graph.float_regions import bounds_nothing, ends_in_float32
from accel.graph.graph import Graph, Node
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Tensor
from accel.graph.movement_operators import (
    Concat,
    DepthToSpace,
    Identity,
    Movement,
    Reshape,
    Slice,
    SpaceToDepth,
    Take,
    Transpose,
)
from accel.graph.pooling_operators import AveragePool, GlobalAveragePool, MaxPool
from accel.graph.product_operators import Product
from accel.graph.qdq_moves import integer_form, move_integers
from accel.graph.qdq_products import product_and_bias_emitter, product_emitter
from accel.graph.qdq_rewriting import Emitter, QdqRewriting, TableEvaluator
from accel.graph.qdq_tables import evaluate_table, table_emitter

_COMMUTES_WITH_ROUNDING = (
    Clip | MaxPool | Identity | Reshape | Transpose | Slice | Take | DepthToSpace | SpaceToDepth
)


def match_regions(
    graph: Graph, opaque: Collection[str] = (), evaluate_table: TableEvaluator = evaluate_table
) -> Graph:
    """Integer tensors keep their names. A float bias is rounded to multiples of the product of the operands'
    scales.
    """
    if not any(isinstance(node.operator, Dequantize) for node in graph.nodes):
        return graph
    return _Matcher(QdqRewriting(graph, opaque, evaluate_table)).graph()


class _Matcher:
    def __init__(self, rewriting: QdqRewriting) -> None:
        self._rewriting = rewriting
        self._old, self._new = rewriting.old, rewriting.new

    def graph(self) -> Graph:
        for node in self._old.nodes:
            self._rewrite(node)
        self._merge_names()
        return self._new.graph(self._old.name, self._old.outputs)

    def _rewrite(self, node: Node) -> None:
        operator, out = node.operator, self._old.tensors[node.output]
        if isinstance(operator, Quantize) and self._match_region(node, out):
            return
        is_float_move = isinstance(operator, Movement | MaxPool) and out.dtype == "float32"
        if is_float_move and move_integers(self._rewriting, node):
            return
        self._rewriting.emitter(operator, node.inputs, out, node.name)(node.output)
        if isinstance(operator, Dequantize):
            self._rewriting.integers[node.output] = node.inputs[0]

    def _merge_names(self) -> None:
        nodes, new_names = self._new.nodes, self._rewriting.new_names
        renamed: dict[str, str] = {}
        for node in list(nodes.values()):
            source = node.inputs[0]
            is_new = source in new_names and source in nodes and source not in renamed
            if is_new and isinstance(node.operator, Identity):
                renamed[source] = node.output
                del nodes[node.output]
        self._new.nodes = {
            renamed.get(name, name): replace(
                node,
                inputs=tuple(renamed.get(one, one) for one in node.inputs),
                output=renamed.get(name, name),
            )
            for name, node in nodes.items()
        }

    def _match_region(self, node: Node, out: Tensor) -> bool:
        if out.quantization is None or not out.quantization.is_per_tensor:
            return False
        steps, name = self._steps_before(node)
        in_float32 = ends_in_float32(steps, out, self._rewriting.opaque)
        emitter = self._core_emitter(name, out, in_float32=in_float32)
        if emitter is None:
            whole = table_emitter(self._rewriting, node.inputs[0], (node,), out)
            if whole is not None:
                whole(node.output)
                return True
            emitter = table_emitter(self._rewriting, name, (*steps, node), out)
        if emitter is None and any(isinstance(step.operator, MaxPool) for step in steps):
            emitter = self._rewriting.emitter(Quantize(), [name], out, node.name)
        if emitter is None:
            return False
        self._emit_region(emitter, name, steps, node, out)
        return True

    def _steps_before(self, node: Node) -> tuple[list[Node], str]:
        """Return the commuting nodes before a Quantize, and the tensor before them."""
        steps: list[Node] = []
        name = node.inputs[0]
        while name not in self._rewriting.integers and self._rewriting.has_one_consumer(name):
            before = self._old.producers.get(name)
            if before is None or not isinstance(before.operator, _COMMUTES_WITH_ROUNDING):
                break
            steps.insert(0, before)
            name = before.inputs[0]
        return steps, name

    def _emit_region(
        self, emitter: Emitter, name: str, steps: Sequence[Node], node: Node, out: Tensor
    ) -> None:
        integer_steps: list[tuple[Node, Operator]] = []
        for step in steps:
            operator = integer_form(step.operator, out)
            assert operator is not None
            if not (isinstance(operator, Clip) and bounds_nothing(operator, out)):
                integer_steps.append((step, operator))
        result = emitter(self._rewriting.integer_name(name) if integer_steps else node.output)
        for number, (step, operator) in enumerate(integer_steps, start=1):
            is_last = number == len(integer_steps)
            output = node.output if is_last else self._rewriting.integer_name(step.output)
            result = self._new.emit(operator, [result], output, name=step.name)

    def _core_emitter(self, name: str, out: Tensor, *, in_float32: bool) -> Emitter | None:
        rewriting = self._rewriting
        source = rewriting.byte_source(name)
        if source is not None:
            if (source.dtype, source.quantization) == (out.dtype, out.quantization):
                return lambda output: self._same_integers(source, output, out)
            return rewriting.emitter(Requantize(), [source.name], out, out.name)
        node = self._old.producers.get(name)
        if node is None or not rewriting.has_one_consumer(name):
            return None
        operator = node.operator
        if isinstance(operator, Product):
            return product_emitter(rewriting, node, node.inputs, out)
        if isinstance(operator, Concat):
            return self._concat_emitter(node, out)
        if isinstance(operator, Add | Mul | AveragePool):
            in_float32 |= name in rewriting.opaque or not rewriting.separated.isdisjoint(node.inputs)
            operator = replace(operator, in_float32=in_float32)
        if not isinstance(operator, Add | Mul | AveragePool | GlobalAveragePool | Function):
            return None
        sources = [rewriting.byte_source(one) for one in node.inputs]
        has_mixed_form = isinstance(operator, Add)
        names = [
            one.name for one in sources if one is not None and (has_mixed_form or one.dtype == out.dtype)
        ]
        if len(names) == len(sources):
            return rewriting.emitter(operator, names, out, node.name)
        return product_and_bias_emitter(rewriting, node, out)

    def _same_integers(self, source: Tensor, output: str, out: Tensor) -> str:
        if output != out.name:
            return source.name
        return self._rewriting.emitter(Identity(), [source.name], out, out.name)(output)

    def _concat_emitter(self, node: Node, out: Tensor) -> Emitter | None:
        found = [self._rewriting.byte_source(one) for one in node.inputs]
        sources = [one for one in found if one is not None]
        if len(sources) != len(found):
            return None

        def emit(output: str) -> str:
            names = []
            for source, old_name in zip(sources, node.inputs, strict=True):
                if (source.dtype, source.quantization) == (out.dtype, out.quantization):
                    names.append(source.name)
                else:
                    name = self._rewriting.integer_name(old_name)
                    names.append(self._rewriting.emitter(Requantize(), [source.name], out, name)(name))
            return self._rewriting.emitter(node.operator, names, out, node.name)(output)

        return emit
