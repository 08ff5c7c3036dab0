"""Quantization of float networks with ONNX Runtime, and the error that it causes."""

import io
import logging
import math
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from accel.base.errors import GraphError, ShapeError, nearest
from accel.base.optional_extras import not_installed
from accel.formats.onnx_export import export_onnx
from accel.formats.onnx_file import MICROSOFT, File, FileInput, onnx, read_file
from accel.formats.onnx_import import import_model
from accel.formats.onnx_runtime import open_onnx_runtime
from accel.graph.graph import Graph
from accel.graph.graph_tensor import Array

Type = Literal["int8", "uint8"]
Method = Literal["minmax", "entropy", "percentile"]

TYPES: tuple[Type, ...] = ("int8", "uint8")
"""Dtypes of activations."""
METHODS: tuple[Method, ...] = ("minmax", "entropy", "percentile")
"""Calibration methods, which choose the range of a tensor from its values on the data."""
_PER_CHANNEL_OPSET = 13
"""First opset whose DequantizeLinear has per-channel scales."""


@dataclass(frozen=True, kw_only=True)
class OutputError:
    """The error of one output over all samples.

    Attributes:
        largest, mean: largest and mean absolute difference from the float network.
        snr: power of the float network's values divided by the power of the differences, in dB, or infinite
            if nothing differs.
        agreement: share of rows with the same argmax, for outputs of rank 2, or None for all other
            outputs.
    """

    name: str
    values: int
    largest: float
    mean: float
    snr: float
    agreement: float | None


@dataclass(frozen=True, kw_only=True)
class QuantizedModel:
    """A quantized network.

    Attributes:
        samples: number of calibration runs. The errors are measured on the same runs.
        macs, float_macs: nominal MACs of convolutions and matrix products, in total and in float32.
    """

    content: bytes
    samples: int
    macs: int
    float_macs: int
    errors: tuple[OutputError, ...]


def quantize_onnx(
    path: str | os.PathLike[str],
    data: Mapping[str, Array],
    *,
    activations: Type = "int8",
    method: Method = "minmax",
) -> QuantizedModel:
    """Quantize a float network statically, with settings for machines with ``post=1``.

    Weights become int8 with a scale for each output channel and zero point 0. Activations become int8 or
    uint8 with any zero point, biases int32. Batch normalization is folded first. The errors compare the
    imported quantized network with the float network on the calibration data.

    Args:
        path: the ONNX model. External data must lie in the same folder.
        data: samples by input name, stacked along the first axis, in the input's dtype.
        method: the calibration method: "minmax" takes all values, "entropy" minimizes the loss of
            information, "percentile" takes the range of 99.999 % of the values.
    """
    if activations not in TYPES:
        raise ShapeError(f"activations are {activations!r}; {nearest(str(activations), TYPES)}")
    if method not in METHODS:
        raise ShapeError(f"the method is {method!r}; {nearest(str(method), METHODS)}")
    file = read_file(path)
    _check_float(file)
    samples = _samples(file.inputs, data)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "float.onnx"), Path(folder, "quantized.onnx")
        with _quiet("ONNX Runtime cannot quantize the model"):
            plain = _prepared(path, source)
            _quantize(source, target, samples, activations, method)
        content = target.read_bytes()
    batch = next((len(one) for sample in samples[:1] for one in sample.values() if one.ndim), 1)
    graph = import_model(content, batch=batch)
    return QuantizedModel(
        content=content,
        samples=len(samples),
        macs=sum(map(graph.macs, graph.nodes)),
        float_macs=sum(graph.macs(node) for node in graph.nodes if _is_float(graph, node.output)),
        errors=_errors(plain, graph, file.outputs, samples),
    )


def _is_float(graph: Graph, name: str) -> bool:
    return graph.tensors[name].dtype == "float32"


def _check_float(file: File) -> None:
    for node in file.nodes:
        quantized = node.kind in ("QuantizeLinear", "DequantizeLinear", "ConvInteger", "MatMulInteger")
        if quantized or node.kind.startswith("QLinear") or (node.domain, node.kind) == (MICROSOFT, "QGemm"):
            raise GraphError(f"the model is already quantized: node {node.name!r} is a {node.title}")


def _samples(inputs: Sequence[FileInput], data: Mapping[str, Array]) -> list[dict[str, Array]]:
    names = [one.name for one in inputs]
    for name in data:
        if name not in names:
            raise ShapeError(f"the data has {name!r}, which is not an input; {nearest(name, names)}")
    if not inputs:
        raise ShapeError("the model has no inputs; calibration needs at least one")
    found: dict[str, list[Array]] = {}
    for one in inputs:
        if one.name not in data:
            raise ShapeError(f"the data lacks input {one.name!r}; every input needs samples")
        found[one.name] = _divided(one, np.asarray(data[one.name]))
    counts = {name: len(parts) for name, parts in found.items()}
    if len(set(counts.values())) != 1:
        listed = ", ".join(f"{count} of {name!r}" for name, count in counts.items())
        raise ShapeError(f"the data has samples for {listed} runs; the numbers must be equal")
    return [{name: parts[at] for name, parts in found.items()} for at in range(min(counts.values()))]


