"""What every operator of a graph declares: its shape rule, what it demands of types, and its arithmetic."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from accel.base.errors import GraphError
from accel.graph.tensor import QUANTIZED, Array, Shape, Tensor

MANY = 1 << 16
"""Operands of one node."""


@dataclass(frozen=True, kw_only=True)
class Operator(ABC):
    """An operator with its attributes; operands and result are tensors of the graph."""

    COUNT: ClassVar[tuple[int, int]] = (1, 1)
    """How many operands it has, at least and at most."""

    @property
    def kind(self) -> str:
        """What it is called: the class's name."""
        return type(self).__name__

    def result_shape(self, operands: Sequence[Tensor]) -> Shape:
        """The result's shape, of the right number of operands.

        Raises:
            GraphError: their number or their shapes do not fit.
        """
        least, most = self.COUNT
        if not least <= len(operands) <= most:
            right = (
                str(least) if least == most else f"{least} or more" if most == MANY else f"{least} or {most}"
            )
            raise refuse(self, f"it has {len(operands)} operands; it must have {right}")
        return self.shape(operands)

    @abstractmethod
    def shape(self, operands: Sequence[Tensor]) -> Shape:
        """The result's shape.

        Raises:
            GraphError: the operands' shapes do not fit.
        """

    def check(self, operands: Sequence[Tensor], out: Tensor) -> None:
        """Refuse types and quantizations that the operator has no arithmetic for.

        Raises:
            GraphError: they do not fit.
        """
        same_dtype(self, [*operands, out])

    @abstractmethod
    def evaluate(self, operands: Sequence[Tensor], arrays: Sequence[Array], out: Tensor) -> Array:
        """The result's values.

        Args:
            operands: what the arrays are.
            arrays: of the operands' shapes and dtypes.
            out: the result.
        """

    def macs(self, operands: Sequence[Tensor], out: Tensor) -> int:
        """Multiplications of the operator, where it is a convolution or a product: the nominal number, taps
        on padding included."""
        return 0


def refuse(operator: Operator, what: str) -> GraphError:
    """The error of an operator whose operands do not fit."""
    return GraphError(f"{operator.kind}: {what}")


def same_dtype(operator: Operator, tensors: Sequence[Tensor]) -> None:
    """Refuse tensors of several dtypes.

    Raises:
        GraphError: they differ.
    """
    if len({one.dtype for one in tensors}) > 1:
        told = ", ".join(f"{one.name!r} {one.dtype}" for one in tensors)
        raise refuse(operator, f"its tensors are {told}; they must have one dtype")


def need(operator: Operator, tensor: Tensor, *dtypes: str) -> None:
    """Refuse a tensor of any other dtype.

    Raises:
        GraphError: it has another one.
    """
    if tensor.dtype not in dtypes:
        raise refuse(operator, f"tensor {tensor.name!r} is {tensor.dtype}; it must be {' or '.join(dtypes)}")


def need_quantized(operator: Operator, *tensors: Tensor) -> None:
    """Refuse tensors that are not int8 or uint8 with one scale and one zero point.

    Raises:
        GraphError: one is something else.
    """
    for one in tensors:
        need(operator, one, *QUANTIZED)
        one.per_tensor  # noqa: B018  (it raises)


def same_quantization(operator: Operator, operands: Sequence[Tensor], out: Tensor) -> None:
    """Refuse an operator that moves values between tensors where they would mean something else.

    Raises:
        GraphError: dtypes or quantizations differ.
    """
    same_dtype(operator, [*operands, out])
    for one in operands:
        if one.quantization != out.quantization:
            raise refuse(
                operator,
                f"tensors {one.name!r} and {out.name!r} have different scales or zero points; "
                "it moves values and does not change them",
            )


def saturate(values: npt.NDArray[np.float32], zero: int | np.int32, dtype: str) -> Array:
    """``sat(rne(values) + zero)``: half to even, then within the dtype's bounds."""
    bounds = np.iinfo(dtype)
    with np.errstate(invalid="ignore"):
        # bounds and values are whole and small, so that nothing here rounds
        rounded = np.clip(np.rint(values), bounds.min - int(zero), bounds.max - int(zero))
        return (rounded + np.float32(zero)).astype(dtype)


def broadcast(operator: Operator, shapes: Sequence[Shape]) -> Shape:
    """The shape that all broadcast to.

    Raises:
        GraphError: there is none.
    """
    try:
        return tuple(np.broadcast_shapes(*shapes))
    except ValueError:
        told = " and ".join(map(str, shapes))
        raise refuse(operator, f"operands have the shapes {told}; they do not broadcast") from None
