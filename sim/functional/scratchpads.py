"""Contents of scratchpads."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.core.config import Config
from accel.core.scratchpad_specs import SCRATCHPADS, Scratchpad, scratchpads_of
from accel.image.test_scenario import Contents


class Scratchpads(Struct, kw_only=True, eq=False):
    """The contents of all scratchpads.

    Attributes:
        uop: uint32[depth].
        inp: int8[depth, batch, block_in]; with ``post=1`` int16, for values of 9 bits.
        wgt: int8[depth, block_out, block_in]; with ``wgt_zero=1`` int16.
        acc: int32[depth, batch, block_out]. The scratchpad out is their low byte.
        par: with ``post=1``, bias and scale by channel, int32[depth, block_out, 2].
        res: with ``post=1``, residuals, int8[depth, batch, block_out].
        tab: on machines with tables, uint8[depth, 1, 256].
    """

    uop: npt.NDArray[np.uint32]
    inp: npt.NDArray[np.int8] | npt.NDArray[np.int16]
    wgt: npt.NDArray[np.int8] | npt.NDArray[np.int16]
    acc: npt.NDArray[np.int32]
    par: npt.NDArray[np.int32] | None = None
    res: npt.NDArray[np.int8] | None = None
    tab: npt.NDArray[np.uint8] | None = None

    @classmethod
    def zeros(cls, config: Config) -> "Scratchpads":
        return cls(
            **{
                name: np.zeros((pad.depth(config), *pad.shape(config)), dtype=pad.held_dtype(config))
                for name, pad in scratchpads_of(config).items()
            }
        )

    @property
    def present(self) -> list[Scratchpad]:
        return [pad for pad in SCRATCHPADS.values() if getattr(self, pad.name) is not None]

    @classmethod
    def random(cls, config: Config, seed: int) -> "Scratchpads":
        """Return arbitrary contents, as after power-up."""
        rng = np.random.default_rng(seed)
        pads = cls.zeros(config)
        for pad in pads.present:
            array = pads.of(pad)
            array.view(np.uint8).reshape(-1)[:] = rng.integers(0, 256, array.nbytes, dtype=np.uint8)
            spare = 8 * array.itemsize - pad.lane_bits(config)
            if spare:
                array[...] = array << spare >> spare
        return pads

    def fill(self, contents: Iterable[Contents]) -> "Scratchpads":
        for one in contents:
            self._raw(one)[:] = np.frombuffer(one.data, dtype=np.uint8)
        return self

    def differing(self, contents: Contents) -> npt.NDArray[np.intp]:
        found, wanted = self._raw(contents), np.frombuffer(contents.data, dtype=np.uint8)
        size = self.of(SCRATCHPADS[contents.scratchpad])[0].nbytes
        return contents.element + np.unique(np.flatnonzero(found != wanted) // size)

    def _raw(self, contents: Contents) -> npt.NDArray[np.uint8]:
        array = self.of(SCRATCHPADS[contents.scratchpad])
        begin = contents.element * array[0].nbytes
        return array.reshape(-1).view(np.uint8)[begin : begin + len(contents.data)]

    def of(self, pad: Scratchpad) -> npt.NDArray[Any]:
        array: npt.NDArray[Any] = getattr(self, pad.name)
        return array

    def assign(self, other: "Scratchpads") -> None:
        for pad in self.present:
            np.copyto(self.of(pad), other.of(pad))

    def copy(self) -> "Scratchpads":
        return Scratchpads(**{pad.name: self.of(pad).copy() for pad in self.present})
