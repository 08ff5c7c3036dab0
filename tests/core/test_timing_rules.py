"""The bursts of transfers and instruction fetch, compared with a walk over single beats."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.core.config import NAMED, Config
from accel.core.instruction_access import DramRows
from accel.core.timing_rules import (
    Burst,
    burst_beats,
    compute_depth,
    fetch_bursts,
    split_bursts,
    transfer_bursts,
)
from tests.strategies import examples, timings

buses = timings(NAMED["tiny"])


def walk(address: int, length: int, config: Config) -> list[tuple[int, list[int]]]:
    """Bursts as (first byte, beats), found beat by beat. A new burst starts at a 4 KiB boundary, and when the
    current one has ``max_burst_beats`` beats."""
    bus = config.bus_bits // 8
    bursts: list[tuple[int, list[int]]] = []
    for byte in range(address, address + length):
        word = byte // bus
        if bursts and bursts[-1][1][-1] == word:
            continue
        if not bursts or byte % 4096 == 0 or len(bursts[-1][1]) == config.max_burst_beats:
            bursts.append((byte, [word]))
        else:
            bursts[-1][1].append(word)
    return bursts


addresses = st.integers(0, 9000) | st.integers(4000, 4200) | st.integers(0, 256).map(lambda n: 16 * n)


@examples(300)
@given(addresses, st.integers(1, 3000), buses)
def test_rows_are_split_at_pages_and_at_the_longest_burst(address: int, length: int, config: Config) -> None:
    bursts = split_bursts(address, length, config)
    assert bursts == [Burst(start, len(words)) for start, words in walk(address, length, config)]


@examples(100)
@given(st.integers(0, 4095), st.integers(1, 500), buses)
def test_beats_of_a_row_in_one_burst(start: int, length: int, config: Config) -> None:
    """A row of n bytes at address a has ``(a + n - 1) // B - a // B + 1`` beats, in however many bursts."""
    bus = config.bus_bits // 8
    beats = (start + length - 1) // bus - start // bus + 1
    assert sum(burst.beats for burst in split_bursts(start, length, config)) == beats


@pytest.mark.parametrize(
    ("address", "length", "expected"),
    [
        (0, 1, [(0, 1)]),
        (7, 2, [(7, 2)]),
        (4088, 8, [(4088, 1)]),
        (4088, 9, [(4088, 1), (4096, 1)]),
        (0, 2048, [(0, 256)]),
        (0, 2049, [(0, 256), (2048, 1)]),
        (4, 2048, [(4, 256), (2048, 1)]),
        (4000, 5000, [(4000, 12), (4096, 256), (6144, 256), (8192, 101)]),
    ],
)
def test_bursts_on_the_stock_bus(address: int, length: int, expected: list[tuple[int, int]]) -> None:
    assert split_bursts(address, length, NAMED["vta"]) == expected


@examples(300)
@given(
    addresses,
    st.integers(1, 6),
    st.integers(1, 700),
    st.integers(0, 900) | st.just(64) | st.just(4096),
    buses,
)
def test_rows_of_a_transfer_are_never_merged(
    start: int, rows: int, row_bytes: int, stride: int, config: Config
) -> None:
    box = DramRows(start, rows, row_bytes, stride)
    expected = [
        Burst(first, len(words))
        for y in range(rows)
        for first, words in walk(start + y * stride, row_bytes, config)
    ]
    assert transfer_bursts(box, config) == expected
    assert burst_beats(box, config) == tuple(burst.beats for burst in expected)


@examples(200)
@given(st.integers(0, 600).map(lambda n: 16 * n), st.integers(1, 80), buses)
def test_fetch_asks_in_chunks_and_knows_when_each_instruction_is_complete(
    address: int, count: int, config: Config
) -> None:
    bus = config.bus_bits // 8
    expected = []
    for begin in range(0, count, config.fetch_chunk):
        size = 16 * min(config.fetch_chunk, count - begin)
        expected += walk(address + 16 * begin, size, config)
    found = fetch_bursts(address, count, config)
    assert [entry.burst for entry in found] == [Burst(first, len(words)) for first, words in expected]
    arrivals = [(n, beat) for n, entry in enumerate(found) for beat in entry.arrival]
    assert len(arrivals) == count
    for number, (burst, beat) in enumerate(arrivals):
        last_byte = address + 16 * number + 15
        first, words = expected[burst]
        assert words[beat] == last_byte // bus
        assert first <= address + 16 * number


@given(timings(NAMED["tiny"]))
def test_a_micro_ops_way_through_the_pipeline(config: Config) -> None:
    """The stages: sequencer, micro-op read, index addition, operand read, adder tree, operate, write."""
    assert compute_depth(config) == 4 + config.tree_stages + 2
