"""TensorFlow Lite files as plain data. Every size is checked before memory is allocated."""

import math
import os
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from accel.base.errors import GraphError
from accel.base.optional_extras import not_installed
from accel.base.records import replace
from accel.formats.model_file import read_model_file
from accel.formats.tflite_sparsity import Level, dense_values
from accel.graph.graph import MAX_NODES
from accel.graph.graph_tensor import DTYPES, MAX_RANK, MAX_TENSOR_BYTES, Array, Shape

MAX_OPERANDS = 1 << 12
"""Limit for one operator."""
_OFFSET_BYTES = 4
"""Least size of a list's item."""
_IDENTIFIER = b"TFL3"
_BROKEN = (struct.error, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
"""Exceptions at invalid offsets."""
_OPTIONS: dict[str, tuple[str, dict[str, str | tuple[str, ...] | list[str]]]] = {
    "ADD": ("AddOptions", {"activation": "FusedActivationFunction"}),
    "AVERAGE_POOL_2D": (
        "Pool2DOptions",
        {
            "activation": "FusedActivationFunction",
            "padding": "Padding",
            "strides": ("StrideH", "StrideW"),
            "kernel": ("FilterHeight", "FilterWidth"),
        },
    ),
    "BATCH_MATMUL": ("BatchMatMulOptions", {"adj_left": "AdjX", "adj_right": "AdjY"}),
    "CONCATENATION": ("ConcatenationOptions", {"activation": "FusedActivationFunction", "axis": "Axis"}),
    "CONV_3D": (
        "Conv3DOptions",
        {
            "activation": "FusedActivationFunction",
            "padding": "Padding",
            "strides": ("StrideD", "StrideH", "StrideW"),
            "dilations": ("DilationDFactor", "DilationHFactor", "DilationWFactor"),
        },
    ),
    "CUMSUM": ("CumsumOptions", {"exclusive": "Exclusive", "reverse": "Reverse"}),
    "CONV_2D": (
        "Conv2DOptions",
        {
            "activation": "FusedActivationFunction",
            "padding": "Padding",
            "strides": ("StrideH", "StrideW"),
            "dilations": ("DilationHFactor", "DilationWFactor"),
        },
    ),
    "DEPTHWISE_CONV_2D": (
        "DepthwiseConv2DOptions",
        {
            "activation": "FusedActivationFunction",
            "padding": "Padding",
            "strides": ("StrideH", "StrideW"),
            "dilations": ("DilationHFactor", "DilationWFactor"),
        },
    ),
    "DEPTH_TO_SPACE": ("DepthToSpaceOptions", {"block": "BlockSize"}),
    "FULLY_CONNECTED": (
        "FullyConnectedOptions",
        {"activation": "FusedActivationFunction", "format": "WeightsFormat"},
    ),
    "GATHER": ("GatherOptions", {"axis": "Axis", "batch": "BatchDims"}),
    "GELU": ("GeluOptions", {"approximate": "Approximate"}),
    "LOCAL_RESPONSE_NORMALIZATION": (
        "LocalResponseNormalizationOptions",
        {"radius": "Radius", "bias": "Bias", "alpha": "Alpha", "beta": "Beta"},
    ),
    "LEAKY_RELU": ("LeakyReluOptions", {"alpha": "Alpha"}),
    "MEAN": ("ReducerOptions", {"keep": "KeepDims"}),
    "MIRROR_PAD": ("MirrorPadOptions", {"mode": "Mode"}),
    "ONE_HOT": ("OneHotOptions", {"axis": "Axis"}),
    "PACK": ("PackOptions", {"axis": "Axis"}),
    "RESIZE_BILINEAR": ("ResizeBilinearOptions", {"corners": "AlignCorners", "half": "HalfPixelCenters"}),
    "RESIZE_NEAREST_NEIGHBOR": (
        "ResizeNearestNeighborOptions",
        {"corners": "AlignCorners", "half": "HalfPixelCenters"},
    ),
    "SPACE_TO_DEPTH": ("SpaceToDepthOptions", {"block": "BlockSize"}),
    "STRIDED_SLICE": (
        "StridedSliceOptions",
        {
            "begin": "BeginMask",
            "end": "EndMask",
            "ellipsis": "EllipsisMask",
            "new": "NewAxisMask",
            "shrink": "ShrinkAxisMask",
        },
    ),
    "TRANSPOSE_CONV": (
        "TransposeConvOptions",
        {
            "activation": "FusedActivationFunction",
            "padding": "Padding",
            "strides": ("StrideH", "StrideW"),
        },
    ),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (
        "UnidirectionalSequenceLSTMOptions",
        {
            "lstm": "FusedActivationFunction",
            "cell": "CellClip",
            "projection": "ProjClip",
            "time": "TimeMajor",
        },
    ),
    "UNPACK": ("UnpackOptions", {"axis": "Axis"}),
    "CALL_ONCE": ("CallOnceOptions", {"graph": "InitSubgraphIndex"}),
    "IF": ("IfOptions", {"then": "ThenSubgraphIndex", "other": "ElseSubgraphIndex"}),
    "SQUEEZE": ("SqueezeOptions", {"axes": ["SqueezeDims"]}),
    "VAR_HANDLE": ("VarHandleOptions", {"container": "Container", "name": "SharedName"}),
    "WHILE": ("WhileOptions", {"condition": "CondSubgraphIndex", "body": "BodySubgraphIndex"}),
    "MUL": ("MulOptions", {"activation": "FusedActivationFunction"}),
    "SUB": ("SubOptions", {"activation": "FusedActivationFunction"}),
    "DIV": ("DivOptions", {"activation": "FusedActivationFunction"}),
    "SOFTMAX": ("SoftmaxOptions", {"beta": "Beta"}),
}
"""By operator, the table of its options, and its fields."""
_OMITTED = {"GELU", "SQUEEZE"}
"""Their options may be missing."""
_OPTIONS |= dict.fromkeys(("L2_POOL_2D", "MAX_POOL_2D"), _OPTIONS["AVERAGE_POOL_2D"])
_OPTIONS |= dict.fromkeys(("REDUCE_ALL", "REDUCE_ANY", "REDUCE_MIN", "REDUCE_PROD", "SUM"), _OPTIONS["MEAN"])


class FileTensor(Struct, frozen=True, kw_only=True):
    """A tensor as the file has it.

    Attributes:
        name: made unique by a number.
        open_axes: with a default in the shape.
        dtype: as numpy's, or another name of an unsupported type.
        scale, zero: of the same length, empty without a quantization.
    """

    name: str
    shape: Shape
    open_axes: tuple[int, ...]
    dtype: str
    scale: tuple[float, ...]
    zero: tuple[int, ...]
    axis: int
    values: Array | None


class FileOperator(Struct, frozen=True, kw_only=True):
    """An operator as the file has it. Omitted tensors have the index -1."""

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Any]


