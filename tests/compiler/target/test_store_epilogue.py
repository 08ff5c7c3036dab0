"""The store unit's epilogue as declared and as executed, and shifts expressed as scales."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.base.records import replace
from accel.compiler.expr.epilogue_operators import (
    AtLeast,
    AtMost,
    Bias,
    Offset,
    PostOp,
    Residual,
    Shift,
    StoreAdd,
    StoreRequantize,
    saturate,
)
from accel.compiler.expr.numpy_reference import evaluate
from accel.compiler.expr.quantized_expressions import scale_words
from accel.compiler.expr.scalar_expressions import INT32_MAX, Const
from accel.compiler.expr.tensor_expressions import placeholder
from accel.compiler.target import machine_intrinsics
from accel.compiler.target.emitter_registry import AccessPtr, Emitted, Target
from accel.compiler.target.machine import machine
from accel.compiler.target.store_emitter import emit_stores
from accel.compiler.target.store_epilogue import StorePath, store_path
from accel.core.isa import LoadPar, LoadRes, SetOut, SetSum, StoreReq
from accel.core.isa import StoreAdd as StoreAddInstruction
from accel.image.dram import Dram
from accel.sim.functional.scratchpads import Scratchpads
from tests.compiler.running import run
from tests.strategies import examples

BIAS, RESIDUAL = placeholder((1,), "int32", name="bias")[0], placeholder((1,), name="residual")[0]
LIMIT = 1 << 24


def finished_by(path: StorePath, sums: np.ndarray, bias: int, residual: np.ndarray | None) -> np.ndarray:
    """Results of the store unit for these sums."""
    prepared = np.array([bias], dtype=np.int32)
    if path.preparation is not None:
        prepared = path.preparation.apply("bias", prepared)
    value: np.ndarray = sums
    operands: list[tuple[np.ndarray, ...]] = [(prepared, np.array(path.words))]
    operands += [] if residual is None else [(residual,)]
    for op, others in zip(path.ops(Const(0), Const(0)), operands, strict=True):
        function = op.apply(Const(0))
        value = function.values(value, *others)  # type: ignore[attr-defined]
    return value


@pytest.mark.parametrize("shift", range(15))
@pytest.mark.parametrize(("low", "high"), [(-128, 127), (0, 127), (-7, 5), (3, 3)])
def test_shifts_are_exact(shift: int, low: int, high: int) -> None:
    """Sums lie on both sides of every step, up to the largest possible ones."""
    ops: list[PostOp] = [Bias(BIAS), *([Shift(shift)] if shift else []), *saturate(low, high)]
    path = store_path(ops, LIMIT)
    assert path is not None
    steps = (np.arange(-140, 141, dtype=np.int64) << shift)[:, None] + np.array([-2, -1, 0, 1, 2])
    ends = np.array([LIMIT, -LIMIT, LIMIT - 1, 1 - LIMIT, 0])
    for bias in (0, 1, -777, 12345, 1 << 20, -(1 << 20), INT32_MAX - LIMIT, LIMIT - (1 << 31)):
        x = np.concatenate([steps.reshape(-1), ends + bias, ends])
        sums = x - bias
        sums = sums[abs(sums) <= LIMIT]
        want = ((sums + bias) >> shift).clip(low, high)
        np.testing.assert_array_equal(finished_by(path, sums, bias, None), want)


@pytest.mark.parametrize("shift", range(14))
def test_shifts_with_residuals_are_exact(shift: int) -> None:
    path = store_path(
        [Bias(BIAS), *([Shift(shift)] if shift else []), Residual(RESIDUAL), *saturate(0, 100)], LIMIT
    )
    assert path is not None
    steps = (np.arange(-300, 301, dtype=np.int64) << shift)[:, None] + np.array([-1, 0, 1])
    sums = np.concatenate([steps.reshape(-1), [LIMIT, -LIMIT]])[:, None]
    residual = np.array([-128, -127, -1, 0, 1, 100, 127])
    for bias in (0, -5):
        want = (((sums + bias) >> shift) + residual).clip(0, 100)
        np.testing.assert_array_equal(finished_by(path, sums, bias, residual), want)


def test_epilogues_that_the_alu_must_compute() -> None:
    for ops in (
        [],
        [Bias(BIAS)],
        [Shift(15), *saturate(-128, 127)],
        [Shift(14), Residual(RESIDUAL), *saturate(-128, 127)],
        [Shift(-1), *saturate(-128, 127)],
        [Shift(3), AtLeast(0)],
        [Shift(3), AtLeast(0), AtMost(128)],
        [Offset(1), Shift(3), *saturate(-128, 127)],
        [Shift(3), Offset(1), *saturate(-128, 127)],
    ):
        assert store_path(ops, LIMIT) is None
    assert store_path([Shift(3), *saturate(-128, 127)], None) is None
    assert store_path([Shift(3), *saturate(-128, 127)], 1 << 30) is None
    assert store_path(saturate(-128, 127), None) is not None


def settings(draw: st.DrawFn) -> tuple[StoreRequantize, StoreAdd]:
    nine, thirty_one = st.integers(-256, 255), st.integers(0, (1 << 31) - 1)
    zero, low, high, left, right, total, least, most = (draw(nine) for _ in range(8))
    return StoreRequantize(Const(0), Const(0), zero, low, high), StoreAdd(
        Const(0),
        (draw(thirty_one), draw(thirty_one)),
        draw(st.integers(0, 41)),
        draw(st.integers(-(1 << 40), (1 << 40) - 1)),
        (left, right),
        total,
        least,
        most,
    )


@examples(60)
@given(st.data())
def test_instructions_equal_the_declaration(data: st.DataObject) -> None:
    """SET.OUT, SET.SUM, and STORE.REQ or STORE.ADD with any settings equal the tensor expression."""
    config = machine(data.draw(st.sampled_from(["tiny-int8", "gemm8x8-int8", "vta-int8"]))).config
    first, second = data.draw(st.composite(settings)())
    adds, unsigned = data.draw(st.booleans()), data.draw(st.booleans())
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    shape = config.batch, config.block_out
    pads = Scratchpads.zeros(config)
    spread = np.exp2(rng.uniform(0, 31, shape)) * rng.choice([-1, 1], shape)
    pads.acc[5] = spread.astype(np.int64).clip(-(2**31), 2**31 - 1)
    scales = tuple(float(np.float32(10**x)) for x in rng.uniform(-9, 2, shape[1]))
    par = np.stack([rng.integers(-(2**20), 2**20, shape[1]), scale_words(scales)], axis=1).astype(np.int32)
    residual = rng.integers(0, 256, shape).astype(np.uint8).view(np.uint8 if unsigned else np.int8)
    dram = Dram.of(config)
    for offset, values in ((0x1000, par), (0x3000, residual)):
        dram.write(config.mem_base + offset, values.tobytes())
    out = SetOut(zero=first.zero, low=first.low, high=first.high)
    load = LoadPar(sram_base=3, dram_base=0x1000 // config.par_element_bytes, y_size=1, x_size=1)
    at = {"y_size": 1, "x_size": 1, "dram_base": 0x4000 // config.out_element_bytes, "sram_base": 5, "par": 3}
    if not adds:
        program = [out, load, StoreReq(**at)]
    else:
        left, right = second.multipliers
        zeros = {"left_zero": second.zeros[0], "right_zero": second.zeros[1]}
        out = replace(out, **zeros, unsigned=unsigned, offset=second.offset, shift=second.shift)
        total = SetSum(
            left_multiplier=left, right_multiplier=right, zero=second.zero, low=second.low, high=second.high
        )
        taken = LoadRes(dram_base=0x3000 // config.res_element_bytes, y_size=1, x_size=1)
        program = [out, total, load, taken, StoreAddInstruction(**at)]
    run([Emitted(one) for one in program], config, pads, dram)
    op = machine_intrinsics.finished(
        config, [first, second] if adds else [first], "uint8" if unsigned else "int8"
    )
    inputs = {"acc": pads.acc[5], "par": par} | ({"res": residual} if adds else {})
    found = dram.read(config.mem_base + 0x4000, config.out_element_bytes).view(np.int8).reshape(shape)
    np.testing.assert_array_equal(found, evaluate([op.tensor], inputs)["y"])


@examples(200)
@given(st.data())
def test_any_tile(data: st.DataObject) -> None:
    """Every element of a box is requantized once, with its channel's parameters and its
    residual, in order."""
    config = machine("vta-int8", res_bytes=data.draw(st.sampled_from(["32", "128", "16KiB"]))).config
    extents = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    around = tuple(n + data.draw(st.integers(0, 2)) for n in extents)
    channel = data.draw(st.integers(0, len(extents) - 1))
    dram, acc = (
        tuple(int(np.prod(sizes[d + 1 :])) for d in range(len(sizes))) for sizes in (around, extents)
    )
    par = tuple(int(d == channel) for d in range(len(extents)))
    adds = data.draw(st.booleans())
    stores, loads = emit_stores(
        Target(config=config, extents=extents),
        AccessPtr("dram", 1000, dram),
        AccessPtr("acc_buffer", 7, acc),
        AccessPtr("par_buffer", 2, par),
        AccessPtr("dram", 5000, dram) if adds else None,
    )
    found = []
    for number, emitted in enumerate(stores):
        one = emitted.instruction
        assert isinstance(one, StoreReq)
        if adds:
            load = loads[number].instruction
            assert (load.y_size, load.x_size) == (one.y_size, one.x_size)  # type: ignore[attr-defined]
            assert load.dram_base == one.dram_base + 4000  # type: ignore[attr-defined]
            assert one.sram_elements <= max(1, config.res_depth // 2)
        for y, x in np.ndindex(one.y_size, one.x_size):
            index = one.par + (y if one.par_y else x if one.par_x else 0)
            place = one.dram_base + y * one.x_stride + x
            found.append((place, one.sram_base + y * one.x_size + x, index))
    places = list(np.ndindex(*extents))
    want = [
        (1000 + int(np.dot(at, dram)), 7 + int(np.dot(at, acc)), 2 + int(np.dot(at, par))) for at in places
    ]
    assert found == want
    assert len(loads) == (len(stores) if adds else 0)


def test_the_intrinsic_by_name() -> None:
    m = accel.machine("vta-int8")
    assert m.intrinsic("post") is m.post
    assert m.par_buffer.depth == 128
    assert m.par_buffer.element == (16, 2)
