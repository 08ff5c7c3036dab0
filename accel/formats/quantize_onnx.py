"""Quantization of float networks with ONNX Runtime."""

import io
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from msgspec import Struct

from accel.base.errors import GraphError, ShapeError, nearest
from accel.base.optional_extras import not_installed
from accel.formats.attention_masks import (
    make_masks_finite,
    mask_nodes,
    restore_constants,
    without_infinities,
)
from accel.formats.calibration_data import split_samples
from accel.formats.concat_scales import share_concat_scales
from accel.formats.decomposed_norms import normalization_nodes
from accel.formats.elementwise_regions import join_elementwise_regions
from accel.formats.float_rewrites import rewrite_float
from accel.formats.onnx_batch_norm import fold_batch_norms
from accel.formats.onnx_export import export_onnx
from accel.formats.onnx_file import MICROSOFT, File, onnx, read_file, read_model
from accel.formats.onnx_import import import_file, with_shapes
from accel.formats.onnx_runtime import open_onnx_runtime
from accel.formats.quantization_choices import METHODS, TYPES, Method, Type
from accel.formats.quantization_error import ErrorTally, OutputError
from accel.graph.graph import Graph
from accel.graph.graph_tensor import Array
from accel.graph.quantize_values import dequantize

_PER_CHANNEL_OPSET = 13
"""DequantizeLinear has per-channel scales from here on."""


class QuantizedModel(Struct, frozen=True, kw_only=True):
    """A quantized network.

    Attributes:
        samples: calibration runs, on which the errors are measured.
        per_channel: whether weights have a scale for each output channel, impossible for some models.
        errors: of the outputs.
        layers: of all quantized tensors that operators compute, the worst first, or empty.
        macs, float_macs: nominal MACs of convolutions and matrix products, in total and in float32.
    """

    content: bytes
    samples: int
    macs: int
    float_macs: int
    errors: tuple[OutputError, ...]
    per_channel: bool = True
    layers: tuple[OutputError, ...] = ()


def quantize_onnx(
    path: str | os.PathLike[str],
    data: Mapping[str, Array],
    *,
    activations: Type = "int8",
    method: Method = "minmax",
    shapes: Mapping[str, Sequence[int]] | None = None,
    per_layer: bool = False,
    adjust: Callable[[bytes, Mapping[str, tuple[int, ...]]], bytes] | None = None,
) -> QuantizedModel:
    """Quantize a float network statically, with settings for machines with ``post=1``.

    Weights become int8 with a scale for each output channel and zero point 0. Activations become int8 or
    uint8 with any zero point, biases int32. Batch normalization is folded first.

    Args:
        path: the ONNX model, with external data in the same folder.
        data: samples by input name, in the input's dtype, see
            :func:`~accel.formats.calibration_data.split_samples`.
        method: "minmax" calibrates to all values, "entropy" minimizes the loss of information, "percentile"
            takes the range of 99.999 % of the values.
        shapes: sizes of inputs with open axes, which become fixed.
        per_layer: also measure the error of each quantized tensor.
        adjust: changes the quantized model, given the inputs' sizes, before its error is measured.

    Raises:
        GraphError: the model cannot be read, is quantized already, or ONNX Runtime refuses it.
        ShapeError: samples or shapes do not fit the inputs, or an option is unknown.
    """
    if activations not in TYPES:
        raise ShapeError(f"activations are {activations!r}; {nearest(str(activations), TYPES)}")
    if method not in METHODS:
        raise ShapeError(f"the method is {method!r}; {nearest(str(method), METHODS)}")
    file = read_file(path)
    _check_float(file)
    inputs = with_shapes(file.inputs, shapes or {})
    samples = split_samples(inputs, data)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "float.onnx"), Path(folder, "quantized.onnx")
        with _quiet("ONNX Runtime cannot quantize the model"):
            plain = _prepared(path, source, {one.name: one.sizes for one in inputs if shapes})
            per_channel = _quantize(source, target, samples, activations, method)
        quantized = onnx().load(target)
        join_elementwise_regions(quantized)
        share_concat_scales(quantized)
        content, prepared = quantized.SerializeToString(), source.read_bytes()
    sizes = {name: values.shape for name, values in samples[0].items()}
    if adjust is not None:
        content = adjust(content, sizes)
    graph = import_file(read_model(content), shapes=sizes)
    names = {name: name for name in file.outputs if name in graph.tensors}
    layers: tuple[OutputError, ...] = ()
    if per_layer:
        layers = _errors(*_with_tensors(prepared, graph), samples)
    return QuantizedModel(
        content=content,
        samples=len(samples),
        macs=sum(map(graph.macs, graph.nodes)),
        float_macs=sum(graph.macs(node) for node in graph.nodes if _is_float(graph, node.output)),
        errors=_errors(plain, graph, names, samples),
        per_channel=per_channel,
        layers=tuple(sorted(layers, key=lambda one: one.snr)),
    )


def _is_float(graph: Graph, name: str) -> bool:
    return graph.tensors[name].dtype == "float32"


