"""From a schedule to its loop nest."""

from __future__ import annotations

from collections.abc import Sequence

from accel.compiler.expr.linear_expressions import bounds
from accel.compiler.expr.scalar_expressions import (
    Cast,
    Condition,
    Const,
    IterVar,
    Read,
    Sum,
)
from accel.compiler.nest.nest import Assign, For, Guard, Nest, Node, ZeroRegion, replace_vars
from accel.compiler.nest.stage_loops import StageNest, first_reduce, inner_region
from accel.compiler.nest.stage_placement import Lowering
from accel.compiler.schedule.schedule import Schedule, Stage


def lower(schedule: Schedule) -> Nest:
    """Return the loop nest of a schedule, with scalar statements instead of intrinsics and copies.

    Raises:
        ScheduleError: a stage is computed inside a loop that not all of its readers are in.
    """
    lowering = Lowering(schedule)
    body: list[Node] = []
    for stage in lowering.root_stages():
        body.extend(_stage_nodes(lowering, stage))
    return finish(lowering, body)


def finish(lowering: Lowering, body: Sequence[Node]) -> Nest:
    schedule = lowering.schedule
    local = [s for s in schedule.stages if s.tensor not in schedule.outputs]
    around = {b: lowering.refill_loops[b] for b in (lowering.buffers[s.tensor] for s in local)}
    held = [(s, s.starts_after) for s in local if s.starts_after is not None]
    return Nest(
        inputs=tuple(lowering.buffers[t] for t in schedule.inputs),
        outputs=tuple(lowering.buffers[t] for t in schedule.outputs),
        locals=tuple(around),
        body=tuple(body),
        refill_loops=around,
        load_orders=tuple((lowering.buffers[s.tensor], lowering.buffers[first.tensor]) for s, first in held),
    )


def _stage_nodes(lowering: Lowering, stage: Stage) -> list[Node]:
    nest = lowering.nests[stage]
    return guarded(nest.conditions_at(0), _loops(lowering, nest, 0))


def _loops(lowering: Lowering, nest: StageNest, position: int) -> list[Node]:
    stage = nest.stage
    if position == len(stage.leaves):
        return [_statement(lowering, nest)]
    nodes: list[Node] = []
    if position == first_reduce(nest):
        nodes.extend(initial(lowering, nest, position))
    leaf = stage.leaves[position]
    inner: list[Node] = []
    for producer in lowering.attached_at(stage, leaf):
        inner.extend(_stage_nodes(lowering, producer))
    inner.extend(_loops(lowering, nest, position + 1))
    nodes.extend(wrap_loop(nest, leaf, guarded(nest.conditions_at(position + 1), inner)))
    return nodes


def wrap_loop(nest: StageNest, leaf: IterVar, inner: Sequence[Node]) -> list[Node]:
    loop = nest.loops[leaf]
    if loop is None:
        return list(inner)
    if loop.extent == 1 and bounds(nest.extents[leaf])[0] == 1:
        return [replace_vars(node, {loop: Const(0)}) for node in inner]
    threads, unrolled = leaf in nest.stage.threads, leaf in nest.stage.unrolled
    return [For(loop, nest.extents[leaf], tuple(inner), is_vthread=threads, is_unrolled=unrolled)]


def guarded(conditions: Sequence[Condition], nodes: list[Node]) -> list[Node]:
    return [Guard(tuple(conditions), tuple(nodes))] if conditions else nodes


def _statement(lowering: Lowering, nest: StageNest) -> Node:
    stage = nest.stage
    target = Read(nest.buffer, tuple(nest.values[axis] for axis in stage.axis))
    body = stage.body
    if isinstance(body, Cast) and isinstance(body.value, Sum):
        body = body.value  # the buffer's dtype wraps each partial sum alike
    if isinstance(body, Sum):
        return Assign(target, lowering.lowered(body.body, nest), accumulate=True)
    if isinstance(body, Cast) and body.to == nest.buffer.dtype:
        body = body.value
    return Assign(target, lowering.lowered(body, nest))


def initial(lowering: Lowering, nest: StageNest, position: int) -> list[Node]:
    """Return statements that zero the sums of the loops from ``position`` inward, as one region if
    possible."""
    region = inner_region(nest, position)
    if region is not None:
        return [ZeroRegion(region)]
    stage = nest.stage
    target = Read(nest.buffer, tuple(nest.values[axis] for axis in stage.axis))
    nodes = guarded(nest.space_conditions(position), [Assign(target, Const(0))])
    for leaf in reversed(stage.leaves[position:]):
        if leaf.kind == "space":
            nodes = wrap_loop(nest, leaf, nodes)
    return nodes
