"""Bytes, executions and reuse of a loop nest, without its instructions.

The counts simplify the tensorized nest. Conditions on the innermost loops, for example at borders of a
picture, count as true. More than ``_MAX_ITERATIONS`` distinct iterations are sampled.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from accel.compiler.codegen.dram_map import block_count, place_buffers
from accel.compiler.expr.linear_expressions import variables
from accel.compiler.expr.numpy_reference import values_at
from accel.compiler.expr.scalar_expressions import Expr, IterVar
from accel.compiler.nest.element_packing import buffer_elements
from accel.compiler.nest.epilogue_lowering import lower_epilogue
from accel.compiler.nest.nest import (
    AluCall,
    Call,
    Copy,
    For,
    Guard,
    Nest,
    Node,
    Region,
    StoreEpilogue,
    TileEpilogue,
    walk_nodes,
)
from accel.compiler.nest.nest_passes import Compilation, run_passes
from accel.compiler.schedule.schedule import Schedule
from accel.core.config import Config

_MAX_ITERATIONS = 4096
SCOPES = ("inp_buffer", "wgt_buffer", "acc_buffer")
_REQUEST_CYCLES = 6.0
"""Start, request and first pad word of a transfer."""
_INSTRUCTION_CYCLES = 4.0
"""Token, dispatch and start of a GEMM or ALU instruction."""

FloatArray = npt.NDArray[np.float64]


class ScopeCounts(Struct, kw_only=True):
    """Counts of one scratchpad.

    Attributes:
        elements: of buffers, in all sets.
        depth: capacity in elements.
        sets: maximum sets of a buffer.
        bytes: of LOADs.
    """

    elements: int = 0
    depth: int = 1
    sets: int = 1
    loads: float = 0.0
    bytes: float = 0.0


class NestProfile(Struct, kw_only=True):
    """Counts of a nest.

    Attributes:
        scopes: by name, see :data:`SCOPES`.
        other_bytes: of LOADs into other scratchpads.
        load_rows: of all LOADs.
        products, product_slots: GEMM instructions and their slots.
        alu, alu_slots: ALU instructions and their slots.
        resets: slots to set sums to zero.
        largest_loop: iterations of the outermost loop.
    """

    scopes: dict[str, ScopeCounts] = field(default_factory=dict)
    other_bytes: float = 0.0
    load_rows: float = 0.0
    stores: float = 0.0
    store_bytes: float = 0.0
    products: float = 0.0
    product_slots: float = 0.0
    alu: float = 0.0
    alu_slots: float = 0.0
    resets: float = 0.0
    threads: int = 1
    largest_loop: float = 1.0

    @property
    def load_bytes(self) -> float:
        return self.other_bytes + sum(one.bytes for one in self.scopes.values())

    @property
    def loads(self) -> float:
        return sum(one.loads for one in self.scopes.values())


class _Point(Struct, frozen=True):
    """Iterations of a statement.

    Attributes:
        at: values of loop variables that extents depend on, by distinct iteration.
        weights: executions by distinct iteration.
    """

    at: Mapping[IterVar, npt.NDArray[Any]]
    weights: FloatArray

    @property
    def executions(self) -> float:
        return float(self.weights.sum())

    def values(self, expr: Expr) -> FloatArray:
        """Unknown variables count as 0."""
        known = {v: self.at.get(v, np.zeros(1, dtype=np.int64)) for v in variables(expr)}
        return np.broadcast_to(values_at(expr, known), self.weights.shape).astype(np.float64)


def profile_schedule(schedule: Schedule, config: Config) -> NestProfile:
    """Lower a schedule, and return its nest's counts.

    Raises:
        ScheduleError: the schedule cannot be lowered, or does not fit the scratchpads.
    """
    nest = run_passes(Compilation(schedule=schedule)).nest
    found = profile_nest(nest, config)
    found.threads = (
        max(loop.extent for stage in schedule.stages for loop in stage.threads)
        if any(stage.threads for stage in schedule.stages)
        else 1
    )
    return found


def profile_nest(nest: Nest, config: Config) -> NestProfile:
    """Raise a ScheduleError if buffers do not fit the scratchpads."""
    elements = buffer_elements(nest)
    place_buffers(nest.locals, elements)
    profile = NestProfile(scopes={name: ScopeCounts() for name in SCOPES})
    for buffer in nest.locals:
        if buffer.scope is None or buffer.scope.name not in profile.scopes:
            continue
        counts = profile.scopes[buffer.scope.name]
        counts.elements += buffer.sets * block_count(buffer, elements[buffer])
        counts.depth = buffer.scope.depth
        counts.sets = max(counts.sets, buffer.sets)
    _Walk(profile).run(nest.body, [_Point({}, np.ones(1))], [])
    return profile


class _Walk:
    def __init__(self, profile: NestProfile) -> None:
        self.profile = profile
        self._used: dict[int, frozenset[IterVar]] = {}
        self._perfect = 0
        """Innermost perfect loops around the current statement."""

    def run(self, nodes: Sequence[Node], points: list[_Point], loops: list[IterVar]) -> None:
        """``points`` are outside all loops, then inside each further loop."""
        for node in nodes:
            if isinstance(node, For):
                self._run_loop(node, points, loops)
            elif isinstance(node, Guard):
                self._perfect = self._perfect if len(node.body) == 1 else 0
                self.run(node.body, [*points[:-1], _guarded(node, points[-1])], loops)
            elif isinstance(node, TileEpilogue):
                self.run(lower_epilogue(node), points, loops)
            elif isinstance(node, Copy):
                self._add_copy(node, points, loops)
            elif isinstance(node, StoreEpilogue):
                self._add_store(node.target, points[-1])
            elif isinstance(node, Call | AluCall):
                self._add_call(node, points, loops)

    def _run_loop(self, loop: For, points: list[_Point], loops: list[IterVar]) -> None:
        inside = _entered(loop, points[-1], loop.var in self._used_inside(loop))
        if not loops:
            self.profile.largest_loop = max(self.profile.largest_loop, inside.executions)
        before = self._perfect
        self._perfect = before + 1 if len(loop.body) == 1 else 0
        self.run(loop.body, [*points, inside], [*loops, loop.var])
        self._perfect = before

    def _used_inside(self, loop: For) -> frozenset[IterVar]:
        """Return variables on which extents of regions and loops inside depend."""
        if id(loop) not in self._used:
            used: set[IterVar] = set()
            for node in walk_nodes(loop.body):
                if isinstance(node, For):
                    used.update(variables(node.extent))
                elif isinstance(node, Copy):
                    for one in node.source.ranges:
                        used.update(variables(one.extent))
                elif isinstance(node, StoreEpilogue):
                    for one in node.target.ranges:
                        used.update(variables(one.extent))
            self._used[id(loop)] = frozenset(used)
        return self._used[id(loop)]

    def _add_copy(self, node: Copy, points: list[_Point], loops: list[IterVar]) -> None:
        if node.target.buffer.scope is None:
            self._add_store(node.target, points[-1])
            return
        name = node.target.buffer.scope.name
        depends = _region_variables(node.source) | set(variables(node.target.set_index))
        depth = max((n + 1 for n, var in enumerate(loops) if var in depends), default=0)
        point = points[depth]  # equal LOADs of neighbouring iterations are emitted once
        executions, moved, rows = point.executions, *_region_bytes(node.source, point)
        counts = self.profile.scopes.get(name)
        if counts is None:
            self.profile.other_bytes += moved
        else:
            counts.loads += executions
            counts.bytes += moved
        self.profile.load_rows += rows

    def _add_store(self, target: Region, point: _Point) -> None:
        moved, _ = _region_bytes(target, point)
        self.profile.stores += point.executions
        self.profile.store_bytes += moved

    def _add_call(self, node: Call | AluCall, points: list[_Point], loops: list[IterVar]) -> None:
        slots = points[-1].executions
        instructions = points[len(loops) - self._perfect].executions  # one for each perfect nest
        if isinstance(node, AluCall):
            self.profile.alu += instructions
            self.profile.alu_slots += slots
        elif node.form == "reset":
            self.profile.resets += slots
        else:
            self.profile.products += instructions
            self.profile.product_slots += slots


def _guarded(guard: Guard, point: _Point) -> _Point:
    holds = np.ones(point.weights.shape, dtype=bool)
    for a, b in guard.conditions:
        if all(v in point.at for side in (a, b) for v in variables(side)):
            holds &= point.values(a) < point.values(b)
    return _Point(point.at, point.weights * holds)


def _entered(loop: For, point: _Point, is_used: bool) -> _Point:
    extents = np.maximum(point.values(loop.extent), 0)
    if not is_used:
        return _Point(point.at, point.weights * extents)
    total = int(extents.sum())
    if total > _MAX_ITERATIONS:
        first = {loop.var: np.zeros_like(point.weights, dtype=np.int64)}
        return _Point({**point.at, **first}, point.weights * extents)
    counts = extents.astype(np.int64)
    repeated = np.repeat(np.arange(len(counts)), counts)
    values = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    at = {v: np.broadcast_to(known, point.weights.shape)[repeated] for v, known in point.at.items()}
    return _Point({**at, loop.var: values}, point.weights[repeated])


def _region_variables(region: Region) -> set[IterVar]:
    return {v for one in region.ranges for side in (one.start, one.extent) for v in variables(side)}


def _region_bytes(region: Region, point: _Point) -> tuple[float, float]:
    """Return bytes over all iterations, and rows: runs along the last dimension."""
    extents = [np.maximum(point.values(one.extent), 0) for one in region.ranges]
    item = np.dtype(region.buffer.dtype).itemsize
    rows = prod(extents[:-1], start=np.ones(point.weights.shape))
    return (
        float((rows * extents[-1] * point.weights).sum()) * item if extents else 0.0,
        float((rows * point.weights).sum()),
    )


def estimate_cycles(profile: NestProfile, config: Config) -> float:
    """Estimate cycles from counts, for computations without a planner.

    The bus moves a beat per cycle, and the compute unit has a slot per cycle. With several buffer sets, units
    overlap, and the busiest determines the cycles. Otherwise times add up.
    """
    bus = config.bus_bytes
    load = profile.load_bytes / bus + _REQUEST_CYCLES * profile.loads
    store = profile.store_bytes / bus + _REQUEST_CYCLES * profile.stores
    compute = (
        profile.product_slots
        + profile.alu_slots
        + profile.resets
        + _INSTRUCTION_CYCLES * (profile.products + profile.alu)
    )
    steps = max(1.0, *(one.loads for one in profile.scopes.values()))
    operands = [profile.scopes[name].sets for name in ("inp_buffer", "wgt_buffer")]
    if max(operands) > 1:
        return max(load, compute, store) + (load + compute + store) / steps + config.read_latency
    return load + compute + store + steps * config.read_latency


def profile_features(profile: NestProfile, config: Config) -> dict[str, float]:
    """Return logarithms of counts, shares of scratchpads, and reuse by name."""
    features = {
        "load_bytes": _log(profile.load_bytes),
        "load_rows": _log(profile.load_rows),
        "loads": _log(profile.loads),
        "stores": _log(profile.stores),
        "store_bytes": _log(profile.store_bytes),
        "products": _log(profile.products),
        "slots_per_product": _log(profile.product_slots / max(1.0, profile.products)),
        "alu": _log(profile.alu),
        "alu_slots": _log(profile.alu_slots),
        "resets": _log(profile.resets),
        "threads": float(profile.threads),
        "largest_loop": _log(profile.largest_loop),
        "slots_per_byte": _log(
            profile.product_slots * config.bus_bytes / max(1.0, profile.load_bytes + profile.store_bytes)
        ),
        "estimate": _log(estimate_cycles(profile, config)),
    }
    for name, counts in profile.scopes.items():
        short = name.removesuffix("_buffer")
        features |= {
            f"{short}_share": counts.elements / counts.depth,
            f"{short}_sets": float(counts.sets),
            f"{short}_loads": _log(counts.loads),
            f"{short}_bytes": _log(counts.bytes),
            f"{short}_bytes_per_load": _log(counts.bytes / max(1.0, counts.loads)),
            f"{short}_reuse": _log(profile.product_slots / max(1.0, counts.bytes)),
        }
    return features


def _log(value: float) -> float:
    return float(np.log2(1.0 + value))
