"""Allocation in a window: the lowest free offset, for as long as the owner lives."""

import gc

from hypothesis import given
from hypothesis import strategies as st

from accel.base.errors import ProgramError
from accel.run.dram_allocator import DramAllocator
from tests.expect import refused
from tests.strategies import examples


class Owner:
    """An object that allocates memory."""


FULL = "the session needs {} more bytes of DRAM; there is no such gap in mem_size=100"


def test_the_lowest_free_offset_is_allocated() -> None:
    allocator, one, two = DramAllocator(100, 8), Owner(), Owner()
    assert allocator.allocate(one, [(10, 0), (10, 3)]) == [0, 11]
    assert allocator.allocate(two, [(5, 5)]) == [21]
    del one
    assert allocator.allocated_bytes == 5
    assert allocator.allocate(two, [(10, 0)]) == [0]


def test_all_or_none() -> None:
    """This also holds while the error, and with it the owner, is alive."""
    allocator, one = DramAllocator(100, 8), Owner()
    with refused(ProgramError, FULL.format(60)):
        allocator.allocate(one, [(60, 0), (60, 0)])
    assert allocator.allocated_bytes == 0
    assert allocator.allocate(Owner(), [(100, 0)]) == [0]


def test_an_owner_in_a_reference_cycle_is_freed() -> None:
    allocator, one = DramAllocator(100, 8), Owner()
    one.me = one  # type: ignore[attr-defined]
    allocator.allocate(one, [(100, 0)])
    del one
    gc.collect()
    assert allocator.allocated_bytes == 0


def test_memory_that_is_freed_during_a_search_is_not_lost() -> None:
    """Owners may be deleted at any time. Their memory is free from the next request on."""
    allocator, owners = DramAllocator(100, 1), [Owner() for _ in range(5)]
    assert [allocator.allocate(one, [(20, 0)]) for one in owners] == [[20 * n] for n in range(5)]
    returned = allocator._released
    owners.clear()
    assert len(returned) == 5
    assert allocator.allocate(Owner(), [(100, 0)]) == [0]


@given(data=st.data())
@examples(100)
def test_allocations_never_overlap(data: st.DataObject) -> None:
    allocator = DramAllocator(400, 16)
    held: dict[int, tuple[Owner, int, int]] = {}
    for number in range(data.draw(st.integers(1, 30))):
        if data.draw(st.booleans()) and held:
            held.pop(data.draw(st.sampled_from(sorted(held))))
            continue
        nbytes, like = data.draw(st.integers(1, 120)), data.draw(st.integers(0, 1000))
        owner = Owner()
        try:
            (offset,) = allocator.allocate(owner, [(nbytes, like)])
        except ProgramError:
            continue
        finally:
            kept = owner
            del owner  # only ``held`` may refer to it
        assert (offset - like) % 16 == 0
        assert offset + nbytes <= 400
        assert all(offset + nbytes <= a or b <= offset for _, a, b in held.values())
        held[number] = kept, offset, offset + nbytes
        del kept
        assert allocator.allocated_bytes == sum(b - a for _, a, b in held.values())
