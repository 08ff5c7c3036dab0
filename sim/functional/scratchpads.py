"""The scratchpads' contents."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.config import Config
from accel.faults import scratchpad


@dataclass(kw_only=True, eq=False)
class Scratchpads:
    """Micro-op memory uint32[depth], inp int8[depth, batch, block_in], wgt int8[depth, block_out, block_in]
    and acc int32[depth, batch, block_out]. Out is not kept: it is the low bytes of acc."""

    uop: npt.NDArray[np.uint32]
    inp: npt.NDArray[np.int8]
    wgt: npt.NDArray[np.int8]
    acc: npt.NDArray[np.int32]

    @classmethod
    def zeros(cls, config: Config) -> "Scratchpads":
        return cls(
            uop=np.zeros(config.uop_depth, dtype=np.uint32),
            inp=np.zeros((config.inp_depth, config.batch, config.block_in), dtype=np.int8),
            wgt=np.zeros((config.wgt_depth, config.block_out, config.block_in), dtype=np.int8),
            acc=np.zeros((config.acc_depth, config.batch, config.block_out), dtype=np.int32),
        )

    @classmethod
    def random(cls, config: Config, seed: int) -> "Scratchpads":
        """Arbitrary contents, as after power-up."""
        rng = np.random.default_rng(seed)
        pads = cls.zeros(config)
        for array in (pads.uop, pads.inp, pads.wgt, pads.acc):
            array.view(np.uint8).reshape(-1)[:] = rng.integers(0, 256, array.nbytes, dtype=np.uint8)
        return pads

    def of(self, memory: int) -> npt.NDArray[Any]:
        """The scratchpad that a memory id stands for."""
        array: npt.NDArray[Any] = getattr(self, scratchpad(memory))
        return array

    def copy(self) -> "Scratchpads":
        return Scratchpads(uop=self.uop.copy(), inp=self.inp.copy(), wgt=self.wgt.copy(), acc=self.acc.copy())
