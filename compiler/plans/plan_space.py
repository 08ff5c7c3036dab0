"""The plans of a sum of products that exist or fit, and their neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic

import numpy as np
from msgspec import Struct

from accel.compiler.plans.cycle_estimate import estimate_cycles
from accel.compiler.plans.operand_traffic import OperandTraffic
from accel.compiler.plans.pipeline_model import Predictions, predict
from accel.compiler.plans.plan_arrays import BoolArray
from accel.compiler.plans.plan_candidate import PlanT
from accel.compiler.plans.plan_table import RESIDENT, PlanTable
from accel.compiler.plans.steady_state import MAX_STEPS
from accel.compiler.plans.sum_shape import SumShape
from accel.compiler.plans.tile_sizes import TileSizes
from accel.compiler.plans.tile_steps import TileStepModel
from accel.core.config import Config
from accel.core.scratchpad_specs import SCRATCHPADS

THREAD_COUNTS = (1, 2, 3, 4, 6, 8)
"""Numbers of virtual threads to try if none is requested."""
_QUICK_THREAD_COUNTS = (1, 2, 4)
"""The same for quick searches."""
_RESIDENT_THREAD_COUNTS = (3, 8)
"""The same with resident operands, to limit plans. Neighbours are tried later."""
_RESIDENT_ACC_DIVISOR = 4
"""Least part of the accumulators that plans with resident operands use, to limit plans."""
RESIDENCIES = (
    *((resident, 0) for resident in range(len(RESIDENT))),
    *((resident, 1) for resident in range(1, len(RESIDENT))),
)
"""Resident operands (index into :data:`RESIDENT`) and prefetching."""


class PlanSpace(Struct, Generic[PlanT], frozen=True, kw_only=True):
    """The plans of an operator on a machine.

    ``tile_sizes`` holds all sizes that a neighbour of a plan can have, by attribute of the table.
    """

    shape: SumShape
    config: Config
    to_plans: Callable[[PlanTable], list[PlanT]]
    has_schedule: Callable[[TileSizes], BoolArray]
    tile_sizes: Mapping[str, Sequence[int]]
    residencies: Sequence[tuple[int, int]] = RESIDENCIES

    def sizes(self, table: PlanTable) -> TileSizes:
        return TileSizes(self.shape, self.config, table)

    def predict(self, table: PlanTable, max_steps: int = MAX_STEPS) -> Predictions:
        return predict(TileStepModel(self.shape, self.config, table), max_steps)

    def fitting(
        self,
        table: PlanTable,
        threads: int | None,
        min_accumulators: int = 0,
        max_estimate: float = math.inf,
    ) -> PlanTable:
        """Return those plans that fit, pay and have a schedule, possibly with duplicates.

        A plan whose loop has fewer iterations than threads gets one thread for each iteration.

        Args:
            threads: the requested number, all with work, or None for any.
            min_accumulators: those of all threads.
            max_estimate: omit plans whose estimate exceeds this multiple of the least. It is for plans
                without resident operands.
        """
        sizes = self.sizes(table)
        chosen = sizes.has_work_for_threads(threads) & self.has_schedule(sizes) & sizes.buffers_fit()
        if min_accumulators:
            chosen = chosen & (table.threads * sizes.tile_accumulators >= min_accumulators)
        table = table._replace(threads=np.minimum(table.threads, sizes.threaded_iterations))
        if max_estimate < math.inf:  # a table that broadcasts takes less time than its plans
            cycles = np.where(chosen, estimate_cycles(self.sizes(table)), math.inf)
            chosen = chosen & (cycles <= cycles.min(initial=math.inf) * max_estimate)
        found = table.select(chosen)
        if not found.resident.any():
            return found
        sizes = self.sizes(found)
        return found.take(OperandTraffic(sizes).residency_pays() & sizes.micro_ops_fit())

    def neighbours(self, plans: Sequence[tuple[int, ...]], threads: int | None) -> Iterator[tuple[int, ...]]:
        """Yield plans that differ in one or two choices, also in ``threads`` if that is None."""
        for row in plans:
            plan = PlanTable(*row)  # type: ignore[arg-type]  # numbers instead of arrays
            for name, sizes in self.tile_sizes.items():
                at = min(range(len(sizes)), key=lambda n: abs(sizes[n] - getattr(plan, name)))
                for n in range(max(0, at - 2), min(len(sizes), at + 3)):
                    yield tuple(plan._replace(**{name: sizes[n]}))  # type: ignore[arg-type]
            if plan.threads > 1:
                for axis in range(4):
                    yield tuple(plan._replace(thread_axis=axis))  # type: ignore[arg-type]
            for resident, prefetch in self.residencies:
                yield tuple(plan._replace(resident=resident, prefetch=prefetch))  # type: ignore[arg-type]
            if threads is None:
                for number in (max(1, plan.threads - 1), plan.threads + 1):
                    yield tuple(plan._replace(threads=number))  # type: ignore[arg-type]


def residencies_with(fixed_sizes: Mapping[str, int] | None) -> Sequence[tuple[int, int]]:
    """Return the residencies to try: none with given tile sizes, which define the loads of a step."""
    return RESIDENCIES[:1] if fixed_sizes else RESIDENCIES


def default_thread_counts(*, quick: bool) -> Sequence[int]:
    return _QUICK_THREAD_COUNTS if quick else THREAD_COUNTS


def enumerate_plans(
    space: PlanSpace[PlanT],
    tile_sizes: Mapping[str, Sequence[int]],
    threads: int | None,
    thread_counts: Sequence[int] = THREAD_COUNTS,
    max_estimate: float = math.inf,
) -> PlanTable:
    """Return all plans with given tile sizes that fit and pay.

    ``threads`` is the requested number of virtual threads, or None for those in ``thread_counts``. Of plans
    without resident operands, only those whose estimate is at most this multiple of the least are returned.
    """
    *of_tiles, batches = (
        tile_sizes[name] for name in ("channels", "rows", "columns", "depth", "kernel_rows", "batches")
    )
    config, shape = space.config, space.shape
    tiles = PlanTable.grid(*of_tiles, [1], [0], [0], batches, [0], [0])
    sizes = space.sizes(tiles)
    fits = (
        (sizes.step_inputs <= config.inp_depth)
        & (sizes.step_weights <= config.wgt_depth)
        & (sizes.tile_accumulators <= config.acc_depth)
    )
    tiles = tiles.take(np.flatnonzero(fits))
    axes = range(4 if shape.groups > 1 else 3)
    orders = [
        (count, axis, outer)
        for count in (thread_counts if threads is None else (threads,))
        for axis in (axes if count > 1 else [0])
        for outer in range(2)
    ]
    min_accumulators = min(config.acc_depth, shape.output_blocks // shape.groups) // _RESIDENT_ACC_DIVISOR
    tables = []
    for residencies, resident_tiles in _tiles_by_residency(space, tiles):
        is_resident = residencies[0][0] > 0
        limits_threads = is_resident and threads is None
        chosen = [one for one in orders if not limits_threads or one[0] in _RESIDENT_THREAD_COUNTS]
        count, axis, outer = np.array(chosen, dtype=np.int64).reshape(-1, 3, 1).transpose(1, 0, 2)
        resident, prefetch = np.array(residencies).T[:, :, None, None]
        table = resident_tiles._replace(
            threads=count, thread_axis=axis, outer=outer, resident=resident, prefetch=prefetch
        )
        limits = (min_accumulators, math.inf) if is_resident else (0, max_estimate)
        tables.append(space.fitting(table, threads, *limits))
    return PlanTable.concatenate(tables)


def _tiles_by_residency(
    space: PlanSpace[PlanT], tiles: PlanTable
) -> Iterator[tuple[list[tuple[int, int]], PlanTable]]:
    """Yield the residencies without, then those with resident operands, each with the tiles that may fit."""
    sizes, config = space.sizes(tiles), space.config
    fits = {
        "inputs": sizes.step_inputs * sizes.steps <= config.inp_depth,
        "weights": sizes.step_weights * sizes.steps <= config.wgt_depth,
    }
    fits["both"] = fits["inputs"] & fits["weights"]
    without = [one for one in space.residencies if not one[0]]
    others = [one for one in space.residencies if one[0] and fits[RESIDENT[one[0]]].any()]
    if without:
        yield without, tiles
    if others:
        fits_any = np.logical_or.reduce([fits[RESIDENT[resident]] for resident, _ in others])
        yield others, tiles.take(np.flatnonzero(fits_any))


def smallest_needs(
    variants: Iterable[SumShape], config: Config, tile_sizes: Mapping[str, Sequence[int]]
) -> dict[str, int]:
    """Return the elements of each scratchpad that the smallest tiles need.

    ``variants`` are ways to compute the operator. The one that exceeds the fewest scratchpads counts.
    """
    smallest = {name: [min(sizes)] for name, sizes in tile_sizes.items()} | {"threads": [1], "outer": [0, 1]}
    table = PlanTable.grid(*(smallest.get(name, [0]) for name in PlanTable._fields))
    needs = [
        {name: int(np.broadcast_to(elements, 2)[outer]) for name, elements in buffers.items()}
        for shape in variants
        for buffers in [TileSizes(shape, config, table).buffer_elements()]
        for outer in range(2)
    ]
    return min(
        needs, key=lambda one: sum(size > SCRATCHPADS[name].depth(config) for name, size in one.items())
    )
