from collections.abc import Awaitable, Callable
from itertools import combinations
from random import Random
from typing import Any

import pytest
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.sim import Simulator, SimulatorContext

from accel.core.config import NAMED
from accel.core.registers import (
    REGISTERS,
    Access,
    constants,
    joined,
    registers_of,
    word_addresses,
    word_writes,
)
from accel.hw.bus.control_registers import OKAY, SLVERR, Control

TINY = NAMED["tiny"]
START = REGISTERS["control"].bit("start")
CLEAR = REGISTERS["control"].bit("clear")
SETTINGS = [r for r in REGISTERS.values() if r.access is Access.SETTING]
COUNTERS = [r for r in REGISTERS.values() if r.access is Access.COUNTER]


class Bus:
    """An AXI4-Lite manager with random delays; ``patient`` is the probability of a delay."""

    def __init__(self, ctx: SimulatorContext, dut: Control, *, seed: int = 0, patience: float = 0.0) -> None:
        self.ctx, self.dut = ctx, dut
        self._rng, self._patience = Random(seed), patience

    async def wait(self) -> None:
        while self._rng.random() < self._patience:
            await self.ctx.tick()

    async def write(self, address: int, data: int, strobe: int = 0xF) -> int:
        ctx, dut = self.ctx, self.dut
        pending = {
            "aw": (dut.s_axi_awvalid, dut.s_axi_awready, [(dut.s_axi_awaddr, address)]),
            "w": (dut.s_axi_wvalid, dut.s_axi_wready, [(dut.s_axi_wdata, data), (dut.s_axi_wstrb, strobe)]),
        }
        while pending:
            for valid, _, payload in pending.values():
                if not ctx.get(valid) and self._rng.random() >= self._patience:
                    ctx.set(valid, 1)
                    for signal, value in payload:
                        ctx.set(signal, value)
            taken = [name for name, channel in pending.items() if ctx.get(channel[0]) and ctx.get(channel[1])]
            await ctx.tick()
            for name in taken:
                valid, _, payload = pending.pop(name)
                ctx.set(valid, 0)
                for signal, _ in payload:
                    ctx.set(signal, self._rng.getrandbits(len(signal)))
        await self.wait()
        ctx.set(dut.s_axi_bready, 1)
        *_, response = await ctx.tick().sample(dut.s_axi_bresp).until(dut.s_axi_bvalid)
        ctx.set(dut.s_axi_bready, 0)
        return int(response)

    async def read(self, address: int) -> tuple[int, int]:
        ctx, dut = self.ctx, self.dut
        await self.wait()
        ctx.set(dut.s_axi_arvalid, 1)
        ctx.set(dut.s_axi_araddr, address)
        await ctx.tick().until(dut.s_axi_arready)
        ctx.set(dut.s_axi_arvalid, 0)
        ctx.set(dut.s_axi_araddr, self._rng.getrandbits(12))
        await self.wait()
        ctx.set(dut.s_axi_rready, 1)
        *_, data, response = await ctx.tick().sample(dut.s_axi_rdata, dut.s_axi_rresp).until(dut.s_axi_rvalid)
        ctx.set(dut.s_axi_rready, 0)
        return int(data), int(response)

    async def set(self, **values: int) -> None:
        """Write registers; all writes must be answered with OKAY."""
        for address, word in word_writes(values):
            assert await self.write(address, word) == OKAY

    async def get(self, *names: str) -> dict[str, int]:
        """Read registers; all reads must be answered with OKAY."""
        words = []
        for address in word_addresses(names):
            word, response = await self.read(address)
            assert response == OKAY
            words.append(word)
        return joined(names, words)

    async def value(self, name: str) -> int:
        return (await self.get(name))[name]


def status(*bits: str) -> int:
    return sum(REGISTERS["status"].bit(bit) for bit in bits)


