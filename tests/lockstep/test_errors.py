"""Bus errors, stops and timeouts on the hardware."""

from functools import cache

import pytest

import accel
from accel.base.errors import BusTimeout, HardwareError, MachineError, RunStopped
from accel.core.config import NAMED
from accel.core.events import Event, EventKind
from accel.core.fault_causes import Cause
from accel.core.isa import Unit
from accel.core.registers import REGISTERS
from accel.hw.engines.hardware_run import Behaviour, HardwareRun
from accel.run.backends.rtl_backend import raise_if_bad, run_on_hardware
from accel.run.lockstep import compare, scope_of
from accel.run.program import Program
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.timing.bus_ports import BurstRecord
from accel.sim.timing.timing_run import TimingRun
from tests.lockstep.builds import TINY, built, group

pytestmark = pytest.mark.xdist_group(group(TINY))
MAX_CYCLES = 1 << 20


@cache
def program() -> Program:
    """A few bursts of every unit, with several in flight."""
    workload = accel.gemm(9, 17, 10, bias=True, shift=5)
    return accel.build(workload, NAMED["tiny"].override({"read_latency": 9, "write_latency": 5}), vthreads=2)


@cache
def simulated() -> TimingRun:
    found = program().simulate(program().dram(), Scratchpads.random(program().config, 0))
    assert found.timing is not None
    assert found.timing.stop is None
    return found.timing


def bursts(*, writes: bool) -> list[BurstRecord]:
    """Bursts of the simulated run in the order of their grants."""
    found = [b for b in simulated().bursts if b.writes is writes]
    return sorted(found, key=lambda burst: burst.grant)


def run(behaviour: Behaviour) -> HardwareRun:
    one = program()
    pads = Scratchpads.random(one.config, 0)
    engine = built(one.config)
    return run_on_hardware(
        one, one.dram(), pads, engine, max_cycles=MAX_CYCLES, behaviour=behaviour, record=True
    )


def assert_stops(found: HardwareRun, burst: BurstRecord, cycle: int) -> None:
    """Check the reported error, and all events up to its cycle."""
    assert (found.cause, found.index, found.cycles) == (Cause.BUS, burst.instruction, cycle)
    assert found.events() == [event for event in simulated().events() if event.cycle <= cycle]


