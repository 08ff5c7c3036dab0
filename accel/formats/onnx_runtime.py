"""Execution of models in ONNX Runtime, exact on every processor.

On x86 processors without VNNI, sums of uint8 by int8 products can saturate, see docs/explain/networks.md. So
this module adds 128 to int8 weights and their zero point there, which gives the same model in uint8.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np

from accel.base.errors import GraphError
from accel.base.optional_extras import not_installed
from accel.graph.graph_tensor import Array
from accel.graph.run_time_limit import limited_run

_FACTORS: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {
    "ConvInteger": ((0, 2), (1, 3)),
    "MatMulInteger": ((0, 2), (1, 3)),
    "QLinearConv": ((0, 2), (3, 5)),
    "QLinearMatMul": ((0, 2), (3, 5)),
    "QGemm": ((0, 2), (3, 5)),
}
"""Input indices (values, zero point) of the left and right factor."""
_OFFSET = 128


def run_onnx_runtime(
    content: bytes, inputs: Mapping[str, Array], outputs: list[str] | None = None
) -> dict[str, Array]:
    """Run a model once on the CPU, without graph optimizations."""
    return open_onnx_runtime(content)(inputs, outputs)


class Runner(Protocol):
    def __call__(self, inputs: Mapping[str, Array], outputs: list[str] | None = None) -> dict[str, Array]:
        """Return all outputs by default."""


def has_onnx_runtime() -> bool:
    return all(find_spec(name) is not None for name in ("onnxruntime", "onnx"))


def open_onnx_runtime(content: bytes, *, optimized: bool = False) -> Runner:
    """Load a model on the CPU. ``optimized`` uses one thread, and all graph optimizations except those that
    make integer operators of QDQ regions.
    """
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        raise GraphError(not_installed("comparing needs onnxruntime", "onnx")) from None
    try:
        session = _session(_unsigned(content) if saturates() else content, keeps_floats=optimized)
    except Exception as error:
        raise _refusal(error) from None

    def run(inputs: Mapping[str, Array], outputs: list[str] | None = None) -> dict[str, Array]:
        names = outputs or [one.name for one in session.get_outputs()]
        try:
            with limited_run() as options:
                return dict(zip(names, session.run(names, dict(inputs), options), strict=True))
        except Exception as error:
            raise _refusal(error) from None

    return run


def _refusal(error: Exception) -> GraphError:
    return GraphError(f"ONNX Runtime refuses the model: {' '.join(str(error).split())}")


def run_optimized(
    content: bytes, inputs: Mapping[str, Array], outputs: list[str]
) -> tuple[dict[str, Array], dict[str, str]]:
    """Run a model once with all graph optimizations.

    ``session.qdqisint8allowed`` makes integer operators of QDQ regions for int8 as for uint8.

    Returns:
        The outputs by name, and the operator that computes each tensor in the optimized model.
    """
    import onnx

    with TemporaryDirectory() as folder:
        optimized = Path(folder) / "optimized.onnx"
        try:
            session = _session(content, optimized=optimized)
            found = dict(zip(outputs, session.run(outputs, dict(inputs)), strict=True))
        except ImportError:
            raise GraphError(not_installed("comparing needs onnxruntime", "onnx")) from None
        except Exception as error:
            raise _refusal(error) from None
        nodes = onnx.load(optimized).graph.node
    return found, {name: node.op_type for node in nodes for name in node.output}


def _session(content: bytes, *, optimized: Path | None = None, keeps_floats: bool = False) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if keeps_floats:
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry("session.disable_quant_qdq", "1")
    elif optimized is None:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    else:
        options.add_session_config_entry("session.qdqisint8allowed", "1")
        options.optimized_model_filepath = str(optimized)
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


@cache
def saturates() -> bool:
    """Try whether sums saturate on this processor."""
    from onnx import TensorProto, helper

    left, right = np.full((4, 64), 255, np.uint8), np.full((64, 16), 127, np.int8)
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["left", "right"], ["out"])],
        "probe",
        [
            helper.make_tensor_value_info("left", TensorProto.UINT8, left.shape),
            helper.make_tensor_value_info("right", TensorProto.INT8, right.shape),
        ],
        [helper.make_tensor_value_info("out", TensorProto.INT32, (4, 16))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    (out,) = _session(model.SerializeToString()).run(None, {"left": left, "right": right})
    return not np.array_equal(out, left.astype(np.int32) @ right.astype(np.int32))


def _unsigned(content: bytes) -> bytes:
    import onnx

    model = onnx.load_from_string(content)
    raised = _Raised(onnx.helper, _types(onnx, model))
    nodes = [made for node in model.graph.node for made in (*raised.before(node), node)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    result: bytes = model.SerializeToString()
    return result


def _types(onnx: Any, model: Any) -> dict[str, int]:
    graph = onnx.shape_inference.infer_shapes(model).graph
    values = (*graph.input, *graph.value_info, *graph.output)
    return {one.name: one.type.tensor_type.elem_type for one in values} | {
        one.name: one.data_type for one in graph.initializer
    }


class _Raised:
    def __init__(self, helper: Any, types: Mapping[str, int]) -> None:
        self._helper = helper
        self._types = types
        self._made: set[str] = set()

    def before(self, node: Any) -> Iterator[Any]:
        if node.op_type not in _FACTORS:
            return
        left, right = _FACTORS[node.op_type]
        if (self._type(node, left), self._type(node, right)) != (np.uint8, np.int8):
            return
        for place in right:
            node.input.extend([""] * (place + 1 - len(node.input)))
            name = node.input[place]
            node.input[place] = f"{name} as uint8"
            if node.input[place] not in self._made:
                self._made.add(node.input[place])
                yield from self._raise(name)

    def _type(self, node: Any, places: tuple[int, int]) -> Any:
        """A factor or its zero point may have a known type."""
        names = [node.input[at] for at in places if at < len(node.input)]
        kind = next((self._types[name] for name in names if self._types.get(name)), None)
        return None if kind is None else self._helper.tensor_dtype_to_np_dtype(kind)

    def _raise(self, name: str) -> Iterator[Any]:
        """Yield nodes that add 128. An omitted zero point counts as 0."""
        make, array = self._helper.make_node, self._helper.make_tensor
        uint8, int32 = (self._helper.np_dtype_to_tensor_dtype(np.dtype(one)) for one in ("uint8", "int32"))
        last = f"{name} as uint8"
        if not name:
            yield make("Constant", [], [last], value=array("zero", uint8, [], [_OFFSET]))
            return
        wide, offset, more = (f"{name} {what}" for what in ("as int32", "offset", "offset to uint8"))
        yield make("Constant", [], [offset], value=array("offset", int32, [], [_OFFSET]))
        yield make("Cast", [name], [wide], to=int32)
        yield make("Add", [wide, offset], [more])
        yield make("Cast", [more], [last], to=uint8)
