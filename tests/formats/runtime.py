"""Builders of small ONNX models, and their results in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from accel.formats.onnx_runtime import run_onnx_runtime

onnx = pytest.importorskip("onnx", reason="onnx comes with the extra onnx")
pytest.importorskip("onnxruntime", reason="onnxruntime comes with the extra onnx")

Array = npt.NDArray[Any]
OPSET = 17
MICROSOFT = "com.microsoft"


def node(kind: str, inputs: Sequence[str], *outputs: str, domain: str = "", **attributes: Any) -> Any:
    """A node of a model. Its domain is com.microsoft if only that domain has the operator."""
    if kind.startswith("Q") and not onnx.defs.has(kind, domain):
        domain = MICROSOFT
    name = attributes.pop("name", f"{kind} of {outputs[0]}")
    return onnx.helper.make_node(kind, inputs, outputs, name=name, domain=domain, **attributes)


def model(
    nodes: Sequence[Any],
    inputs: Mapping[str, tuple[str, Sequence[int | str | None]]],
    outputs: Sequence[str],
    constants: Mapping[str, Any],
    *,
    opset: int = OPSET,
    opsets: Mapping[str, int] | None = None,
) -> bytes:
    """Build a model from nodes made by :func:`node`. Types and shapes of its outputs stay open.

    Args:
        constants: initializers by name.
        opset: version of ONNX's own operators.
        opsets: versions of other domains.
    """
    typed = onnx.helper.np_dtype_to_tensor_dtype
    graph = onnx.helper.make_graph(
        nodes,
        "made",
        [
            onnx.helper.make_tensor_value_info(name, typed(np.dtype(dtype)), sizes)
            for name, (dtype, sizes) in inputs.items()
        ],
        [onnx.helper.make_empty_tensor_value_info(name) for name in outputs],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    domains = {"": opset, MICROSOFT: 1, **(opsets or {})}
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in domains.items()]
    version = max(8, onnx.helper.find_min_ir_version_for(imports, ignore_unknown=True))
    made = onnx.helper.make_model(graph, opset_imports=imports, ir_version=version)
    content: bytes = made.SerializeToString()
    return content


def run(content: bytes, feeds: Mapping[str, Array], outputs: Sequence[str] | None = None) -> dict[str, Array]:
    """Run a model without optimizations, and return its outputs."""
    return run_onnx_runtime(content, feeds, list(outputs) if outputs else None)
