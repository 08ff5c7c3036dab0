"""Operators that ONNX Runtime computes on the host, because the graph does not know them."""

import base64
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from accel.base.errors import GraphError
from accel.base.optional_extras import not_installed
from accel.graph.graph_operator import MAX_OPERANDS, Operator, operator_error
from accel.graph.graph_tensor import MAX_TENSOR_BYTES, Array, Shape, Tensor
from accel.graph.run_time_limit import limited_run

_SESSIONS = 256


NOT_A_TENSOR = "its output is not a tensor"


class OpenShapeError(GraphError):
    """Only a run determines a result's shape."""


class Foreign(Operator, frozen=True, kw_only=True):
    """One output of a node of an ONNX model.

    Attributes:
        title: the node's operator, for example ``LSTM``.
        model: of this node, in base64, with the inputs ``x0``, ``x1``, ... and the output ``y``.
        multiplications: nominal MACs, or 0 if unknown or counted at another output.
    """

    COUNT: ClassVar[tuple[int, int]] = (1, MAX_OPERANDS)

    title: str
    model: str
    sizes: Shape
    dtype: str
    multiplications: int = 0

    @property
    def kind(self) -> str:
        return self.title

    def shape(self, operands: Sequence[Tensor]) -> Shape:
        return self.sizes

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        if out.dtype != self.dtype:
            raise operator_error(self, f"tensor {out.name!r} is {out.dtype}; it must be {self.dtype}")

    def macs(self, operands: Sequence[Tensor], out: Tensor) -> int:
        return self.multiplications

    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        found = run_foreign(self.model, arrays)
        if found.shape != out.shape or found.dtype != out.dtype:
            raise operator_error(
                self,
                f"ONNX Runtime returns {found.dtype}{list(found.shape)}; when the model was imported it was "
                f"{out.dtype}{list(out.shape)}",
            )
        return found


def run_foreign(model: str, arrays: Sequence[Array]) -> Array:
    """Run the model of a :class:`Foreign`.

    Raises:
        OpenShapeError: ONNX Runtime refuses the values, or the result is no tensor.
        GraphError: ONNX Runtime is not installed or refuses the model.
    """
    session = open_session(model)
    feeds = {f"x{n}": one if one.flags.c_contiguous else one.copy() for n, one in enumerate(arrays)}
    try:
        (found,) = run_bounded(session, feeds)
    except Exception as error:
        raise OpenShapeError(f"ONNX Runtime refuses: {' '.join(str(error).split())}") from None
    if not isinstance(found, np.ndarray):
        raise OpenShapeError(NOT_A_TENSOR)
    if found.nbytes > MAX_TENSOR_BYTES:
        raise GraphError(f"its output takes {found.nbytes} bytes; it may take {MAX_TENSOR_BYTES}")
    return found


def run_bounded(session: Any, feeds: dict[str, Array]) -> list[Any]:
    """Return all outputs, or raise ONNX Runtime's error, also at the time limit."""
    with limited_run() as options:
        found: list[Any] = session.run(None, feeds, options)
    return found


@lru_cache(maxsize=_SESSIONS)
def open_session(model: str) -> Any:
    try:
        import onnxruntime  # an extra
    except ImportError:
        raise GraphError(not_installed("nodes of the host need onnxruntime", "onnx")) from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        content = base64.b64decode(model, validate=True)
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise GraphError(f"ONNX Runtime refuses: {' '.join(str(error).split())}") from None
