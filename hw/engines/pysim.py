"""The engine pysim: Amaranth's own simulator, slow but without a compiler."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np
from amaranth.hdl import Cat, ClockDomain, Module
from amaranth.sim import Simulator, SimulatorContext

from accel.base.errors import EngineError, HardwareError
from accel.core.access_names import access_names
from accel.core.config import Config
from accel.core.isa import Unit
from accel.core.scratchpad_specs import scratchpads_of
from accel.core.token_rules import WORKERS, Counter
from accel.hw.engines.bus_memory import OKAY, Memory
from accel.hw.engines.engine_driver import CLOSED, Contents, Engine, empty_contents, in_words
from accel.hw.engines.hardware_run import RECORD, Behaviour, RecordKind, Records
from accel.hw.engines.wave_files import lost_wave
from accel.hw.sim_top import SimTop
from accel.image.dram import Dram
from accel.image.test_scenario import Tokens

_CYCLE_SECONDS = 2e-9
_RESET = "reset"


class _Design:
    """An elaborated machine, for one engine after another. ``bench`` is its engine's."""

    def __init__(self, hardware: Config, *, named: bool = False) -> None:
        self.top = SimTop(hardware, named=named)
        self.domain = ClockDomain("sync")
        module = Module()
        module.domains.sync = self.domain
        module.submodules.accel_sim = self.top
        self.simulator = Simulator(module)
        self.simulator.add_clock(_CYCLE_SECONDS)
        self.simulator.add_testbench(self._run)
        self.bench: Callable[[SimulatorContext], Awaitable[None]] | None = None

    async def _run(self, ctx: SimulatorContext) -> None:
        assert self.bench is not None
        await self.bench(ctx)


_MAX_UNUSED = 4
_unused: dict[Config, _Design] = {}
"""Designs of closed engines, each elaborated in 1 to 2 seconds."""


