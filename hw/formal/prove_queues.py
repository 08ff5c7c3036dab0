"""Proofs about queues."""

from functools import partial
from typing import Any

from amaranth.hdl import Mux, Signal, Value

from accel.hw.datapath.queue import Queue, RegisteredHeadQueue, ReservedQueue
from accel.hw.formal.claims import Claims, Proof

_DEPTHS = (1, 2, 3, 4, 8)
"""Powers of two, and one other number."""


def queue(depth: int) -> Claims:
    """Claims for a queue whose user pushes only with room and pops only with a head."""
    component = Queue(8, depth)
    claims = Claims(component)
    inside = claims.inside
    count = component.count
    claims.assume(component.room | ~component.push)
    claims.assume(component.valid | ~component.pop)

    claims.claim("at most depth entries", count <= depth)
    claims.claim("room is set while there is space", component.room == (count < depth))
    claims.claim("valid is set while there is an entry", component.valid == (count != 0))
    claims.queue("", depth)

    inside_now, ahead, pushed = _one_push(claims, component, component.flush, component.pop, count, depth)
    place = Signal(range(depth))
    behind = inside.signal("first") + ahead
    claims.defined(place, Mux(behind < depth, behind, behind - depth))
    claims.lemma("the watched entry is one of the entries", ~inside_now | (ahead < count))
    claims.claim(
        "the cell of an entry holds its data", ~inside_now | (inside.cell("memory", place) == pushed)
    )
    claims.claim(
        "an entry becomes the head after all before it",
        ~inside_now | (ahead != 0) | (component.head == pushed),
    )
    return claims


def head_queue(depth: int) -> Claims:
    """Claims for a ``ReservedQueue``."""
    component = ReservedQueue(8, depth)
    claims = Claims(component)
    inside = claims.inside
    reservation, enqueue, issue = component.reservation, component.enqueue, component.issue
    valid, behind, taken = issue.valid, inside.signal("behind.count"), inside.signal("taken")
    entries = valid + behind
    owed = claims.register(range(depth + 2), "owed")
    """Reserved places without a push."""
    due = owed + reservation.reserve
    claims.assume(reservation.room | ~reservation.reserve)
    claims.assume((due != 0) | ~enqueue.push)
    claims.assume(valid | ~issue.start)
    claims.follows(owed, Mux(component.flush, 0, due - enqueue.push))

    claims.claim("at most depth entries", entries <= depth)
    claims.claim("room is set while there is space", reservation.room == (entries + owed < depth))
    claims.claim("valid is set while there is an entry", valid == (entries != 0))
    claims.lemma("taken counts entries and reservations", (taken == entries + owed) & (taken <= depth))
    _in_order(claims, enqueue, component.flush, issue.start, entries, issue.entry, depth)
    return claims


def led_queue(depth: int) -> Claims:
    component = RegisteredHeadQueue(8, depth)
    claims = Claims(component)
    valid, push, pop = component.valid, component.push, component.pop
    entries = valid + claims.inside.signal("behind.count")
    claims.assume((entries < depth) | ~push)
    claims.assume(valid | ~pop)
    claims.claim("valid is set while there is an entry", valid == (entries != 0))
    _in_order(claims, component, component.flush, pop, entries, component.head, depth)
    return claims


def _in_order(
    claims: Claims, enqueue: Any, flush: Value, pop: Value, entries: Value, head: Value, depth: int
) -> None:
    inside, places = claims.inside, max(1, depth - 1)
    claims.queue("behind", places)
    inside_now, ahead, pushed = _one_push(claims, enqueue, flush, pop, entries, depth)
    place = Signal(range(places))
    its = inside.signal("behind.first") + ahead - 1
    claims.defined(place, Mux(its < places, its, its - places))
    claims.lemma("the watched entry is one of the entries", ~inside_now | (ahead < entries))
    cell = inside.cell("behind.memory", place)
    claims.claim("the cell of an entry holds its data", ~inside_now | (ahead == 0) | (cell == pushed))
    claims.claim(
        "an entry becomes the head after all before it", ~inside_now | (ahead != 0) | (head == pushed)
    )


def _one_push(
    claims: Claims, enqueue: Any, flush: Value, pop: Value, entries: Value, depth: int
) -> tuple[Signal, Signal, Signal]:
    """Track one arbitrary push: return whether it is inside, how many entries precede it, and its data."""
    inside_now = claims.register(1, "inside_now")
    ahead = claims.register(range(depth + 1), "ahead")
    pushed = claims.register(8, "pushed")
    leaves = pop & (ahead == 0)
    enters = enqueue.push & ~flush & ~inside_now & claims.free(1, "chosen")
    claims.follows(inside_now, Mux(inside_now, ~leaves & ~flush, enters))
    claims.follows(ahead, Mux(inside_now, ahead, entries) - pop)
    claims.follows(pushed, Mux(inside_now, pushed, enqueue.data))
    return inside_now, ahead, pushed


PROOFS = (
    *(
        Proof(
            name=f"queue of {depth}",
            statement="entries leave once, in order, unchanged; never more than the depth",
            build=partial(queue, depth),
        )
        for depth in _DEPTHS
    ),
    *(
        Proof(
            name=f"head queue of {depth}",
            statement="the same for queues with their head in registers and reserved places",
            build=partial(head_queue, depth),
        )
        for depth in _DEPTHS
    ),
    *(
        Proof(
            name=f"led queue of {depth}",
            statement="the same for queues with their head in registers that never overflow",
            build=partial(led_queue, depth),
        )
        for depth in _DEPTHS[1:]
    ),
)
