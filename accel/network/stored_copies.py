"""Copies of results that layers store elsewhere, so that a move takes no pass over the data.

For example, a layer stores each element at four positions for a nearest Resize by 2. A result's own buffer is
omitted if nobody reads it.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.fast_unique import distinct
from accel.core.config import Config
from accel.graph.graph_tensor import Tensor
from accel.image.image_tensor import ImageTensor
from accel.image.packed_layout import PackedLayout
from accel.network.byte_orders import ByteOrder
from accel.network.moved_values import ElementSources, MovedValues

_Integers = npt.NDArray[np.int64]
MAX_COPIES = 64
"""A Resize by 8 in both directions needs 64."""
NOWHERE = -1
"""The position of an element that a copy does not contain."""


class StoredCopy(Struct, frozen=True, kw_only=True, eq=False):
    """A buffer with elements of layers' results.

    Attributes:
        positions: by result, for each time that it is stored, int64[elements]: each element's position in the
            buffer, or :data:`NOWHERE`.
        tensor: the layout if the host can read it.
    """

    nbytes: int
    positions: Mapping[str, tuple[_Integers, ...]]
    tensor: ImageTensor | None = None


def find_copy(
    moved: MovedValues,
    name: str,
    order: ByteOrder,
    config: Config,
    *,
    tensor: ImageTensor | None = None,
) -> StoredCopy | None:
    """Return None if an element is no element of a result, or occurs too often."""
    sources = moved.elements(name, order, config.out_element_bytes)
    if sources is None:
        return None
    positions: dict[str, tuple[_Integers, ...]] = {}
    for number in distinct(sources.root).tolist():
        root = moved.roots[number]
        found = _positions(sources, number)
        if len(found) > MAX_COPIES:
            return None
        positions[root] = found
    return StoredCopy(nbytes=len(order.numbers), positions=positions, tensor=tensor)


def _positions(sources: ElementSources, number: int) -> tuple[_Integers, ...]:
    """Return the positions of elements' first occurrences, second ones, and so on."""
    targets = np.flatnonzero(sources.root == number)
    elements = sources.element[targets]
    by_element = np.argsort(elements, kind="stable")
    sorted_elements = elements[by_element]
    is_first = np.concatenate([[True], sorted_elements[1:] != sorted_elements[:-1]])
    begins = np.flatnonzero(is_first)
    occurrence = np.arange(len(targets)) - np.repeat(begins, np.diff([*begins, len(targets)]))
    found = np.full((int(occurrence.max()) + 1, int(elements.max()) + 1), NOWHERE, dtype=np.int64)
    found[occurrence, sorted_elements] = targets[by_element]
    return tuple(found)


def picture_tensor(tensor: Tensor, config: Config) -> ImageTensor | None:
    """Return a tensor (N, C, H, W) as plain pictures."""
    if len(tensor.shape) != 4 or config.block_in != config.block_out:
        return None
    count, channels, height, width = tensor.shape
    rows, lanes = config.batch, config.block_out
    layout = PackedLayout(
        shape=tensor.shape,
        packed=(-(-count // rows), -(-channels // lanes), height, width, rows, lanes),
        element_dims=2,
        coefficients=(
            (rows, 0, 0, 0, 1, 0),
            (0, lanes, 0, 0, 0, 1),
            (0, 0, 1, 0, 0, 0),
            (0, 0, 0, 1, 0, 0),
        ),
    )
    return ImageTensor(name="copy", role="output", dtype=tensor.dtype, offset=0, layout=layout)
