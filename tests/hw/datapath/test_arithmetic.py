"""GEMM core and ALU compared with numpy and the functional simulator's operations."""

from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Const, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.base.records import replace
from accel.core.alu_operations import operation_of_code
from accel.core.config import NAMED, Config
from accel.core.isa import AluOp
from accel.core.isa.field_widths import ALU_OP_BITS
from accel.hw.datapath.alu import Alu, control
from accel.hw.datapath.gemm import GemmCore, tap_names
from accel.hw.datapath.register_copies import COPIES
from accel.hw.datapath.retimed_pipeline import divide, spread
from tests.hw.bench import as_array, as_integer, run
from tests.reference import operate
from tests.thorough import also


@pytest.mark.parametrize("stages", [0, 1, 2, 5])
@pytest.mark.parametrize("name", ["tiny", "gemm8x8"])
def test_products_are_summed_after_the_tree(name: str, stages: int) -> None:
    base = NAMED[name]
    config = replace(base, batch=min(2, base.batch), block_out=2, tree_stages=stages)
    core = GemmCore(config)
    rng = np.random.default_rng(stages)
    inps = rng.integers(-128, 128, (20, config.batch, config.block_in), dtype=np.int8)
    wgts = rng.integers(-128, 128, (20, config.block_out, config.block_in), dtype=np.int8)
    inps[0], wgts[0] = -128, -128
    inps[1], wgts[1] = -128, 127

    async def bench(context: Any) -> None:
        found = []
        for n in range(20 + stages + 1):
            if n > stages:
                sums = as_array(context.get(core.sums), "<i4", (config.batch, config.block_out))
                found.append(sums)
            if n < 20:
                context.set(core.inp, as_integer(inps[n]))
                context.set(core.wgt, as_integer(wgts[n]))
            await context.tick()
        expected = np.einsum("nbk,nok->nbo", inps.astype(np.int32), wgts.astype(np.int32))
        np.testing.assert_array_equal(np.stack(found), expected)

    run(core, bench)


@pytest.mark.parametrize(("name", "batch"), [("tiny-int8", 2), ("ecp5-int8", 1)])
def test_depthwise_products_are_summed_over_the_taps(name: str, batch: int) -> None:
    """Inputs have nine bits. Depthwise products with each number of taps alternate with
    whole products."""
    config = replace(NAMED[name], batch=batch, tree_stages=1)
    core = GemmCore(config)
    rng = np.random.default_rng(3)
    most, size = config.tap_banks, config.block_in
    taps = rng.integers(-256, 256, (20, most, batch, size), dtype=np.int16)
    wgts = rng.integers(-128, 128, (20, size, size), dtype=np.int8)
    taps[0], wgts[0] = -256, -128

    async def bench(context: Any) -> None:
        found, expected = [], []
        for n in range(20):
            count = n % (most + 1)  # 0: not depthwise
            words = [as_held(word) for word in taps[n]]
            for tap_name, word in zip(("inp", *tap_names(config)), words, strict=True):
                context.set(getattr(core, tap_name), word)
            context.set(core.wgt, as_integer(wgts[n]))
            context.set(core.whole, (1 << COPIES) - 1 if count == 0 else 0)
            context.set(core.tapped, (1 << count) - 1)
            await context.tick().repeat(2)
            found.append(as_array(context.get(core.sums), "<i4", (batch, size)))
            values, factors = taps[n].astype(np.int32), wgts[n].astype(np.int32)
            depthwise = np.einsum("tbo,ot->bo", values[:count], factors[:, :count])
            expected.append(depthwise if count else values[0] @ factors.T)
        np.testing.assert_array_equal(np.stack(found), np.stack(expected))

    run(core, bench)


def as_held(values: np.ndarray) -> int:
    """An inp element with nine bits per value, as a number."""
    return sum((int(value) & 0x1FF) << 9 * n for n, value in enumerate(values.reshape(-1)))


