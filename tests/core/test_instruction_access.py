"""Access sets compared with the accesses that the scalar interpreter makes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from accel.base.records import replace
from accel.core.config import NAMED, Config
from accel.core.fault_causes import taps_fault
from accel.core.instruction_access import (
    AccessSets,
    Touch,
    as_elements,
    dram_rows,
    index_fault,
    loop_shape,
    reached,
)
from accel.core.isa import Alu, Finish, Gemm, Load, Memory, Store, decode_uops, encode_uops
from accel.image.dram import Dram
from accel.sim.functional.scratchpads import Scratchpads
from tests.reference import Access, Reference
from tests.strategies import drawn, examples, loops, micro_ops, random_taps, small_machines, transfers

TINY = NAMED["tiny"]


def elements_of(touches: tuple[Touch, ...], config: Config) -> set[Access]:
    found = set()
    for memory, write, elements in touches:
        every = np.arange(getattr(config, f"{memory}_depth"))
        found |= {(memory, write, int(element)) for element in every[elements]}
    return found


@examples(300)
@given(st.data())
def test_transfers_access_the_declared_elements(data: st.DataObject) -> None:
    config = data.draw(small_machines)
    instruction = data.draw(transfers(config, dram_bytes=2048))
    reference = Reference(config, Scratchpads.zeros(config), Dram.of(config))
    if reference.execute(instruction) is not None:
        return
    found = elements_of(AccessSets(config).transfer(instruction), config)
    rows = dram_rows(instruction, config)
    if rows is not None:
        write = isinstance(instruction, Store)
        for y in range(rows.rows):
            start = rows.start + y * rows.stride
            found |= {("dram", write, address) for address in range(start, start + rows.row_bytes)}
    assert found == reference.seen


@examples(300)
@given(st.data())
def test_loops_access_the_declared_elements_or_stop_at_the_same_micro_op(data: st.DataObject) -> None:
    config = data.draw(small_machines)
    instruction = data.draw(loops(config))
    setting = data.draw(drawn(random_taps, config))
    pads = Scratchpads.zeros(config)
    pads.uop[:] = data.draw(micro_ops(config))
    reference = Reference(config, pads, Dram.of(config))
    assert reference.execute(setting) is None
    expected = reference.execute(instruction)
    words = pads.uop[instruction.uop_begin : instruction.uop_end]
    if not instruction.uop_count:
        assert index_fault(instruction, decode_uops(words, config), config, setting) is None
        assert not reference.seen
        return
    touches, fault = AccessSets(config).loops(instruction, words, setting)
    if taps_fault(instruction, setting) is None:
        assert fault == index_fault(instruction, decode_uops(words, config), config, setting)
    assert (None if fault is None else (fault[0], fault[1].cause.label)) == expected
    assert elements_of(touches, config) == (set() if fault is not None else reference.seen)


@examples(200)
@given(loops(TINY, iterations=6), micro_ops(TINY), st.integers(0, 2))
def test_reached_indices(instruction: Gemm | Alu, words: np.ndarray, operand: int) -> None:
    """The result holds all indices below the depth, plus the depth itself if any index reaches it."""
    if not instruction.uop_count:
        return
    shape = loop_shape(instruction, TINY)
    uops = decode_uops(words[instruction.uop_begin : instruction.uop_end], TINY)
    depth, out, inner = shape.depths[operand], shape.factors[2 * operand], shape.factors[2 * operand + 1]
    every = {
        u + i * out + j * inner
        for u in uops[:, operand].tolist()
        for i in range(instruction.iter_out)
        for j in range(instruction.iter_in)
    }
    found = reached(uops, shape, operand).tolist()
    assert found == sorted(set(found))
    assert {index for index in found if index < depth} == {index for index in every if index < depth}
    assert [index for index in found if index >= depth] == [depth] * (max(every) >= depth)


def test_loops_of_many_iterations_are_analyzed_quickly() -> None:
    """The cost depends on the scratchpad's depth and not on the number of iterations."""
    instruction = Gemm(uop_end=2, iter_out=16383, iter_in=16383)
    words = encode_uops([(3, 1, 2), (5, 1, 2)], TINY)
    touches, fault = AccessSets(TINY).loops(instruction, words)
    assert fault is None
    assert elements_of(touches, TINY) == {
        ("uop", False, 0),
        ("uop", False, 1),
        ("acc", False, 3),
        ("acc", False, 5),
        ("acc", True, 3),
        ("acc", True, 5),
        ("inp", False, 1),
        ("wgt", False, 2),
    }
    fault = index_fault(replace(instruction, wgt_factor_out=1), decode_uops(words, TINY), TINY)
    assert fault is not None
    assert fault[0] == 126 * 16383 * 2


def test_patterns_are_computed_once_for_their_micro_ops() -> None:
    sets = AccessSets(TINY)
    words = encode_uops([(3, 1, 2), (5, 1, 2)], TINY)
    assert sets.loops(Gemm(uop_end=2), words) is sets.loops(Gemm(uop_end=2, pop_prev=True), words.copy())
    cases = [
        (Gemm(uop_end=2), words),
        (Gemm(uop_begin=1, uop_end=3), words),
        (Gemm(uop_end=2, reset=True), words),
        (Gemm(uop_end=2, iter_in=3, dst_factor_in=1), words),
        (Alu(uop_end=2), words),
        (Alu(uop_end=2, use_imm=True), words),
        (Gemm(uop_end=2), words + np.uint32(1)),
    ]
    found = {frozenset(elements_of(sets.loops(*case).touches, TINY)) for case in cases}
    assert len(found) == len(cases)


def test_contiguous_elements_are_slices() -> None:
    assert as_elements(np.array([4, 5, 6])) == slice(4, 7)
    assert as_elements(np.array([4, 6])).tolist() == [4, 6]  # type: ignore[union-attr]


def test_instructions_without_rows() -> None:
    for instruction in (Finish(), Gemm(uop_end=1), Load(y_size=0, x_size=3), Store(y_size=3, x_size=0)):
        assert dram_rows(instruction, TINY) is None
    assert AccessSets(TINY).transfer(Load(memory=Memory.ACC, x_size=1, y_pad_0=2))[0].elements == slice(0, 2)
