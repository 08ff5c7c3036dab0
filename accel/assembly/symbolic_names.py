"""Names of DRAM addresses, tokens, and stages."""

from bisect import bisect_right
from collections.abc import Sequence

from accel.core.fault_causes import dram_element_bytes, instruction_fault
from accel.core.isa import Transfer
from accel.core.token_rules import Counter
from accel.image.image import Image, ImageTensor
from accel.image.provenance import Provenance


def places(image: Image) -> dict[str, tuple[int, int]]:
    """Return offset and bytes of tensors and regions."""
    found = {}
    for number, tensor in enumerate(image.tensors):
        found[tensor_label(tensor, image.tensors[:number])] = (tensor.offset, tensor.nbytes)
    return found | {region.name: (region.offset, region.nbytes) for region in image.regions}


class PlaceNames:
    """DRAM addresses as a name and a distance."""

    def __init__(self, image: Image) -> None:
        self._config = image.config
        named = places(image)
        for part in () if image.references is None else image.references.parts:
            if part.name.isidentifier():
                named.setdefault(part.name, (part.offset, part.nbytes))
        self._named = sorted((offset, nbytes, name) for name, (offset, nbytes) in named.items())
        self._starts = [offset for offset, _, _ in self._named]

    def __call__(self, transfer: Transfer) -> str | None:
        found = self._find(transfer)
        if found is None:
            return None
        name, distance = found
        return f"{name}+{distance}" if distance else name

    def place(self, transfer: Transfer) -> str | None:
        found = self._find(transfer)
        return None if found is None else found[0]

    def _find(self, transfer: Transfer) -> tuple[str, int] | None:
        if not transfer.x_size or instruction_fault(transfer, self._config) is not None:
            return None
        size = dram_element_bytes(transfer, self._config)
        offset = transfer.dram_base * size
        place = bisect_right(self._starts, offset) - 1
        if place < 0:
            return None
        start, nbytes, name = self._named[place]
        if start % size or not start <= offset < start + nbytes:
            return None
        return name, (offset - start) // size


def tensor_label(tensor: ImageTensor, before: Sequence[ImageTensor]) -> str:
    """Return for example ``A``, or ``A.2`` for a second copy in DRAM."""
    count = sum(other.name == tensor.name for other in before) + 1
    return tensor.name if count == 1 else f"{tensor.name}.{count}"


def token_label(counter: Counter) -> str:
    """For example ``load>compute``."""
    return f"{counter.source.label}>{counter.target.label}"


def stage_label(provenance: Provenance | None, index: int) -> str:
    """Return the stage of an instruction as a prefix, or nothing."""
    stage = "" if provenance is None else provenance[index].stage
    return f"{stage}: " if stage else ""
