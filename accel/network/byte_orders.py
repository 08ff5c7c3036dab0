"""The order of a tensor's values in DRAM."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.records import replace
from accel.image.image_tensor import ImageTensor
from accel.run.session_tensors import value_numbers


class ByteOrder(Struct, frozen=True, kw_only=True):
    """``numbers`` has the index of each byte's value, from 1 in row-major order, or 0 for none."""

    dtype: str
    numbers: npt.NDArray[np.int32]

    def is_order_of(self, tensor: ImageTensor) -> bool:
        if tensor.dtype != self.dtype or tensor.preparation is not None:
            return False
        expected = value_numbers(tensor)
        return expected is not None and np.array_equal(expected, self.numbers)


def byte_order(tensor: ImageTensor) -> ByteOrder | None:
    """Return None if the host prepares the tensor."""
    return _byte_order(replace(tensor, name="", offset=0))


@lru_cache(maxsize=16)
def _byte_order(tensor: ImageTensor) -> ByteOrder | None:
    numbers = value_numbers(tensor)
    return None if numbers is None else ByteOrder(dtype=tensor.dtype, numbers=numbers)


class ByteOrders:
    """Orders of a chain's tensors, computed on demand, or None outside of DRAM."""

    def __init__(self) -> None:
        self._known: dict[str, ByteOrder | ImageTensor | None] = {}

    def add(self, name: str, order: "ByteOrder | ImageTensor | None") -> None:
        self._known[name] = order

    def alias(self, name: str, source: str) -> None:
        self._known[name] = self._known.get(source)

    def get(self, name: str) -> ByteOrder | None:
        found = self._known.get(name)
        return byte_order(found) if isinstance(found, ImageTensor) else found
