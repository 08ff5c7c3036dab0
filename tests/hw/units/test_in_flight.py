"""Transfers in flight compared with a list of them."""

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from accel.core.config import NAMED
from accel.hw.units.in_flight import InFlight
from tests.hw.bench import drive, run
from tests.thorough import diagonal

CONFIG = NAMED["tiny"]


@dataclass
class Record:
    """A transfer: its remaining words and the elements that it fills."""

    index: int
    slot: int
    data: bool
    pads: bool
    kind: int
    begin: int
    end: int
    any: bool

    def meets(self, other: "Record") -> bool:
        both = self.any and other.any and self.kind == other.kind
        return both and self.begin < other.end and other.begin < self.end


def any_record(rng: Random, index: int, slot: int) -> Record:
    begin = rng.randint(0, 12)
    return Record(
        index=index,
        slot=slot,
        data=rng.random() < 0.7,
        pads=rng.random() < 0.5,
        kind=rng.randint(0, 1),
        begin=begin,
        end=begin + rng.randint(1, 4),
        any=rng.random() < 0.8,
    )


@pytest.mark.parametrize(("depth", "hazards"), diagonal([1, 2, 3, 8], [False, True]))
def test_parts_complete_in_any_order_and_transfers_retire_in_theirs(depth: int, hazards: bool) -> None:
    flight = InFlight(depth, CONFIG, hazards=hazards)

    async def bench(context: Any) -> None:
        rng = Random(depth)
        held: list[Record] = []
        entered = retired = 0
        candidate, following = any_record(rng, 0, 0), any_record(rng, 1, 1 % depth)
        for _ in range(600):
            drive(
                context,
                flight.range,
                any=candidate.any,
                kind=candidate.kind,
                begin=candidate.begin,
                end=candidate.end,
            )
            drive(context, flight, has_data=candidate.data, has_pads=candidate.pads)
            drive(
                context,
                flight.retiring,
                index=candidate.index,
                push_prev=candidate.index & 1,
                push_next=candidate.index >> 1 & 1,
            )
            assert context.get(flight.room) == (len(held) < depth)
            assert context.get(flight.retirement.occupied) == bool(held)
            assert context.get(flight.slot) == entered % depth
            if hazards:
                assert context.get(flight.conflict) == any(candidate.meets(one) for one in held)
            start = len(held) < depth and rng.random() < 0.6
            context.set(flight.start, start)
            if hazards:
                drive(context, flight, taking=start)
                drive(
                    context, flight.following, kind=following.kind, begin=following.begin, end=following.end
                )
            done: dict[str, Record | None] = {}
            for part in ("data", "pads"):
                unfinished = [one for one in held if getattr(one, part)]
                done[part] = rng.choice(unfinished) if unfinished and rng.random() < 0.6 else None
                one = done[part]
                drive(
                    context,
                    flight,
                    **{f"{part}_done": one is not None, f"{part}_slot": one.slot if one else 0},
                )
                if one is not None:
                    setattr(one, part, False)
            ready = bool(held) and not held[0].data and not held[0].pads
            assert context.get(flight.retirement.valid) == ready
            if held:
                assert context.get(flight.retirement.oldest) == held[0].index
            if ready:
                found = context.get(flight.retirement.retired)
                assert (found.index, found.push_prev, found.push_next) == (
                    retired,
                    retired & 1,
                    retired >> 1 & 1,
                )
                held.pop(0)
                retired += 1
            if start:
                held.append(candidate)
                entered += 1
                candidate, following = following, any_record(rng, entered + 1, (entered + 1) % depth)
            await context.tick()
        assert retired > 100

    run(flight, bench)


def test_a_flush_forgets_all_of_them() -> None:
    flight = InFlight(3, CONFIG, hazards=True)

    async def bench(context: Any) -> None:
        drive(context, flight.range, any=1, begin=2, end=4)
        drive(context, flight.following, begin=3, end=9)
        drive(context, flight, start=1, taking=1, has_data=1, has_pads=0)
        await context.tick()
        assert (context.get(flight.conflict), context.get(flight.slot)) == (1, 1)
        drive(context, flight, start=0, taking=0, flush=1)
        await context.tick()
        drive(context, flight, flush=0)
        assert (context.get(flight.retirement.occupied), context.get(flight.conflict)) == (0, 0)
        assert context.get(flight.slot) == 0
        assert not context.get(flight.retirement.valid)

    run(flight, bench)