def test_registers_are_spread_over_the_tree() -> None:
    """All registers are used, their numbers per level differ by at most one, and the longest
    path is short."""
    for levels in range(7):
        steps = [2, 2, *[1] * levels]
        for stages in range(9):
            counts = spread(stages, steps)
            assert sum(counts) == stages
            assert len(counts) == len(steps)
            if stages < len(steps):
                assert max(counts) <= 1
                assert counts[-1] == 0
    assert spread(2, [2, 2, 1, 1, 1]) == [1, 1, 0, 0, 0]
    assert spread(4, [2, 2, 1, 1, 1]) == [1, 1, 1, 1, 0]
    assert spread(9, [2, 2]) == [1, 8]


_EDGES = [0, 1, -1, 31, 32, 33, -31, -32, -33, 127, -128, 2**31 - 1, -(2**31), -32768, 32767]


class _ControlledAlu(wiring.Component):
    """An ALU whose control inputs are driven by operation number and slot."""

    def __init__(self, config: Config) -> None:
        self._config = config
        bits = config.acc_element_bytes * 8
        sides = {"left": In(bits), "right": In(bits), "result": Out(bits)}
        super().__init__({"op": In(ALU_OP_BITS), "phase": In(range(config.mul_slots)), **sides})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.alu = alu = Alu(self._config)
        phase = self.phase if self._config.mul_slots > 1 else None
        told = control(m, self.op, self._config, reset=Const(0), phase=phase)
        m.d.comb += [*(alu.control[group].eq(told) for group in range(COPIES))]
        m.d.comb += [alu.left.eq(self.left), alu.right.eq(self.right), self.result.eq(alu.result)]
        return m


@pytest.mark.parametrize(
    ("op", "slots"),
    [
        *((op, 1) for op in AluOp),
        *((AluOp.MUL, slots) for slots in (2, 5)),
        *(also(AluOp.MUL, slots) for slots in (3, 4)),
        (AluOp.SHR, 4),
    ],
)
def test_every_operation_equals_the_simulators(op: AluOp, slots: int) -> None:
    """Each takes one cycle. Products may also take several and follow without a gap."""
    config = replace(NAMED["tiny"], mul_slots=slots)
    alu = _ControlledAlu(config)
    rng = np.random.default_rng(op)
    values = np.concatenate([_EDGES, rng.integers(-(2**31), 2**31, 40)]).astype(np.int32)
    left, right = (side.reshape(-1) for side in np.meshgrid(values, values))
    left, right = (side[: len(side) // 8 * 8].reshape(-1, 1, 8) for side in (left, right))

    async def bench(context: Any) -> None:
        context.set(alu.op, op)
        for x, y in zip(left, right, strict=True):
            context.set(alu.left, as_integer(x))
            context.set(alu.right, as_integer(y))
            for phase in range(1, slots if op is AluOp.MUL else 1):
                await context.tick()
                context.set(alu.phase, phase)
            result = as_array(context.get(alu.result), "<i4", x.shape)
            np.testing.assert_array_equal(result, operation_of_code(op).function(x, y))
            assert result[0, 0] == operate(op, int(x[0, 0]), int(y[0, 0]))
            if op is AluOp.MUL and slots > 1:
                await context.tick()
                context.set(alu.phase, 0)

    run(alu, bench)


@pytest.mark.parametrize("stages", range(7))
def test_two_pipelines_share_stages(stages: int) -> None:
    """No other division has a shorter path between two registers."""
    before, after = [3, 1, 4, 1, 5], [9, 2, 6]

    def longest(first: int) -> int:
        found = 0
        for steps, registers in ((before, spread(first, before)), (after, spread(stages - first, after))):
            path = 0
            for step, count in zip(steps, registers, strict=True):
                path += step
                found, path = max(found, path), 0 if count else path
        return found

    assert longest(divide(stages, before, after)) == min(map(longest, range(stages + 1)))
