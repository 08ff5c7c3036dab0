"""Layers computed by ONNX Runtime, as a reference that shares no code with the compiler and numpy.

ConvInteger and MatMulInteger compute the sums on uint8 operands with a zero point of 128, since some machines
saturate intermediate sums of int8 weights. The epilogue is computed in float64, which holds every int32
exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import accel

onnx = pytest.importorskip("onnx", reason="onnx comes with the extra test")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime comes with the extra test")

Array = npt.NDArray[Any]
_OPSET, _IR = 13, 8


class Graph:
    """A model that grows operator by operator. Values have names."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: dict[str, Array] = {}

    def input(self, name: str, value: Array) -> str:
        self._inputs[name] = value
        return name

    def constant(self, value: Array) -> str:
        name = f"constant{len(self._constants)}"
        self._constants.append(onnx.numpy_helper.from_array(value, name))
        return name

    def node(self, operator: str, *operands: str | float, **attributes: Any) -> str:
        """Add an operator on named values. Numbers become float64 constants."""
        names = [o if isinstance(o, str) else self.constant(np.array(o, np.float64)) for o in operands]
        result = f"value{len(self._nodes)}"
        self._nodes.append(onnx.helper.make_node(operator, names, [result], **attributes))
        return result

    def cast(self, value: str, dtype: str) -> str:
        return self.node("Cast", value, to=onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def run(self, result: str) -> Array:
        """Run the model and return a value by name."""
        info = onnx.helper.make_tensor_value_info
        inputs = [
            info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in self._inputs.items()
        ]
        outputs = [onnx.helper.make_empty_tensor_value_info(result)]
        graph = onnx.helper.make_graph(self._nodes, "layer", inputs, outputs, self._constants)
        opset = onnx.helper.make_opsetid("", _OPSET)
        model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=_IR)
        model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        onnx.checker.check_model(model)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        content = model.SerializeToString()
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        return np.asarray(session.run([result], self._inputs)[0])


def onnx_result(workload: accel.Workload, inputs: Mapping[str, Array]) -> Array:
    """The output of a convolution or fully connected layer."""
    graph = Graph()
    sizes = workload.parameters
    data = graph.input("data", _unsigned(inputs["data"]))
    zero = graph.constant(np.array(128, dtype=np.uint8))
    if workload.name == "dense":
        weight = graph.input("weight", _unsigned(inputs["weight"].T))
        sums = graph.node("MatMulInteger", data, weight, zero, zero)
    else:
        weight = graph.input("weight", _unsigned(inputs["weight"]))
        sums = graph.node(
            "ConvInteger",
            data,
            weight,
            zero,
            zero,
            kernel_shape=list(sizes["kernel"]),
            strides=list(sizes["stride"]),
            dilations=list(sizes["dilation"]),
            pads=list(sizes["padding"]),
            group=sizes["groups"],
        )
    return _finished(graph, sums, workload, inputs)


def _finished(graph: Graph, sums: str, workload: accel.Workload, inputs: Mapping[str, Array]) -> Array:
    sizes = workload.parameters
    if workload.bias is not None:
        bias = inputs["bias"].reshape((1, -1) + (1,) * (len(workload.output.shape) - 2))
        sums = graph.node("Add", sums, graph.input("bias", bias))
    value = graph.cast(sums, "float64")
    if sizes["shift"]:
        value = graph.node("Floor", graph.node("Mul", value, 0.5 ** sizes["shift"]))
    if workload.residual is not None:
        other = graph.cast(graph.input("residual", inputs["residual"]), "float64")
        value = graph.node("Add", value, other)
    return graph.run(graph.cast(_clipped(graph, value, sizes), "int8"))


def onnx_transposed(workload: accel.Workload, inputs: Mapping[str, Array]) -> Array:
    """The output of a transposed convolution. Its sums are short enough to be exact in float32."""
    graph = Graph()
    sizes = workload.parameters
    operands = (graph.cast(graph.input(name, inputs[name]), "float32") for name in ("data", "weight"))
    sums = graph.node(
        "ConvTranspose",
        *operands,
        kernel_shape=list(sizes["kernel"]),
        strides=list(sizes["stride"]),
        pads=list(sizes["padding"]),
        output_padding=list(sizes["output_padding"]),
    )
    return _finished(graph, graph.cast(sums, "int32"), workload, inputs)


def onnx_maxima(workload: accel.Workload, data: Array) -> Array:
    """The output of max pooling."""
    graph = Graph()
    return graph.run(graph.node("MaxPool", graph.input("data", data), **_window(workload)))


def onnx_means(workload: accel.Workload, data: Array) -> Array:
    """The exact float32 means of windows without dilation."""
    graph = Graph()
    attributes = _window(workload)
    del attributes["dilations"]
    included = int(workload.parameters["count_padding"])
    values = graph.cast(graph.input("data", data), "float32")
    return graph.run(graph.node("AveragePool", values, count_include_pad=included, **attributes))


def _window(workload: accel.Workload) -> dict[str, list[int]]:
    sizes = workload.parameters
    names = {"kernel_shape": "kernel", "strides": "stride", "pads": "padding", "dilations": "dilation"}
    return {attribute: list(sizes[name]) for attribute, name in names.items()}


def _unsigned(values: Array) -> Array:
    """int8 values as uint8 with a zero point of 128."""
    return np.ascontiguousarray(values).view(np.uint8) ^ np.uint8(0x80)


def _clipped(graph: Graph, value: str, sizes: Mapping[str, Any]) -> str:
    """Apply ReLU, and convert to a byte: saturate, or take the low 8 bits."""
    if sizes["relu"]:
        value = graph.node("Max", value, 0.0)
    if sizes["relu"] or sizes["residual"] or sizes["shift"] is not None or sizes["clip"] is not None:
        low, high = sizes["clip"] or (-128, 127)
        return graph.node("Clip", value, float(low), float(high))
    multiples = graph.node("Floor", graph.node("Mul", graph.node("Add", value, 128.0), 1 / 256))
    return graph.node("Sub", value, graph.node("Mul", multiples, 256.0))