class TfliteFile(Struct, frozen=True, kw_only=True):
    """A model with its other graphs, or one of them."""

    name: str
    tensors: tuple[FileTensor, ...]
    operators: tuple[FileOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    subgraphs: tuple["TfliteFile", ...] = ()


def tflite() -> Any:
    try:
        import tflite as package
    except ImportError:
        raise GraphError(not_installed("TensorFlow Lite files need tflite", "tflite")) from None
    return package


def read_tflite(path: str | os.PathLike[str]) -> TfliteFile:
    return read_model_file(path, lambda content, _: read_tflite_model(content))


def read_tflite_model(content: bytes) -> TfliteFile:
    """Read a model from bytes."""
    package = tflite()
    if content[4:8] != _IDENTIFIER:
        raise GraphError("this is not a TensorFlow Lite model; its identifier is not TFL3")
    try:
        model = package.Model.GetRootAs(content, 0)
        room = len(content) // _OFFSET_BYTES
        count = model.SubgraphsLength()
        if not 1 <= count <= room:
            raise GraphError(
                f"the model has {count} graphs; it must have at least one, and has room for {room}"
            )
        graphs = [model.Subgraphs(place) for place in range(count)]
        counts = (
            sum(graph.TensorsLength() for graph in graphs),
            sum(graph.OperatorsLength() for graph in graphs),
            model.OperatorCodesLength(),
        )
        if max(counts) > min(MAX_NODES, room):
            raise GraphError(
                f"the model has {max(counts)} tensors or operators; it has room for {room}, and may have "
                f"{MAX_NODES}"
            )
        reader = _Reader(package, model, room)
        main, *others = (reader.graph(graph) for graph in graphs)
        return replace(main, subgraphs=tuple(others))
    except _BROKEN:
        raise GraphError("this is not a TensorFlow Lite model; it is damaged") from None


class _Reader:
    def __init__(self, package: Any, model: Any, room: int) -> None:
        self._room = room
        """Most offsets or numbers in the file."""
        self._package = package
        self._model = model
        self._graph: Any = None
        self._expanded = 0
        """Bytes of sparse tensors as dense ones."""
        numbers = vars(package.TensorType).items()
        self._types = {value: name.lower() for name, value in numbers if isinstance(value, int)}

    def graph(self, graph: Any) -> TfliteFile:
        self._graph = graph
        names: set[str] = set()
        tensors = []
        for place in range(graph.TensorsLength()):
            tensors.append(self._tensor(graph.Tensors(place), place, names))
        operators = [self._operator(graph.Operators(place)) for place in range(graph.OperatorsLength())]
        name = graph.Name()
        return TfliteFile(
            name="" if name is None else name.decode("utf-8"),
            tensors=tuple(tensors),
            operators=tuple(operators),
            inputs=self._places(graph.InputsLength(), graph.Inputs, least=0),
            outputs=self._places(graph.OutputsLength(), graph.Outputs, least=0),
        )

    def _places(self, count: int, get: Any, *, least: int = -1) -> Shape:
        most = min(MAX_OPERANDS, self._room)
        if count > most:
            raise GraphError(f"an operator has {count} tensors; it may have {most}")
        found = tuple(int(get(place)) for place in range(count))
        most = self._graph.TensorsLength()
        if any(not least <= place < most for place in found):
            raise GraphError(f"an operator takes the tensors {found}; there are {most}")
        return found

    def _tensor(self, tensor: Any, place: int, names: set[str]) -> FileTensor:
        raw = tensor.Name()
        name = f"tensor {place}" if raw is None else raw.decode("utf-8")
        if name in names:
            name = f"{name}:{place}"
        names.add(name)
        if tensor.ShapeLength() > MAX_RANK or tensor.ShapeSignatureLength() > MAX_RANK:
            raise GraphError(
                f"tensor {name!r} has {tensor.ShapeLength()} dimensions; there may be {MAX_RANK}"
            )
        shape = tuple(int(tensor.Shape(axis)) for axis in range(tensor.ShapeLength()))
        signature = [int(tensor.ShapeSignature(axis)) for axis in range(tensor.ShapeSignatureLength())]
        if signature and len(signature) != len(shape):
            raise GraphError(f"tensor {name!r} has the shape {shape} and the signature {tuple(signature)}")
        if tensor.Type() not in self._types:
            raise GraphError(f"tensor {name!r} has the type {tensor.Type()}, which is not known here")
        dtype = self._types[tensor.Type()]
        scale, zero, axis = self._quantization(tensor.Quantization(), name)
        return FileTensor(
            name=name,
            shape=shape,
            open_axes=tuple(axis for axis, size in enumerate(signature) if size == -1),
            dtype=dtype,
            scale=scale,
            zero=zero,
            axis=axis,
            values=self._values(tensor, name, shape, dtype),
        )

    def _quantization(self, found: Any, name: str) -> tuple[tuple[float, ...], tuple[int, ...], int]:
        if found is None or not found.ScaleLength():
            return (), (), 0
        count = found.ScaleLength()
        if found.DetailsType() or count > self._room or found.ZeroPointLength() not in {0, 1, count}:
            raise GraphError(
                f"tensor {name!r} has {count} scales and {found.ZeroPointLength()} zero points; there must "
                "be as many, and nothing else"
            )
        zeros = [int(found.ZeroPoint(place)) for place in range(found.ZeroPointLength())] or [0]
        scales = tuple(float(found.Scale(place)) for place in range(count))
        return scales, tuple(zeros * count if len(zeros) == 1 else zeros), int(found.QuantizedDimension())

    def _values(self, tensor: Any, name: str, shape: Shape, dtype: str) -> Array | None:
        buffer = self._model.Buffers(tensor.Buffer())
        count = buffer.DataLength()
        if not count or dtype not in DTYPES:
            return None
        if any(size < 0 for size in shape):
            raise GraphError(f"tensor {name!r} has the shape {shape}; sizes must not be negative")
        stored, is_sparse = np.dtype(dtype), tensor.Sparsity() is not None
        size = math.prod(shape) * stored.itemsize
        wanted = count - count % stored.itemsize if is_sparse else size
        if size > MAX_TENSOR_BYTES or wanted != count:
            raise GraphError(
                f"tensor {name!r} of shape {shape} has {count} bytes; it must have {wanted}, and may have "
                f"{MAX_TENSOR_BYTES}"
            )
        raw = buffer.DataAsNumpy().tobytes()
        values = np.frombuffer(raw, dtype=stored.newbyteorder("<")).astype(stored)
        if not is_sparse:
            return values.reshape(shape)
        self._expanded += size
        if self._expanded > MAX_TENSOR_BYTES:
            raise GraphError(
                f"the sparse tensors take more than {MAX_TENSOR_BYTES} bytes when they are dense"
            )
        order, block_map, levels = self._sparsity(tensor.Sparsity())
        try:
            return dense_values(shape, order, block_map, levels, values)
        except GraphError as error:
            raise GraphError(f"sparse tensor {name!r}: {error}") from None

    def _sparsity(self, found: Any) -> tuple[list[int], list[int], list[Level]]:
        counts = (found.TraversalOrderLength(), found.BlockMapLength(), found.DimMetadataLength())
        if max(counts) > 2 * MAX_RANK:
            raise GraphError(f"a sparse tensor has {max(counts)} levels; it may have {2 * MAX_RANK}")
        order = [int(found.TraversalOrder(at)) for at in range(counts[0])]
        block_map = [int(found.BlockMap(at)) for at in range(counts[1])]
        levels = []
        for at in range(counts[2]):
            one = found.DimMetadata(at)
            if one.Format() == self._package.DimensionType.DENSE:
                levels.append(Level(size=int(one.DenseSize())))
                continue
            segments = self._integers(one.ArraySegmentsType(), one.ArraySegments())
            indices = self._integers(one.ArrayIndicesType(), one.ArrayIndices())
            levels.append(Level(size=int(one.DenseSize()), segments=segments, indices=indices))
        return order, block_map, levels

    def _integers(self, kind: int, table: Any) -> Array:
        vectors = self._package.SparseIndexVector
        names = {
            vectors.Int32Vector: "Int32Vector",
            vectors.Uint16Vector: "Uint16Vector",
            vectors.Uint8Vector: "Uint8Vector",
        }
        if kind not in names or table is None:
            raise GraphError(
                f"the type of a sparse tensor's indices is {kind}; it must be in {sorted(names)}"
            )
        vector = getattr(self._package, names[kind])()
        vector.Init(table.Bytes, table.Pos)
        return np.atleast_1d(vector.ValuesAsNumpy()) if vector.ValuesLength() else np.zeros(0, np.int32)

    def _operator(self, operator: Any) -> FileOperator:
        code = self._model.OperatorCodes(operator.OpcodeIndex())
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        names = vars(self._package.BuiltinOperator)
        kind = next((name for name, value in names.items() if value == number), f"operator {number}")
        if kind == "CUSTOM":
            custom = code.CustomCode()
            kind = f"CUSTOM {'' if custom is None else custom.decode('utf-8', 'replace')!r}"
        return FileOperator(
            kind=kind,
            inputs=self._places(operator.InputsLength(), operator.Inputs),
            outputs=self._places(operator.OutputsLength(), operator.Outputs, least=0),
            options=self._options(kind, operator.BuiltinOptions()),
        )

    def _options(self, kind: str, table: Any) -> dict[str, Any]:
        if kind not in _OPTIONS:
            return {}
        name, fields = _OPTIONS[kind]
        options = getattr(self._package, name)()
        if table is None and kind in _OMITTED:
            return {}
        if table is None:
            raise GraphError(f"{kind} has no options; it needs them")
        options.Init(table.Bytes, table.Pos)
        return {key: self._field(options, field) for key, field in fields.items()}

    def _field(self, options: Any, field: str | tuple[str, ...] | list[str]) -> Any:
        if isinstance(field, str):
            return getattr(options, field)()
        if isinstance(field, tuple):
            return tuple(int(getattr(options, one)()) for one in field)
        (name,) = field
        count = getattr(options, f"{name}Length")()
        if count > MAX_RANK:
            raise GraphError(f"an option has {count} numbers; it may have {MAX_RANK}")
        return [int(getattr(options, name)(place)) for place in range(count)]
