"""Regions of Dequantize ... Quantize as the quantized operators that they stand for.

A float tensor that a Dequantize makes *is* integers with a scale. What only moves such values moves the
integers instead; an operator whose operands are such and whose result goes to a Quantize is its quantized
form. Between the operator and the Quantize may stand what commutes with rounding: bounds, moves, maxima. A
region of functions of one such tensor is a table. What does not match stays float.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.graph.builder import Builder
from accel.graph.elementwise import (
    Add,
    Binary,
    Clip,
    Dequantize,
    Function,
    Mul,
    Quantize,
    Requantize,
    Table,
    all_values,
    dequantize,
    quantize,
)
from accel.graph.graph import Graph, Node
from accel.graph.movement import Concat, Identity, Movement, Pad, Reshape, Slice, Transpose
from accel.graph.operator import Operator
from accel.graph.pools import AveragePool, GlobalAveragePool, MaxPool
from accel.graph.products import Conv, MatMul, Product
from accel.graph.tensor import QUANTIZED, Array, Tensor

_SAME_SCALE = 1e-4
"""How far, of it, a bias's scale may be from the product of its operands'."""
_DEPTH = 3
"""Nodes between constants and a bias that are looked through."""
_INT32 = np.iinfo(np.int32)


def match_regions(graph: Graph) -> Graph:
    """The graph with quantized operators in the place of regions, names of integer tensors unchanged.

    A bias is the int32 that its Dequantize takes; a float one is rounded to multiples of its operands'
    scales.

    Args:
        graph: any; one without a Dequantize comes back as it is.
    """
    if not any(isinstance(node.operator, Dequantize) for node in graph.nodes):
        return graph
    return _Matcher(graph).graph()


class _Matcher:
    """Builds the graph anew, node by node; float nodes that nobody needs any more fall away at the end."""

    def __init__(self, graph: Graph) -> None:
        self._old = graph
        self._new = Builder()
        self._new.reserve([*graph.tensors, *(node.name for node in graph.nodes)])
        self._consumers = graph.consumers()
        self._integers: dict[str, str] = {}
        """Float tensors, and the integers that they are."""
        self._made: set[str] = set()
        """Tensors that the old graph does not have."""

    def graph(self) -> Graph:
        """The graph with its regions matched."""
        for name in self._old.inputs:
            self._new.input(self._old.tensors[name])
        for name, values in self._old.constants.items():
            self._new.constant(name, values, self._old.tensors[name].quantization)
        for node in self._old.nodes:
            self._take(node)
        self._merge_names()
        return self._new.graph(self._old.name, self._old.outputs)

    def _take(self, node: Node) -> None:
        operator = node.operator
        if isinstance(operator, Quantize) and self._as_region(node):
            return
        moves = isinstance(operator, Movement | MaxPool) and self._old.tensors[node.output].dtype == "float32"
        if moves and self._as_integers(node):
            return
        out = self._old.tensors[node.output]
        self._new.emit(
            operator, node.inputs, node.output, dtype=out.dtype, quantization=out.quantization, name=node.name
        )
        if isinstance(operator, Dequantize):
            self._integers[node.output] = node.inputs[0]

    def _merge_names(self) -> None:
        """Integers that were given a name of ours, and then that of a Quantize's result, get the latter."""
        nodes = self._new.nodes
        moved: dict[str, str] = {}
        for node in list(nodes.values()):
            source = node.inputs[0]
            ours = source in self._made and source in nodes and source not in moved
            if ours and isinstance(node.operator, Identity):
                moved[source] = node.output
                del nodes[node.output]
        self._new.nodes = {
            moved.get(name, name): replace(
                node,
                inputs=tuple(moved.get(one, one) for one in node.inputs),
                output=moved.get(name, name),
            )
            for name, node in nodes.items()
        }

    # --- integers in the place of floats -----------------------------------------------------------

    def _between(self, name: str) -> str:
        """A name for the integers of a float tensor."""
        found = self._new.fresh(f"{name}/quantized")
        self._made.add(found)
        return found

    def _source(self, name: str) -> Tensor | None:
        """The integers that a float tensor is."""
        held = self._integers.get(name)
        return None if held is None else self._new.tensors[held]

    def _bytes(self, name: str) -> Tensor | None:
        """The int8 or uint8 with one scale that a float tensor is."""
        found = self._source(name)
        fits = found is not None and found.dtype in QUANTIZED and found.quantized.per_tensor
        return found if fits else None

    def _as_integers(self, node: Node) -> bool:
        """Move integers in the place of the floats that they are; whether that is possible."""
        sources = [self._source(name) for name in node.inputs]
        first = sources[0]
        if first is None or any(
            one is None or (one.dtype, one.quantization) != (first.dtype, first.quantization)
            for one in sources
        ):
            return False
        if first.quantization is not None and not first.quantization.per_tensor:
            return self._channels_moved(node, first)
        operator = _in_integers(node.operator, first)
        if operator is None:
            return False
        target = self._between(node.output)
        self._new.emit(
            operator,
            [one.name for one in sources if one is not None],
            target,
            dtype=first.dtype,
            quantization=first.quantization,
            name=node.name,
        )
        self._new.fold(target)
        self._dequantized(target, node)
        return True

    def _channels_moved(self, node: Node, source: Tensor) -> bool:
        """The same of a constant with a scale for each channel, where the channels stay an axis."""
        values, quantization = self._new.constants.get(source.name), source.quantization
        if values is None or quantization is None or quantization.axis is None:
            return False
        operator, axis = node.operator, quantization.axis
        if isinstance(operator, Transpose):
            moved, place = values.transpose(operator.permutation), operator.permutation.index(axis)
        elif isinstance(operator, Reshape) and operator.sizes[: axis + 1] == source.shape[: axis + 1]:
            moved, place = values.reshape(operator.sizes), axis
        else:
            return False
        target = self._between(node.output)
        self._new.constant(target, np.ascontiguousarray(moved), replace(quantization, axis=place))
        self._dequantized(target, node)
        return True

    def _dequantized(self, target: str, node: Node) -> None:
        """The float tensor after all, for whoever takes it."""
        name = self._new.fresh(f"{node.name}/dequantize")
        self._new.emit(Dequantize(), [target], node.output, dtype="float32", name=name)
        self._integers[node.output] = target

    # --- regions -----------------------------------------------------------------------------------

    def _as_region(self, node: Node) -> bool:
        """Emit the quantized form of what a Quantize ends; whether there is one."""
        out = self._old.tensors[node.output]
        if out.quantization is None or not out.quantization.per_tensor:
            return False
        chain, name = self._chain(node)
        core = self._core(name, out)
        if core is None:
            return self._as_table(node, out)
        self._carry_through(chain, name, core, node, out)
        return True

    def _alone(self, name: str) -> bool:
        """Whether one node, and no output, takes a tensor."""
        return len(self._consumers[name]) == 1 and name not in self._old.outputs

    def _chain(self, node: Node) -> tuple[list[Node], str]:
        """What commutes with a Quantize before it, in order, and the tensor before that."""
        chain: list[Node] = []
        name = node.inputs[0]
        while name not in self._integers and self._alone(name):
            before = self._old.producers.get(name)
            if before is None or not isinstance(
                before.operator, Clip | MaxPool | Identity | Reshape | Transpose | Slice
            ):
                break
            chain.insert(0, before)
            name = before.inputs[0]
        return chain, name

    def _carry_through(
        self, chain: Sequence[Node], name: str, core: "_Core", node: Node, out: Tensor
    ) -> None:
        """Emit an operator and, on its integers, what stood between it and the Quantize."""
        steps = [(one, _in_integers(one.operator, out)) for one in chain]
        steps = [(one, operator) for one, operator in steps if not _changes_nothing(operator, out)]
        held = core(node.output if not steps else self._between(name))
        for place, (one, operator) in enumerate(steps):
            assert operator is not None  # a chain has only such
            last = place == len(steps) - 1
            target = node.output if last else self._between(one.output)
            held = self._new.emit(operator, [held], target, name=one.name)

    def _core(self, name: str, out: Tensor) -> "_Core | None":
        """How to emit the integers of a float tensor, as ``out`` has them; None if there is no way."""
        source = self._bytes(name)
        if source is not None:
            if (source.dtype, source.quantization) == (out.dtype, out.quantization):
                return lambda target: self._same(source, target, out)
            return self._emitter(Requantize(), [source.name], out, out.name)
        node = self._old.producers.get(name)
        if node is None or not self._alone(name):
            return None
        operator = node.operator
        if isinstance(operator, Product):
            return self._product(node, node.inputs, out)
        if isinstance(operator, Add | Mul):
            return self._sides(node, out) or self._with_bias(node, out)
        operands = [self._bytes(one) for one in node.inputs]
        if isinstance(operator, Concat):
            return self._concat(node, operands, out)
        known = [one for one in operands if one is not None and one.dtype == out.dtype]
        if isinstance(operator, AveragePool | GlobalAveragePool | Function) and len(known) == len(operands):
            return self._emitter(operator, [one.name for one in known], out, node.name)
        return None

    def _same(self, source: Tensor, target: str, out: Tensor) -> str:
        """Integers as they are, under the name of a Quantize's result if that is what is wanted."""
        if target != out.name:
            return source.name
        return self._emitter(Identity(), [source.name], out, out.name)(target)

    def _emitter(self, operator: Operator, inputs: Sequence[str], out: Tensor, name: str) -> "_Core":
        def emit(target: str) -> str:
            return self._new.emit(
                operator, inputs, target, dtype=out.dtype, quantization=out.quantization, name=name
            )

        return emit

    def _sides(self, node: Node, out: Tensor) -> "_Core | None":
        operands = [self._bytes(one) for one in node.inputs]
        mixed = isinstance(node.operator, Add)
        known = [one for one in operands if one is not None and (mixed or one.dtype == out.dtype)]
        if len(known) != 2:
            return None
        return self._emitter(node.operator, [one.name for one in known], out, node.name)

    def _concat(self, node: Node, operands: Sequence[Tensor | None], out: Tensor) -> "_Core | None":
        known = [one for one in operands if one is not None]
        if len(known) != len(operands):
            return None

        def emit(target: str) -> str:
            names = []
            for one, old in zip(known, node.inputs, strict=True):
                if (one.dtype, one.quantization) == (out.dtype, out.quantization):
                    names.append(one.name)
                else:
                    again = self._between(old)
                    names.append(self._emitter(Requantize(), [one.name], out, again)(again))
            return self._emitter(node.operator, names, out, node.name)(target)

        return emit

    # --- products ----------------------------------------------------------------------------------

    def _with_bias(self, node: Node, out: Tensor) -> "_Core | None":
        """A matrix product and its bias as two nodes."""
        if not isinstance(node.operator, Add):
            return None
        for product, bias in (node.inputs, node.inputs[::-1]):
            before = self._old.producers.get(product)
            if (
                before is not None
                and isinstance(before.operator, MatMul)
                and len(before.inputs) == 2
                and self._alone(product)
                and self._old.tensors[bias].size == self._old.tensors[product].shape[-1]
                and self._old.tensors[bias].shape[-1] == self._old.tensors[product].shape[-1]
            ):
                return self._product(before, [*before.inputs, bias], out)
        return None

    def _product(self, node: Node, inputs: Sequence[str], out: Tensor) -> "_Core | None":
        operator = node.operator
        assert isinstance(operator, Conv | MatMul)
        data, weights = self._bytes(inputs[0]), self._source(inputs[1])
        if data is None or weights is None or weights.dtype not in QUANTIZED:
            return None
        axis = weights.quantized.axis
        if (
            axis not in {None, operator.channel_axis(weights) % len(weights.shape)}
            or not operator.factor() > 0
        ):
            return None
        operands = [data.name, weights.name]
        if len(inputs) > 2:
            bias = self._bias(inputs[2], operator, data, weights)
            if bias is None:
                return None
            operands.append(bias)
        return self._emitter(operator, operands, out, node.name)

    def _bias(self, name: str, operator: Product, data: Tensor, weights: Tensor) -> str | None:
        """The int32 of a bias."""
        channels = weights.shape[operator.channel_axis(weights)]
        unit = (operator.factor() * data.per_tensor[0]) * np.array(weights.quantized.scale, dtype=np.float32)
        held = self._source(name)
        if held is not None and held.dtype == "int32" and held.shape == (channels,):
            quantization = held.quantized
            scales = np.array(quantization.scale, dtype=np.float32)
            if not any(quantization.zero) and np.allclose(scales, unit, rtol=_SAME_SCALE, atol=0):
                return held.name
        numbers = self._numbers(name)
        if numbers is None or numbers.size != channels or not np.isfinite(numbers).all() or not unit.all():
            return None
        counts = np.rint(numbers.reshape(-1) / unit).astype(np.float64).clip(_INT32.min, _INT32.max)
        return self._new.constant(self._between(name), counts.astype(np.int32))

    def _numbers(self, name: str, depth: int = _DEPTH) -> npt.NDArray[Any] | None:
        """A float tensor's values, where it is so many nodes or fewer behind constants."""
        if name in self._new.constants:
            return self._new.constants[name]
        held = self._source(name)
        if held is not None:
            constant = self._new.constants.get(held.name)
            return None if constant is None else dequantize(constant, held)
        node = self._old.producers.get(name)
        if node is None or not depth:
            return None
        known: list[Array] = []
        for one in node.inputs:
            values = self._numbers(one, depth - 1)
            if values is None:
                return None
            known.append(values)
        tensors = [self._old.tensors[one] for one in node.inputs]
        return node.operator.evaluate(tensors, known, self._old.tensors[name])

    # --- tables ------------------------------------------------------------------------------------

    def _as_table(self, node: Node, out: Tensor) -> bool:
        """Emit functions of one tensor as a table; whether the region before a Quantize is that."""
        region: dict[str, Node] = {}
        leaves: set[str] = set()
        constants: set[str] = set()
        shape = out.shape
        pending = [node.inputs[0]]
        while pending:
            name = pending.pop()
            if name in region:
                continue
            if self._bytes(name) is not None and self._old.tensors[name].shape == shape:
                leaves.add(name)
            elif (numbers := self._numbers(name)) is not None and numbers.size == 1:
                constants.add(name)
            else:
                before = self._old.producers.get(name)
                simple = before is not None and isinstance(
                    before.operator, Function | Clip | Add | Mul | Binary
                )
                if before is None or not simple or self._old.tensors[name].shape != shape:
                    return False
                region[name] = before
                pending.extend(before.inputs)
        inside = {node.name, *(one.name for one in region.values())}
        sources = {self._integers[name] for name in leaves}
        closed = all(
            name not in self._old.outputs and all(one.name in inside for one in self._consumers[name])
            for name in region
        )
        if len(sources) != 1 or not region or not closed:
            return False
        source = self._new.tensors[sources.pop()]
        values = dequantize(all_values(source.dtype), source)
        known: dict[str, Array] = dict.fromkeys(leaves, values)
        for name in constants:
            numbers = self._numbers(name)
            assert numbers is not None
            known[name] = np.asarray(numbers, dtype=np.float32).reshape(1)
        for one in self._old.nodes:
            if one.output in region:
                arrays = [known[name] for name in one.inputs]
                tensors = [
                    Tensor(name=name, shape=array.shape, dtype="float32")
                    for name, array in zip(one.inputs, arrays, strict=True)
                ]
                result = Tensor(name=one.output, shape=(256,), dtype="float32")
                known[one.output] = one.operator.evaluate(tensors, arrays, result)
        entries = quantize(np.broadcast_to(known[node.inputs[0]], (256,)), out)
        last = region[node.inputs[0]]
        self._emitter(Table(values=tuple(entries.tolist())), [source.name], out, last.name)(node.output)
        return True


_Core = Callable[[str], str]
"""Emits integers under a name, and returns it."""


def _in_integers(operator: Operator, tensor: Tensor) -> Operator | None:
    """What an operator that commutes with rounding does on a tensor's integers; None if there is no such
    form."""
    if isinstance(operator, Clip):
        low, high = (None if one is None else _rounded(one, tensor) for one in (operator.low, operator.high))
        return Clip(low=low, high=high)
    if isinstance(operator, Pad) and operator.mode == "constant":
        value = _rounded(operator.value, tensor)
        back = dequantize(np.array([value], dtype=tensor.dtype), tensor)
        return replace(operator, value=value) if back[0] == np.float32(operator.value) else None
    return operator


def _rounded(number: float, tensor: Tensor) -> int:
    """A number as a tensor's integers have it."""
    return int(quantize(np.array([number], dtype=np.float32), tensor)[0])


def _changes_nothing(operator: Operator | None, tensor: Tensor) -> bool:
    """Whether bounds are those of the type."""
    if not isinstance(operator, Clip):
        return False
    bounds = np.iinfo(tensor.dtype)
    return operator.low in {None, bounds.min} and operator.high in {None, bounds.max}