def _check_float(file: File) -> None:
    for node in file.nodes:
        quantized = node.kind in ("QuantizeLinear", "DequantizeLinear", "ConvInteger", "MatMulInteger")
        if quantized or node.kind.startswith("QLinear") or (node.domain, node.kind) == (MICROSOFT, "QGemm"):
            raise GraphError(f"the model is already quantized: node {node.name!r} is a {node.title}")


@contextmanager
def _quiet(what: str) -> Iterator[None]:
    """Silence ONNX Runtime, and turn any error into one line."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    except GraphError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise GraphError(f"{what}: {reason}") from None
    finally:
        logging.disable(disabled)


def _prepared(
    path: str | os.PathLike[str], target: Path, sizes: Mapping[str, Sequence[int | str | None]]
) -> bytes:
    """Write a model with fixed sizes and folded batch normalization, and return the original."""
    package = onnx()
    try:
        import onnxruntime
    except ImportError:
        raise GraphError(not_installed("quantizing needs onnxruntime", "onnx")) from None
    model = package.load(os.fspath(path))
    for one in model.graph.input:
        for dim, size in zip(one.type.tensor_type.shape.dim, sizes.get(one.name, ()), strict=False):
            if isinstance(size, int):
                dim.dim_value = size
    if sizes:
        for one in model.graph.output:
            one.type.tensor_type.ClearField("shape")
    opset = next((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), 0)
    if opset < _PER_CHANNEL_OPSET:
        from onnx import version_converter

        model = version_converter.convert_version(model, _PER_CHANNEL_OPSET)
    content: bytes = model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(target)
    options.log_severity_level = 4
    onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    optimized = package.load(os.fspath(target))
    if fold_batch_norms(optimized) + rewrite_float(optimized):
        target.write_bytes(optimized.SerializeToString())
    return content


def _quantize(
    source: Path, target: Path, samples: Sequence[dict[str, Array]], activations: Type, method: Method
) -> bool:
    """Return :attr:`QuantizedModel.per_channel`."""
    from onnxruntime import quantization

    class Samples(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined, unused-ignore]
        def __init__(self) -> None:
            self._left = iter(samples)

        def get_next(self) -> dict[str, Array] | None:
            sample = next(self._left, None)
            if sample is None:
                return None
            return {name: without_infinities(values) for name, values in sample.items()}

    types = {"int8": quantization.QuantType.QInt8, "uint8": quantization.QuantType.QUInt8}
    methods = {
        "minmax": quantization.CalibrationMethod.MinMax,
        "entropy": quantization.CalibrationMethod.Entropy,
        "percentile": quantization.CalibrationMethod.Percentile,
    }

    masked = mask_nodes(source, samples)
    masks = make_masks_finite(source) if masked else {}
    excluded = [*masked, *_normalizations(source)]

    def run(*, per_channel: bool) -> None:
        quantization.quantize_static(
            str(source),
            str(target),
            Samples(),
            quant_format=quantization.QuantFormat.QDQ,
            activation_type=types[activations],
            weight_type=quantization.QuantType.QInt8,
            per_channel=per_channel,
            calibrate_method=methods[method],
            nodes_to_exclude=excluded,
        )

    per_channel = True
    try:
        run(per_channel=True)
    except Exception:  # layers share weights
        run(per_channel=False)
        per_channel = False
    if masks:
        restore_constants(target, masks)
    return per_channel


def _normalizations(source: Path) -> list[str]:
    model = onnx().load(source)
    found = normalization_nodes(model)
    if found:
        onnx().save(model, source)
    return found


def _errors(
    plain: bytes, graph: Graph, names: Mapping[str, str], samples: Sequence[dict[str, Array]]
) -> tuple[OutputError, ...]:
    """Run the float model and the graph in ONNX Runtime.

    ``names`` maps float tensors to those of the graph, which may hold integers.
    """
    exact, quantized = open_onnx_runtime(plain), open_onnx_runtime(export_onnx(graph, list(names.values())))
    tallies = {name: ErrorTally() for name in names}
    for sample in samples:
        wanted, found = exact(sample, list(names)), quantized(sample)
        for name, held in names.items():
            tensor, values = graph.tensors[held], found[held]
            numbers = values if tensor.quantization is None else dequantize(values, tensor)
            tallies[name].add(wanted[name], numbers)
    return tuple(tally.error(name) for name, tally in tallies.items())


def _with_tensors(plain: bytes, graph: Graph) -> tuple[bytes, Graph, dict[str, str]]:
    """Return float model and graph with all quantized tensors as outputs, and their names."""
    package = onnx()
    model = package.load_from_string(plain)
    declared = {one.name for one in model.graph.output}
    names: dict[str, str] = {}
    for node in model.graph.node:
        for name in node.output:
            held = f"{name}_QuantizeLinear_Output"
            if name and held in graph.producers:
                names[name] = held
                if name not in declared:
                    model.graph.output.append(package.ValueInfoProto(name=name))
    return model.SerializeToString(), graph, names
