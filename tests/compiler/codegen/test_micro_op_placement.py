"""Placement of micro-ops: equal lists share one copy, and one LOAD brings all lists that fit."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from accel.base.errors import ScheduleError
from accel.compiler.codegen.micro_op_placement import MICRO_OPS, place_uops
from accel.compiler.target.emitter_registry import Emitted
from accel.core.config import NAMED
from accel.core.isa import Gemm, Load, Loops, Memory, decode_uops
from tests.expect import refused
from tests.strategies import examples

TINY = NAMED["tiny"]
DEPTH = 16
SMALL = TINY.override({"uop_bytes": 4 * DEPTH})


def gemm(*dst: int) -> Emitted:
    return Emitted(Gemm(uop_end=len(dst)), np.array([[n, 0, 0] for n in dst], dtype=np.int64))


LOAD = Emitted(Load(memory=Memory.INP, y_size=1, x_size=1, x_stride=1))


def test_equal_lists_are_stored_and_loaded_once() -> None:
    placed = place_uops([gemm(1, 2), LOAD, gemm(3), gemm(1, 2), gemm(1, 2, 3)], TINY)
    assert [i.mnemonic for i in placed.program] == [
        "LOAD.UOP",
        "GEMM",
        "LOAD.INP",
        "GEMM",
        "GEMM",
        "GEMM",
    ]
    assert placed.sources.tolist() == [MICRO_OPS, 0, 1, 2, 3, 4]
    assert next(iter(placed.program)) == Load(memory=Memory.UOP, y_size=1, x_size=6, x_stride=6)
    loops = [i for i in placed.program if isinstance(i, Loops)]
    assert [(i.uop_begin, i.uop_end) for i in loops] == [(0, 2), (2, 3), (0, 2), (3, 6)]
    assert decode_uops(placed.words, TINY)[:, 0].tolist() == [1, 2, 3, 1, 2, 3]


def test_nothing_to_load() -> None:
    placed = place_uops([LOAD], TINY)
    assert [*placed.program] == [LOAD.instruction]
    assert len(placed.words) == 0


def test_a_filling_starts_over_when_the_memory_is_full() -> None:
    """A list that is needed later is loaded again. Each filling is one LOAD of exactly the
    lists that it serves."""
    wide = list(range(DEPTH - 2))
    placed = place_uops([gemm(*wide), gemm(1, 2), gemm(*wide), gemm(3), gemm(1, 2)], SMALL)
    assert [i.mnemonic for i in placed.program] == [
        "LOAD.UOP",
        "GEMM",
        "GEMM",
        "GEMM",
        "LOAD.UOP",
        "GEMM",
        "GEMM",
    ]
    loads = [i for i in placed.program if isinstance(i, Load)]
    assert [(i.sram_base, i.dram_base, i.x_size) for i in loads] == [(0, 0, DEPTH), (0, DEPTH, 3)]


def test_one_list_may_fill_the_memory_and_no_more() -> None:
    assert len(place_uops([gemm(*range(DEPTH))], SMALL).program) == 2
    with refused(ScheduleError, "GEMM needs 17 micro-ops; the memory holds 16"):
        place_uops([gemm(*range(DEPTH + 1))], SMALL)


@examples(200)
@given(st.integers(0, 1 << 32))
def test_every_instruction_reads_its_own_micro_ops(seed: int) -> None:
    """The number of LOADs is also minimal: each fills the scratchpad as far as possible."""
    rng = Random(seed)
    lists = [tuple(rng.randrange(64) for _ in range(rng.randint(1, 8))) for _ in range(rng.randint(1, 8))]
    items = [gemm(*entry) for entry in lists]
    emitted = [rng.choice([*items, LOAD]) for _ in range(30)]
    placed = place_uops(emitted, SMALL)
    memory = np.full(DEPTH, 99)
    rest = iter(emitted)
    for instruction in placed.program:
        if isinstance(instruction, Load) and instruction.memory == Memory.UOP:
            assert instruction.sram_base == 0
            assert 0 < instruction.x_size <= DEPTH
            first = instruction.dram_base
            memory[:] = 99
            memory[: instruction.x_size] = decode_uops(
                placed.words[first : first + instruction.x_size], SMALL
            )[:, 0]
            continue
        item = next(rest)
        if isinstance(instruction, Loops):
            assert memory[instruction.uop_begin : instruction.uop_end].tolist() == item.uops[:, 0].tolist()
        else:
            assert instruction == item.instruction
    assert next(rest, None) is None
    assert sum(i.mnemonic == "LOAD.UOP" for i in placed.program) == fillings(emitted)


def fillings(emitted: list[Emitted]) -> int:
    count, used = 0, DEPTH + 1
    held: set[tuple[int, ...]] = set()
    for item in emitted:
        key = tuple(item.uops[:, 0].tolist())
        if not key or key in held:
            continue
        if used + len(key) > DEPTH:
            count, used, held = count + 1, 0, set()
        used += len(key)
        held.add(key)
    return count
