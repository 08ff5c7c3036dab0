from collections import deque
from random import Random
from typing import Any

import pytest

from accel.hw.datapath.queue import BypassQueue, Queue, RegisteredHeadQueue, ReservedQueue
from tests.hw.bench import drive, run


@pytest.mark.parametrize("depth", [1, 2, 3, 8])
def test_a_queue_is_first_in_first_out(depth: int) -> None:
    queue = Queue(16, depth)

    async def bench(context: Any) -> None:
        rng = Random(depth)
        held: deque[int] = deque()
        for _ in range(600):
            assert context.get(queue.count) == len(held)
            assert context.get(queue.room) == (len(held) < depth)
            assert context.get(queue.valid) == bool(held)
            if held:
                assert context.get(queue.head) == held[0]
            push = len(held) < depth and rng.random() < 0.6
            pop = bool(held) and rng.random() < 0.5
            flush = rng.random() < 0.02
            value = rng.randrange(1 << 16)
            context.set(queue.push, push)
            context.set(queue.data, value)
            context.set(queue.pop, pop)
            context.set(queue.flush, flush)
            await context.tick()
            if pop:
                held.popleft()
            if push:
                held.append(value)
            if flush:
                held.clear()

    run(queue, bench)


@pytest.mark.parametrize("depth", [2, 3, 8])
def test_a_queue_led_by_registers_is_first_in_first_out(depth: int) -> None:
    queue = RegisteredHeadQueue(16, depth)

    async def bench(context: Any) -> None:
        rng = Random(depth)
        held: deque[int] = deque()
        for _ in range(600):
            assert context.get(queue.valid) == bool(held)
            if held:
                assert context.get(queue.head) == held[0]
            push = len(held) < depth and rng.random() < 0.6
            pop = bool(held) and rng.random() < 0.5
            flush = rng.random() < 0.02
            value = rng.randrange(1 << 16)
            drive(context, queue, push=push, data=value, pop=pop, flush=flush)
            await context.tick()
            if pop:
                held.popleft()
            if push:
                held.append(value)
            if flush:
                held.clear()

    run(queue, bench)


@pytest.mark.parametrize("depth", [1, 3])
def test_a_bypass_queue_outputs_a_push_in_the_same_cycle(depth: int) -> None:
    queue = BypassQueue(16, depth)

    async def bench(context: Any) -> None:
        rng = Random(depth)
        held: deque[int] = deque()
        for _ in range(600):
            push = len(held) < depth and rng.random() < 0.6
            value = rng.randrange(1 << 16)
            context.set(queue.push, push)
            context.set(queue.data, value)
            if push:
                held.append(value)
            assert context.get(queue.valid) == bool(held)
            if held:
                assert context.get(queue.head) == held[0]
            pop = rng.random() < 0.5
            context.set(queue.pop, pop)
            await context.tick()
            if pop and held:
                held.popleft()

    run(queue, bench)


@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize("depth", [1, 2, 3, 8])
def test_a_queue_with_its_head_in_registers_keeps_reserved_places(depth: int, delay: int) -> None:
    queue = ReservedQueue(16, depth)

    async def bench(context: Any) -> None:
        rng = Random(depth)
        held: deque[int] = deque()
        coming: deque[int | None] = deque([None] * delay)
        for _ in range(600):
            taken = len(held) + sum(one is not None for one in coming)
            assert context.get(queue.reservation.room) == (taken < depth)
            assert context.get(queue.issue.valid) == bool(held)
            if held:
                assert context.get(queue.issue.entry) == held[0]
            reserved = taken < depth and rng.random() < 0.6
            pop = bool(held) and rng.random() < 0.5
            flush = rng.random() < 0.02
            coming.append(rng.randrange(1 << 16) if reserved else None)
            pushed = coming.popleft()
            context.set(queue.reservation.reserve, reserved)
            context.set(queue.enqueue.push, pushed is not None)
            context.set(queue.enqueue.data, pushed or 0)
            context.set(queue.issue.start, pop)
            context.set(queue.flush, flush)
            await context.tick()
            if pop:
                held.popleft()
            if pushed is not None:
                held.append(pushed)
            if flush:
                held.clear()
                coming = deque([None] * delay)

    run(queue, bench)
