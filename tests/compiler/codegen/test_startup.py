"""The first transfers of a program: what is held back, and what that is worth."""

import pytest

import accel
from accel.base.errors import ScheduleError
from accel.compiler.schedule.files import scheduled
from accel.core.isa import Instruction, Load, Memory
from accel.sim.timing.model import simulate_timing
from tests.compiler.running import as_it_is
from tests.expect import refused


def layer() -> accel.Workload:
    return accel.conv2d(1, 64, 14, 14, 64, 3, padding=1, bias=True, relu=True, shift=8)


def first(instructions: list[Instruction], memory: Memory) -> int:
    return next(n for n, i in enumerate(instructions) if isinstance(i, Load) and i.memory == memory)


def both() -> tuple[accel.Program, accel.Program]:
    """With the weights held back, and without."""
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


def test_nothing_to_wait_for() -> None:
    """Without micro-ops or clearing before it, the bias is asked for at once."""
    workload = accel.conv2d(1, 16, 4, 4, 16, 1, bias=True)
    program = as_it_is(workload, "vta")
    assert program.schedule().steps[-1] == {"op": "start_after", "stage": "weightL", "other": "biasL"} or any(
        step["op"] == "start_after" for step in program.schedule().steps
    )
    assert isinstance(program.instructions[0], Load)
    assert program.run().mismatches == 0


def test_what_cannot_be_held_back() -> None:
    machine = accel.machine("vta")
    s = as_it_is(layer(), machine).schedule()
    wrong = (
        "{} is no copy into {}; start_after orders copies of the load unit behind those of the compute unit"
    )
    with refused(ScheduleError, wrong.format("biasL", "inp_buffer or wgt_buffer")):
        s["biasL"].start_after(s["biasL"])
    with refused(ScheduleError, wrong.format("dataL", "acc_buffer")):
        s["weightL"].start_after(s["dataL"])
    with refused(ScheduleError, wrong.format("S", "acc_buffer")):
        s["weightL"].start_after(s["S"])
    with pytest.raises(ScheduleError, match="is no stage"):
        s["weightL"].start_after("bias")  # type: ignore[arg-type]


def test_parameters_are_asked_for_right_before_the_first_store() -> None:
    """All of them fit here; the store unit has nothing else to do before."""
    workload = accel.conv2d(1, 64, 14, 14, 64, 3, padding=1, bias=True, relu=True, shift=8)
    program = as_it_is(workload, accel.machine("vta-int8"))
    names = [i.mnemonic for i in program.instructions]
    store = next(n for n, name in enumerate(names) if name.startswith("STORE"))
    assert names.count("LOAD.PAR") == 1
    assert names.index("LOAD.PAR") == store - 1
    assert program.run(seed=1).mismatches == 0
