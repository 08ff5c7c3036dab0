"""Consecutive allocation of DRAM."""

from accel.base.errors import GraphError
from accel.core.config import Config
from accel.image.dram_references import Part
from accel.image.linker import alignment


class DramAllocator:
    """Allocates parts one after another."""

    def __init__(self, config: Config) -> None:
        self.alignment = alignment(config)
        self.parts: list[Part] = []
        self._limit = config.mem_size
        self._end = 0

    def allocate(self, name: str, nbytes: int, like_offset: int = 0) -> Part:
        """Allocate bytes with the same offset within a page as ``like_offset``."""
        start = -(-self._end // self.alignment) * self.alignment + like_offset % self.alignment
        self._end = start + nbytes
        if self._end > self._limit:
            raise GraphError(
                f"the network does not fit into the machine's memory: tensors and constants take more than "
                f"mem_size={self._limit} bytes"
            )
        part = Part(offset=start, nbytes=nbytes, name=name)
        self.parts.append(part)
        return part
