"""The sparse DRAM window against a dictionary of bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.base.errors import ProgramError
from accel.core.config import NAMED, PAGE_BYTES
from accel.core.instruction_access import DramRows
from accel.image.dram import Dram
from tests.expect import refused
from tests.strategies import examples

BASE = 5 * PAGE_BYTES
SIZE = 1 << 24

addresses = st.integers(0, 9).map(lambda n: n << 16) | st.integers(0, SIZE - 4096)


@st.composite
def boxes(draw: st.DrawFn) -> DramRows:
    """Rows near one another or far apart, overlapping or not."""
    rows, row_bytes = draw(st.integers(1, 5)), draw(st.integers(1, 40))
    stride = draw(st.integers(0, 80) | st.sampled_from([4096, 1 << 16, 1 << 21]))
    start = draw(addresses)
    span = (rows - 1) * stride + row_bytes
    return DramRows(BASE + min(start, SIZE - span), rows, row_bytes, stride)


def row_addresses(rows: DramRows, y: int) -> range:
    return range(rows.start + y * rows.stride, rows.start + y * rows.stride + rows.row_bytes)


@examples(150)
@given(st.lists(st.tuples(boxes(), st.booleans()), max_size=6), st.lists(addresses, max_size=2))
def test_reads_and_writes_act_like_bytes_in_a_dictionary(
    accesses: list[tuple[DramRows, bool]], reserved: list[int]
) -> None:
    dram, model = Dram(BASE, SIZE), dict[int, int]()
    dram.reserve((BASE + start, BASE + start + 9) for start in reserved)
    rng = np.random.default_rng(1)
    for rows, write in accesses:
        if write:
            data = rng.integers(1, 256, (rows.rows, rows.row_bytes), dtype=np.uint8)
            dram.write_rows(rows, data)
            for y in range(rows.rows):
                model.update(zip(row_addresses(rows, y), data[y].tolist(), strict=True))
        else:
            expected = [[model.get(a, 0) for a in row_addresses(rows, y)] for y in range(rows.rows)]
            assert dram.read_rows(rows).tolist() == expected
    found = {
        start + int(offset): int(page[offset])
        for start, page in dram.pages()
        for offset in np.flatnonzero(page)
    }
    assert found == model


def test_reading_and_writing_single_runs() -> None:
    dram = Dram(BASE, SIZE)
    dram.write(BASE + 65534, b"\1\2\3\4")
    dram.write(BASE + 65536, np.array([-1, 5], dtype=np.int32))
    assert dram.read(BASE + 65533, 12).tolist() == [0, 1, 2, 255, 255, 255, 255, 5, 0, 0, 0, 0]


def test_reads_are_copies() -> None:
    dram = Dram(BASE, SIZE)
    dram.read(BASE, 4)[:] = 1
    dram.read_rows(DramRows(BASE, 2, 4, 4))[:] = 1
    assert dram.read(BASE, 8).tolist() == [0] * 8
    twin = dram.copy()
    twin.write(BASE, b"\1")
    assert dram.read(BASE, 1)[0] == 0
    assert twin.read(BASE, 1)[0] == 1


def test_equality_is_of_content() -> None:
    one, other = Dram(BASE, SIZE), Dram(BASE, SIZE)
    one.write(BASE, bytes(4096))
    one.write(BASE + 70000, b"\7")
    assert one != other
    other.write(BASE + 70000, b"\7")
    assert one == other
    other.write(BASE + 70001, b"\7")
    assert one != other
    assert one != b"\7"
    with pytest.raises(TypeError):
        hash(one)


def test_pages_are_those_that_hold_something() -> None:
    dram = Dram(BASE, SIZE)
    dram.write(BASE + 3 * PAGE_BYTES + 8, b"\1\2")
    dram.write(BASE + PAGE_BYTES - 1, b"\1\2")
    dram.write(BASE + (1 << 20), bytes(5))
    assert [address - BASE for address, _ in dram.pages()] == [0, PAGE_BYTES, 3 * PAGE_BYTES]


def test_memory_is_held_sparsely() -> None:
    """Far-apart rows cost what they hold, not what they span."""
    dram = Dram.of(NAMED["vta"])
    rows = DramRows(0, 100, 16, 1 << 21)
    dram.write_rows(rows, np.ones((100, 16), dtype=np.uint8))
    assert dram.read_rows(rows).sum() == 1600
    assert sum(extent.nbytes for extent in dram._extents) == 100 << 16


def test_neighbouring_spans_are_reserved_as_one() -> None:
    dram = Dram(BASE, SIZE)
    dram.reserve([(BASE + 70000, BASE + 70010), (BASE, BASE + 10), (BASE + (1 << 20), BASE + (1 << 20) + 1)])
    assert [len(extent) for extent in dram._extents] == [2 << 16, 1 << 16]


@pytest.mark.parametrize("start", [BASE - 1, BASE + SIZE - 3])
def test_nothing_outside_the_window(start: int) -> None:
    dram = Dram(BASE, SIZE)
    message = f"DRAM bytes {start:#x}..{start + 3:#x} are asked for; the window is 0x5000..0x1004fff"
    with refused(ProgramError, message):
        dram.read(start, 4)
    with refused(ProgramError, message):
        dram.write(start, b"1234")
    assert list(dram.pages()) == []


def test_the_window_is_the_configurations() -> None:
    dram = Dram.of(NAMED["tiny"].override({"mem_base": 8192, "mem_size": 4096}))
    assert (dram.base, dram.size) == (8192, 4096)
