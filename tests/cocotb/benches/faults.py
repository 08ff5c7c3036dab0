"""Runs that end early (bus errors, faulty programs, limits), each followed by a correct run."""

from typing import Any

import cocotb
import numpy as np

from accel.base.records import replace
from accel.core.config import PAGE_BYTES
from accel.core.fault_causes import Cause, dram_element_bytes
from accel.core.isa import Finish, Instruction, Memory, encode
from accel.run.program import Program
from tests.cocotb.bench import Bench, Outcome
from tests.cocotb.programs import CODE, DATA, RESULT, Maker, program
from tests.cocotb.protocol import DECERR, SLVERR, Rule

AREA = DATA + PAGE_BYTES


def subject(bench: Bench) -> Program:
    """LOADs to each scratchpad, one per page, and STOREs of several bursts each."""
    make = Maker(bench.config)
    body: list[Instruction] = [
        make.move(memory, 0, AREA + n * PAGE_BYTES, 8)
        for n, memory in enumerate((Memory.UOP, Memory.ACC, Memory.INP, Memory.WGT))
    ]
    size = bench.config.out_element_bytes
    stores = [make.move(Memory.OUT, 0, RESULT + n * PAGE_BYTES, 2, 4, 64 // size) for n in range(3)]
    numbers = np.random.default_rng(7)
    contents = [(AREA + n * PAGE_BYTES, numbers.bytes(256)) for n in range(1, 4)]
    return program(bench.config, [*body, *stores], *contents, (AREA, make.uops(numbers, 8).tobytes()))


async def fails(bench: Bench, target: Program, **settings: int) -> Outcome:
    """Run a program that must fail, and then a correct one. After the failure, each byte of memory has its
    value from before the run, or the value that a whole run leaves."""
    bench.place(target)
    before = bench.twin.window()
    await bench.launch(target, **settings)
    bench.twin.run(target)
    outcome = await bench.finish()
    assert outcome.bit("error")
    found, after = bench.memory(), bench.twin.window()
    assert ((found == before) | (found == after)).all()
    bench.mend_memory()
    await bench.clear()
    bench.adopt()
    await bench.run(subject(bench), max_cycles=(1 << 64) - 1)
    return outcome


@cocotb.test()
async def bad_answers_to_reads(dut: Any) -> None:
    bench = await Bench.begin(dut)
    target = subject(bench)
    base = bench.config.mem_base
    loads = [n for n, i in enumerate(target.instructions) if i.mnemonic.startswith("LOAD") and i.x_size]  # type: ignore[attr-defined]
    assert len(loads) == 4
    for n, index in enumerate(loads):
        size = dram_element_bytes(target.instructions[index], bench.config)
        for offset, answer in ((0, SLVERR), (8 * size - 1, DECERR)):
            bench.disturb()
            address = base + AREA + n * PAGE_BYTES + offset
            bench.break_memory(reads=range(address, address + 1), answer=answer)
            outcome = await fails(bench, target)
            assert (outcome.cause, outcome.index) == (Cause.BUS, index)
    for place in range(0, len(target.instructions), 1 if bench.thorough else 6):
        bench.disturb()
        address = base + CODE + 16 * place
        bench.break_memory(reads=range(address, address + 16))
        outcome = await fails(bench, target)
        assert outcome.cause is Cause.BUS
        assert outcome.index <= place < outcome.index + bench.config.fetch_chunk


@cocotb.test()
async def bad_answers_to_writes(dut: Any) -> None:
    bench = await Bench.begin(dut)
    target = subject(bench)
    stores = [n for n, i in enumerate(target.instructions) if i.mnemonic == "STORE.OUT"]
    for n, index in enumerate(stores):
        for row in range(4 if bench.thorough else 1):
            bench.disturb()
            answer = (SLVERR, DECERR)[(n + row) % 2]
            address = bench.config.mem_base + RESULT + n * PAGE_BYTES + row * 64
            bench.break_memory(writes=range(address, address + 1), answer=answer)
            outcome = await fails(bench, target)
            assert (outcome.cause, outcome.index) == (Cause.BUS, index)


@cocotb.test()
async def reads_of_another_length(dut: Any) -> None:
    """A read burst of wrong length is an error of its own instruction, and never affects the
    next one."""
    bench = await Bench.begin(dut)
    bench.tolerated = frozenset({Rule.READ_LAST})
    bench.axi.last_ends = True
    target = subject(bench)
    for early in (True, False):
        for ordinal in range(5 if bench.thorough else 2):
            bench.disturb()
            bench.misplace_last(ordinal, early=early)
            outcome = await fails(bench, target)
            assert outcome.cause is Cause.BUS
    bench.check()


@cocotb.test()
async def wrong_programs(dut: Any) -> None:
    bench = await Bench.begin(dut)
    make = Maker(bench.config)
    inp, out = make.move(Memory.INP, 0, 0, 1), make.move(Memory.OUT, 0, RESULT, 1)
    depth = bench.config.inp_depth
    programs: dict[tuple[Cause, int], list[Instruction]] = {
        (Cause.EARLY_FINISH, 1): [inp, Finish(), Finish()],
        (Cause.NO_FINISH, 1): [inp, out],
        (Cause.NEIGHBOUR, 0): [replace(inp, pop_prev=True), Finish()],
        (Cause.SRAM_RANGE, 1): [inp, make.move(Memory.INP, depth, 0, 1), Finish()],
        (Cause.DRAM_RANGE, 1): [inp, make.move(Memory.OUT, 0, bench.config.mem_size, 1), Finish()],
        (Cause.DEADLOCK, 0): [replace(out, pop_prev=True), Finish()],
        (Cause.UOP_RANGE, 0): [make.gemm((0, bench.config.uop_depth + 1)), Finish()],
    }
    for (cause, index), instructions in programs.items():
        bench.disturb()
        code = encode(instructions, bench.config)
        outcome = await fails(bench, Program(config=bench.config, code=code, code_offset=CODE))
        assert (outcome.cause, outcome.index) == (cause, index)
    outcome = await fails(bench, Program(config=bench.config, code=b"", code_offset=CODE))
    assert (outcome.cause, outcome.index) == (Cause.NO_FINISH, 0)


@cocotb.test()
async def limits(dut: Any) -> None:
    bench = await Bench.begin(dut)
    target = subject(bench)
    for limit in (0, 1, 2, 20, 60):
        outcome = await fails(bench, target, max_cycles=limit)
        assert (outcome.cause, outcome.cycles) == (Cause.LIMIT, limit)
