"""STORE.REQ and STORE.ADD compared with floating point, and the parameters and residuals that they use."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from accel.base.errors import MachineError
from accel.base.records import replace
from accel.compiler.ops.quantized_addition import Quantization, find_addition, float_add
from accel.core.config import NAMED, Config
from accel.core.fault_causes import Cause
from accel.core.isa import (
    Finish,
    Instruction,
    LoadPar,
    LoadRes,
    SetOut,
    SetSum,
    StoreAdd,
    StoreMul,
    StoreReq,
)
from accel.core.requantize import Scale
from accel.image.dram import Dram
from accel.image.test_scenario import Contents
from accel.sim.functional.executor import Executor
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.simulator import simulate

CONFIG = NAMED["tiny-int8"]
PAR_AT, RES_AT, OUT_AT = 0x1000, 0x2000, 0x3000
INT8 = SetOut(low=-128, high=127)


def parameters(bias: npt.NDArray[np.int64], scale: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
    """Return elements of PAR in the format of DRAM: int32[elements, block_out, 2]."""
    scales = [[Scale.of(one) for one in row] for row in scale.tolist()]
    words = [[one.multiplier | one.exponent << 24 for one in row] for row in scales]
    return np.stack([bias.astype(np.int32), np.array(words, dtype=np.uint32).view(np.int32)], axis=-1)


def machine(config: Config = CONFIG, seed: int = 0) -> Executor:
    return Executor(config, Dram.of(config), Scratchpads.random(config, seed))


def run(executor: Executor, program: Sequence[Instruction]) -> None:
    for instruction in program:
        assert executor.execute(instruction) is None, instruction


def written(executor: Executor, count: int, dtype: str = "int8") -> npt.NDArray[Any]:
    """Return the first elements of the output: [count, batch, block_out]."""
    config = executor.config
    shape = count, config.batch, config.block_out
    found: npt.NDArray[Any] = executor.dram.read(OUT_AT, count * config.out_element_bytes)
    return found.view(dtype).reshape(shape)


def random_parameters(
    rng: np.random.Generator, count: int, block_out: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    bias = rng.integers(-(1 << 31), 1 << 31, (count, block_out))
    bias[rng.random(bias.shape) < 0.5] >>= 16
    scale = np.exp2(rng.uniform(-36, 2, (count, block_out))).astype(np.float32)
    return bias, scale


@pytest.mark.parametrize("name", ["tiny-int8", "vta-int8", "gemm8x8-int8"])
@pytest.mark.parametrize(("par_y", "par_x"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize(("zero", "low", "high"), [(0, -128, 127), (-7, -128, 90), (131, 0, 255), (5, 9, -9)])
def test_requantization_is_that_of_float32(
    name: str, par_y: bool, par_x: bool, zero: int, low: int, high: int
) -> None:
    """``par_y`` gives each row its own element of PAR, ``par_x`` each column. Rows are apart in DRAM."""
    config, rng = NAMED[name], np.random.default_rng(low & 255)
    rows, columns, par = 4, 5, 3
    executor = machine(config)
    sums = rng.integers(-(1 << 31), 1 << 31, (rows * columns, config.batch, config.block_out))
    sums >>= rng.integers(0, 28, sums.shape)
    executor.pads.acc[7 : 7 + len(sums)] = sums
    bias, scale = random_parameters(rng, 8, config.block_out)
    executor.dram.write(PAR_AT, parameters(bias, scale).view(np.uint8).reshape(-1))
    run(
        executor,
        [
            LoadPar(sram_base=par, dram_base=PAR_AT // config.par_element_bytes, y_size=1, x_size=8),
            SetOut(zero=zero, low=low, high=high),
            StoreReq(
                sram_base=7,
                dram_base=OUT_AT // config.out_element_bytes,
                y_size=rows,
                x_size=columns,
                x_stride=columns + 1,
                par=par,
                par_y=par_y,
                par_x=par_x,
            ),
        ],
    )
    found = written(executor, rows * (columns + 1), "uint8" if high > 127 else "int8")
    for y, x in product(range(rows), range(columns)):
        place = y if par_y else x if par_x else 0
        total = (sums[y * columns + x] + bias[place]).astype(np.int32)
        with np.errstate(over="ignore"):
            exact = np.rint(total.astype(np.float32) * scale[place]).astype(np.float64)
        wanted = np.minimum(np.maximum(exact + zero, low), high)
        np.testing.assert_array_equal(found[y * (columns + 1) + x], wanted)
    assert not found[columns].any()


def as_bytes(row: npt.NDArray[Any]) -> bytes:
    """Return values as the bytes of an int8 or uint8 tensor."""
    return row.astype(np.uint8).tobytes()


@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("name", ["tiny-int8", "gemm8x8-int8"])
def test_an_addition_is_that_of_float32(name: str, unsigned: bool) -> None:
    """QLinearAdd's formula on the requantized value. The residual comes in two pieces."""
    config, rng = NAMED[name], np.random.default_rng(int(unsigned))
    zeros = (128, 117, 121) if unsigned else (3, -17, -5)
    left, right, out = (
        Quantization(scale=scale, zero=zero, unsigned=unsigned)
        for scale, zero in zip((0.027183, 0.045914, 0.033391), zeros, strict=True)
    )
    addition = find_addition(left, right, out)
    assert addition.differences == 0
    count, per_element = 8, config.out_element_bytes
    executor = machine(config)
    sums = rng.integers(-60000, 60000, (count, config.batch, config.block_out))
    executor.pads.acc[:count] = sums
    bias = rng.integers(-500, 500, (1, config.block_out))
    scale = rng.uniform(1e-3, 4e-3, (1, config.block_out)).astype(np.float32)
    residual = rng.integers(left.low, left.high + 1, sums.shape)
    executor.dram.write(PAR_AT, parameters(bias, scale).view(np.uint8).reshape(-1))
    executor.dram.write(RES_AT, np.frombuffer(as_bytes(residual), dtype=np.uint8))
    at = RES_AT // per_element
    run(
        executor,
        [
            SetOut(
                zero=left.zero,
                low=left.low,
                high=left.high,
                left_zero=left.zero,
                right_zero=right.zero,
                unsigned=unsigned,
                offset=addition.offset,
                shift=addition.shift,
            ),
            SetSum(
                left_multiplier=addition.multipliers[0],
                right_multiplier=addition.multipliers[1],
                zero=out.zero,
                low=out.low,
                high=out.high,
            ),
            LoadPar(dram_base=PAR_AT // config.par_element_bytes, y_size=1, x_size=1),
            LoadRes(dram_base=at, y_size=1, x_size=5),
            LoadRes(dram_base=at + 5, y_size=1, x_size=3),
            StoreAdd(dram_base=OUT_AT // per_element, y_size=2, x_size=4, x_stride=4),
        ],
    )
    exact = np.rint((sums + bias).astype(np.float32) * scale).astype(np.int64)
    values = np.clip(exact + left.zero, left.low, left.high)
    table = float_add(left, right, out, out.low, out.high)
    wanted = table[values - left.low, residual - right.low]
    np.testing.assert_array_equal(written(executor, count, out.dtype), wanted)


@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("hold", [False, True])
def test_a_product_is_that_of_integers(hold: bool, unsigned: bool) -> None:
    """Exact products of two bytes, with ties. With ``hold`` each STORE takes one residual."""
    config, rng = CONFIG.override({"res_mul": 1}), np.random.default_rng(2 * hold + unsigned)
    low, high = (0, 255) if unsigned else (-128, 127)
    zeros, zero, shift, multiplier, offset = (low + 30, low + 90), low + 20, 9, 3, 1 << 8
    executor = machine(config)
    values = rng.integers(low, high + 1, (8, config.batch, config.block_out))
    residual = rng.integers(low, high + 1, values.shape)
    executor.pads.acc[:8] = values
    one = np.ones((1, config.block_out), dtype=np.float32)
    executor.dram.write(PAR_AT, parameters(0 * one.astype(np.int64), one).view(np.uint8).reshape(-1))
    executor.dram.write(RES_AT, np.frombuffer(as_bytes(residual), dtype=np.uint8))
    at = OUT_AT // config.out_element_bytes
    store = StoreMul(dram_base=at, y_size=2, x_size=2, x_stride=2, hold=hold)
    run(
        executor,
        [
            SetOut(
                low=low,
                high=high,
                left_zero=zeros[0],
                right_zero=zeros[1],
                unsigned=unsigned,
                offset=offset,
                shift=shift,
            ),
            SetSum(left_multiplier=multiplier, right_multiplier=77, zero=zero, low=low, high=high),
            LoadPar(dram_base=PAR_AT // config.par_element_bytes, y_size=1, x_size=1),
            LoadRes(dram_base=RES_AT // config.out_element_bytes, y_size=1, x_size=2 if hold else 8),
            store,
            replace(store, dram_base=at + 4, sram_base=4),
        ],
    )
    taken = np.repeat(residual[:2], 4, axis=0) if hold else residual
    product = (values - zeros[0]) * (taken - zeros[1]) * multiplier + offset
    wanted = np.clip(np.rint(product / (1 << shift)) + zero, low, high)
    np.testing.assert_array_equal(written(executor, 8, "uint8" if unsigned else "int8"), wanted)
    fault = executor.execute(store)
    assert fault is not None
    assert fault[1].cause is Cause.RESIDUAL_EMPTY


# --- settings, and the contents of RES -----------------------------------------------------------


def test_settings_are_zero_at_the_start() -> None:
    """Zero point and bounds are zero, so every result is zero."""
    executor = machine()
    run(executor, [StoreReq(dram_base=OUT_AT // 4, y_size=1, x_size=3)])
    assert not written(executor, 3).any()


def test_residuals_are_consumed_in_the_order_of_their_loads() -> None:
    """Residuals wrap around the end of RES, and STOREs have other sizes than LOADs. STORE.REQ consumes
    none."""
    executor = machine()
    depth, bytes_ = CONFIG.res_depth, CONFIG.out_element_bytes
    values = np.random.default_rng(5).integers(-128, 128, (64, bytes_)).astype(np.int8)
    executor.dram.write(RES_AT, values.view(np.uint8).reshape(-1))
    run(
        executor,
        [
            replace(INT8, left_zero=0),
            SetSum(right_multiplier=1, low=-128, high=127),
        ],
    )
    loaded = taken = 0
    rng = np.random.default_rng(6)
    while taken < len(values):
        take = bool(loaded == len(values) or (loaded - taken and rng.random() < 0.5))
        if take:
            count = int(rng.integers(1, loaded - taken + 1))
            run(executor, [StoreAdd(dram_base=OUT_AT // 4 + taken, y_size=1, x_size=count)])
            taken += count
        else:
            count = int(min(rng.integers(1, depth + 1), depth - loaded + taken, len(values) - loaded))
            if count:
                run(executor, [LoadRes(dram_base=RES_AT // 4 + loaded, y_size=1, x_size=count)])
            loaded += count
    np.testing.assert_array_equal(written(executor, len(values))[:, 0], values)
    assert executor.pads.res is not None
    np.testing.assert_array_equal(executor.pads.res[:, 0], values[-depth:])
    fault = executor.execute(StoreAdd(y_size=1, x_size=1))
    assert fault is not None
    assert fault[1].cause is Cause.RESIDUAL_EMPTY


def test_settings_and_residuals_are_reset_between_runs() -> None:
    """One run leaves residuals, the next one consumes some: the contents stay, but RES is empty."""
    dram, pads = Dram.of(CONFIG), Scratchpads.zeros(CONFIG)
    dram.write(RES_AT, np.arange(8, dtype=np.uint8))
    first = [INT8, LoadRes(dram_base=RES_AT // 4, y_size=1, x_size=2), Finish()]
    simulate(first, CONFIG, dram, pads, address=0, timed=False).raise_if_bad()
    assert pads.res is not None
    assert pads.res[:2, 0].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    again = simulate([StoreAdd(y_size=1, x_size=1), Finish()], CONFIG, dram, pads, address=0, timed=False)
    with pytest.raises(MachineError, match=r"STORE.ADD takes 1 element of res, which holds 0"):
        again.raise_if_bad()


def test_presets_reach_both_scratchpads() -> None:
    bias, scale = np.array([[5, 6, 7, 8]]), np.ones((1, 4), dtype=np.float32)
    pads = Scratchpads.zeros(CONFIG).fill(
        [
            Contents(scratchpad="par", element=15, data=parameters(bias, scale).tobytes()),
            Contents(scratchpad="res", element=2, data=bytes([1, 2, 3, 255])),
        ]
    )
    assert pads.res is not None
    assert pads.res[2].tolist() == [[1, 2, 3, -1]]
    executor = Executor(CONFIG, Dram.of(CONFIG), pads)
    run(executor, [INT8, StoreReq(dram_base=OUT_AT // 4, y_size=1, x_size=1, par=15)])
    assert written(executor, 1).tolist() == [[[5, 6, 7, 8]]]
