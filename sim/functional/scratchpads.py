"""The scratchpads' contents."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.core.config import Config
from accel.core.memories import SCRATCHPADS, Scratchpad, scratchpads_of
from accel.image.scenario import Contents


@dataclass(kw_only=True, eq=False)
class Scratchpads:
    """Micro-op memory uint32[depth], inp int8[depth, batch, block_in], wgt int8[depth, block_out, block_in]
    and acc int32[depth, batch, block_out]. Out is not kept: it is the low bytes of acc. With ``post=1`` the
    values of inp have 9 bits and are int16, and there are par int32[depth, block_out, 2], bias and scale of
    each channel, and res int8[depth, batch, block_out]; otherwise these two are None."""

    uop: npt.NDArray[np.uint32]
    inp: npt.NDArray[np.int8] | npt.NDArray[np.int16]
    wgt: npt.NDArray[np.int8]
    acc: npt.NDArray[np.int32]
    par: npt.NDArray[np.int32] | None = None
    res: npt.NDArray[np.int8] | None = None

    @classmethod
    def zeros(cls, config: Config) -> "Scratchpads":
        return cls(
            **{
                name: np.zeros((pad.depth(config), *pad.shape(config)), dtype=pad.held_dtype(config))
                for name, pad in scratchpads_of(config).items()
            }
        )

    @property
    def held(self) -> list[Scratchpad]:
        """Those that there are."""
        return [pad for pad in SCRATCHPADS.values() if getattr(self, pad.name) is not None]

    @classmethod
    def random(cls, config: Config, seed: int) -> "Scratchpads":
        """Arbitrary contents, as after power-up."""
        rng = np.random.default_rng(seed)
        pads = cls.zeros(config)
        for pad in pads.held:
            array = pads.of(pad)
            array.view(np.uint8).reshape(-1)[:] = rng.integers(0, 256, array.nbytes, dtype=np.uint8)
            spare = 8 * array.itemsize - pad.lane_bits(config)
            if spare:
                array[...] = array << spare >> spare
        return pads

    def fill(self, contents: Iterable[Contents]) -> "Scratchpads":
        """Replace elements, in place; returns itself."""
        for one in contents:
            self._raw(one)[:] = np.frombuffer(one.data, dtype=np.uint8)
        return self

    def differing(self, contents: Contents) -> npt.NDArray[np.intp]:
        """Elements that do not hold what ``contents`` says."""
        found, wanted = self._raw(contents), np.frombuffer(contents.data, dtype=np.uint8)
        size = self.of(SCRATCHPADS[contents.scratchpad])[0].nbytes
        return contents.element + np.unique(np.flatnonzero(found != wanted) // size)

    def _raw(self, contents: Contents) -> npt.NDArray[np.uint8]:
        """The bytes of the elements that ``contents`` is about, as a view."""
        array = self.of(SCRATCHPADS[contents.scratchpad])
        begin = contents.element * array[0].nbytes
        return array.reshape(-1).view(np.uint8)[begin : begin + len(contents.data)]

    def of(self, pad: Scratchpad) -> npt.NDArray[Any]:
        """One of them."""
        array: npt.NDArray[Any] = getattr(self, pad.name)
        return array

    def copy(self) -> "Scratchpads":
        return Scratchpads(**{pad.name: self.of(pad).copy() for pad in self.held})
