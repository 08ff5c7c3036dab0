"""Allocation in a DRAM window, freed with a Python object."""

import weakref
from bisect import insort
from collections import deque
from collections.abc import Sequence

from accel.base.errors import ProgramError


class DramAllocator:
    """A window.

    Finalizers may run during an allocation, so the next request frees their memory.
    """

    def __init__(self, size: int, step: int) -> None:
        self._size = size
        self._step = step
        self._allocated: list[tuple[int, int]] = []
        self._released: deque[int] = deque()

    def allocate(self, owner: object, wanted: Sequence[tuple[int, int]]) -> list[int]:
        """Allocate all pieces or none, at the lowest offsets, until the owner is deleted.

        Args:
            wanted: bytes of each piece, and an offset that its own equals modulo ``step``.
        """
        self._collect()
        found: list[int] = []
        try:
            for nbytes, like in wanted:
                found.append(self._allocate_piece(nbytes, like))
        except ProgramError:
            for offset in found:
                self._free(offset)
            raise
        for offset in found:
            weakref.finalize(owner, self._released.append, offset).atexit = False
        return found

    @property
    def allocated_bytes(self) -> int:
        self._collect()
        return sum(stop - start for start, stop in self._allocated)

    def _allocate_piece(self, nbytes: int, like: int) -> int:
        offset = phase = like % self._step
        for start, stop in self._allocated:
            if offset + nbytes <= start:
                break
            offset = max(offset, -(-(stop - phase) // self._step) * self._step + phase)
        if offset + nbytes > self._size:
            raise ProgramError(
                f"the session needs {nbytes} more bytes of DRAM; "
                f"there is no such gap in mem_size={self._size}"
            )
        insort(self._allocated, (offset, offset + nbytes))
        return offset

    def _collect(self) -> None:
        while self._released:
            self._free(self._released.popleft())

    def _free(self, offset: int) -> None:
        self._allocated.remove(next(one for one in self._allocated if one[0] == offset))
