"""The whole core in Amaranth's simulator: the priority of errors in one cycle, and
connections between units."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from accel.core.config import NAMED, Config
from accel.core.fault_causes import Cause
from accel.core.isa import (
    Alu,
    AluOp,
    Finish,
    Gemm,
    Instruction,
    Load,
    Memory,
    Store,
    Unknown,
    encode,
    encode_uops,
)
from accel.core.scratchpad_specs import scratchpads_of
from accel.core.token_rules import Counter
from accel.hw.engines.hardware_run import Behaviour, HardwareRun
from accel.hw.engines.pysim import PysimEngine
from accel.image.dram import Dram
from accel.sim.functional.scratchpads import Scratchpads

CONFIG = NAMED["tiny"].override(
    {
        "uop_bytes": 32,
        "inp_bytes": 32,
        "wgt_bytes": 256,
        "acc_bytes": 256,
        "read_latency": 4,
        "write_latency": 3,
        "mem_size": 1 << 16,
        "token_bits": 1,
    }
)
"""Every scratchpad has eight elements."""
CODE, DATA, RESULT = 0x1000, 0x2000, 0x3000
FOREVER = 1 << 20


@pytest.fixture(scope="module")
def machine() -> Iterator[PysimEngine]:
    with PysimEngine(CONFIG) as found:
        yield found


def run(
    machine: PysimEngine,
    instructions: Sequence[Instruction],
    *,
    max_cycles: int = FOREVER,
    pads: Scratchpads | None = None,
    dram: Dram | None = None,
    config: Config = CONFIG,
    behaviour: Behaviour | None = None,
) -> HardwareRun:
    """Run a program after a reset, and update ``dram``."""
    machine.reset()
    memory = Dram.of(config) if dram is None else dram
    memory.write(config.mem_base + CODE, encode(instructions, config))
    return machine.run(
        config,
        memory,
        address=config.mem_base + CODE,
        length=len(instructions),
        contents=None if pads is None else raw(pads),
        max_cycles=max_cycles,
        behaviour=behaviour,
        record=True,
    )


def raw(pads: Scratchpads) -> tuple[np.ndarray, ...]:
    """Scratchpads in the form that engines use."""
    return tuple(
        pads.of(pad).view(np.uint8).reshape(pad.depth(CONFIG), pad.element_bytes(CONFIG))
        for pad in scratchpads_of(CONFIG).values()
    )


def ends(found: HardwareRun) -> tuple[Cause, int, int]:
    return found.cause, found.index, found.cycles


# --- which error counts --------------------------------------------------------------------------

BY_FETCH: dict[Cause, list[Instruction]] = {
    Cause.OPCODE: [Load(memory=Memory.INP), Unknown(opcode=6), Finish()],
    Cause.EARLY_FINISH: [Load(memory=Memory.INP), Finish(), Finish()],
    Cause.NO_FINISH: [Load(memory=Memory.INP), Load(memory=Memory.WGT)],
}


@pytest.mark.parametrize("cause", BY_FETCH)
def test_the_limit_precedes_a_fetch_fault_in_the_same_cycle(machine: PysimEngine, cause: Cause) -> None:
    program = BY_FETCH[cause]
    alone = run(machine, program)
    assert ends(alone)[:2] == (cause, 1)
    cycle = alone.cycles
    limited, free = (run(machine, program, max_cycles=limit) for limit in (cycle, cycle + 1))
    assert (limited.cause, limited.cycles) == (Cause.LIMIT, cycle)
    assert ends(free) == (cause, 1, cycle)


def test_the_limit_names_the_oldest_instruction_that_has_not_retired(machine: PysimEngine) -> None:
    move = Load(memory=Memory.INP, dram_base=DATA // CONFIG.inp_element_bytes, x_size=8, y_size=1)
    program = [Load(memory=Memory.WGT), move, Finish(pop_prev=True)]
    stuck = run(machine, program)
    assert ends(stuck)[:2] == (Cause.DEADLOCK, 2)
    retired = dict(stuck.retirements() or [])
    assert sorted(retired) == [0, 1]
    for cycle in (1, retired[0], retired[0] + 1, retired[1], retired[1] + 1):
        oldest = sum(cycle > retired[n] for n in (0, 1))
        found = run(machine, program, max_cycles=cycle)
        assert (found.cause, found.index, found.cycles) == (Cause.LIMIT, oldest, cycle)


def test_the_first_unit_reports_if_several_fail_in_one_cycle(machine: PysimEngine) -> None:
    """Both wait for a token that the same instruction sends. The store's instruction comes
    first in the program."""
    program = [
        Store(memory=Memory.ACC, x_size=1, y_size=1, pop_prev=True),
        Load(memory=Memory.INP, x_size=9, y_size=1, pop_next=True),
        Load(memory=Memory.UOP, push_prev=True, push_next=True),
        Finish(),
    ]
    found = run(machine, program)
    assert ends(found)[:2] == (Cause.SRAM_RANGE, 1)
    program[1] = Load(memory=Memory.INP, pop_next=True)
    alone = run(machine, program)
    assert ends(alone) == (Cause.MEMORY_ID, 0, found.cycles)


def test_errors_of_the_core_itself(machine: PysimEngine) -> None:
    push = Load(memory=Memory.INP, push_next=True)
    assert ends(run(machine, [push, push, push, Finish()]))[:2] == (Cause.TOKEN_OVERFLOW, 1)
    assert ends(run(machine, [Load(memory=Memory.WGT, pop_next=True), Finish()]))[:2] == (Cause.DEADLOCK, 0)
    move = Load(memory=Memory.INP, dram_base=DATA // CONFIG.inp_element_bytes, x_size=8, y_size=1)
    show = Store(dram_base=RESULT // CONFIG.out_element_bytes, x_size=4, y_size=1)
    for program, behaviour in (
        ([move, Finish()], Behaviour(bad_read=1)),
        ([show, Finish()], Behaviour(bad_write=0)),
    ):
        assert ends(run(machine, program, behaviour=behaviour))[:2] == (Cause.BUS, 0)
    assert ends(run(machine, [move, show, Finish()]))[0] is Cause.NONE


# --- connections ---------------------------------------------------------------------------------


def test_every_scratchpad_is_filled_and_looked_into(machine: PysimEngine) -> None:
    pads = Scratchpads.random(CONFIG, 3)
    assert ends(run(machine, [Finish()], pads=pads))[0] is Cause.NONE
    for name, found, given in zip(scratchpads_of(CONFIG), machine.peek(), raw(pads), strict=True):
        np.testing.assert_array_equal(found, given, err_msg=name)


def test_each_operand_comes_from_its_scratchpad(machine: PysimEngine) -> None:
    """A GEMM, then an ALU operation on other elements of every scratchpad, then a STORE."""
    pads = Scratchpads.random(CONFIG, 4)
    pads.uop[:2] = encode_uops([(5, 3, 6), (2, 5, 0)], CONFIG)
    product = pads.acc[5] + pads.inp[3].astype(np.int32) @ pads.wgt[6].astype(np.int32).T
    larger = np.maximum(pads.acc[2], product)
    target = RESULT // CONFIG.out_element_bytes
    program = [
        Gemm(uop_begin=0, uop_end=1),
        Alu(alu_op=AluOp.MAX, uop_begin=1, uop_end=2, push_next=True),
        Store(sram_base=2, dram_base=target, x_size=1, y_size=1, pop_prev=True, push_prev=True),
        Finish(pop_next=True),
    ]
    dram = Dram.of(CONFIG)
    found = run(machine, program, pads=pads, dram=dram)
    assert found.cause is Cause.NONE
    uop, inp, wgt, acc = machine.peek()
    np.testing.assert_array_equal(acc[5].view(np.int32), product[0])
    np.testing.assert_array_equal(acc[2].view(np.int32), larger[0])
    untouched = [n for n in range(CONFIG.acc_depth) if n not in (2, 5)]
    np.testing.assert_array_equal(acc[untouched], raw(pads)[3][untouched])
    for kept, given in zip((uop, inp, wgt), raw(pads)[:3], strict=True):
        np.testing.assert_array_equal(kept, given)
    np.testing.assert_array_equal(dram.read(RESULT, 8).view(np.int8), larger[0].astype(np.int8))


def test_tokens_go_to_the_counter_of_their_neighbours(machine: PysimEngine) -> None:
    """Tokens that a unit pushes and no unit pops are left over."""
    pushed: dict[Counter, Instruction] = {
        Counter.LOAD_TO_COMPUTE: Load(memory=Memory.INP, push_next=True),
        Counter.COMPUTE_TO_LOAD: Load(memory=Memory.UOP, push_prev=True),
        Counter.COMPUTE_TO_STORE: Load(memory=Memory.UOP, push_next=True),
        Counter.STORE_TO_COMPUTE: Store(push_prev=True),
    }
    for counter, instruction in pushed.items():
        found = run(machine, [instruction, Finish()])
        assert found.cause is Cause.NONE
        assert found.tokens == tuple(int(other is counter) for other in Counter)


def test_counters_count_the_bus_and_every_cycle_of_every_unit(machine: PysimEngine) -> None:
    move = Load(
        memory=Memory.ACC, dram_base=DATA // CONFIG.acc_element_bytes, x_size=3, y_size=2, push_next=True
    )
    show = Store(
        dram_base=RESULT // CONFIG.out_element_bytes, x_size=5, y_size=1, pop_prev=True, push_prev=True
    )
    program = [move, show, Finish(pop_next=True)]
    found = run(machine, program)
    assert found.cause is Cause.NONE
    code = len(program) * 16
    assert found.counters["read_bytes"] == code + 6 * CONFIG.acc_element_bytes
    assert found.counters["written_bytes"] == 5 * CONFIG.out_element_bytes
    busy = {unit.label: cycles.busy for unit, cycles in found.unit_cycles.items()}
    assert busy == {"fetch": 3, "load": 0, "compute": 6 * 4, "store": 5}
    assert all(cycles.idle >= 0 for cycles in found.unit_cycles.values())


def test_the_window_is_where_the_registers_say(machine: PysimEngine) -> None:
    moved = CONFIG.override({"mem_base": 1 << 20, "mem_size": DATA + 64})
    place = DATA // CONFIG.acc_element_bytes
    for elements, cause in ((2, Cause.NONE), (3, Cause.DRAM_RANGE)):
        dram = Dram.of(moved)
        dram.write(moved.mem_base + DATA, np.arange(64, dtype=np.uint8))
        program = [Load(memory=Memory.ACC, dram_base=place, x_size=elements, y_size=1), Finish()]
        assert run(machine, program, dram=dram, config=moved).cause is cause
        if cause is Cause.NONE:
            np.testing.assert_array_equal(machine.peek()[3][:2].reshape(-1), np.arange(64))
