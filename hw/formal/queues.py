"""Queues: bounds, order, and what every cell holds."""

from functools import partial
from typing import Any

from amaranth.hdl import Mux, Signal, Value

from accel.hw.datapath.queue import HeadQueue, LedQueue, Queue
from accel.hw.formal.claims import Claims, Proof

_DEPTHS = (1, 2, 3, 4, 8)
"""Powers of two, and one depth that is none."""


def queue(depth: int) -> Claims:
    """A queue whose user pushes only with room and pops only with a head."""
    component = Queue(8, depth)
    claims = Claims(component)
    inside = claims.inside
    count = component.count
    claims.assume(component.room | ~component.push)
    claims.assume(component.valid | ~component.pop)

    claims.claim("never more entries than places", count <= depth)
    claims.claim("room is told", component.room == (count < depth))
    claims.claim("an entry is told", component.valid == (count != 0))
    claims.queue("", depth)

    inside_now, ahead, pushed = _one_push(claims, component, component.flush, component.pop, count, depth)
    place = Signal(range(depth))
    behind = inside.signal("first") + ahead
    claims.defined(place, Mux(behind < depth, behind, behind - depth))
    claims.lemma("it is one of the entries", ~inside_now | (ahead < count))
    claims.claim("its cell holds its data", ~inside_now | (inside.cell("memory", place) == pushed))
    claims.claim("in its turn it is the head", ~inside_now | (ahead != 0) | (component.head == pushed))
    return claims


def head_queue(depth: int) -> Claims:
    """A queue whose head is in registers, and whose users reserve only with room, push only into what was
    reserved, and pop only with a head."""
    component = HeadQueue(8, depth)
    claims = Claims(component)
    inside = claims.inside
    reservation, enqueue, issue = component.reservation, component.enqueue, component.issue
    valid, behind, taken = issue.valid, inside.signal("behind.count"), inside.signal("taken")
    entries = valid + behind
    owed = claims.register(range(depth + 2), "owed")
    """Reserved, and not pushed yet."""
    due = owed + reservation.reserve
    claims.assume(reservation.room | ~reservation.reserve)
    claims.assume((due != 0) | ~enqueue.push)
    claims.assume(valid | ~issue.start)
    claims.follows(owed, Mux(component.flush, 0, due - enqueue.push))

    claims.claim("never more entries than places", entries <= depth)
    claims.claim("room is told", reservation.room == (entries + owed < depth))
    claims.claim("an entry is told", valid == (entries != 0))
    claims.lemma("it knows how many", (taken == entries + owed) & (taken <= depth))
    _in_order(claims, enqueue, component.flush, issue.start, entries, issue.entry, depth)
    return claims


def led_queue(depth: int) -> Claims:
    """A queue led by registers, whose user knows how many there are."""
    component = LedQueue(8, depth)
    claims = Claims(component)
    valid, push, pop = component.valid, component.push, component.pop
    entries = valid + claims.inside.signal("behind.count")
    claims.assume((entries < depth) | ~push)
    claims.assume(valid | ~pop)
    claims.claim("an entry is told", valid == (entries != 0))
    _in_order(claims, component, component.flush, pop, entries, component.head, depth)
    return claims


def _in_order(
    claims: Claims, enqueue: Any, flush: Value, pop: Value, entries: Value, head: Value, depth: int
) -> None:
    """Claim what comes out of a queue whose head is in registers, and all others ``behind`` it."""
    inside, places = claims.inside, max(1, depth - 1)
    claims.queue("behind", places)
    inside_now, ahead, pushed = _one_push(claims, enqueue, flush, pop, entries, depth)
    place = Signal(range(places))
    its = inside.signal("behind.first") + ahead - 1
    claims.defined(place, Mux(its < places, its, its - places))
    claims.lemma("it is one of the entries", ~inside_now | (ahead < entries))
    cell = inside.cell("behind.memory", place)
    claims.claim("its cell holds its data", ~inside_now | (ahead == 0) | (cell == pushed))
    claims.claim("in its turn it is the head", ~inside_now | (ahead != 0) | (head == pushed))


def _one_push(
    claims: Claims, enqueue: Any, flush: Value, pop: Value, entries: Value, depth: int
) -> tuple[Signal, Signal, Signal]:
    """Of one push of ``enqueue.data``, any of them: whether it is still inside, how many entries are ahead,
    and its data."""
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
            statement="entries come out once, in order, as they went in; never more of them than places",
            build=partial(queue, depth),
        )
        for depth in _DEPTHS
    ),
    *(
        Proof(
            name=f"head queue of {depth}",
            statement="the same of queues with their head in registers, whose places are reserved",
            build=partial(head_queue, depth),
        )
        for depth in _DEPTHS
    ),
    *(
        Proof(
            name=f"led queue of {depth}",
            statement="the same of queues with their head in registers that are never too full",
            build=partial(led_queue, depth),
        )
        for depth in _DEPTHS[1:]
    ),
)
