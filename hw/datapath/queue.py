"""Queues with a visible head. An entry pushed in cycle t can be popped in t + 1."""

from typing import Any

from amaranth.hdl import Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out


class Queue(wiring.Component):
    """A FIFO with ``depth`` entries.

    ``room`` shows that there were fewer than ``depth`` entries at the end of the previous cycle. The user
    must not push without ``room`` nor pop without ``valid``. Because pushes and pops are known late, both are
    registers, and the next free place is written in every cycle.
    """

    def __init__(self, shape: ShapeLike, depth: int) -> None:
        self.depth = depth
        self.shape = shape
        super().__init__(
            {
                "flush": In(1),
                "push": In(1),
                "data": In(shape),
                "room": Out(1, init=1),
                "valid": Out(1),
                "head": Out(shape),
                "pop": In(1),
                "count": Out(range(depth + 1)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        depth = self.depth
        m.submodules.memory = memory = Memory(shape=self.shape, depth=depth, init=[])
        write = memory.write_port()
        read = memory.read_port(domain="comb")
        tail = Signal(range(depth))
        first = Signal(range(depth))

        def following(pointer: Signal) -> Any:
            return Mux(pointer == depth - 1, 0, pointer + 1)

        m.d.comb += [
            write.addr.eq(tail),
            write.data.eq(self.data),
            write.en.eq(self.room),
            read.addr.eq(first),
            self.head.eq(read.data),
        ]
        with m.If(self.push & ~self.pop):
            m.d.sync += [
                self.count.eq(self.count + 1),
                self.valid.eq(1),
                self.room.eq(self.count != depth - 1),
            ]
        with m.If(self.pop & ~self.push):
            m.d.sync += [self.count.eq(self.count - 1), self.valid.eq(self.count != 1), self.room.eq(1)]
        with m.If(self.push):
            m.d.sync += tail.eq(following(tail))
        with m.If(self.pop):
            m.d.sync += first.eq(following(first))
        with m.If(self.flush):
            m.d.sync += [self.count.eq(0), first.eq(0), tail.eq(0), self.valid.eq(0), self.room.eq(1)]
        return m


class BypassQueue(wiring.Component):
    """A queue whose entries can be popped in the cycle of their push. ``pop`` on an empty queue does
    nothing."""

    def __init__(self, shape: ShapeLike, depth: int) -> None:
        self.depth = depth
        self.shape = shape
        super().__init__(
            {
                "flush": In(1),
                "push": In(1),
                "data": In(shape),
                "valid": Out(1),
                "head": Out(shape),
                "pop": In(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.queue = queue = Queue(self.shape, self.depth)
        m.d.comb += [
            queue.flush.eq(self.flush),
            queue.data.eq(self.data),
            queue.push.eq(self.push & (queue.valid | ~self.pop)),
            queue.pop.eq(self.pop & queue.valid),
            self.valid.eq(queue.valid | self.push),
            self.head.eq(Mux(queue.valid, queue.head, self.data)),
        ]
        return m


class RegisteredHeadQueue(wiring.Component):
    """A queue with its head in registers, for pushes and pops that are known late. The user guarantees at
    most ``depth`` entries, and pops only if there is one."""

    def __init__(self, shape: ShapeLike, depth: int) -> None:
        self.depth = depth
        self.shape = shape
        super().__init__(
            {
                "flush": In(1),
                "push": In(1),
                "data": In(shape),
                "valid": Out(1),
                "head": Out(shape),
                "pop": In(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.behind = behind = Queue(self.shape, max(1, self.depth - 1))
        taking = Signal()
        m.d.comb += [
            taking.eq(self.pop | ~self.valid),
            behind.flush.eq(self.flush),
            behind.data.eq(self.data),
            behind.push.eq(self.push & (behind.valid | ~taking)),
            behind.pop.eq(behind.valid & self.pop),
        ]
        with m.If(taking):
            m.d.sync += [
                self.valid.eq(behind.valid | self.push),
                self.head.eq(Mux(behind.valid, behind.head, self.data)),
            ]
        with m.If(self.flush):
            m.d.sync += self.valid.eq(0)
        return m


class Reservation(wiring.Signature):
    """A place in a :class:`ReservedQueue`, for an entry pushed in the same cycle or later."""

    def __init__(self) -> None:
        super().__init__({"reserve": Out(1), "room": In(1, init=1)})


class Enqueue(wiring.Signature):
    """An entry for a :class:`ReservedQueue`: ``push`` puts ``data`` into the oldest reserved place."""

    def __init__(self, shape: ShapeLike) -> None:
        super().__init__({"push": Out(1), "data": Out(shape)})


class Issue(wiring.Signature):
    """A unit's end of its :class:`ReservedQueue`.

    ``valid`` and ``entry`` are the head, from registers. ``start`` begins and pops it. With ``taking``,
    ``following`` moves to the head, entry or not: the unit sees its next instruction one cycle ahead.
    """

    def __init__(self, shape: ShapeLike) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "entry": Out(shape),
                "start": In(1),
                "taking": Out(1),
                "following": Out(shape),
            }
        )


class ReservedQueue(wiring.Component):
    """A queue with its head in registers, and places reserved before entries arrive.

    ``reservation.room``, a register, shows that fewer than ``depth`` entries were reserved and not popped at
    the end of the previous cycle.
    """

    def __init__(self, shape: ShapeLike, depth: int) -> None:
        self.depth = depth
        self.shape = shape
        super().__init__(
            {
                "flush": In(1),
                "reservation": In(Reservation()),
                "enqueue": In(Enqueue(shape)),
                "issue": Out(Issue(shape)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.behind = behind = Queue(self.shape, max(1, self.depth - 1))
        taken = Signal(range(self.depth + 1))
        reservation, enqueue, issue = self.reservation, self.enqueue, self.issue
        m.d.comb += [
            issue.taking.eq(issue.start | ~issue.valid),
            Value.cast(issue.following).eq(
                Mux(behind.valid, Value.cast(behind.head), Value.cast(enqueue.data)),
            ),
            behind.flush.eq(self.flush),
            behind.data.eq(enqueue.data),
            behind.push.eq(enqueue.push & (behind.valid | ~issue.taking)),
            behind.pop.eq(behind.valid & issue.start),  # an entry after the head implies a head
        ]
        with m.If(reservation.reserve & ~issue.start):
            m.d.sync += [taken.eq(taken + 1), reservation.room.eq(taken != self.depth - 1)]
        with m.If(issue.start & ~reservation.reserve):
            m.d.sync += [taken.eq(taken - 1), reservation.room.eq(1)]
        with m.If(issue.taking):
            m.d.sync += [issue.valid.eq(behind.valid | enqueue.push), issue.entry.eq(issue.following)]
        with m.If(self.flush):
            m.d.sync += [taken.eq(0), issue.valid.eq(0), reservation.room.eq(1)]
        return m