class Runs(Elaboratable):
    """A control unit with a core model whose runs take ``cycles`` and end with ``cause`` at
    ``index``."""

    def __init__(self, dut: Control, cycles: int, cause: int, index: int) -> None:
        self._dut, self._cycles, self._cause, self._index = dut, cycles, cause, index

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.dut = dut = self._dut
        left = Signal(range(self._cycles + 1))
        with m.If(left != 0):
            m.d.sync += left.eq(left - 1)
        with m.If(dut.ended):
            m.d.sync += [dut.cause.eq(self._cause), dut.fault_index.eq(self._index)]
        with m.If(dut.start):
            m.d.sync += left.eq(self._cycles)
        m.d.comb += [dut.running.eq(left != 0), dut.ended.eq(left == 1)]
        return m


Test = Callable[[SimulatorContext, Control, Bus], Awaitable[None]]


def simulate(test: Test, **options: Any) -> None:
    dut = Control(TINY)
    _run(dut, dut, test, **options)


def with_runs(test: Test, *, cycles: int, cause: int = 0, index: int = 0) -> None:
    """Run a test bench with a control unit and a core model."""
    dut = Control(TINY)
    _run(Runs(dut, cycles, cause, index), dut, test)


def _run(top: Any, dut: Control, test: Test, **options: Any) -> None:
    simulator = Simulator(top)
    simulator.add_clock(1e-6)

    async def bench(ctx: SimulatorContext) -> None:
        await test(ctx, dut, Bus(ctx, dut, **options))

    simulator.add_testbench(bench)
    simulator.run()


# --- reading and writing ---------------------------------------------------------------------------


@pytest.mark.parametrize("patience", [0.0, 0.5])
def test_constants_and_values_after_reset(patience: float) -> None:
    async def test(ctx: SimulatorContext, dut: Control, bus: Bus) -> None:
        values = await bus.get(*registers_of(TINY))
        fixed = constants(TINY)
        assert {name: values[name] for name in fixed} == fixed
        assert {r.name: values[r.name] for r in SETTINGS} == {r.name: r.reset for r in SETTINGS}
        others = values.keys() - fixed.keys() - {r.name for r in SETTINGS}
        assert {values[name] for name in others} == {0}

    simulate(test, patience=patience)


@pytest.mark.parametrize("seed", range(4))
def test_settings_reach_the_core_and_can_be_read_back(seed: int) -> None:
    rng = Random(seed)
    wanted = {r.name: rng.getrandbits(r.width) for r in SETTINGS}

    async def test(ctx: SimulatorContext, dut: Control, bus: Bus) -> None:
        await bus.set(**wanted)
        assert {name: ctx.get(getattr(dut, name)) for name in wanted} == wanted
        assert await bus.get(*wanted) == wanted

    simulate(test, seed=seed, patience=0.5)


def test_bits_beyond_a_register_are_zero() -> None:
    async def test(ctx: SimulatorContext, dut: Control, bus: Bus) -> None:
        everything = {r.name: (1 << 32 * r.words) - 1 for r in SETTINGS}
        await bus.set(**everything)
        assert await bus.get(*everything) == {r.name: (1 << r.width) - 1 for r in SETTINGS}

    simulate(test)


@pytest.mark.parametrize("strobe", range(16))
def test_byte_strobes(strobe: int) -> None:
    async def test(ctx: SimulatorContext, dut: Control, bus: Bus) -> None:
        address = REGISTERS["program_length"].offset
        await bus.write(address, 0x11223344)
        await bus.write(address, 0xAABBCCDD, strobe)
        parts = zip(range(4), (0x44, 0x33, 0x22, 0x11), (0xDD, 0xCC, 0xBB, 0xAA), strict=True)
        expected = sum((new if strobe >> n & 1 else old) << 8 * n for n, old, new in parts)
        assert await bus.value("program_length") == expected

    simulate(test)


def test_strobes_hold_for_commands_too() -> None:
    async def test(ctx: SimulatorContext, dut: Control, bus: Bus) -> None:
        assert await bus.write(REGISTERS["control"].offset, START | CLEAR, 0xE) == OKAY
        await ctx.tick().repeat(4)
        assert await bus.value("status") == 0

    simulate(test)