@pytest.mark.parametrize("number", range(15))
def test_a_bad_read(number: int) -> None:
    everything = bursts(writes=False)
    burst = everything[number * len(everything) // 15]
    beat = number % (burst.last - burst.first + 1)
    behaviour = Behaviour(bad_read=everything.index(burst), bad_beat=beat)
    assert_stops(run(behaviour), burst, burst.first + beat)


@pytest.mark.parametrize("number", range(6))
def test_a_bad_write(number: int) -> None:
    everything = bursts(writes=True)
    burst = everything[number * len(everything) // 6]
    assert_stops(run(Behaviour(bad_write=everything.index(burst))), burst, burst.response)


@pytest.mark.parametrize("number", range(6))
def test_a_read_of_another_length(number: int) -> None:
    """RLAST comes one beat early or after an additional beat, which must not reach a scratchpad."""
    everything = bursts(writes=False)
    longer = [burst for burst in everything if burst.last > burst.first]
    burst = longer[number * len(longer) // 6]
    ordinal = everything.index(burst)
    short, surplus = Behaviour(short_read=ordinal), Behaviour(surplus_read=ordinal)
    for behaviour, cycle in ((short, burst.last - 1), (surplus, burst.last)):
        found = run(behaviour)
        assert (found.cause, found.index, found.cycles) == (Cause.BUS, burst.instruction, cycle)
        events = [event for event in simulated().events() if event.cycle <= cycle]
        own = Event(burst.last, burst.unit, EventKind.BURST_LAST, burst.instruction, beats_of(burst))
        if behaviour is short:
            events = sorted([*events, own._replace(cycle=cycle)])
        else:
            events.remove(own)
        assert found.events() == events


def beats_of(burst: BurstRecord) -> int:
    return burst.last - burst.first + 1


def test_the_bursts_are_of_every_unit() -> None:
    assert {burst.unit for burst in bursts(writes=False)} == {Unit.FETCH, Unit.LOAD, Unit.COMPUTE}
    assert len(bursts(writes=True)) >= 6


def test_the_error_in_words() -> None:
    burst = bursts(writes=True)[0]
    found = run(Behaviour(bad_write=0))
    message = rf"^instruction {burst.instruction} \(cycle {found.cycles}\): STORE.OUT: the memory answers "
    with pytest.raises(MachineError, match=message) as error:
        raise_if_bad(found, program().instructions, program().start.tokens, MAX_CYCLES)
    assert (error.value.cause, error.value.index) == (Cause.BUS, burst.instruction)


# --- runs that are ended from outside --------------------------------------------------------------


def ended(**ways: int) -> HardwareRun:
    one = program()
    pads = Scratchpads.random(one.config, 0)
    engine = built(one.config)
    found = run_on_hardware(one, one.dram(), pads, engine, max_cycles=MAX_CYCLES, record=True, **ways)
    engine.clear()
    return found


def assert_as_simulated(found: HardwareRun, **ways: int) -> None:
    """The simulator stops in the same cycle, at the same instruction, and with the same events."""
    timing = program().simulate(program().dram(), Scratchpads.random(program().config, 0), **ways).timing
    assert timing is not None
    assert timing.stop is not None
    stop = (timing.stop.fault.cause, timing.stop.index, timing.stop.cycle)
    assert (found.cause, found.index, found.cycles) == stop
    assert found.events() == timing.events()


@pytest.mark.parametrize("number", range(8))
def test_a_run_is_stopped(number: int) -> None:
    """Software's write takes a few cycles, so the simulator stops in the cycle in which the
    hardware stopped."""
    cycle = number * (simulated().cycles - 12) // 7
    found = ended(stop_at=cycle)
    assert found.cause is Cause.STOPPED
    assert cycle <= found.cycles <= cycle + 12
    assert_as_simulated(found, stop_at=found.cycles)


@pytest.mark.parametrize("bus_timeout", [1, 2, 3, 4, 5, 6])
def test_a_time_out(bus_timeout: int) -> None:
    """These timeouts are shorter than the latencies of the timing contract, so some of them
    end the run."""
    assert_as_simulated(ended(bus_timeout=bus_timeout), bus_timeout=bus_timeout)


def test_a_long_time_out_ends_nothing() -> None:
    assert ended(bus_timeout=7).cause is Cause.NONE


def test_errors_of_runs_that_are_ended() -> None:
    one = program()
    for backend in ("sim", "rtl"):
        for ways, error in (({"stop_at": 40}, RunStopped), ({"bus_timeout": 5}, BusTimeout)):
            found = one.execute(
                one.dram(),
                Scratchpads.random(one.config, 0),
                backend=backend,
                hardware=built(one.config) if backend == "rtl" else None,
                **ways,
            ).error
            assert type(found) is error


def test_a_run_that_takes_too_long_is_aborted() -> None:
    """The caller's exception ends it too, and the machine is usable immediately."""

    class Enough(Exception):
        pass

    def enough(cycle: int) -> None:
        raise Enough

    one = program().with_timing(program().config.override({"read_latency": 1000}))
    engine = built(one.config)
    pads = Scratchpads.random(one.config, 0)
    slow = Behaviour(hostile=True)
    for error, ways in ((HardwareError, {"patience": 5}), (Enough, {"progress": enough})):
        with pytest.raises(error):
            run_on_hardware(one, one.dram(), pads, engine, max_cycles=MAX_CYCLES, behaviour=slow, **ways)
        assert engine.registers("status")["status"] & REGISTERS["status"].bit("running") == 0
        engine.clear()
        again = run_on_hardware(one, one.dram(), pads, engine, max_cycles=MAX_CYCLES)
        assert again.cause is Cause.NONE


def test_an_error_does_not_affect_the_next_run() -> None:
    """The earlier run ended with an error. Its tokens are cleared, without a reset."""
    one = program()
    pads = Scratchpads.random(one.config, 0)
    engine = built(one.config)
    run_on_hardware(
        one, one.dram(), pads, engine, max_cycles=MAX_CYCLES, behaviour=Behaviour(bad_read=7), record=True
    )
    engine.clear()
    dram, expected = one.dram(), one.dram()
    again = run_on_hardware(one, dram, pads, engine, max_cycles=MAX_CYCLES, record=True)
    one.execute(expected, pads.copy())
    assert compare(one, scope_of(one), simulated(), again, expected, dram) is None