class PysimEngine(Engine):
    """The machine in Amaranth's simulator.

    Args:
        reuses: take the design of a closed engine of this hardware.
    """

    def __init__(self, config: Config, *, wave: Path | None = None, reuses: bool = False) -> None:
        self.config = config
        self._is_open = True
        self._reuses = reuses and wave is None
        found = _unused.pop(config.hardware, None) if self._reuses else None
        if found is not None:
            found.simulator.reset()
        self._design = found or _Design(config.hardware, named=wave is not None)
        self._design.bench = self._bench
        self._top = self._design.top
        self._memory = Memory(config, Behaviour())
        self._pads = tuple(scratchpads_of(config))
        self._inputs: dict[str, int] = {}
        self._driven: dict[str, int] = {}
        """The design's inputs."""
        self._lite: set[str] = set()
        """Pending parts of a control transfer."""
        self._answer = (0, OKAY)
        self._watched: tuple[str, ...] = ()
        self._shown: tuple[int, ...] = ()
        """Values of the watched ports."""
        self._noted: list[tuple[int, int, int, int, int]] = []
        self._recording = self._started = self._running = False
        self._violation: HardwareError | None = None
        self._cycles = 0
        self._cycle = 0
        self._resetting = False
        self._stack = ExitStack()
        self._wave = wave
        if wave is not None:
            with self._wave_errors():
                file = self._stack.enter_context(wave.open("w", encoding="utf-8"))
                self._stack.enter_context(self._design.simulator.write_vcd(file))
        self.reset()

    @contextmanager
    def _wave_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            with suppress(OSError):
                self._stack.close()
            assert self._wave is not None
            raise lost_wave(self._wave, error.errno or 0) from None

    def _step(self) -> None:
        if not self._is_open:
            raise EngineError(CLOSED)
        before = self._cycles
        with self._wave_errors():
            while self._cycles == before:
                self._design.simulator.advance()
        if self._violation is not None:
            violation, self._violation = self._violation, None
            raise violation

    async def _bench(self, ctx: SimulatorContext) -> None:
        while True:
            self._drive(ctx)
            self._control(ctx)
            try:
                self._bus(ctx)
            except HardwareError as error:  # raised here it would end the simulation for good
                self._violation = error
            self._running = bool(ctx.get(self._top.running))
            self._started |= self._running
            self._cycle = ctx.get(self._top.cycle)
            if self._running and self._recording and not ctx.get(self._top.halted):
                self._observe(ctx)
            self._shown = tuple(ctx.get(getattr(self._top, name)) for name in self._watched)
            self._cycles += 1
            await ctx.tick()
            self._memory.now += 1

    def _drive(self, ctx: SimulatorContext) -> None:
        memory = self._memory
        memory.offer()
        beat = memory.beat
        values: dict[str, int] = {
            "m_axi_arready": memory.ready(),
            "m_axi_awready": memory.ready(),
            "m_axi_wready": memory.ready(),
            "m_axi_rvalid": beat is not None,
            "m_axi_rdata": beat.data if beat else 0,
            "m_axi_rresp": beat.response if beat else OKAY,
            "m_axi_rlast": beat.last if beat else 0,
            "m_axi_bvalid": memory.response is not None,
            "m_axi_bresp": memory.response or OKAY,
            **{f"s_axi_{name}": name in self._lite for name in ("awvalid", "wvalid", "arvalid")},
            "s_axi_bready": "b" in self._lite,
            "s_axi_rready": "r" in self._lite,
            _RESET: self._resetting,
            **self._inputs,
        }
        changed = {name: value for name, value in values.items() if self._driven.get(name) != value}
        self._driven |= changed
        ports = [self._design.domain.rst if name == _RESET else getattr(self._top, name) for name in changed]
        together, offset = 0, 0
        for port, value in zip(ports, changed.values(), strict=True):
            together |= value << offset
            offset += len(port)
        if ports:
            ctx.set(Cat(*ports), together)  # once, since the design settles after each

    def _control(self, ctx: SimulatorContext) -> None:
        top, waits = self._top, self._lite
        for channel, valid, ready in (
            ("b", top.s_axi_bvalid, None),
            ("r", top.s_axi_rvalid, None),
            ("awvalid", None, top.s_axi_awready),
            ("wvalid", None, top.s_axi_wready),
            ("arvalid", None, top.s_axi_arready),
        ):
            if channel in waits and ctx.get(ready if valid is None else valid):
                waits.remove(channel)
                if channel == "b":
                    self._answer = (0, ctx.get(top.s_axi_bresp))
                elif channel == "r":
                    self._answer = (ctx.get(top.s_axi_rdata), ctx.get(top.s_axi_rresp))

    def _bus(self, ctx: SimulatorContext) -> None:
        top, memory = self._top, self._memory
        if memory.beat is not None and ctx.get(top.m_axi_rready):
            memory.read_taken()
        if memory.response is not None and ctx.get(top.m_axi_bready):
            memory.response_taken()
        if ctx.get(top.m_axi_arvalid) and ctx.get(top.m_axi_arready):
            memory.read_asked(ctx.get(top.m_axi_araddr), ctx.get(top.m_axi_arlen))
        if ctx.get(top.m_axi_awvalid) and ctx.get(top.m_axi_awready):
            memory.write_asked(ctx.get(top.m_axi_awaddr), ctx.get(top.m_axi_awlen))
        if ctx.get(top.m_axi_wvalid) and ctx.get(top.m_axi_wready):
            data, strobe = ctx.get(top.m_axi_wdata), ctx.get(top.m_axi_wstrb)
            memory.written(data, strobe, bool(ctx.get(top.m_axi_wlast)))

    def _observe(self, ctx: SimulatorContext) -> None:
        def get(name: str) -> int:
            return int(ctx.get(getattr(self._top, name)))

        def note(kind: RecordKind, unit: int, name: str, value: str) -> None:
            if get(name):
                self._noted.append((self._cycle, get(f"{name}_index"), get(value), unit, kind))

        note(RecordKind.PUSH, Unit.FETCH, "ev_push", "ev_push_unit")
        for unit in WORKERS:
            name = f"ev_{unit.label}"
            note(RecordKind.START, unit, f"{name}_start", f"{name}_start_pops")
            note(RecordKind.RETIRE, unit, f"{name}_retire", f"{name}_retire_pushes")
        for kind in (RecordKind.READ_GRANT, RecordKind.READ_LAST):
            name = f"ev_{kind.name.lower()}"
            note(kind, get(f"{name}_unit"), name, f"{name}_beats")
        for kind in (RecordKind.WRITE_GRANT, RecordKind.WRITE_LAST):
            name = f"ev_{kind.name.lower()}"
            note(kind, Unit.STORE, name, f"{name}_beats")

    def configure(self, config: Config, behaviour: Behaviour) -> None:
        self._memory = Memory(config, behaviour)
        self._started = False

    def reset(self) -> None:
        self._resetting = True
        self._step()
        self._step()
        self._resetting = False
        self._memory = Memory(self._memory.config, self._memory.behaviour)
        self._started = self._running = False

    def preload(self, contents: Contents) -> None:
        found = in_words(contents, self.config)
        for element in range(max(len(array) for array in found)):
            for name, array in zip(self._pads, found, strict=True):
                there = element < len(array)
                self._inputs[f"pre_{name}_en"] = there
                if there:
                    self._inputs[f"pre_{name}_addr"] = element
                    self._inputs[f"pre_{name}_data"] = int.from_bytes(array[element].tobytes(), "little")
            self._step()
        for name in self._pads:
            self._inputs[f"pre_{name}_en"] = 0
        self._step()

    def peek(self) -> Contents:
        found = empty_contents(self.config)
        self._watched = tuple(f"peek_{name}_data" for name in self._pads)
        for asked in range(max(map(len, found)) + 1):
            for name, array in zip(self._pads, found, strict=True):
                self._inputs[f"peek_{name}_en"] = asked < len(array)
                self._inputs[f"peek_{name}_addr"] = min(asked, len(array) - 1)
            self._step()
            for array, value in zip(found, self._shown, strict=True):
                if 0 < asked <= len(array):
                    raw = value.to_bytes(array.shape[1], "little")
                    array[asked - 1] = np.frombuffer(raw, dtype=np.uint8)
        self._watched = ()
        return found

    def tokens(self) -> Tokens:
        self._watched = tuple(f"tokens_{counter.value}" for counter in Counter)
        self._step()
        first, second, third, fourth = self._shown
        self._watched = ()
        return first, second, third, fourth

    def accesses(self) -> dict[str, int]:
        found = {}
        self._watched = ("access_count",)
        for number, name in enumerate(access_names(self.config)):
            self._inputs["access_select"] = number
            self._step()
            found[name] = self._shown[0]
        self._watched = ()
        return found

    def load_memory(self, dram: Dram) -> None:
        self._memory.dram.assign(dram)

    def save_memory(self, dram: Dram) -> None:
        self._memory.save(dram)

    def write(self, address: int, word: int) -> bool:
        self._inputs |= {"s_axi_awaddr": address, "s_axi_wdata": word, "s_axi_wstrb": 0xF}
        return self._transfer("awvalid", "wvalid", "b")[1] == OKAY

    def read(self, address: int) -> int | None:
        self._inputs |= {"s_axi_araddr": address}
        word, response = self._transfer("arvalid", "r")
        return word if response == OKAY else None

    def _transfer(self, *channels: str) -> tuple[int, int]:
        self._lite = set(channels)
        while self._lite:
            self._step()
        return self._answer

    def advance(self, cycles: int) -> bool:
        for _ in range(cycles):
            if self._started and not self._running:
                if not self._memory.quiet:
                    raise HardwareError("the design ends a run before the bus has answered everything")
                return True
            self._step()
        return False

    def cycle(self) -> int:
        return self._cycle

    def record(self, on: bool) -> None:
        self._recording = on
        self._noted = []

    def records(self) -> Records:
        return np.array(self._noted, dtype=RECORD)

    def close(self) -> None:
        if self._is_open and self._reuses:
            _unused[self.config.hardware] = self._design
            if len(_unused) > _MAX_UNUSED:
                del _unused[next(iter(_unused))]
        self._is_open = False
        with self._wave_errors():
            self._stack.close()
