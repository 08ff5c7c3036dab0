"""Dispatch compared with the definitions of faults and boxes, for all numbers of stages."""

from collections import deque
from random import Random
from typing import Any

import pytest

from accel.base.records import replace
from accel.core.config import NAMED
from accel.core.fault_causes import Cause, instruction_fault
from accel.core.isa import Instruction, Load, Store, Transfer, Unit, Unknown, encode
from accel.core.token_rules import WORKERS
from accel.hw.datapath.unit_ports import port_of
from accel.hw.units.dispatch import Dispatch
from tests.hw.bench import box_of, drive, moves_of, run
from tests.strategies import any_instruction
from tests.thorough import diagonal


@pytest.mark.parametrize(("name", "stages"), diagonal(["tiny", "tiny-int8"], range(4)))
def test_instructions_are_checked_and_queued_after_dispatch_stages_cycles(name: str, stages: int) -> None:
    config = replace(NAMED[name], dispatch_stages=stages, mem_size=1 << 20)
    dispatch = Dispatch(config)

    async def bench(context: Any) -> None:
        rng = Random(stages)
        context.set(dispatch.mem_size, config.mem_size)
        held: deque[Instruction | None] = deque([None] * stages)
        for index in range(300):
            one = any_instruction(rng, config)
            there = rng.random() < 0.7 and not isinstance(one, Unknown)
            word = int.from_bytes(encode([one], config), "little")
            drive(
                context,
                dispatch.fetched,
                push=there,
                unit=int(one.unit) if there else 0,
                word=word,
                index=index,
            )
            assert context.get(dispatch.busy) == any(held)
            before = [index - stages + n for n, other in enumerate(held) if other is not None]
            if before:
                assert context.get(dispatch.oldest) == before[0]
            held.append(one if there else None)
            found = held.popleft()
            for unit in WORKERS:
                pushed = context.get(port_of(dispatch, unit).push)
                assert pushed == (found is not None and found.unit is unit)
            if found is not None:
                fault = instruction_fault(found, config)
                entry = context.get(port_of(dispatch, found.unit).data)
                assert Cause(entry.cause) == (Cause.NONE if fault is None else fault.cause), found
                assert entry.index == index - stages
                if fault is None and isinstance(found, Load | Store):
                    moves = moves_of(found, config)
                    assert {name: getattr(entry.moves, name) for name in moves} == moves
                if isinstance(found, Transfer) and fault is None and found.unit is not Unit.STORE:
                    assert {name: getattr(entry.box, name) for name in box_of(found)} == box_of(found)
            if stages:
                await context.tick()

    run(dispatch, bench)


def test_a_flush_drops_instructions_in_flight() -> None:
    dispatch = Dispatch(replace(NAMED["tiny"], dispatch_stages=3))

    async def bench(context: Any) -> None:
        drive(context, dispatch.fetched, push=1, unit=Unit.LOAD)
        await context.tick()
        context.set(dispatch.fetched.push, 0)
        context.set(dispatch.flush, 1)
        assert context.get(dispatch.busy)
        await context.tick()
        drive(context, dispatch, flush=0)
        for _ in range(3):
            assert not context.get(dispatch.busy)
            assert not context.get(dispatch.load.push)
            await context.tick()

    run(dispatch, bench)
