"""What is asked of a plan, and how a family of plans answers: its candidates, its schedule, its sizes."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, Literal, TypeVar

from accel.base.arguments import plain_integer
from accel.base.errors import ScheduleError, nearest
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.candidate import Candidate, PlanT, Prediction
from accel.compiler.schedule.loops import check_threads
from accel.compiler.schedule.schedule import Schedule
from accel.compiler.target.machine import Machine
from accel.core.config import Config

ShapeT = TypeVar("ShapeT", bound=Hashable)
"""All that is asked of a workload before it is planned."""
Blocks = Mapping[str, int]
"""Sizes by a plan's attributes, in the units that the plan counts in."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """A side of a tile: what users ask for and are told in elements, and plans count in blocks.

    Attributes:
        key: what it is called in options, sweeps and ``--json``.
        attribute: of the plan.
        block: the field of the configuration that says how many elements a block has; one each if None.
        told: whether it is where it is a single block.
    """

    key: str
    attribute: str
    block: Literal["batch", "block_in", "block_out"] | None = None
    told: bool = True

    @property
    def short(self) -> str:
        """The dimension that it is a part of, as ``m`` of ``tile_m``."""
        return self.key.partition("_")[2]

    def elements(self, config: Config) -> int:
        """Elements of a block."""
        return 1 if self.block is None else int(getattr(config, self.block))


@dataclass(frozen=True, kw_only=True)
class Planner(Generic[ShapeT, PlanT]):
    """How some operators are planned.

    A search, or a tuner, needs no more than this: the features of a workload, which plans fit, what each is
    predicted to take, and the schedule that it becomes.

    Attributes:
        sides: of a tile, in order.
        features: of a workload on a machine, all that plans and predictions depend on besides the machine;
            workloads with equal features have equal plans.
        find: the candidates, best first, for features on a machine with so many virtual threads, or any
            number, and with sizes that are given.
        fits: whether a plan's buffers fit the scratchpads, and its tokens the counters.
        predict: the cycles of a plan that fits, and how busy it keeps each unit.
        schedule: what a plan becomes.
        outermost: the dimension of the outermost loop over tiles.
        threads_along: the dimension that virtual threads run along.
        identity_products: whether products with an identity matrix, of what the load unit brings, do what the
            ALU could do with accumulators that the compute unit loads.
    """

    sides: tuple[Side, ...]
    features: Callable[[Workload, Config], ShapeT]
    find: Callable[[ShapeT, Config, int | None, Blocks], list[Candidate[PlanT]]]
    fits: Callable[[ShapeT, Config, PlanT], bool]
    predict: Callable[[ShapeT, Config, PlanT], Prediction]
    schedule: Callable[[Workload, Machine, PlanT], Schedule]
    outermost: Callable[[PlanT], str]
    threads_along: Callable[[PlanT], str]
    identity_products: Callable[[PlanT], bool] = lambda plan: False

    def candidates(
        self, workload: Workload, config: Config, threads: int | None, tile: Mapping[str, int]
    ) -> list[Candidate[PlanT]]:
        """The most promising plans, best first.

        Args:
            workload: what is to be computed.
            config: the machine.
            threads: only plans with so many virtual threads; any number if None.
            tile: only plans with such sides, in elements by :attr:`Side.key`; one that is longer than the
                whole is cut to it.

        Raises:
            ScheduleError: so many threads do not fit, with the largest number that does; a side that there
                is not or that is no multiple of the machine's blocks; or tiles that do not fit.
        """
        threads = None if threads is None else check_threads(threads)
        fixed = self.blocks(tile, workload.name, config)
        found = _find(self, self.features(workload, config), config, threads, frozenset(fixed.items()))
        if not found:
            sizes = ", ".join(f"{key} {size}" for key, size in tile.items())
            raise ScheduleError(
                f"the tile is {sizes}{'' if threads is None else f' for {threads} virtual threads'}; it does "
                f"not fit configuration {config.label!r}, or leaves nothing to do for each thread"
            )
        return list(found)

    def blocks(self, tile: Mapping[str, int], operator: str, config: Config) -> dict[str, int]:
        """The sides of a tile as a plan counts them.

        Raises:
            ScheduleError: a side that there is not, or that is no positive multiple of a block.
        """
        known = {side.key: side for side in self.sides}
        found = {}
        for key, size in tile.items():
            if key not in known:
                raise ScheduleError(f"a tile of {operator} has no {key!r}; {nearest(key, known)}")
            block, plain = known[key].elements(config), plain_integer(size)
            if plain is None or plain < 1 or plain % block:
                multiple = f"a multiple of {block}" if block > 1 else "a positive integer"
                raise ScheduleError(
                    f"{key} is {size!r}; on configuration {config.name!r} it must be {multiple}"
                )
            found[known[key].attribute] = plain // block
        return found

    def sizes(self, plan: PlanT, config: Config) -> dict[str, int]:
        """The sides of a plan's tiles in elements."""
        return {side.key: getattr(plan, side.attribute) * side.elements(config) for side in self.sides}


@lru_cache(maxsize=1 << 10)
def _find(
    planner: Planner[Any, Any],
    shape: Hashable,
    config: Config,
    threads: int | None,
    fixed: frozenset[tuple[str, int]],
) -> tuple[Candidate[Any], ...]:
    """What a planner finds; the same layer is planned once, however often it is asked for."""
    return tuple(planner.find(shape, config, threads, dict(fixed)))
