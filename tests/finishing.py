"""Programs in which the store unit finishes outputs as a network has them: tile after tile through two halves
of the accumulators, parameters that change, and residuals that are loaded ahead. Proven, so that all backends
agree."""

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

from accel.core.config import NAMED, Config
from accel.core.isa import (
    Finish,
    Instruction,
    Load,
    LoadPar,
    LoadRes,
    LoadTab,
    Memory,
    SetOut,
    SetSum,
    Store,
    StoreAcc,
    StoreAdd,
    StoreMul,
    StoreReq,
    encode,
)
from accel.core.requantize import Scale
from accel.core.scratchpad_specs import TABLE_BYTES
from accel.run.program import Program

_SUMS, _PARAMETERS, _RESIDUALS, _OUTPUTS, _CODE, _TABLES = (n << 16 for n in range(6))
_STAGES, _TILES = 3, 4


def finishing_program(config: Config = NAMED["tiny-int8"], seed: int = 0) -> Program:
    """Return three layers of four tiles each, separated by SETs.

    In a layer of additions the residual is a separate tensor, or the previous layer's result, which the sum
    overwrites. On machines with STORE.MUL such a layer may multiply, and its tiles may hold one residual
    each. On machines with tables, each layer loads half of them, and tiles may pass through one of these.
    """
    rng = Random(seed)
    body = _Body(config, rng)
    for stage in range(_STAGES):
        body.stage(stage)
    body.instructions.append(Finish(pop_next=True))
    return Program(
        config=config,
        code=encode(body.instructions, config),
        code_offset=_CODE,
        segments=tuple(_data(config, seed)),
    )


class _Body:
    """The instructions so far."""

    def __init__(self, config: Config, rng: Random) -> None:
        self._config = config
        self._rng = rng
        self._par = config.par_depth // 2
        self._most = min(config.res_depth // 2, config.acc_depth // 2, 8)
        self._tiles = 0
        self.instructions: list[Instruction] = []

    def stage(self, number: int) -> None:
        """Return a layer: its SETs, the parameters of all its rows, then its tiles."""
        rng = self._rng
        adds = number != 1 or rng.random() < 0.5
        unsigned = rng.random() < 0.5
        low, high = (0, 255) if unsigned else (-128, 127)
        multiplies = adds and self._config.res_mul and rng.random() < 0.5
        multipliers = [rng.randint(1 << 29, (1 << 31) - 1) for _ in range(2)]
        zero = rng.randint(low, high)
        self._add(
            SetOut(
                zero=zero,
                low=low,
                high=high,
                left_zero=zero,
                right_zero=rng.randint(low, high),
                unsigned=unsigned,
                offset=rng.randint(-1000, 1000),
                shift=38 if multiplies else 31,
            ),
            SetSum(
                left_multiplier=multipliers[0],
                right_multiplier=multipliers[1],
                zero=rng.randint(low, high),
                low=low,
                high=high,
            ),
        )
        half = self._par * (number % 2)
        self._add(self._row(LoadPar, self._par, at=_PARAMETERS, sram_base=half))
        tables = self._tables(number)
        sizes = [self._size() for _ in range(_TILES)]
        holds = [bool(self._config.res_mul and rng.random() < 0.5) for _ in range(_TILES)]
        outputs = [_OUTPUTS + n * 4096 for n in range(_TILES)]
        source = rng.choice((_RESIDUALS, _OUTPUTS))
        residuals = [source + n * 4096 for n in range(_TILES)]
        for tile, size in enumerate(sizes):
            elements = size[0] * size[1]
            begin = (self._tiles % 2) * (self._config.acc_depth // 2)
            self._add(
                self._row(
                    Load,
                    elements,
                    at=_SUMS + rng.randrange(8) * 4096,
                    memory=Memory.ACC,
                    sram_base=begin,
                    pop_next=self._tiles >= 2,
                    push_next=True,
                )
            )
            ahead = range(2) if tile == 0 else range(tile + 1, min(tile + 2, _TILES))
            for one in ahead if adds else ():
                count = 1 if holds[one] else sizes[one][0] * sizes[one][1]
                self._add(self._row(LoadRes, count, at=residuals[one]))
            residual = StoreMul if multiplies else StoreAdd
            kind = residual if adds else rng.choice((StoreReq, StoreReq, Store, StoreAcc))
            values: dict[str, Any] = {"sram_base": begin, "y_size": size[0], "x_size": size[1]}
            if issubclass(kind, StoreReq):
                flags = rng.choice(({}, {"par_y": True}, {"par_x": True}))
                values |= {"par": half + rng.randrange(max(1, self._par - max(size))), **flags}
                values |= {"table": rng.choice((0, *tables))} if tables else {}
            if issubclass(kind, StoreAdd):
                values["hold"] = holds[tile]
            width = self._config.out_element_bytes * (4 if kind is StoreAcc else 1)
            self._add(
                kind(
                    **values,
                    dram_base=outputs[tile] // width,
                    x_stride=size[1],
                    pop_prev=True,
                    push_prev=True,
                )
            )
            self._tiles += 1

    def _tables(self, number: int) -> range:
        """Load half of the tables, and return their values of the field ``table``."""
        count = self._config.tab_depth // 2
        first = count * (number % 2)
        if count:
            self._add(LoadTab(dram_base=_TABLES // TABLE_BYTES, sram_base=first, y_size=1, x_size=count))
        return range(first + 1, first + count + 1)

    def _size(self) -> tuple[int, int]:
        columns = self._rng.randint(1, max(1, self._most // 2))
        return self._rng.randint(1, max(1, min(self._most // columns, self._par))), columns

    def _row(self, cls: Any, elements: int, *, at: int, **values: Any) -> Instruction:
        """A LOAD of consecutive elements."""
        size = {LoadPar: self._config.par_element_bytes, Load: self._config.acc_element_bytes}
        width = size.get(cls, self._config.out_element_bytes)
        found: Instruction = cls(
            dram_base=at // width, y_size=1, x_size=elements, x_stride=elements, **values
        )
        return found

    def _add(self, *instructions: Instruction) -> None:
        self.instructions += instructions


def _data(config: Config, seed: int) -> Iterator[tuple[int, bytes]]:
    """Return the content of DRAM: sums of all sizes, parameters as in networks, residuals."""
    rng = np.random.default_rng(seed)
    sums = rng.integers(-(1 << 31), 1 << 31, 1 << 14) >> rng.integers(0, 24, 1 << 14)
    yield _SUMS, sums.astype("<i4").tobytes()
    count = config.par_depth // 2 * config.block_out
    scales = [Scale.of(np.float32(one)) for one in np.exp2(rng.uniform(-24, -4, count))]
    words = np.array([one.multiplier | one.exponent << 24 for one in scales], dtype=np.uint32)
    bias = rng.integers(-(1 << 20), 1 << 20, count).astype(np.int32)
    yield _PARAMETERS, np.stack([bias, words.view(np.int32)], axis=-1).astype("<i4").tobytes()
    yield _RESIDUALS, rng.integers(0, 256, 1 << 14, dtype=np.uint8).tobytes()
    if config.tab_depth:
        yield _TABLES, rng.integers(0, 256, config.tab_bytes, dtype=np.uint8).tobytes()
