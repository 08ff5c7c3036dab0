"""Block RAMs do not define the result of a read in the cycle of a write to the same word. No program without
a race depends on it."""

from types import SimpleNamespace
from typing import Any

import pytest
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.sim import Simulator
from hypothesis import given

from accel.core.config import NAMED
from accel.hw.datapath import accumulators, scratchpads
from accel.hw.engines import model_cache
from accel.hw.engines.open_engine import open_engine
from accel.run.lockstep import Scope, lockstep
from tests.lockstep.cases import Case, cases
from tests.strategies import examples


class Scrambled(wiring.Component):
    """A memory with one write port and one read port. A read in the cycle of a write to the same word returns
    the inverted word."""

    def __init__(self, **options: Any) -> None:
        self._memory = Memory(**options)
        super().__init__({})

    def write_port(self, **options: Any) -> Any:
        self._write = self._memory.write_port(**options)
        return self._write

    def read_port(self) -> Any:
        self._read = read = self._memory.read_port()
        self._given = SimpleNamespace(
            addr=Signal.like(read.addr), en=Signal(), data=Signal.like(read.data, name="scrambled")
        )
        return self._given

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.memory = self._memory
        read, port, write = self._read, self._given, self._write
        meets = Signal()
        with m.If(port.en):
            m.d.sync += meets.eq(write.en.any() & (write.addr == port.addr))
        m.d.comb += [
            read.addr.eq(port.addr),
            read.en.eq(port.en),
            port.data.eq(Mux(meets, ~read.data, read.data)),
        ]
        return m


def test_a_word_is_scrambled() -> None:
    dut = Scrambled(shape=8, depth=4, init=[1, 2, 3, 4])
    write, read = dut.write_port(), dut.read_port()
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    seen: list[int] = []

    async def drive(context: Any) -> None:
        context.set(read.en, 1)
        context.set(write.addr, 1)
        context.set(write.data, 7)
        for address, writes in ((1, 0), (1, 1), (1, 0), (2, 1)):
            context.set(read.addr, address)
            context.set(write.en, writes)
            await context.tick()
            seen.append(context.get(read.data))

    simulator.add_testbench(drive)
    simulator.run()
    assert seen == [2, 2 ^ 0xFF, 7, 3]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["tiny-int8", "tiny"])
def test_no_program_without_a_race_sees_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = NAMED[name].hardware
    digest = model_cache._source_digest()
    monkeypatch.setattr(
        model_cache, "_source_digest", lambda: f"{digest}, scrambled"
    )  # the key under which models are cached
    for module in (scratchpads, accumulators):
        monkeypatch.setattr(module, "Memory", Scrambled)
    scopes: set[Scope] = set()
    with open_engine(config) as engine:

        @examples(60)
        @given(cases({name: config}))
        def check(case: Case) -> None:
            engine.reset()
            found = lockstep(case.program, engine, seed=case.seed, max_cycles=case.max_cycles)
            assert found.difference is None, found.difference
            scopes.add(found.scope)

        check()
    assert Scope.EVERYTHING in scopes
