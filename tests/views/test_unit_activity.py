"""States of units, derived from events alone, compared with the counts of the simulator."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.assembly import assemble
from accel.base.errors import AccelError, DeadlockError
from accel.base.records import replace
from accel.core.config import NAMED, Config
from accel.core.fault_causes import Cause
from accel.core.isa import Instruction, Unit
from accel.run.program import as_program
from accel.sim.timing.timing_model import simulate_timing
from accel.sim.timing.timing_run import TimingRun
from accel.views.activity_records import NO_INSTRUCTION, Activity, State, StateReason
from accel.views.analyzed_run import analyze_run
from accel.views.unit_activity import derive_activity
from tests.expect import refused
from tests.programs import gemm_program
from tests.strategies import examples, programs, timings
from tests.thorough import also
from tests.views.runs import EPILOGUES, from_text

TINY = NAMED["tiny"]


def look(program: list[Instruction], config: Config, **arguments: Any) -> tuple[TimingRun, Activity]:
    run = simulate_timing(program, config, **arguments)
    tokens = arguments.get("tokens", (0, 0, 0, 0))
    address = arguments["address"]
    seen = derive_activity(run.events(), program, config, address=address, cycles=run.cycles, tokens=tokens)
    return run, seen


SIZES = (
    {"size": 12, "x_size": 12, "y_size": 3},
    {"size": 40, "x_size": 2, "y_size": 2},
    {"size": 6, "x_size": 100, "y_size": 2},
)
"""Mixed programs, programs of many instructions, and programs of long rows."""


def test_states_add_up_to_the_counts_of_the_simulator() -> None:
    ended: list[Cause | None] = []

    @examples(720)
    @given(st.data())
    def compare(data: st.DataObject) -> None:
        sizes = data.draw(st.sampled_from(SIZES))
        machine = data.draw(st.sampled_from((TINY, NAMED["tiny-int8"])))
        config = replace(data.draw(timings(machine)), mem_base=4096, mem_size=16200)
        program = data.draw(programs(config, finishing=True, pad=3, dram_bytes=1 << 13, **sizes))
        tokens = data.draw(st.tuples(*[st.sampled_from((0, 0, 1))] * 4))
        limit = data.draw(st.sampled_from((1 << 30, 100, 200, 300)))
        run, seen = look(program, config, address=4096, tokens=tokens, max_cycles=limit)
        ended.append(None if run.stop is None else run.stop.fault.cause)
        for unit in Unit:
            spans = seen.spans[unit]
            assert sum(s.stop - s.start for s in spans) == run.cycles
            assert all(a.stop == b.start and a.start < a.stop for a, b in pairwise(spans))
            assert seen.unit_cycles(unit) == run.unit_cycles[unit], unit
        for one in seen.slices:
            step = run.instruction_runs[one.instruction]
            assert (one.unit, one.dispatched, one.start) == (step.unit, step.dispatch, step.start)
            assert one.stop == (
                run.cycles if step.retire is None or step.retire >= run.cycles else step.retire + 1
            )
            assert one.start <= one.work_start <= one.work_stop <= one.stop
        for a, b in ((a, b) for a in seen.slices for b in seen.slices if a < b):
            apart = a.stop <= b.start or b.stop <= a.start
            assert apart or a.unit != b.unit or a.row != b.row
        for flow in seen.flows:
            assert flow.pushed < flow.popped
            assert flow.counter in run.instruction_runs[flow.source].pushes
            assert flow.counter in run.instruction_runs[flow.target].pops
        waited = {s.instruction for unit in Unit for s in seen.spans[unit] if s.state is State.TOKEN}
        assert waited <= set(range(len(program)))
        for unit, changes in seen.queue_levels.items():
            depth = getattr(config, f"{unit.label}_queue")
            assert all(0 <= level <= depth for _, level in changes)

    compare()
    assert {None, Cause.DEADLOCK, Cause.LIMIT} <= set(ended)


@pytest.mark.parametrize("timing", [also({}), also({"serial": 1}), {"read_latency": 9}])
def test_the_hardware_has_the_same_activity(timing: dict[str, int]) -> None:
    program = gemm_program(3, 9, 5)
    hardware = program.run(backend="rtl", engine="pysim", record=True, **timing)
    simulator = program.run(**timing)
    assert analyze_run(hardware).activity == analyze_run(simulator).activity


def test_the_hardware_has_the_same_activity_in_the_epilogue() -> None:
    program = as_program(assemble(EPILOGUES))
    hardware = program.run(backend="rtl", engine="pysim", record=True, check=False)
    assert analyze_run(hardware).activity == from_text(EPILOGUES).activity


def test_a_hardware_run_without_record_is_refused() -> None:
    unseen = gemm_program(3, 9, 5).run(backend="rtl", engine="pysim")
    message = "the run on the backend 'rtl' was not recorded; pictures need 'sim', or 'rtl' with record=True"
    with refused(AccelError, message):
        analyze_run(unseen)


def test_a_deadlock_waits_for_the_token_that_is_missing() -> None:
    text = """
        .config tiny
        LOAD.INP y_size=0 x_size=0 >compute
        GEMM     uop_end=0 <load <store
        FINISH
        """
    with pytest.raises(DeadlockError) as stopped:
        as_program(assemble(text)).run()
    seen = analyze_run(stopped.value.result).activity
    last = seen.spans[Unit.COMPUTE][-1]
    assert (last.state, last.reason) == (State.TOKEN, StateReason.STORE_TO_COMPUTE)
    assert last.stop == stopped.value.cycle
    assert {span.reason for span in seen.spans[Unit.COMPUTE]} == {
        StateReason.EMPTY,
        StateReason.STORE_TO_COMPUTE,
    }


def test_the_store_unit_waits_for_par_and_res() -> None:
    spans = from_text(EPILOGUES).activity.spans[Unit.STORE]
    waits = {
        (span.reason, span.instruction, span.awaited) for span in spans if span.awaited != NO_INSTRUCTION
    }
    assert waits == {
        (StateReason.OPERAND_LOADED, 3, 1),
        (StateReason.RES_FULL, 5, 4),
        (StateReason.RES_LOADED, 7, 5),
        (StateReason.OPERAND_IN_USE, 8, 7),
    }
    assert {span.state for span in spans if span.awaited != NO_INSTRUCTION} == {State.MEMORY}
