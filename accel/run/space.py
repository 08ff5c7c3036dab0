"""Which bytes of a DRAM window are taken, and by whom."""

import weakref
from bisect import insort
from collections import deque
from collections.abc import Sequence

from accel.base.errors import ProgramError


class Space:
    """A window of so many bytes; what is placed in it keeps its distance from multiples of ``step``.

    Room is held by an object and is free again when the object is gone. That may be in the middle of a
    search, so what is given back is noted first and counts from the next request on.
    """

    def __init__(self, size: int, step: int) -> None:
        self._size = size
        self._step = step
        self._taken: list[tuple[int, int]] = []
        self._returned: deque[int] = deque()

    def hold(self, owner: object, wanted: Sequence[tuple[int, int]]) -> list[int]:
        """Room for as long as the owner lives, all that is wanted or none.

        Args:
            owner: whose it is.
            wanted: for each piece its bytes, and an offset from which its own differs by whole steps.

        Returns:
            The offset of each piece, the lowest that is free.

        Raises:
            ProgramError: there is none.
        """
        self._collect()
        found: list[int] = []
        try:
            for nbytes, like in wanted:
                found.append(self._take(nbytes, like))
        except ProgramError:
            for offset in found:
                self._free(offset)
            raise
        for offset in found:
            weakref.finalize(owner, self._returned.append, offset).atexit = False
        return found

    @property
    def taken(self) -> int:
        """Bytes that are held."""
        self._collect()
        return sum(stop - start for start, stop in self._taken)

    def _take(self, nbytes: int, like: int) -> int:
        offset = phase = like % self._step
        for start, stop in self._taken:
            if offset + nbytes <= start:
                break
            offset = max(offset, -(-(stop - phase) // self._step) * self._step + phase)
        if offset + nbytes > self._size:
            raise ProgramError(
                f"the session has no room for {nbytes} more bytes; the window has mem_size={self._size}"
            )
        insort(self._taken, (offset, offset + nbytes))
        return offset

    def _collect(self) -> None:
        """Free what has been given back."""
        while self._returned:
            self._free(self._returned.popleft())

    def _free(self, offset: int) -> None:
        self._taken.remove(next(one for one in self._taken if one[0] == offset))
