"""Room in a window: the lowest that is free, for as long as its owner lives."""

import gc

from hypothesis import given
from hypothesis import strategies as st

from accel.base.errors import ProgramError
from accel.run.space import Space
from tests.expect import refused
from tests.strategies import examples


class Owner:
    """Somebody who wants room."""


FULL = "the session has no room for {} more bytes; the window has mem_size=100"


def test_room_is_the_lowest_that_is_free() -> None:
    space, one, two = Space(100, 8), Owner(), Owner()
    assert space.hold(one, [(10, 0), (10, 3)]) == [0, 11]
    assert space.hold(two, [(5, 5)]) == [21]
    del one
    assert space.taken == 5
    assert space.hold(two, [(10, 0)]) == [0]


def test_all_or_none() -> None:
    """Also while the error, and with it whoever asked, is held."""
    space, one = Space(100, 8), Owner()
    with refused(ProgramError, FULL.format(60)):
        space.hold(one, [(60, 0), (60, 0)])
    assert space.taken == 0
    assert space.hold(Owner(), [(100, 0)]) == [0]


def test_an_owner_that_ends_in_a_cycle_gives_back() -> None:
    space, one = Space(100, 8), Owner()
    one.me = one  # type: ignore[attr-defined]
    space.hold(one, [(100, 0)])
    del one
    gc.collect()
    assert space.taken == 0


def test_room_that_is_returned_during_a_search_is_not_lost() -> None:
    """Owners go at any time: what they give back counts from the next request on."""
    space, owners = Space(100, 1), [Owner() for _ in range(5)]
    assert [space.hold(one, [(20, 0)]) for one in owners] == [[20 * n] for n in range(5)]
    returned = space._returned
    owners.clear()
    assert len(returned) == 5
    assert space.hold(Owner(), [(100, 0)]) == [0]


@given(data=st.data())
@examples(100)
def test_what_is_held_never_overlaps(data: st.DataObject) -> None:
    space = Space(400, 16)
    held: dict[int, tuple[Owner, int, int]] = {}
    for number in range(data.draw(st.integers(1, 30))):
        if data.draw(st.booleans()) and held:
            held.pop(data.draw(st.sampled_from(sorted(held))))
            continue
        nbytes, like = data.draw(st.integers(1, 120)), data.draw(st.integers(0, 1000))
        owner = Owner()
        try:
            (offset,) = space.hold(owner, [(nbytes, like)])
        except ProgramError:
            continue
        finally:
            kept = owner
            del owner  # nothing but ``held`` is to have it
        assert (offset - like) % 16 == 0
        assert offset + nbytes <= 400
        assert all(offset + nbytes <= a or b <= offset for _, a, b in held.values())
        held[number] = kept, offset, offset + nbytes
        del kept
        assert space.taken == sum(b - a for _, a, b in held.values())
