"""Segments of shared DRAM against the bytes that instructions touch, one by one."""

import time
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from accel.core.config import NAMED, Config
from accel.core.instruction_access import DramRows, dram_rows
from accel.core.isa import Instruction, Load, Memory, Store
from accel.proof.shared_dram import SharedDram
from tests.strategies import examples

TINY = NAMED["tiny"]

transfers = st.builds(
    lambda kind, **fields: kind(memory=Memory.OUT if kind is Store else Memory.ACC_8BIT, **fields),
    st.sampled_from([Load, Store]),
    dram_base=st.integers(0, 40),
    y_size=st.integers(0, 5),
    x_size=st.integers(0, 4),
    x_stride=st.integers(0, 9),
)


def touched(rows: DramRows | None) -> set[int]:
    """Every byte of some rows."""
    if rows is None:
        return set()
    starts = [rows.start + y * rows.stride for y in range(rows.rows)]
    return {byte for start in starts for byte in range(start, start + rows.row_bytes)}


@examples(200)
@given(st.lists(transfers, max_size=7))
def test_segments_are_the_bytes_that_are_written_and_read(program: list[Instruction]) -> None:
    shared = SharedDram(program, TINY)
    every = [touched(dram_rows(one, TINY)) for one in program]
    found = []
    for index in range(len(program)):
        segments = shared.elements(index)
        numbers = [] if segments is None else segments.tolist()
        assert numbers == sorted(set(numbers))
        spans = [shared.span(n) for n in numbers]
        found.append({byte for first, last in spans for byte in range(first, last + 1)})
    for (a, one), (b, other) in combinations(enumerate(program), 2):
        if type(one) is not type(other):
            assert found[a] & found[b] == every[a] & every[b]


def test_the_cost_of_an_instruction_does_not_grow_with_the_program() -> None:
    """Of strided transfers that overlap, each some of the others."""

    def seconds_each(count: int, config: Config = NAMED["vta"]) -> float:
        program = [
            Store(memory=Memory.OUT, dram_base=50 * n, y_size=32, x_size=8, x_stride=17)
            if n % 2
            else Load(memory=Memory.INP, dram_base=50 * n, y_size=32, x_size=8, x_stride=21)
            for n in range(count)
        ]
        begin = time.process_time()
        shared = SharedDram(program, config)
        assert all(shared.elements(n) is not None for n in range(count))
        return (time.process_time() - begin) / count

    few, many = min(seconds_each(250) for _ in range(3)), seconds_each(6000)
    assert many < 6 * few
