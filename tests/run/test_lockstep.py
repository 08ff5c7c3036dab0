"""The time that lockstep gives the hardware: it depends on the program, not on where the simulator
stopped."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given

from accel.base.errors import HardwareError
from accel.base.records import replace
from accel.core.config import NAMED
from accel.core.fault_causes import Cause
from accel.core.isa import Finish, Gemm, Instruction, Load, Memory, Store
from accel.hw.engines.engine_driver import Engine
from accel.run import lockstep as module
from accel.run.backends.simulator_backend import Simulator
from accel.run.lockstep import Lockstep, cycles_without_overlap, lockstep
from accel.run.lockstep_scope import Scope
from accel.run.program import Program
from accel.run.run_options import RunOptions
from accel.sim.timing.timing_model import simulate_timing
from tests.lockstep.cases import Case, cases
from tests.programs import handmade
from tests.strategies import examples

TINY = NAMED["tiny"]
CHUNKED = replace(TINY, fetch_buffer=16, fetch_chunk=16, token_bits=4)
"""A machine that fetches eight pairs of instructions at a time, and counts 15 tokens."""
LATE = 5000
"""Read latency of the slow memory, less than a hundred times that of ``tiny``."""
SLOW = [Load(memory=Memory.ACC, x_size=1, y_size=1)] * 100
"""LOADs that run one after the other: 500,000 cycles on the slow memory."""


class SlowHardware(SimpleNamespace):
    """In place of the hardware on hostile memory: the simulator with a much larger read latency."""

    def run(self, program: Program, dram: Any, pads: Any, *_: Any, **options: Any) -> Any:
        self.max_cycles, patience = options["max_cycles"], options["patience"]
        slow = program.with_timing(replace(program.config, read_latency=LATE))
        chosen = RunOptions(max_cycles=self.max_cycles)
        done = Simulator(timed=True).simulate(slow, dram, pads.copy(), chosen)
        assert done.timing is not None
        self.cycles = done.timing.cycles
        if self.cycles > patience:
            raise HardwareError(f"the hardware has not ended its run after {patience} clock cycles")
        stop = done.timing.stop
        cause, index = (Cause.NONE, 0) if stop is None else (stop.fault.cause, stop.index)
        return SimpleNamespace(cause=cause, index=index, cycles=self.cycles, tokens=done.functional.tokens)


@pytest.fixture
def hardware(monkeypatch: pytest.MonkeyPatch) -> SlowHardware:
    """Slow hardware, which every comparison runs on."""
    found = SlowHardware()
    monkeypatch.setattr(module, "run_on_hardware", found.run)
    monkeypatch.setattr(module, "compare_leftovers", lambda *_: None)
    monkeypatch.setattr(module, "compare_accesses", lambda *_: None)
    return found


def compared(program: Program, **options: Any) -> Lockstep:
    engine: Engine = None  # type: ignore[assignment]  # nothing runs on it
    return lockstep(program, engine, hostile=True, **options)


def test_the_hardware_gets_the_limit_that_ended_the_run_of_the_simulator(hardware: SlowHardware) -> None:
    found = compared(handmade(*SLOW), max_cycles=300)
    assert (found.cause, found.scope, found.difference) == (Cause.LIMIT, Scope.END, None)
    assert hardware.max_cycles == hardware.cycles == 300


def test_a_limit_that_only_the_hardware_would_reach_does_not_end_its_run(hardware: SlowHardware) -> None:
    program = handmade(*SLOW)
    ideal = compared(program).cycles
    found = compared(program, max_cycles=ideal + 1)
    assert (found.cause, found.difference) == (Cause.NONE, None)
    assert hardware.cycles > 100 * LATE > ideal


def overflowing() -> list[Instruction]:
    """Tokens pushed faster than popped: they overflow on ``CHUNKED`` unless instructions arrive slowly."""
    push, pop = (
        Load(memory=Memory.INP, push_next=True),
        Gemm(reset=True, uop_end=1, iter_out=40, pop_prev=True),
    )
    return [push, pop] * 40


@pytest.mark.parametrize(
    ("early", "cause"),
    [
        (overflowing(), Cause.TOKEN_OVERFLOW),
        ([Store(pop_next=True)], Cause.NEIGHBOUR),
        ([Gemm(pop_prev=True)], Cause.DEADLOCK),
    ],
    ids=["token overflow", "fault", "deadlock"],
)
def test_an_early_error_does_not_shorten_the_time_of_the_hardware(
    early: list[Instruction], cause: Cause, hardware: SlowHardware
) -> None:
    """The error stops the simulator early, while the slow hardware executes the remaining
    instructions."""
    found = compared(handmade(*early, *SLOW, config=CHUNKED))
    assert (found.cause, found.scope, found.difference) == (cause, Scope.END, None)


def test_hardware_that_does_not_end_is_a_difference(
    hardware: SlowHardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hangs if it takes longer than the slowest memory can explain, whatever ended the simulator's run."""
    monkeypatch.setattr(module, "_SLOWDOWN", 1)
    monkeypatch.setattr(module, "_GRACE_CYCLES", 0)
    found = compared(handmade(*SLOW))
    assert found.difference is not None
    assert found.difference.what == "outcome"
    assert hardware.max_cycles < 100 * LATE


@examples(40)
@given(cases())
def test_no_run_takes_longer_than_its_instructions_without_overlap(case: Case) -> None:
    for serial in (0, 1):
        config = replace(case.config, serial=serial)
        address = config.mem_base + case.program.code_offset
        run = simulate_timing(
            case.program.instructions, config, address=address, tokens=case.program.start.tokens
        )
        assert run.cycles <= cycles_without_overlap(run.program, config)


def test_the_cycles_of_finish_alone_are_a_fetch_and_a_pipeline() -> None:
    run = simulate_timing([Finish()], TINY, address=0)
    assert run.cycles <= cycles_without_overlap(run.program, TINY) < 2 * run.cycles
