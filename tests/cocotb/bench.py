"""The core between cocotbext-axi's models: memory on one port, software on the other, a monitor on both.

This module runs inside a simulator. A bench keeps a *twin*: memory, scratchpads and tokens of the functional
simulator. Each program runs on the core and on the twin, and their memories are compared byte by byte.
"""

import json
import os
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import cocotb
import numpy as np
import numpy.typing as npt
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam

from accel.core.config import Config, from_dict
from accel.core.fault_causes import Cause
from accel.core.registers import REGISTERS, WORD_BYTES, joined, word_addresses, word_writes
from accel.image.dram import Dram
from accel.run.program import Program
from accel.sim.functional.executor import Executor, FunctionalRun, run_functional
from accel.sim.functional.scratchpads import Scratchpads
from tests.cocotb import CONFIG_VARIABLE
from tests.cocotb.protocol import OKAY, SLVERR, Axi4Monitor, Limits, Lines, LiteMonitor, Rule

PERIOD_NS = 10
PATIENCE = 40_000
"""Cycles after which a bench gives up a run."""

_AXI4 = {
    "ar": ("addr", "len", "size", "burst", "id", "cache", "prot", "qos"),
    "r": ("data", "resp", "last", "id"),
    "aw": ("addr", "len", "size", "burst", "id", "cache", "prot", "qos"),
    "w": ("data", "strb", "last"),
    "b": ("resp", "id"),
}
_LITE = {
    "ar": ("addr", "prot"),
    "r": ("data", "resp"),
    "aw": ("addr", "prot"),
    "w": ("data", "strb"),
    "b": ("resp",),
}


class Refused(Exception):
    """Raised when a register access is answered with SLVERR."""


def configuration() -> Config:
    """The configuration of the core in the simulator, with its DRAM window."""
    return from_dict(json.loads(os.environ[CONFIG_VARIABLE]))


# --- signals --------------------------------------------------------------------------------------


def known(handle: Any) -> int | None:
    """A signal's value, or None if it has unknown bits."""
    try:
        return int(handle.value)
    except ValueError:
        return None


def _sampler(dut: Any, prefix: str, channel: str, names: tuple[str, ...]) -> Callable[[], Lines]:
    def handle(name: str) -> Any:
        return getattr(dut, f"{prefix}_{channel}{name}")

    valid, ready = handle("valid"), handle("ready")
    carried = {name: handle(name) for name in names}

    def sample() -> Lines:
        there = known(valid)
        if not there:
            return Lines(there, None)
        values = {name: known(signal) for name, signal in carried.items()}
        if channel == "w" and values["data"] is None and values["strb"] is not None:
            values["data"] = _strobed(str(carried["data"].value), values["strb"])
        return Lines(there, known(ready), values)

    return sample


def _strobed(bits: str, strobes: int) -> int | None:
    """A write word with the bytes without strobe set to zero, or None if a written byte has
    unknown bits."""
    bus = len(bits) // 8
    lanes = [bits[8 * n : 8 * n + 8] if strobes >> (bus - 1 - n) & 1 else "0" * 8 for n in range(bus)]
    word = "".join(lanes)
    return int(word, 2) if set(word) <= {"0", "1"} else None


def samplers(
    dut: Any, prefix: str, channels: Mapping[str, tuple[str, ...]]
) -> Callable[[], dict[str, Lines]]:
    """Return a function that samples all channels of a port."""
    each = {channel: _sampler(dut, prefix, channel, names) for channel, names in channels.items()}
    return lambda: {channel: sample() for channel, sample in each.items()}


# --- traffic --------------------------------------------------------------------------------------


def pauses(rng: random.Random, share: float, longest: int) -> Iterator[bool]:
    """Yield for each cycle whether to pause. Time is split into random stretches of at most ``longest``
    cycles; ``share`` of them are pauses."""
    while True:
        paused = rng.random() < share
        for _ in range(rng.randint(1, longest)):
            yield paused


# --- expected results -----------------------------------------------------------------------------


