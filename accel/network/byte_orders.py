"""The order in which the values of a tensor lie in DRAM."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accel.image.image_tensor import ImageTensor
from accel.run.session_tensors import value_numbers


@dataclass(frozen=True, kw_only=True)
class ByteOrder:
    """The value in each byte of DRAM.

    Attributes:
        numbers: index of each byte's value, from 1 in row-major order, or 0 for none.
    """

    dtype: str
    numbers: npt.NDArray[np.int32]

    def is_order_of(self, tensor: ImageTensor) -> bool:
        if tensor.dtype != self.dtype or tensor.preparation is not None:
            return False
        expected = value_numbers(tensor)
        return expected is not None and np.array_equal(expected, self.numbers)


def byte_order(tensor: ImageTensor) -> ByteOrder | None:
    """Return the order of a program's tensor, or None if the host prepares it."""
    numbers = value_numbers(tensor)
    return None if numbers is None else ByteOrder(dtype=tensor.dtype, numbers=numbers)