def test_unknown_addresses_and_constants_refuse() -> None:
    async def test(ctx: SimulatorContext, dut: Control, bus: Bus) -> None:
        known = set(word_addresses(registers_of(TINY)))
        for address in sorted({0x20, 0x3C, 0x8C, 0x128, 0x300, 0xFFC} - known):
            assert await bus.write(address, 0xFFFFFFFF) == SLVERR
            assert await bus.read(address) == (0, SLVERR)
        for register in registers_of(TINY).values():
            if not register.access.writable:
                before = await bus.value(register.name)
                assert await bus.write(register.offset, 0xFFFFFFFF) == SLVERR
                assert await bus.value(register.name) == before

    simulate(test)


@pytest.mark.parametrize("patience", [0.0, 0.5])
def test_counters(patience: float) -> None:
    wanted = {r.name: Random(n).getrandbits(64) for n, r in enumerate(COUNTERS)}

    async def test(ctx: SimulatorContext, dut: Control, bus: Bus) -> None:
        for name, value in wanted.items():
            ctx.set(getattr(dut, name), value)
        assert await bus.get(*wanted) == wanted

    simulate(test, patience=patience)


def test_a_counter_that_runs_is_read_as_one_value() -> None:
    """Reading the low word latches the high word for one read. Otherwise the high word is
    the current one."""

    async def test(ctx: SimulatorContext, dut: Control, bus: Bus) -> None:
        ctx.set(dut.cycles, 0x1_FFFFFFFF)
        ctx.set(dut.load_busy, 0x9_00000000)
        low, high = word_addresses(["cycles"])
        assert await bus.read(low) == (0xFFFFFFFF, OKAY)
        ctx.set(dut.cycles, 0x2_00000000)
        assert await bus.read(word_addresses(["load_busy"])[1]) == (9, OKAY)
        assert await bus.read(high) == (1, OKAY)
        assert await bus.read(high) == (2, OKAY)

    simulate(test)


# --- commands --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("running", "draining", "offering", "accepted"),
    [
        (0, 0, 0, {"start", "clear", "stop"}),
        (0, 0, 1, {"stop"}),
        (1, 0, 0, {"stop"}),
        (1, 0, 1, {"stop"}),
        (1, 1, 0, {"clear", "stop"}),
        (1, 1, 1, {"stop"}),
    ],
)
def test_when_commands_are_accepted(running: int, draining: int, offering: int, accepted: set[str]) -> None:
    """Each command is accepted by itself. Several together are accepted only if each one is."""

    async def test(ctx: SimulatorContext, dut: Control, bus: Bus) -> None:
        await bus.set(program_address=0x1000, program_length=3)
        ctx.set(dut.running, running)
        ctx.set(dut.draining, draining)
        ctx.set(dut.offering, offering)
        for names in (set(some) for n in range(4) for some in combinations(("start", "clear", "stop"), n)):
            word = sum(REGISTERS["control"].bit(name) for name in names)
            assert (await bus.write(REGISTERS["control"].offset, word) == OKAY) == (names <= accepted)

    simulate(test)


def test_status_shows_the_state_of_the_bus() -> None:
    async def test(ctx: SimulatorContext, dut: Control, bus: Bus) -> None:
        for name in ("draining", "offering", "unanswered"):
            ctx.set(getattr(dut, name), 1)
            assert await bus.value("status") == status(name)
            ctx.set(getattr(dut, name), 0)

    simulate(test)