class Twin:
    """Memory, scratchpads and tokens of the functional simulator."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.dram = Dram.of(config)
        self.pads = Scratchpads.zeros(config)
        self.tokens: tuple[int, int, int, int] = (0, 0, 0, 0)

    def run(self, program: Program) -> FunctionalRun:
        """Execute a program on the state that the previous one left."""
        executor = Executor(self.config, self.dram, self.pads)
        run = run_functional(program.instructions, executor, tokens=self.tokens)
        self.tokens = run.tokens
        return run

    def window(self) -> npt.NDArray[np.uint8]:
        return window(self.dram)


def window(dram: Dram) -> npt.NDArray[np.uint8]:
    """All bytes of a DRAM window."""
    content = np.zeros(dram.size, dtype=np.uint8)
    for address, page in dram.pages():
        start = address - dram.base
        content[start : start + page.size] = page[: dram.size - start]
    return content


def assert_equal(found: npt.NDArray[np.uint8], expected: npt.NDArray[np.uint8], base: int) -> None:
    """Compare two memories. The message names the first byte that differs."""
    wrong = np.flatnonzero(found != expected)
    if wrong.size:
        first = int(wrong[0])
        raise AssertionError(
            f"{wrong.size} bytes of memory are wrong; the first, at {base + first:#x}, is "
            f"{found[first]}, expected {expected[first]}"
        )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Contents of the registers after a run."""

    status: int
    cause: Cause
    index: int
    cycles: int
    read_bytes: int
    written_bytes: int

    def bit(self, name: str) -> bool:
        return bool(self.status & REGISTERS["status"].bit(name))


# --- the bench ------------------------------------------------------------------------------------


def _channels(model: Any) -> dict[str, Any]:
    write, read = model.write_if, model.read_if
    return {
        "ar": read.ar_channel,
        "r": read.r_channel,
        "aw": write.aw_channel,
        "w": write.w_channel,
        "b": write.b_channel,
    }


