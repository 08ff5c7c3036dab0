"""Fetch has the defined bursts, and dispatches in order for any timing of queues and bus."""

from collections import deque
from random import Random
from typing import Any

import pytest

from accel.base.records import replace
from accel.core.config import NAMED
from accel.core.fault_causes import Cause
from accel.core.isa import Finish, Unit, encode
from accel.core.timing_rules import Burst, fetch_bursts
from accel.hw.datapath.unit_ports import port_of
from accel.hw.units.fetch import Fetch
from tests.hw.bench import run
from tests.strategies import any_instruction
from tests.thorough import also


@pytest.mark.parametrize(
    ("bus", "buffer", "chunk"),
    [
        (64, 64, 16),
        (128, 4, 2),
        (512, 1, 1),
        *(also(bus, *sizes) for bus, sizes in ((64, (1, 1)), (64, (4, 2)), (128, (1, 1)))),
        *(also(bus, *sizes) for bus, sizes in ((128, (64, 16)), (512, (4, 2)), (512, (64, 16)))),
    ],
)
def test_instructions_come_in_order_in_the_definitions_bursts(bus: int, buffer: int, chunk: int) -> None:
    config = replace(NAMED["tiny"], bus_bits=bus, fetch_buffer=buffer, fetch_chunk=chunk, max_burst_beats=4)
    fetch = Fetch(config)
    rng = Random(bus + buffer)
    program = []
    while len(program) < 90:
        instruction = any_instruction(rng, config)
        if instruction.opcode <= max(Unit) + 1 and not isinstance(instruction, Finish):
            program.append(instruction)
    program.append(Finish())
    code = encode(program, config)
    address = 4096 - 16 * 37

    async def bench(context: Any) -> None:
        context.set(fetch.address, address)
        context.set(fetch.length, len(program))
        context.set(fetch.flush, 1)
        await context.tick()
        context.set(fetch.flush, 0)
        context.set(fetch.enable, 1)
        context.set(fetch.active, 1)
        asked: list[Burst] = []
        beats: deque[tuple[int, bool]] = deque()
        under_way = 0
        handed = []
        for _ in range(4000):
            for unit in (Unit.LOAD, Unit.COMPUTE, Unit.STORE):
                context.set(port_of(fetch, unit).room, rng.random() < 0.6)
            may = under_way < config.outstanding and rng.random() < 0.4
            granted = context.get(fetch.read.valid) and may
            context.set(fetch.read.granted, granted)
            if granted:
                request = context.get(fetch.read.request)
                asked.append(Burst(request.address, request.beats))
                first = request.address // config.bus_bytes
                beats.extend((first + n, n == request.beats - 1) for n in range(request.beats))
                under_way += 1
            beat = bool(beats) and not granted and rng.random() < 0.5
            context.set(fetch.read.beat_valid, beat)
            if beat:
                number, last = beats.popleft()
                under_way -= last
                begin = number * config.bus_bytes - address
                data = bytes(max(0, -begin)) + code[max(0, begin) : begin + config.bus_bytes]
                context.set(
                    fetch.read.beat_data, int.from_bytes(data.ljust(config.bus_bytes, b"\xa5"), "little")
                )
            if context.get(fetch.fetched.push):
                assert context.get(fetch.fetched.index) == len(handed)
                assert context.get(fetch.fetched.unit) == program[len(handed)].unit
                handed.append(context.get(fetch.fetched.word))
            assert context.get(fetch.fault) == Cause.NONE
            await context.tick()
            if len(handed) == len(program):
                break
        assert not context.get(fetch.more)
        words = [int.from_bytes(code[n : n + 16], "little") for n in range(0, len(code), 16)]
        assert handed == words
        assert asked == [part.burst for part in fetch_bursts(address, len(program), config)]

    run(fetch, bench)
