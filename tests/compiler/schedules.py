"""Random schedules: any valid operators in any order."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from math import prod
from typing import NamedTuple

from hypothesis import strategies as st

from accel.base.errors import ScheduleError
from accel.compiler.expr.linear_expressions import bounds
from accel.compiler.expr.scalar_expressions import IterVar
from accel.compiler.nest.loop_nest_lowering import lower
from accel.compiler.nest.nest import For, Guard, Node
from accel.compiler.schedule.schedule import Schedule, Stage
from accel.compiler.target.machine import machine

MACHINE = machine("tiny")
SCOPES = (MACHINE.inp_buffer, MACHINE.wgt_buffer, MACHINE.acc_buffer)
LARGEST_UNROLLED = 64
MOST_ITERATIONS = 8000
"""Maximum number of executed statements when loops compute stages again."""


class Choice(NamedTuple):
    """Apply one operator. The numbers select its arguments."""

    operator: str
    stage: int
    loop: int
    number: int


OPERATORS = (
    *("split", "split", "tile", "fuse", "reorder", "unroll"),
    *("cache_read", "cache_write", "compute_at", "compute_at", "set_scope"),
    *("compute_root", "compute_inline"),
)
choices = st.lists(
    st.builds(Choice, st.sampled_from(OPERATORS), st.integers(0, 9), st.integers(0, 99), st.integers(0, 99)),
    max_size=10,
)


def apply(schedule: Schedule, chosen: Sequence[Choice]) -> list[str]:
    """Apply all operators that are valid, and return them."""
    return [choice.operator for choice in chosen if _apply(schedule, choice)]


def _apply(schedule: Schedule, choice: Choice) -> bool:
    stage = schedule.stages[choice.stage % len(schedule.stages)]
    leaves = stage.leaves
    free = _free(schedule, stage)
    if not free:
        return False
    loop = free[choice.loop % len(free)]
    match choice.operator:
        case "split":
            stage.split(loop, 1 + choice.number % 70)
        case "tile":
            loops = free[: 1 + choice.loop % 3]
            stage.tile(*loops, *[1 + (choice.number + 3 * n) % 9 for n in range(len(loops))])
        case "fuse":
            pairs = [(a, b) for a, b in pairwise(leaves) if a.kind == b.kind and {a, b} <= set(free)]
            if not pairs:
                return False
            stage.fuse(*pairs[choice.loop % len(pairs)])
        case "reorder":
            turned = leaves[choice.loop % len(leaves) :: -1]
            stage.reorder(*turned)
        case "unroll":
            if loop.extent * prod(v.extent for v in stage.unrolled) > LARGEST_UNROLLED:
                return False
            stage.unroll(loop)
        case "cache_read":
            tensors = [
                t for t in (*schedule.inputs, *(s.tensor for s in schedule.stages)) if schedule.readers(t)
            ]
            tensor = tensors[choice.loop % len(tensors)]
            readers = schedule.readers(tensor)
            one = None if choice.number % 2 else [readers[choice.number % len(readers)]]
            copy = schedule.cache_read(tensor, SCOPES[choice.number % 3], one)
            if tensor not in schedule.inputs and (attach := schedule[tensor].attach) is not None:
                schedule[copy].compute_at(*attach)
        case "cache_write":
            copy = schedule.cache_write(stage.tensor, SCOPES[choice.number % 3])
            if stage.attach is not None:
                schedule[copy].compute_at(*stage.attach)
        case "compute_at":
            return _compute_at(schedule, stage, choice)
        case "compute_root":
            return _moved(schedule, stage, stage.compute_root)
        case "compute_inline":
            attached = any(s.attach is not None and s.attach[0] is stage for s in schedule.stages)
            if stage.tensor in schedule.outputs or stage.reduce_axis or attached:
                return False
            stage.compute_inline()
        case "set_scope":
            if stage.tensor in schedule.outputs:
                return False
            stage.set_scope(SCOPES[choice.number % 3])
    return True


def _free(schedule: Schedule, stage: Stage) -> list[IterVar]:
    """Return the loops that no other operator refers to."""
    taken = {s.attach[1] for s in schedule.stages if s.attach is not None} | stage.unrolled
    return [leaf for leaf in stage.leaves if leaf not in taken]


def _compute_at(schedule: Schedule, stage: Stage, choice: Choice) -> bool:
    """Attach a stage, unless one of its readers would then be outside the loop, which only lowering finds."""
    consumers = [s for s in schedule.stages if s is not stage and schedule.depends(s, stage.tensor)]
    if not consumers:
        return False
    consumer = consumers[choice.loop % len(consumers)]
    leaf = consumer.leaves[choice.number % len(consumer.leaves)]
    return _moved(schedule, stage, lambda: stage.compute_at(consumer, leaf))


def _moved(schedule: Schedule, stage: Stage, move: Callable[[], None]) -> bool:
    """Move a stage, unless its producers or readers would then be outside the loop."""
    before = stage.attach, stage.is_root
    move()
    with suppress(ScheduleError):
        if iterations(lower(schedule).body) <= MOST_ITERATIONS:
            return True
    stage.attach, stage.is_root = before
    schedule.steps.pop()
    return False


def iterations(nodes: Sequence[Node]) -> int:
    """Return the maximum number of executed statements."""
    count = 0
    for node in nodes:
        if isinstance(node, For):
            count += bounds(node.extent)[1] * iterations(node.body)
        else:
            count += iterations(node.body) if isinstance(node, Guard) else 1
    return count
