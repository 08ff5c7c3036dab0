"""Transfers in flight: started, not yet retired."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.hw.datapath.queue import Queue
from accel.hw.datapath.word_layouts import INDEX_BITS, kind_bits, sram_bits


class RangeLayout(data.StructLayout):
    """Scratchpad elements ``begin`` to ``end`` - 1 of one memory. ``any`` is 0 if there are none."""

    def __init__(self, config: Config) -> None:
        index = sram_bits(config)
        super().__init__({"any": 1, "kind": kind_bits(config), "begin": index, "end": index})


class RetireLayout(data.StructLayout):
    def __init__(self) -> None:
        super().__init__({"index": INDEX_BITS, "push_prev": 1, "push_next": 1})


class Retirement(wiring.Signature):
    """With ``valid``, the oldest instruction in flight retires, and ``retired`` describes it. ``occupied``
    shows that there is one, ``oldest`` is its index."""

    def __init__(self) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "retired": Out(RetireLayout()),
                "occupied": Out(1),
                "oldest": Out(INDEX_BITS),
            }
        )


class InFlight(wiring.Component):
    """Up to ``depth`` transfers. Each has two parts, data and pads, which complete in any order. The oldest
    transfer retires in the cycle in which its last part completes, at most one per cycle.

    ``start`` enters a transfer, which gets the number ``slot``. A missing part counts as complete.
    ``conflict`` shows that ``range`` overlaps that of a transfer in flight. It is computed one cycle earlier:
    with ``taking``, ``following`` is the range of the next transfer. Each of the ``memories`` has its own
    ``range`` and ``following``, with its suffix.

    With ``shared``, other instructions retire in between, and ``hold`` delays retirement. ``unwritten`` is
    ``conflict`` restricted to transfers with incomplete data.
    """

    def __init__(
        self,
        depth: int,
        config: Config,
        *,
        hazards: bool,
        shared: bool = False,
        memories: Sequence[str] = ("",),
    ) -> None:
        self.depth = depth
        self._memories = memories
        self._hazards = hazards
        self._shared = shared
        self._config = config
        slots = range(depth)
        super().__init__(
            {
                "flush": In(1),
                "start": In(1),
                "retiring": In(RetireLayout()),
                **{f"range{one}": In(RangeLayout(config)) for one in memories},
                **({"taking": In(1)} if hazards else {}),
                **({f"following{one}": In(RangeLayout(config)) for one in memories} if hazards else {}),
                "has_data": In(1),
                "has_pads": In(1),
                "slot": Out(slots),
                "room": Out(1),
                "conflict": Out(1),
                "data_done": In(1),
                "data_slot": In(slots),
                "pads_done": In(1),
                "pads_slot": In(slots),
                "retirement": Out(Retirement()),
                **({"hold": In(1), "unwritten": Out(1)} if shared else {}),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        depth = self.depth
        m.submodules.records = records = Queue(RetireLayout(), depth)
        retirement = self.retirement
        head = Signal(range(depth))
        data_left = [Signal(name=f"data_left_{n}") for n in range(depth)]
        pads_left = [Signal(name=f"pads_left_{n}") for n in range(depth)]

        def following(pointer: Signal) -> Any:
            return Mux(pointer == depth - 1, 0, pointer + 1)

        data_now = self.data_done & (self.data_slot == head)
        pads_now = self.pads_done & (self.pads_slot == head)
        data_due = Signal()
        pads_due = Signal()
        """The oldest transfer has this part left."""
        complete = records.valid & (~data_due | data_now) & (~pads_due | pads_now)
        m.d.comb += [
            records.flush.eq(self.flush),
            records.push.eq(self.start),
            records.data.eq(self.retiring),
            records.pop.eq(retirement.valid),
            self.room.eq(records.room),
            retirement.occupied.eq(records.valid),
            retirement.retired.eq(records.head),
            retirement.oldest.eq(records.head.index),
            retirement.valid.eq(complete & ~self.hold if self._shared else complete),
        ]
        with m.If(retirement.valid):
            m.d.sync += head.eq(following(head))
        with m.If(self.start):
            m.d.sync += self.slot.eq(following(self.slot))
        parts = (
            (data_left, data_due, self.data_done, self.data_slot, self.has_data),
            (pads_left, pads_due, self.pads_done, self.pads_slot, self.has_pads),
        )
        for left, due, done, slot, has in parts:
            stays: list[Value] = []
            for n, bit in enumerate(left):
                is_next = self.room & (self.slot == n)  # the free slot is that of the transfer that may start
                stays.append(Mux(is_next, has, bit & ~(done & (slot == n))))
                m.d.sync += bit.eq(stays[n])
            one, other = (
                stays[0] if depth == 1 else Array(stays)[which] for which in (head, following(head))
            )
            m.d.sync += due.eq(Mux(retirement.valid, other, one))
        if self._hazards:
            found = [self._meet(m, head, one) for one in self._memories]
            m.d.comb += self.conflict.eq(reduce(or_, (conflict for conflict, _ in found)))
            if self._shared:
                m.d.comb += self.unwritten.eq(reduce(or_, (unwritten for _, unwritten in found)))
        with m.If(self.flush):
            m.d.sync += [head.eq(0), self.slot.eq(0)]
        return m

    def _meet(self, m: Module, head: Signal, memory: str) -> tuple[Value, Value]:
        """Return ``conflict`` and ``unwritten`` for one memory."""
        retirement = self.retirement
        its_range, its_following = getattr(self, f"range{memory}"), getattr(self, f"following{memory}")
        overlaps, left = [], []
        for n in range(self.depth):
            filled = Signal(RangeLayout(self._config), name=f"filled{memory}_{n}")
            meets = Signal(name=f"meets{memory}_{n}")
            is_next = self.room & (self.slot == n)
            with m.If(retirement.valid & (head == n)):
                m.d.sync += filled.any.eq(0)
            with m.If(is_next):
                m.d.sync += [
                    filled.any.eq(self.start & its_range.any),
                    filled.kind.eq(its_range.kind),
                    filled.begin.eq(its_range.begin),
                    filled.end.eq(its_range.end),
                ]
            with m.If(self.flush):
                m.d.sync += filled.any.eq(0)
            with m.If(self.taking):
                m.d.sync += meets.eq(
                    Mux(is_next, _overlap(its_range, its_following), _overlap(filled, its_following))
                )
            overlaps.append(filled.any & meets)
            if self._shared:
                awaits = Signal(name=f"awaits{memory}_{n}")
                """The transfer's data is not complete."""
                with m.If(self.data_done & (self.data_slot == n)):
                    m.d.sync += awaits.eq(0)
                with m.If(is_next):
                    m.d.sync += awaits.eq(self.start & its_range.any & self.has_data)
                with m.If(self.flush):
                    m.d.sync += awaits.eq(0)
                left.append(awaits & meets)
        return its_range.any & Cat(*overlaps).any(), its_range.any & Cat(*left).any()


def _overlap(one: Any, other: Any) -> Value:
    return (one.kind == other.kind) & (one.begin < other.end) & (other.begin < one.end)