def test_an_aborted_run_leaves_no_status() -> None:
    """This holds whether the clear ends the run or comes just after its end."""

    async def test(ctx: SimulatorContext, dut: Control, bus: Bus) -> None:
        for early in range(4):
            ctx.set(dut.running, 1)
            ctx.set(dut.draining, 1)
            ctx.set(dut.cause, 22)
            ctx.set(dut.s_axi_bready, 1)
            for name in ("awvalid", "wvalid"):
                ctx.set(getattr(dut, f"s_axi_{name}"), 1)
            ctx.set(dut.s_axi_awaddr, REGISTERS["control"].offset)
            ctx.set(dut.s_axi_wdata, CLEAR)
            ctx.set(dut.s_axi_wstrb, 15)
            await ctx.tick()
            for name in ("awvalid", "wvalid"):
                ctx.set(getattr(dut, f"s_axi_{name}"), 0)
            for cycle in range(6):
                ends = bool(ctx.get(dut.running)) and (cycle == early or bool(ctx.get(dut.clear)))
                ctx.set(dut.ended, ends)
                await ctx.tick()
                if ends:
                    ctx.set(dut.ended, 0)
                    ctx.set(dut.running, 0)
                    ctx.set(dut.draining, 0)
                    ctx.set(dut.cause, 0)
            assert await bus.value("status") == 0
            assert await bus.value("interrupt") == 0

    simulate(test)


# --- runs ------------------------------------------------------------------------------------------


def test_a_run_without_error() -> None:
    async def test(ctx: SimulatorContext, dut: Control, bus: Bus) -> None:
        await bus.set(control=START)
        assert await bus.value("status") == status("running")
        await ctx.tick().until(~dut.running)
        assert await bus.value("status") == status("done")
        await bus.set(control=START)
        assert await bus.value("status") == status("running")

    with_runs(test, cycles=40)


def test_start_is_one_pulse() -> None:
    async def test(ctx: SimulatorContext, dut: Control, bus: Bus) -> None:
        pulses = []

        async def count() -> None:
            pulses.append((ctx.get(dut.start), ctx.get(dut.clear)))
            await ctx.tick()

        ctx.set(dut.s_axi_awvalid, 1)
        ctx.set(dut.s_axi_awaddr, REGISTERS["control"].offset)
        ctx.set(dut.s_axi_wvalid, 1)
        ctx.set(dut.s_axi_wdata, START | CLEAR)
        ctx.set(dut.s_axi_wstrb, 1)
        await count()
        ctx.set(dut.s_axi_awvalid, 0)
        ctx.set(dut.s_axi_wvalid, 0)
        for _ in range(6):
            await count()
        assert sorted(pulses) == [(0, 0)] * 6 + [(1, 1)]

    simulate(test)


def test_an_error() -> None:
    async def test(ctx: SimulatorContext, dut: Control, bus: Bus) -> None:
        await bus.set(control=START)
        await ctx.tick().until(dut.ended)
        assert await bus.get("status", "cause", "fault_index") == {
            "status": status("done", "error"),
            "cause": 7,
            "fault_index": 123456789,
        }

    with_runs(test, cycles=9, cause=7, index=123456789)


def test_settings_are_refused_during_a_run() -> None:
    async def test(ctx: SimulatorContext, dut: Control, bus: Bus) -> None:
        before = {r.name: getattr(dut, r.name) for r in SETTINGS}
        values = {name: ctx.get(signal) for name, signal in before.items()}
        await bus.set(control=START)
        for register in [*SETTINGS, REGISTERS["control"]]:
            for word in range(register.words):
                assert await bus.write(register.offset + 4 * word, 0x5A5A5A5B) == SLVERR
                assert not ctx.get(dut.start)
                assert not ctx.get(dut.clear)
        assert ctx.get(dut.running)
        assert {name: ctx.get(signal) for name, signal in before.items()} == values
        await bus.set(interrupt_enable=1, interrupt=1)
        await ctx.tick().until(~dut.running)
        await bus.set(program_length=5)

    with_runs(test, cycles=200)


