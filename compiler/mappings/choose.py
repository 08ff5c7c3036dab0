"""Which mapping an operator is computed by: the one that a user names, or the one with the fewest cycles."""

from collections.abc import Callable, Iterator
from collections.abc import Mapping as Named
from dataclasses import dataclass
from math import prod
from typing import Any

from accel.base.errors import ScheduleError
from accel.compiler.mappings.mapping import AUTO, PLAIN, Mapping, plain, tensors_of, unknown_mapping
from accel.compiler.mappings.pools import named_pool_mapping, pool_mappings
from accel.compiler.mappings.windows import named_mapping, window_mappings
from accel.compiler.operators.default import candidates, planner_of
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.candidate import Candidate
from accel.compiler.schedule.schedule import Schedule
from accel.compiler.target.machine import Machine
from accel.core.config import Config

_MAPPED: dict[
    str, tuple[Callable[[Workload, Config], Iterator[Mapping]], Callable[[Workload, str], Mapping]]
] = {
    "conv2d": (window_mappings, named_mapping),
    "avg_pool2d": (pool_mappings, named_pool_mapping),
    "max_pool2d": (pool_mappings, named_pool_mapping),
}
"""Operators that have several mappings: what makes those that may be worth it, and one by its name."""
_Planned = tuple[Mapping, list[Candidate[Any]]]
"""A mapping, and plans of its operator, best first."""

_WORTH = 0.1
"""By this share a mapping must take fewer cycles than the plain one to be chosen: the host packs for it."""
_WORTH_IF_SMALLER = 0.05
"""The same of a mapping whose input has fewer bytes than the plain one's: the host packs less for it."""
_ALIKE = 0.02
"""Mappings whose cycles differ by less are as good as one another; the bytes of the input decide."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What is known of a mapping that was looked at.

    Attributes:
        name: of the mapping.
        least_cycles: that products, and bytes on the bus, take at least.
        predicted_cycles: of its best plan; None if the bound told enough, or no plan fits.
        data_bytes: of the input as the host packs it.
        factor: how many values that has for each of the user's.
    """

    name: str
    least_cycles: int
    predicted_cycles: int | None
    data_bytes: int
    factor: float


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A mapping, and how its operator can be scheduled.

    Attributes:
        mapping: that was chosen.
        candidates: plans of its operator, best first.
        compared: the mappings that were looked at, the chosen one first, then by their cycles.
    """

    mapping: Mapping
    candidates: list[Candidate[Any]]
    compared: tuple[Compared, ...]

    def schedule(self, machine: Machine) -> Schedule:
        """The schedule of the best plan."""
        workload = self.mapping.workload
        return planner_of(workload).schedule(workload, machine, self.candidates[0].plan)


def choose(
    workload: Workload,
    config: Config,
    *,
    mapping: str = AUTO,
    threads: int | None = None,
    tile: Named[str, int] | None = None,
    keep_results: bool = False,
) -> Choice:
    """A mapping and the plans of its operator.

    Args:
        workload: what is to be computed.
        config: the machine.
        mapping: its name, or ``auto``; with sides of a tile, ``auto`` is the plain one.
        threads, tile: see :func:`~accel.compiler.operators.default.candidates`.
        keep_results: whether only mappings count that leave what is written as it is.

    Raises:
        ScheduleError: there is no such mapping, or no plan fits.
    """
    if mapping != AUTO:
        one = mapping_of(workload, mapping)
        plans = candidates(one.workload, config, threads, tile)
        return Choice(mapping=one, candidates=plans, compared=(_compared(one, config, plans),))
    usual = plain(workload)
    plans = candidates(workload, config, threads, tile)
    found: list[_Planned] = [(usual, plans)]
    others: list[Compared] = []
    if not tile:
        left = [one for one in _mappings(workload, config) if one.keeps_results or not keep_results]
        for one in sorted(left, key=lambda one: (_least(one, config), one.data_bytes)):
            try:
                planned = candidates(one.workload, config, threads) if _may_win(one, found, config) else []
            except ScheduleError:  # it does not fit
                planned = []
            if planned:
                found.append((one, planned))
            else:
                others.append(_compared(one, config, []))
    chosen = _best(found)
    compared = [_compared(one, config, known) for one, known in found if one is not chosen[0]]
    ranked = sorted([*compared, *others], key=lambda c: c.predicted_cycles or c.least_cycles)
    return Choice(
        mapping=chosen[0],
        candidates=chosen[1],
        compared=(_compared(chosen[0], config, chosen[1]), *ranked),
    )


def mapping_of(workload: Workload, name: str) -> Mapping:
    """An operator's mapping by its name.

    Raises:
        ScheduleError: it has none of that name.
    """
    if workload.name in _MAPPED:
        return _MAPPED[workload.name][1](workload, name)
    if name != PLAIN:
        raise unknown_mapping(name, workload, "it has the plain one only")
    return plain(workload)


def _mappings(workload: Workload, config: Config) -> Iterator[Mapping]:
    """The mappings that may be worth it, besides the plain one."""
    if workload.name in _MAPPED:
        every, _ = _MAPPED[workload.name]
        yield from (one for one in every(workload, config) if not one.is_plain)


def _enough(mapping: Mapping, found: list[_Planned]) -> float:
    """The cycles that a mapping may take at most to be chosen, by the plain one, which is the first."""
    usual, plans = found[0]
    worth = _WORTH_IF_SMALLER if mapping.data_bytes < usual.data_bytes else _WORTH
    return plans[0].prediction.cycles * (1 - worth)


def _may_win(mapping: Mapping, found: list[_Planned], config: Config) -> bool:
    """Whether a mapping can be better than those that plans are known of, by what it takes at least."""
    least = _least(mapping, config)
    if least > _enough(mapping, found):
        return False
    better = [one.data_bytes for one, plans in found[1:] if least > plans[0].prediction.cycles * (1 - _ALIKE)]
    return not better or mapping.data_bytes < min(better)


def _best(found: list[_Planned]) -> _Planned:
    """The plain mapping unless another one is worth it; of the best ones that with the fewest bytes."""
    worth = [one for one in found[1:] if one[1][0].prediction.cycles <= _enough(one[0], found)]
    if not worth:
        return found[0]
    cycles = [plans[0].prediction.cycles for _, plans in worth]
    good = [one for one, taken in zip(worth, cycles, strict=True) if taken <= min(cycles) * (1 + _ALIKE)]
    return min(good, key=lambda one: one[0].data_bytes)


def _compared(mapping: Mapping, config: Config, plans: list[Candidate[Any]]) -> Compared:
    return Compared(
        name=mapping.name,
        least_cycles=_least(mapping, config),
        predicted_cycles=round(plans[0].prediction.cycles) if plans else None,
        data_bytes=mapping.data_bytes,
        factor=mapping.factor,
    )


def _least(mapping: Mapping, config: Config) -> int:
    """Cycles that a mapping's products take at least, and its bytes on either side of the bus; 0 where there
    is no mapping but the plain one."""
    workload = mapping.workload
    if mapping.source.name not in _MAPPED:
        return 0
    data, *_, out = tensors_of(workload)
    operands = [read.tensor for read in workload.factors] if mapping.source.name == "conv2d" else [data]
    read = sum(prod(one.shape) for one in operands)
    slots = _slots(workload, config)
    return max(slots, -(-read // config.bus_bytes), -(-prod(out.shape) // config.bus_bytes))


def _slots(workload: Workload, config: Config) -> int:
    """Micro-ops that any plan takes."""
    return int(planner_of(workload).features(workload, config).slots)
