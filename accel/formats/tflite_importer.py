"""Resolve tensors of a TensorFlow Lite file in both layouts, and build the graph.

Files have pictures with channels last, graphs with channels first.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np

from accel.base.errors import GraphError
from accel.base.records import replace
from accel.formats.tflite_file import FileOperator, FileTensor, TfliteFile
from accel.graph.elementwise_operators import Clip, Dequantize
from accel.graph.graph_builder import Builder
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import QUANTIZED, Array, Quantization, Shape, Tensor
from accel.graph.movement_operators import Reshape, Transpose
from accel.graph.quantize_values import quantize

FIRST = (0, 3, 1, 2)
"""The permutation from channels last to channels first."""
LAST = (0, 2, 3, 1)
_ACTIVATIONS: dict[int, tuple[float | None, float | None]] = {
    0: (None, None),
    1: (0.0, None),
    2: (-1.0, 1.0),
    3: (0.0, 6.0),
}
"""Bounds of fused activations, by their numbers in the schema: none, RELU, RELU_N1_TO_1, RELU6."""


_SEVERAL = {"IF", "SPLIT", "SPLIT_V", "TOPK_V2", "UNPACK", "WHILE"}
_WITHOUT_RESULT = {"ASSIGN_VARIABLE", "CALL_ONCE"}
_OPTIONAL = {"UNIDIRECTIONAL_SEQUENCE_LSTM"}
"""It omits inputs."""
_SHAPES = {"SHAPE", "RANK", "PACK", "STRIDED_SLICE", "GATHER", "FILL", "RANGE", "CAST"}
"""These compute shapes, which files also have. So results are needed only for other sizes of inputs."""
MAX_DEPTH = 32
"""Of nested subgraph calls."""
MAX_INLINED = 20_000
"""Operators of imported subgraphs, with repetitions."""

Rules = Mapping[str, tuple[int, Any]]
"""Least number of inputs, and the importing function, by operator."""


class Scope:
    """A graph under construction, and its variables.

    Attributes:
        variables: the tensor that each variable has now.
        states: the inputs with the variables' values of the previous run.
    """

    def __init__(self) -> None:
        self.builder = Builder()
        self.variables: dict[str, str] = {}
        self.states: dict[str, str] = {}

    def restore(self, variables: Mapping[str, str], assigned: Collection[str]) -> None:
        """Undo assignments. Variables that were read for the first time keep that value."""
        now = {name: value for name, value in self.variables.items() if name not in assigned}
        self.variables = now | self.states | dict(variables)


class ModelContext:
    """The shared state of a model's graphs.

    Attributes:
        subgraphs: all graphs but the first.
        initial: first values of variables.
        assigned: variables to which a run assigns.
    """

    def __init__(self, subgraphs: Sequence[TfliteFile]) -> None:
        self.subgraphs = subgraphs
        self.initial: dict[str, Array] = {}
        self.assigned: set[str] = set()
        self._active: list[int] = []
        self._operators = 0

    def subgraph(self, index: int) -> TfliteFile:
        if not 1 <= index <= len(self.subgraphs):
            raise GraphError(f"it calls graph {index}; the model has subgraphs 1 to {len(self.subgraphs)}")
        return self.subgraphs[index - 1]

    @contextmanager
    def entered(self, index: int) -> Iterator[TfliteFile]:
        file = self.subgraph(index)
        if index in self._active or len(self._active) >= MAX_DEPTH:
            raise GraphError(f"graph {index} calls itself, or calls are deeper than {MAX_DEPTH}")
        self._operators += 1 + len(file.operators)
        if self._operators > MAX_INLINED:
            raise GraphError(f"the subgraphs have more than {MAX_INLINED} operators, with repetitions")
        self._active.append(index)
        try:
            yield file
        finally:
            self._active.pop()


class TfliteImporter:
    """A graph with tensors in the layouts that operators need."""

    def __init__(self, file: TfliteFile, scope: Scope, context: ModelContext) -> None:
        self.scope = scope
        self.context = context
        self.builder = scope.builder
        names = [self.builder.fresh(one.name) for one in file.tensors]
        self.file = replace(
            file,
            tensors=tuple(replace(one, name=name) for one, name in zip(file.tensors, names, strict=True)),
        )
        self.handles: dict[int, str] = {}
        """Names of variables, by the file's index of the handle."""
        self._first: dict[int, str] = {}
        """Tensors with channels first, by the file's index."""
        self._plain: dict[int, str] = {}
        self._skipped: dict[int, GraphError] = {}
        """Computed shapes that cannot be imported, with the reason."""

    def open_inputs(self, shapes: Sequence[Shape]) -> None:
        for place, shape in zip(self.file.inputs, shapes, strict=True):
            tensor = self.file.tensors[place]
            self._open(place, shape, tensor.dtype, self.quantization(tensor))

    def _open(self, place: int, shape: Shape, dtype: str, quantization: Quantization | None) -> None:
        name = self.file.tensors[place].name
        if place in self._plain:
            raise GraphError(f"input {name!r} appears twice; inputs must be unique")
        self.builder.input(Tensor(name=name, shape=shape, dtype=dtype, quantization=quantization))
        self._plain[place] = name

    def bind(self, place: int, parent: "TfliteImporter", outer: int, *, is_input: bool = False) -> str | None:
        """Give an input of this subgraph the value of a tensor of the calling graph.

        Returns:
            That tensor if it became an input, as all do with ``is_input``.
        """
        if outer in parent.handles:
            self.handles[place] = parent.handles[outer]
            return None
        name = parent.plain(outer)
        tensor, values = parent.builder.tensors[name], parent.builder.constants.get(name)
        own = self.file.tensors[place]
        if (len(own.shape), own.dtype) != (len(tensor.shape), tensor.dtype):
            raise GraphError(f"a subgraph takes {own.dtype}{list(own.shape)}, and is given {name!r}")
        if parent.builder is self.builder:
            self._plain[place] = name
            return None
        if values is None or is_input:
            self._open(place, tensor.shape, tensor.dtype, tensor.quantization)
            return name
        self._plain[place] = self.builder.constant(own.name, values, tensor.quantization)
        return None

    def results(self) -> list[str]:
        return [self.plain(place) for place in self.file.outputs if place not in self.handles]

    # --- operators ----------------------------------------------------------------------------------

    def take_all(self, rules: Rules) -> None:
        for one in self.file.operators:
            try:
                self.take(one, rules)
            except GraphError as error:
                if not self._computes_shapes(one):
                    raise
                self._skipped |= dict.fromkeys(one.outputs, error)

    def _computes_shapes(self, operator: FileOperator) -> bool:
        made = [self.file.tensors[place].dtype for place in operator.outputs]
        return operator.kind in _SHAPES and set(made) <= {"int32", "int64"}

    def take(self, operator: FileOperator, rules: Rules) -> None:
        least, rule = rules[operator.kind]
        count = len(self.builder.nodes)
        try:
            has_outputs = len(operator.outputs) == 1 or (operator.kind in _SEVERAL and operator.outputs)
            omits = operator.kind not in _OPTIONAL and -1 in operator.inputs[:least]
            is_complete = has_outputs or operator.kind in _WITHOUT_RESULT
            if not is_complete or len(operator.inputs) < least or omits:
                raise GraphError(f"{operator.kind} has the inputs {operator.inputs}; it needs {least}")
            rule(self, operator)
            added = islice(reversed(self.builder.nodes), max(0, len(self.builder.nodes) - count))
            for output in list(added)[::-1]:
                self._fold(output)
        except GraphError as error:
            message = str(error)
            name = self.file.tensors[operator.outputs[0]].name if operator.outputs else operator.kind
            raise GraphError(
                message if message.startswith("node ") else f"node {name!r}: {message}"
            ) from None

    def _fold(self, output: str) -> None:
        """Compute a node of constants. The integers of weights remain."""
        if not isinstance(self.builder.nodes[output].operator, Dequantize):
            self.builder.fold(output)

    # --- operands -----------------------------------------------------------------------------------

    def quantization(self, tensor: FileTensor, axis: int | None = None) -> Quantization | None:
        if not tensor.scale or tensor.dtype not in QUANTIZED:
            return None
        return Quantization.of(
            np.array(tensor.scale, np.float32),
            np.array(tensor.zero, np.int64),
            tensor.axis if axis is None else axis,
        )

    def known(self, place: int) -> np.ndarray | None:
        if place in self._plain or place in self._first:
            return self.builder.constants.get(self.plain(place))
        return self.file.tensors[place].values

    def constant(self, place: int) -> np.ndarray:
        values = self.known(place)
        if values is None:
            if place in self._skipped:
                raise self._skipped[place]
            raise GraphError(f"tensor {self.file.tensors[place].name!r} must be a constant")
        return values

    def add_constant(self, place: int, values: np.ndarray) -> None:
        tensor = self.file.tensors[place]
        self._check_new(place)
        if (values.ndim, values.dtype.name) != (len(tensor.shape), tensor.dtype):
            raise GraphError(
                f"its result is {values.dtype.name}{list(values.shape)}; the file has "
                f"{tensor.dtype}{list(tensor.shape)}"
            )
        self._plain[place] = self.builder.constant(tensor.name, values, self.quantization(tensor))

    def rename(self, place: int, name: str) -> None:
        self._check_new(place)
        self._plain[place] = name

    def _check_new(self, place: int) -> None:
        if place in self._plain or place in self._first:
            name = self.file.tensors[place].name
            raise GraphError(f"tensor {name!r} comes from two places; each must have one")

    def operand(self, place: int) -> tuple[str, Shape]:
        """Return :meth:`plain` and its shape."""
        name = self.plain(place)
        return name, self.builder.tensors[name].shape

    def plain(self, place: int) -> str:
        """Return the name in the file's layout."""
        if place in self._plain:
            return self._plain[place]
        tensor = self.file.tensors[place]
        if place in self._first:
            self._plain[place] = self._turned(self._first[place], LAST, tensor.name)
            return tensor.name
        if tensor.values is None:
            if place in self._skipped:
                raise self._skipped[place]
            raise GraphError(f"tensor {tensor.name!r} comes from nowhere")
        self._plain[place] = self.builder.constant(tensor.name, tensor.values, self.quantization(tensor))
        return tensor.name

    def first(self, place: int) -> str:
        """Return the name with channels first, if there are four axes."""
        tensor = self.file.tensors[place]
        if len(tensor.shape) != 4:
            return self.plain(place)
        if place not in self._first:
            name = self.builder.fresh(f"{tensor.name}/channels_first")
            values = self.known(place)
            if values is not None:
                values = np.ascontiguousarray(values.transpose(FIRST))
                self._first[place] = self.builder.constant(name, values, self.quantization(tensor))
            else:
                self._first[place] = self._turned(self.plain(place), FIRST, name)
        return self._first[place]

    def _turned(self, name: str, permutation: Shape, output: str) -> str:
        """A Reshape suffices if no value moves."""
        sizes = self.builder.tensors[name].shape
        turned = tuple(sizes[axis] for axis in permutation)
        moving = [axis for axis in range(4) if sizes[axis] > 1]
        what: Operator = Transpose(permutation=permutation)
        if [axis for axis in permutation if axis in moving] == moving:
            what = Reshape(sizes=turned)
        self._fold(self.builder.emit(what, [name], output))
        return output

    # --- results ------------------------------------------------------------------------------------

    def emit(
        self, operator: FileOperator, what: Operator, inputs: Sequence[str], *, first: bool = False
    ) -> None:
        self.emit_output(operator.outputs[0], what, inputs, first=first, operator=operator)

    def emit_output(
        self,
        place: int,
        what: Operator,
        inputs: Sequence[str],
        *,
        first: bool = False,
        operator: FileOperator | None = None,
    ) -> None:
        tensor = self.file.tensors[place]
        self._check_new(place)
        four = first and len(tensor.shape) == 4
        name = self.builder.fresh(f"{tensor.name}/channels_first") if four else tensor.name
        quantization = self.quantization(tensor)
        bounds = None if operator is None else self._bounds(operator, tensor, quantization)
        made = name if bounds is None else self.builder.fresh(f"{tensor.name}/unbounded")
        self.builder.emit(what, inputs, made, dtype=tensor.dtype, quantization=quantization)
        if bounds is not None:
            self.builder.emit(bounds, [made], name)
        if not four and len(tensor.shape) != len(self.builder.tensors[name].shape):
            raise GraphError(f"its result is {self.builder.tensors[name].shape}; the file has {tensor.shape}")
        (self._first if four else self._plain)[place] = name

    def _bounds(
        self, operator: FileOperator, tensor: FileTensor, quantization: Quantization | None
    ) -> Clip | None:
        number = int(operator.options.get("activation", 0))
        if number not in _ACTIVATIONS:
            raise GraphError(f"its fused activation is {number}; it must be one of {sorted(_ACTIVATIONS)}")
        low, high = _ACTIVATIONS[number]
        if low is None and high is None:
            return None
        if quantization is None:
            return Clip(low=low, high=high)
        return clip_of(low, high, Tensor(name="", shape=(1,), dtype=tensor.dtype, quantization=quantization))


def clip_of(low: float | None, high: float | None, tensor: Tensor) -> Clip | None:
    limits = np.iinfo(tensor.dtype)
    found = [
        default if one is None else int(quantize(np.array([one], dtype=np.float32), tensor)[0])
        for one, default in ((low, limits.min), (high, limits.max))
    ]
    return None if found == [limits.min, limits.max] else Clip(low=found[0], high=found[1])