@pytest.mark.parametrize(
    ("good", "settings"),
    [
        (True, {"program_address": 0x1000, "program_length": 3}),
        (True, {"program_address": 0x1FF0, "program_length": 1, "mem_size": 0x2000}),
        (False, {"program_address": 0x1FF0, "program_length": 2, "mem_size": 0x2000}),
        (False, {"program_address": 0x1008, "program_length": 1}),
        (False, {"mem_base": 0x800, "program_address": 0x1000}),
        (False, {"mem_base": 0x2000, "program_address": 0x1FF0, "program_length": 1}),
        (True, {"mem_base": 0x2000, "program_address": 0x2000, "program_length": 1}),
        (True, {"mem_base": (1 << 40) - 4096, "mem_size": 4096, "program_address": (1 << 40) - 16}),
        (False, {"mem_base": (1 << 40) - 4096, "mem_size": 4097, "program_address": (1 << 40) - 16}),
        (True, {"mem_base": 0, "mem_size": 1 << 40, "program_length": (1 << 32) - 1}),
        (False, {"mem_base": 0, "mem_size": 1 << 36, "program_length": (1 << 32) - 1, "program_address": 32}),
    ],
)
def test_a_start_with_bad_settings_is_refused(good: bool, settings: dict[str, int]) -> None:
    async def test(ctx: SimulatorContext, dut: Control, bus: Bus) -> None:
        await bus.set(**settings)
        assert await bus.write(REGISTERS["control"].offset, START) == (OKAY if good else SLVERR)
        assert await bus.value("status") == (status("running") if good else 0)
        assert good or await bus.write(REGISTERS["control"].offset, CLEAR) == OKAY

    with_runs(test, cycles=100)


def test_clear_forgets_status_and_interrupt() -> None:
    async def test(ctx: SimulatorContext, dut: Control, bus: Bus) -> None:
        await bus.set(interrupt_enable=1, control=START)
        await ctx.tick().until(dut.ended)
        await ctx.tick()
        assert ctx.get(dut.irq)
        await bus.set(control=CLEAR)
        assert not ctx.get(dut.irq)
        assert await bus.get("status", "interrupt") == {"status": 0, "interrupt": 0}

    with_runs(test, cycles=5, cause=3)


def test_the_interrupt() -> None:
    async def test(ctx: SimulatorContext, dut: Control, bus: Bus) -> None:
        await bus.set(control=START)
        await ctx.tick().until(dut.ended)
        await ctx.tick()
        assert await bus.value("interrupt") == 1
        assert not ctx.get(dut.irq)
        await bus.set(interrupt_enable=1)
        assert ctx.get(dut.irq)
        await bus.set(interrupt=0)
        assert ctx.get(dut.irq)
        await bus.set(interrupt=1)
        assert not ctx.get(dut.irq)
        assert await bus.value("status") == status("done")
        await bus.set(control=START)
        await ctx.tick().until(dut.irq)
        assert await bus.value("status") == status("done")

    with_runs(test, cycles=30)


def test_an_interrupt_is_not_lost_when_one_is_cleared_in_its_cycle() -> None:
    """The write takes effect in cycle 1. If a run ends in that cycle or later, an interrupt
    is pending afterwards."""

    async def test(ctx: SimulatorContext, dut: Control, bus: Bus) -> None:
        pending = []
        for distance in range(4):
            await bus.set(interrupt=1)
            ctx.set(dut.s_axi_awvalid, 1)
            ctx.set(dut.s_axi_awaddr, REGISTERS["interrupt"].offset)
            ctx.set(dut.s_axi_wvalid, 1)
            ctx.set(dut.s_axi_wdata, 1)
            ctx.set(dut.s_axi_wstrb, 1)
            ctx.set(dut.s_axi_bready, 1)
            for cycle in range(6):
                ctx.set(dut.ended, cycle == distance)
                await ctx.tick()
                ctx.set(dut.s_axi_awvalid, 0)
                ctx.set(dut.s_axi_wvalid, 0)
            ctx.set(dut.s_axi_bready, 0)
            pending.append(await bus.value("interrupt"))
        assert pending == [0, 1, 1, 1]

    simulate(test)
