"""The base class of operators."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from accel.base.errors import GraphError
from accel.base.records import AbstractRecord
from accel.graph.graph_tensor import QUANTIZED, Array, Shape, Tensor

MAX_OPERANDS = 1 << 16
"""Of one node."""


class Operator(AbstractRecord, frozen=True, kw_only=True):
    """An operator with its attributes."""

    COUNT: ClassVar[tuple[int, int]] = (1, 1)
    """Least and greatest number of operands."""

    @property
    def kind(self) -> str:
        return type(self).__name__

    def result_shape(self, operands: Sequence[Tensor]) -> Shape:
        """Check the number of operands, and return the result's shape."""
        least, most = self.COUNT
        if not least <= len(operands) <= most:
            counts = str(least) if least == most else f"{least} or {most}"
            counts = f"{least} or more" if most == MAX_OPERANDS else counts
            raise operator_error(self, f"it has {len(operands)} operands; it must have {counts}")
        return self.shape(operands)

    @abstractmethod
    def shape(self, operands: Sequence[Tensor]) -> Shape:
        """Return the result's shape, or raise a GraphError. The number of operands is right."""

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        """Raise a GraphError for unsupported dtypes and quantizations."""
        require_same_dtype(self, [*operands, out])

    @abstractmethod
    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array: ...

    def macs(self, operands: Sequence[Tensor], out: Tensor) -> int:
        """Return the nominal MACs, including those on padding."""
        return 0


def operator_error(operator: Operator, message: str) -> GraphError:
    return GraphError(f"{operator.kind}: {message}")


def require_same_dtype(operator: Operator, tensors: Sequence[Tensor]) -> None:
    if len({one.dtype for one in tensors}) > 1:
        dtypes = ", ".join(f"{one.name!r} {one.dtype}" for one in tensors)
        raise operator_error(operator, f"its tensors are {dtypes}; they must have one dtype")


def require_dtype(operator: Operator, tensor: Tensor, *dtypes: str) -> None:
    if tensor.dtype not in dtypes:
        raise operator_error(
            operator, f"tensor {tensor.name!r} is {tensor.dtype}; it must be {' or '.join(dtypes)}"
        )


def require_per_tensor(operator: Operator, *tensors: Tensor) -> None:
    """Require int8 or uint8 with one scale and one zero point."""
    for one in tensors:
        require_dtype(operator, one, *QUANTIZED)
        one.scale_and_zero  # noqa: B018  (raises)


def require_same_quantization(operator: Operator, operands: Sequence[Tensor], out: Tensor) -> None:
    require_same_dtype(operator, [*operands, out])
    for one in operands:
        if one.quantization != out.quantization:
            raise operator_error(
                operator,
                f"tensors {one.name!r} and {out.name!r} have different scales or zero points; "
                "it moves values and does not change them",
            )


def saturate(values: npt.NDArray[np.float32], zero: int | np.int32, dtype: str) -> Array:
    """Compute ``sat(rne(values) + zero)``: round half to even, then clamp to the dtype."""
    bounds = np.iinfo(dtype)
    with np.errstate(invalid="ignore"):
        # exact: bounds and clamped values are small integers
        rounded = np.clip(np.rint(values), bounds.min - int(zero), bounds.max - int(zero))
        return (rounded + np.float32(zero)).astype(dtype)


def broadcast(operator: Operator, shapes: Sequence[Shape]) -> Shape:
    try:
        return tuple(np.broadcast_shapes(*shapes))
    except ValueError:
        text = " and ".join(map(str, shapes))
        raise operator_error(operator, f"operands have the shapes {text}; they do not broadcast") from None
