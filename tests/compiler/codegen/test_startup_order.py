"""The first transfers of a program: the delayed LOADs, and the cycles that this saves."""

import pytest

import accel
from accel.base.errors import ScheduleError
from accel.compiler.schedule.schedule_files import scheduled
from accel.core.isa import Instruction, Load, Memory
from accel.sim.timing.timing_model import simulate_timing
from tests.compiler.running import as_it_is
from tests.expect import refused


def layer() -> accel.Workload:
    return accel.conv2d(1, 64, 14, 14, 64, 3, padding=1, bias=True, relu=True, shift=8)


def first(instructions: list[Instruction], memory: Memory) -> int:
    return next(n for n, i in enumerate(instructions) if isinstance(i, Load) and i.memory == memory)


def both() -> tuple[accel.Program, accel.Program]:
    """The program with and without delayed weights."""
    machine = accel.machine("vta")
    with_it = as_it_is(layer(), machine)
    steps = [step for step in with_it.schedule().steps if step["op"] != "start_after"]
    assert len(steps) == len(with_it.schedule().steps) - 1
    return with_it, as_it_is(scheduled(layer(), machine, steps), machine)


def test_the_first_load_of_weights_waits_for_what_precedes_the_bias() -> None:
    with_it, without = (program.instructions for program in both())
    weights, bias = (first(with_it, memory) for memory in (Memory.WGT, Memory.ACC))
    assert with_it[weights].pop_next
    assert with_it[bias - 1].push_prev
    assert not without[weights].pop_next
    assert not without[bias - 1].push_prev
    flags = [(i.pop_prev, i.pop_next, i.push_prev, i.push_next) for i in with_it]
    others = [(i.pop_prev, i.pop_next, i.push_prev, i.push_next) for i in without]
    assert sum(map(sum, flags)) == sum(map(sum, others)) + 2


def test_the_first_gemm_starts_earlier() -> None:
    taken = [simulate_timing(p.instructions, p.config, address=p.code_offset).cycles for p in both()]
    assert taken[0] + 200 < taken[1]


def test_a_bias_that_waits_for_no_instruction() -> None:
    """No micro-ops and no clearing precede the bias, so its LOAD comes first."""
    workload = accel.conv2d(1, 16, 4, 4, 16, 1, bias=True)
    program = as_it_is(workload, "vta")
    assert program.schedule().steps[-1] == {"op": "start_after", "stage": "weightL", "other": "biasL"} or any(
        step["op"] == "start_after" for step in program.schedule().steps
    )
    assert isinstance(program.instructions[0], Load)
    assert program.run().mismatches == 0


def test_invalid_delays_are_refused() -> None:
    machine = accel.machine("vta")
    s = as_it_is(layer(), machine).schedule()
    wrong = (
        "{} is not a copy into {}; start_after orders copies of the load unit after those of the compute unit"
    )
    with refused(ScheduleError, wrong.format("biasL", "inp_buffer or wgt_buffer")):
        s["biasL"].start_after(s["biasL"])
    with refused(ScheduleError, wrong.format("dataL", "acc_buffer")):
        s["weightL"].start_after(s["dataL"])
    with refused(ScheduleError, wrong.format("S", "acc_buffer")):
        s["weightL"].start_after(s["S"])
    with pytest.raises(ScheduleError, match="is not a stage"):
        s["weightL"].start_after("bias")  # type: ignore[arg-type]
