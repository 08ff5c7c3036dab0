"""The interface of a planner: features, candidates, predictions and schedules."""

import json
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from accel.base.arguments import plain_integer
from accel.base.errors import ScheduleError, nearest
from accel.base.result_cache import PLAN_KIND, cache_key, result_cache
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.candidate_data import candidates_from_json, candidates_to_json
from accel.compiler.plans.plan_candidate import Candidate, PlanT, Prediction
from accel.compiler.schedule.schedule import Schedule
from accel.compiler.schedule.stage_splits import check_threads
from accel.compiler.target.machine import Machine
from accel.core.config import Config

ShapeT = TypeVar("ShapeT", bound=Hashable)
Blocks = Mapping[str, int]
"""Tile sizes by attribute of the plan, in the plan's own units."""


class TileSide(Struct, frozen=True, kw_only=True):
    """One dimension of a tile or step. Users see elements, plans count blocks.

    Attributes:
        key: its name in options, sweeps and ``--json``, for example ``tile_m``.
        attribute: its name in the plan, for example ``rows``.
        block: the configuration's field with the elements of a block, or None for one element.
        always_shown: whether reports include it even if it is a single block.
    """

    key: str
    attribute: str
    block: Literal["batch", "block_in", "block_out"] | None = None
    always_shown: bool = True

    @property
    def short_name(self) -> str:
        return self.key.partition("_")[2]

    def block_elements(self, config: Config) -> int:
        return 1 if self.block is None else int(getattr(config, self.block))


class Planner(Struct, Generic[ShapeT, PlanT], frozen=True, kw_only=True):
    """The interface between searches or tuners and a family of operators.

    Attributes:
        sides: the dimensions of a tile, in the order of reports.
        features: extracts the inputs of plans and predictions from a workload and a machine. Equal features
            have equal plans.
        find: returns the candidates, best first, for features, a machine, the number of virtual threads (None
            for any), sizes by the plan's attributes (clamped to the tensor's), and whether the search is
            quick. There is none if no plan has these sizes.
        enumerate: returns every fitting plan with spread tile sizes and its prediction, thousands in no
            particular order. ``find`` may return others.
        fits: whether a plan's buffers and micro-ops fit the scratchpads, and its tokens the counters.
        outermost: names the dimension of the outermost loop over tiles.
        threads_along: names the dimension of virtual threads.
        plan_type: the dataclass of plans, of integers, booleans and strings, or None to bypass the disk
            cache, whose key covers only the source files of this package.
        identity_products: whether the load unit, not the compute unit, loads data that GEMM moves into the
            accumulators with an identity matrix.
    """

    sides: tuple[TileSide, ...]
    features: Callable[[Workload, Config], ShapeT]
    find: Callable[[ShapeT, Config, int | None, Blocks, bool], list[Candidate[PlanT]]]
    enumerate: Callable[[ShapeT, Config], list[Candidate[PlanT]]]
    fits: Callable[[ShapeT, Config, PlanT], bool]
    predict: Callable[[ShapeT, Config, PlanT], Prediction]
    schedule: Callable[[Workload, Machine, PlanT], Schedule]
    outermost: Callable[[PlanT], str]
    threads_along: Callable[[PlanT], str]
    plan_type: type[PlanT] | None = None
    identity_products: Callable[[PlanT], bool] = lambda plan: False

    def candidates(
        self,
        workload: Workload,
        config: Config,
        threads: int | None,
        tile: Mapping[str, int],
        *,
        quick: bool = False,
    ) -> list[Candidate[PlanT]]:
        """Return the candidates of :attr:`find`.

        ``tile`` has sizes in elements by :attr:`TileSide.key`, for example ``{"tile_m": 64}``. Raise a
        ScheduleError if no plan has them.
        """
        threads = None if threads is None else check_threads(threads)
        fixed = self.tile_blocks(tile, workload.name, config)
        found = _find(self, self.features(workload, config), config, threads, frozenset(fixed.items()), quick)
        if not found:
            sizes = ", ".join(f"{key} {size}" for key, size in tile.items())
            raise ScheduleError(
                f"the tile is {sizes}{'' if threads is None else f' for {threads} virtual threads'}; it does "
                f"not fit configuration {config.label!r}, or leaves nothing to do for each thread"
            )
        return list(found)

    def tile_blocks(self, tile: Mapping[str, int], operator: str, config: Config) -> dict[str, int]:
        """Convert tile sizes from elements to the plan's units. Raise a ScheduleError for unknown keys or
        sizes."""
        known = {side.key: side for side in self.sides}
        blocks = {}
        for key, size in tile.items():
            if key not in known:
                raise ScheduleError(f"a tile of {operator} has no {key!r}; {nearest(key, known)}")
            block, plain = known[key].block_elements(config), plain_integer(size)
            if plain is None or plain < 1 or plain % block:
                multiple = f"a multiple of {block}" if block > 1 else "a positive integer"
                raise ScheduleError(
                    f"{key} is {size!r}; on configuration {config.name!r} it must be {multiple}"
                )
            blocks[known[key].attribute] = plain // block
        return blocks

    def tile_sizes(self, plan: PlanT, config: Config) -> dict[str, int]:
        return {side.key: getattr(plan, side.attribute) * side.block_elements(config) for side in self.sides}


PlanKey = tuple[Callable[..., Any], Hashable, Config, int | None, frozenset[tuple[str, int]], bool]
"""The planner's ``find`` and its arguments."""
_MAX_KNOWN = 1 << 10
_known: dict[PlanKey, tuple[Candidate[Any], ...]] = {}


def known_plans() -> dict[PlanKey, tuple[Candidate[Any], ...]]:
    """Return all candidates that this process has found, the oldest first."""
    return _known


def remember_plans(plans: Mapping[PlanKey, tuple[Candidate[Any], ...]]) -> None:
    """Add to :func:`known_plans`, and forget the oldest beyond a limit."""
    _known.update(plans)
    while len(_known) > _MAX_KNOWN:
        del _known[next(iter(_known))]


def _find(
    planner: Planner[Any, Any],
    shape: Hashable,
    config: Config,
    threads: int | None,
    fixed: frozenset[tuple[str, int]],
    quick: bool,
) -> tuple[Candidate[Any], ...]:
    """Keep candidates in memory, because networks repeat layers."""
    key = planner.find, shape, config, threads, fixed, quick
    if key not in _known:
        remember_plans({key: _search_or_read(key, planner.plan_type)})
    return _known[key]


def _search_or_read(wanted: PlanKey, plan_type: type[PlanT] | None) -> tuple[Candidate[PlanT], ...]:
    """Cache candidates on disk, because users compile again. Quick searches cover many machines, and stay in
    memory."""
    find, shape, config, threads, fixed, quick = wanted
    cache = None if quick else result_cache()
    if cache is None or plan_type is None:
        return tuple(find(shape, config, threads, dict(fixed), quick))
    key = cache_key(
        f"{find.__module__}.{find.__qualname__}",
        repr(shape),
        json.dumps(config.to_dict(), sort_keys=True),
        repr((threads, sorted(fixed))),
    )
    content = cache.read(PLAN_KIND, key)
    if content is None:
        found = tuple(find(shape, config, threads, dict(fixed), quick))
        cache.write(PLAN_KIND, key, candidates_to_json(found))
        return found
    return candidates_from_json(content, plan_type)