def _divided(one: FileInput, values: Array) -> list[Array]:
    """Split an input's samples into runs of the model's fixed batch, or of 1."""
    sizes = ["?" if not isinstance(size, int) else str(size) for size in one.sizes]
    what = f"the data of input {one.name!r}"
    if values.dtype != one.dtype:
        raise ShapeError(f"{what} is {values.dtype}; the model takes {one.dtype}")
    if values.ndim != len(one.sizes) or any(
        isinstance(size, int) and size != given
        for size, given in zip(one.sizes[1:], values.shape[1:], strict=False)
    ):
        wanted = ", ".join(["samples", *sizes[1:]])
        raise ShapeError(f"{what} has shape {values.shape}; it must be ({wanted})")
    if not values.ndim:
        raise ShapeError(f"input {one.name!r} is a single number; it must have an axis for samples")
    batch = one.sizes[0] if isinstance(one.sizes[0], int) else 1
    if not values.size or not batch or len(values) % batch:
        raise ShapeError(f"{what} has {len(values)} samples; they must be a multiple of the batch {batch}")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ShapeError(f"{what} has values that are not finite")
    return [np.ascontiguousarray(values[at : at + batch]) for at in range(0, len(values), batch)]


@contextmanager
def _quiet(what: str) -> Iterator[None]:
    """Suppress output and logs of ONNX Runtime's tools, and turn any error into one line."""
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


def _prepared(path: str | os.PathLike[str], target: Path) -> bytes:
    """Write the model with batch normalization folded, and return the original in a recent opset."""
    package = onnx()
    try:
        import onnxruntime  # noqa: PLC0415
    except ImportError:
        raise GraphError(not_installed("quantizing needs onnxruntime", "onnx")) from None
    model = package.load(os.fspath(path))
    opset = next((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), 0)
    if opset < _PER_CHANNEL_OPSET:
        from onnx import version_converter  # noqa: PLC0415

        model = version_converter.convert_version(model, _PER_CHANNEL_OPSET)
    content: bytes = model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(target)
    options.log_severity_level = 4
    onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return content


def _quantize(
    source: Path, target: Path, samples: Sequence[dict[str, Array]], activations: Type, method: Method
) -> None:
    """Run ONNX Runtime's static quantization."""
    from onnxruntime import quantization  # noqa: PLC0415

    class Samples(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined, unused-ignore]
        """Hands the calibration runs to the quantizer one by one."""

        def __init__(self) -> None:
            self._left = iter(samples)

        def get_next(self) -> dict[str, Array] | None:
            return next(self._left, None)

    types = {"int8": quantization.QuantType.QInt8, "uint8": quantization.QuantType.QUInt8}
    methods = {
        "minmax": quantization.CalibrationMethod.MinMax,
        "entropy": quantization.CalibrationMethod.Entropy,
        "percentile": quantization.CalibrationMethod.Percentile,
    }
    quantization.quantize_static(
        str(source),
        str(target),
        Samples(),
        quant_format=quantization.QuantFormat.QDQ,
        activation_type=types[activations],
        weight_type=quantization.QuantType.QInt8,
        per_channel=True,
        calibrate_method=methods[method],
    )


class _Tally:
    """Accumulates the differences of one output over all runs."""

    def __init__(self) -> None:
        self.values = self.rows = self.agreeing = 0
        self.largest = self.absolute = self.noise = self.signal = 0.0
        self.has_rows = True

    def add(self, wanted: Array, found: Array) -> None:
        exact = wanted.astype(np.float64)
        difference = np.abs(found.astype(np.float64).reshape(exact.shape) - exact)
        self.values += exact.size
        self.largest = max(self.largest, float(difference.max(initial=0)))
        self.absolute += float(difference.sum())
        self.noise += float((difference**2).sum())
        self.signal += float((exact**2).sum())
        self.has_rows = self.has_rows and exact.ndim == 2 and exact.shape[1] > 1
        if self.has_rows:
            self.rows += len(exact)
            self.agreeing += int((exact.argmax(1) == found.reshape(exact.shape).argmax(1)).sum())

    def error(self, name: str) -> OutputError:
        """Return the error over all runs."""
        snr = math.inf
        if self.noise:
            snr = 10 * math.log10(self.signal / self.noise) if self.signal else -math.inf
        return OutputError(
            name=name,
            values=self.values,
            largest=self.largest,
            mean=self.absolute / self.values if self.values else 0.0,
            snr=snr,
            agreement=self.agreeing / self.rows if self.has_rows and self.rows else None,
        )


def _errors(
    plain: bytes, graph: Graph, outputs: Sequence[str], samples: Sequence[dict[str, Array]]
) -> tuple[OutputError, ...]:
    """Compare the float model with the graph's QOperator form, both in ONNX Runtime, for each output."""
    exact, quantized = open_onnx_runtime(plain), open_onnx_runtime(export_onnx(graph))
    tallies = {name: _Tally() for name in outputs}
    for sample in samples:
        wanted, found = exact(sample, list(outputs)), quantized(sample, list(outputs))
        for name, tally in tallies.items():
            tally.add(wanted[name], found[name])
    return tuple(tally.error(name) for name, tally in tallies.items())