class Bench:
    """Memory, software and monitors around the core.

    Attributes:
        reset_level: level at which the reset is active.
        sliced: whether the core has register slices at its ports.
        thorough: whether to run more rounds, as the simulator is fast.
        tolerated: rules that memory breaks on purpose.
        strict: whether a violation fails the test in its cycle. Otherwise violations are collected.
        rng: random numbers, seeded by ``COCOTB_RANDOM_SEED``.
    """

    def __init__(self, dut: Any, *, strict: bool = True, seed: int = 0) -> None:
        self.dut = dut
        self.config = configuration()
        self.thorough = cocotb.SIM_NAME == "Verilator"
        self.strict = strict
        self.tolerated: frozenset[Rule] = frozenset()
        self.rng = random.Random(f"{cocotb.RANDOM_SEED} {seed}")
        self.axi = Axi4Monitor(Limits.of(self.config))
        self.lite = LiteMonitor()
        self.twin = Twin(self.config)
        self._lines = samplers(dut, "m_axi", _AXI4)
        self._lite_lines = samplers(dut, "s_axi", _LITE)
        self._irq = 0
        self.sliced = hasattr(dut, "aresetn")
        self.reset_level = not self.sliced
        self.dut_reset = dut.rst if self.reset_level else dut.aresetn
        self.clock = dut.clk if self.reset_level else dut.aclk
        self._undo: Callable[[], None] = lambda: None

    @classmethod
    async def begin(cls, dut: Any, **options: Any) -> "Bench":
        """Return a bench after a reset, with memory of zeros."""
        bench = cls(dut, **options)
        bench.dut_reset.value = not bench.reset_level
        Clock(bench.clock, PERIOD_NS, unit="ns").start()
        await ClockCycles(bench.clock, 2)
        size = bench.config.mem_size
        reset = {"reset": bench.dut_reset, "reset_active_level": bench.reset_level}
        bench.ram = AxiRam(AxiBus.from_prefix(dut, "m_axi"), bench.clock, **reset, mem=bytearray(size))
        bench._install_faults()
        bench.software = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi"), bench.clock, **reset)
        assert bench.config.mem_base % size == 0  # AxiRam takes addresses modulo its size
        cocotb.start_soon(bench._watch())
        await bench.reset()
        return bench

    async def reset(self, cycles: int = 3) -> None:
        """Reset the core and both models. Memory keeps its contents."""
        self.dut_reset.value = self.reset_level
        await ClockCycles(self.clock, cycles)
        self.dut_reset.value = not self.reset_level
        await ClockCycles(self.clock, 2)
        self.twin.tokens = (0, 0, 0, 0)

    async def cycles(self, count: int) -> None:
        await ClockCycles(self.clock, count)

    async def _watch(self) -> None:
        edge = RisingEdge(self.clock)
        while True:
            await edge
            reset = known(self.dut_reset) == self.reset_level
            self.axi.step(reset, self._lines())
            self.lite.step(reset, self._lite_lines())
            irq = known(self.dut.irq) or 0
            if irq and not self._irq:
                self.axi.finish()
                self.axi.quiet = True
            self._irq = irq
            if self.strict:
                self.check()

    def check(self) -> None:
        """Check that no rule was broken so far."""
        found = self.axi.violations + self.lite.violations
        broken = [one for one in found if one.rule not in self.tolerated]
        assert not broken, "\n".join(map(str, broken[:5]))

    # --- traffic ----------------------------------------------------------------------------------

    @property
    def memory_channels(self) -> dict[str, Any]:
        return _channels(self.ram)

    @property
    def software_channels(self) -> dict[str, Any]:
        return _channels(self.software)

    def pause(self, **shares: tuple[float, int]) -> None:
        """Pause memory's channels at random. Each argument has the arguments of :func:`pauses`
        for a channel."""
        for name, channel in self.memory_channels.items():
            channel.clear_pause_generator()
            channel.pause = False
            if name in shares:
                channel.set_pause_generator(pauses(self.rng, *shares[name]))

    def disturb(self) -> str:
        """Draw latencies and back-pressure for every channel, and return them as text."""
        shares = {}
        for name in self.memory_channels:
            share = self.rng.choice((0, 0, 0.1, 0.5, 0.8))
            if share:
                shares[name] = (share, self.rng.choice((1, 3, 40) if share < 0.5 else (1, 3)))
        self.pause(**shares)
        limit = self.rng.choice((1, 2, 64))
        for name in ("ar", "aw"):
            self.memory_channels[name].queue_occupancy_limit = limit
        slow = self.rng.random() < 0.2
        for channel in self.software_channels.values():
            channel.clear_pause_generator()
            channel.pause = False
            if slow:
                channel.set_pause_generator(pauses(self.rng, self.rng.choice((0.1, 0.5)), 5))
        return f"{shares}, {limit} bursts at once"

    # --- software ---------------------------------------------------------------------------------

    async def write(self, **values: int) -> None:
        """Write registers by name.

        Raises:
            Refused: a write was answered with SLVERR.
        """
        for address, word in word_writes(values):
            await self.write_word(address, word.to_bytes(WORD_BYTES, "little"))

    async def write_word(self, address: int, data: bytes) -> None:
        """Write one to four bytes."""
        answer = await self._within(self.software.write(address, data))
        _check_answer(answer.resp, f"write {address:#05x}")

    async def read(self, *names: str) -> dict[str, int]:
        words = [await self.read_word(address) for address in word_addresses(names)]
        return joined(names, words)

    async def read_word(self, address: int) -> int:
        answer = await self._within(self.software.read(address, WORD_BYTES))
        _check_answer(answer.resp, f"read {address:#05x}")
        return int.from_bytes(answer.data, "little")

    async def _within(self, access: Awaitable[Any]) -> Any:
        return await with_timeout(cocotb.start_soon(access), 2000 * PERIOD_NS, "ns")

    # --- memory -----------------------------------------------------------------------------------

    def poke(self, address: int, data: bytes) -> None:
        """Write the core's and the twin's memory from outside."""
        self.ram.write(address % self.config.mem_size, data)
        self.twin.dram.write(address, data)

    def memory(self) -> npt.NDArray[np.uint8]:
        return np.frombuffer(bytes(self.ram.mem), dtype=np.uint8)

    def compare(self) -> None:
        """Compare memory with the twin's."""
        assert_equal(self.memory(), self.twin.window(), self.config.mem_base)

    def adopt(self) -> None:
        """Copy memory into the twin's."""
        self.twin.dram = Dram.of(self.config)
        self.twin.dram.write(self.config.mem_base, self.memory())

    def break_memory(self, reads: range = range(0), writes: range = range(0), answer: int = SLVERR) -> None:
        """Make memory answer accesses to these addresses with an error, and no others."""
        self._broken = {"read": reads, "write": writes}
        self._answer = answer

    def misplace_last(self, ordinal: int, *, early: bool) -> None:
        """Place RLAST wrongly in one read burst of several beats: one beat early, on the last beat of a
        shortened burst, or after an additional beat. The burst is the first one after the given number of
        bursts."""
        channel = self.memory_channels["r"]
        send = channel.send
        others, chosen, begins = ordinal, False, True
        held: Any = None

        async def misplaced(beat: Any) -> None:
            nonlocal others, chosen, begins, held
            last = int(beat.rlast)
            if begins and not chosen:
                chosen = others <= 0 and not last
                others -= 1
            begins = bool(last)
            if not chosen:
                await send(beat)
            elif early:
                held, before = (None, held) if last else (beat, held)
                if before is not None:
                    before.rlast = last
                    await send(before)
            else:
                following = copy(beat)
                beat.rlast = 0
                await send(beat)
                if last:
                    await send(following)
            if chosen and last:
                chosen, others = False, 1 << 30

        channel.send = misplaced
        self._undo = partial(setattr, channel, "send", send)

    def mend_memory(self) -> None:
        """Undo :meth:`break_memory` and :meth:`misplace_last`."""
        self.break_memory()
        self._undo()

    def _install_faults(self) -> None:
        """Let the memory model consult the broken addresses. An exception makes it answer SLVERR."""
        self.break_memory()
        for side, kind, channel, response in (
            (self.ram.read_if, "read", self.ram.read_if.r_channel, "rresp"),
            (self.ram.write_if, "write", self.ram.write_if.b_channel, "bresp"),
        ):
            name = f"_{kind}"
            setattr(side, name, self._faulty(kind, getattr(side, name)))
            channel.send = self._answering(channel.send, response)

    def _faulty(self, kind: str, access: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def checked(address: int, what: Any) -> Any:
            length = what if isinstance(what, int) else len(what)
            broken = self._broken[kind]
            if broken and address < broken.stop and broken.start < address + length:
                raise OSError(f"{kind} of {address:#x}")
            return await access(address, what)

        return checked

    def _answering(self, send: Callable[..., Awaitable[None]], name: str) -> Callable[..., Awaitable[None]]:
        async def answered(transaction: Any) -> None:
            if int(getattr(transaction, name)) == SLVERR:
                setattr(transaction, name, self._answer)
            await send(transaction)

        return answered

    def place(self, program: Program, inputs: Mapping[str, npt.NDArray[Any]] | None = None) -> None:
        """Put a program and its inputs into memory."""
        base = self.config.mem_base
        self.poke(base + program.code_offset, program.code)
        for offset, content in program.segments:
            self.poke(base + offset, content)
        for tensor in program.tensors:
            if inputs is not None and tensor.role == "input":
                self.poke(base + tensor.offset, tensor.pack(inputs[tensor.name]).tobytes())

    # --- runs -------------------------------------------------------------------------------------

    async def launch(
        self, program: Program, inputs: Mapping[str, npt.NDArray[Any]] | None = None, **settings: int
    ) -> None:
        """Put a program into memory and start it."""
        self.place(program, inputs)
        await self.write(
            **{
                "program_address": self.config.mem_base + program.code_offset,
                "program_length": len(program.instructions),
                "mem_base": self.config.mem_base,
                "mem_size": self.config.mem_size,
                "interrupt": 1,
                "interrupt_enable": 1,
                **settings,
            }
        )
        self._beats = (self.axi.read_beats, self.axi.write_beats)
        self.axi.quiet = False
        await self.write(control=REGISTERS["control"].bit("start"))

    async def finish(self, patience: int = PATIENCE) -> Outcome:
        """Wait for the interrupt and return the registers."""
        if not int(self.dut.irq.value):
            await with_timeout(RisingEdge(self.dut.irq), patience * PERIOD_NS, "ns")
        names = ("status", "cause", "fault_index", "cycles", "read_bytes", "written_bytes")
        values = await self.read(*names)
        outcome = Outcome(
            status=values["status"],
            cause=Cause(values["cause"]),
            index=values["fault_index"],
            cycles=values["cycles"],
            read_bytes=values["read_bytes"],
            written_bytes=values["written_bytes"],
        )
        assert outcome.bit("done")
        assert not outcome.bit("running")
        assert outcome.bit("error") == (outcome.cause is not Cause.NONE)
        await self.write(interrupt=1)
        assert not int(self.dut.irq.value)
        return outcome

    async def run(
        self,
        program: Program,
        inputs: Mapping[str, npt.NDArray[Any]] | None = None,
        *,
        patience: int = PATIENCE,
        **settings: int,
    ) -> Outcome:
        """Run a program on the core and on the twin. Both must succeed and leave equal memory."""
        await self.launch(program, inputs, **settings)
        functional = self.twin.run(program)
        functional.raise_if_bad()
        outcome = await self.finish(patience)
        assert outcome.cause is Cause.NONE, f"{outcome.cause.label} at instruction {outcome.index}"
        self.compare()
        reads, writes = self._beats
        assert outcome.read_bytes == (self.axi.read_beats - reads) * self.config.bus_bytes
        assert outcome.written_bytes == (self.axi.write_beats - writes) * self.config.bus_bytes
        return outcome

    async def clear(self) -> None:
        """Clear tokens, status and interrupt through the registers."""
        await self.write(control=REGISTERS["control"].bit("clear"))
        self.twin.tokens = (0, 0, 0, 0)


def _check_answer(answer: int, what: str) -> None:
    if answer == SLVERR:
        raise Refused(what)
    assert answer == OKAY, f"{what} is answered with {answer}"


async def refused(access: Awaitable[Any]) -> None:
    """Expect that an access is answered with SLVERR."""
    try:
        await access
    except Refused:
        return
    raise AssertionError("the access was not refused")
