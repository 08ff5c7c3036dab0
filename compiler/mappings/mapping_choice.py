"""The choice of a mapping: by name, or by predicted cycles."""

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any, NamedTuple

from msgspec import Struct

from accel.base.errors import ScheduleError
from accel.compiler.mappings.convolution_mappings import find_window_mapping, window_mappings
from accel.compiler.mappings.cycle_bound import LowerBound, lower_bound
from accel.compiler.mappings.mapping import (
    AUTO,
    PLAIN,
    OperatorMapping,
    mapping_error,
    plain_mapping,
    workload_tensors,
)
from accel.compiler.mappings.padded_products import PADDED, needs_padding, padded_product
from accel.compiler.mappings.pool_mappings import find_pool_mapping, pool_mappings
from accel.compiler.operators.default_schedule import find_candidates, planner_of
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.plan_candidate import Candidate
from accel.compiler.schedule.schedule import Schedule
from accel.compiler.target.machine import Machine
from accel.core.config import Config

_Enumerate = Callable[[Workload, Config], Iterator[OperatorMapping]]
_Find = Callable[[Workload, str], OperatorMapping]
_MAPPED: dict[str, tuple[_Enumerate, _Find]] = {
    "conv2d": (window_mappings, find_window_mapping),
    "avg_pool2d": (pool_mappings, find_pool_mapping),
    "max_pool2d": (pool_mappings, find_pool_mapping),
}
"""For operators with several mappings: the functions that enumerate them, and find one by name."""
_Planned = tuple[OperatorMapping, list[Candidate[Any]]]
"""A mapping and its plans, best first."""

_MIN_SAVING = 0.1
"""Share of the plain mapping's cycles to save, because the host must pack."""
_MIN_SAVING_IF_SMALLER = 0.05
"""The same for a mapping with fewer input bytes than the plain one."""
_TIE_SHARE = 0.02
"""Mappings whose cycles differ by less are equal. The smaller input wins."""
_PROMISING_FACTOR = 1.2
"""Plans take at most this multiple of the bound, in most cases."""


class ComparedMapping(Struct, frozen=True, kw_only=True):
    """A mapping that was considered.

    Attributes:
        predicted_cycles: cycles of its best plan, or None if no plan fits or the bound excludes it. Also the
            plain mapping can be excluded, if another one saves enough.
        data_bytes, factor: as in ``OperatorMapping``.
    """

    name: str
    least_cycles: int
    predicted_cycles: int | None
    data_bytes: int
    factor: float


class MappingChoice(Struct, frozen=True, kw_only=True):
    """A chosen mapping and the plans of its operator.

    Attributes:
        compared: all considered mappings, the chosen one first, then by cycles.
    """

    mapping: OperatorMapping
    candidates: list[Candidate[Any]]
    compared: tuple[ComparedMapping, ...]

    def schedule(self, machine: Machine) -> Schedule:
        workload = self.mapping.workload
        return planner_of(workload).schedule(workload, machine, self.candidates[0].plan)


def choose_mapping(
    workload: Workload,
    config: Config,
    *,
    mapping: str = AUTO,
    threads: int | None = None,
    tile: Mapping[str, int] | None = None,
    keep_results: bool = False,
    quick: bool = False,
) -> MappingChoice:
    """Choose a mapping and find the plans of its operator.

    Args:
        mapping: a name or ``auto``. With a given tile, ``auto`` is the plain mapping. A product that needs
            padding always has the mapping ``padded`` instead of ``plain``.
        keep_results: whether to consider only mappings that do not change the output's layout in DRAM.
        quick: see ``plan_search``.
    """
    named = _only_mapping(workload, config, mapping)
    if named is not None:
        plans = find_candidates(named.workload, config, threads, tile, quick=quick)
        return MappingChoice(mapping=named, candidates=plans, compared=(_compare(named, config, plans),))
    plain = plain_mapping(workload)
    others = [] if tile else list(_other_mappings(workload, config, keep_results=keep_results))
    others.sort(key=lambda one: (_bound(one, config), one.data_bytes))
    usual = _Usual(plain, [], _bound(plain, config))
    if not others or not _saves_surely(others[0], usual, config, threads, quick=quick):
        plans = find_candidates(workload, config, threads, tile, quick=quick)
        usual = _Usual(plain, plans, plans[0].prediction.cycles)
    planned: list[_Planned] = []
    excluded: list[OperatorMapping] = []
    for one in others:
        plans = _plans_if_promising(one, planned, usual, config, threads, quick=quick)
        if plans:
            planned.append((one, plans))
        else:
            excluded.append(one)
    chosen, candidates = _best(planned, usual)
    compared = [_compare(one, config, plans) for one, plans in [*planned, usual[:2]] if one is not chosen]
    compared += [_compare(one, config, []) for one in excluded]
    ranked = sorted(compared, key=lambda one: one.predicted_cycles or one.least_cycles)
    return MappingChoice(
        mapping=chosen, candidates=candidates, compared=(_compare(chosen, config, candidates), *ranked)
    )


def least_mapped(
    workload: Workload, config: Config, *, mapping: str = AUTO, keep_results: bool = False
) -> LowerBound:
    """Return a lower bound of what :func:`choose_mapping` can find with these arguments."""
    named = _only_mapping(workload, config, mapping)
    if named is not None:
        return lower_bound(named.workload, config)
    mappings = plain_mapping(workload), *_other_mappings(workload, config, keep_results=keep_results)
    bounds = [lower_bound(one.workload, config) for one in mappings]
    return LowerBound(*map(min, zip(*bounds, strict=True)))


def _only_mapping(workload: Workload, config: Config, mapping: str) -> OperatorMapping | None:
    """Return None if there is a choice."""
    if needs_padding(workload, config) and mapping in (AUTO, PLAIN, PADDED):
        return padded_product(workload, config)
    return None if mapping == AUTO else find_mapping(workload, mapping)


def find_mapping(workload: Workload, name: str) -> OperatorMapping:
    if workload.name in _MAPPED:
        return _MAPPED[workload.name][1](workload, name)
    if name != PLAIN:
        raise mapping_error(name, workload, "it has the plain one only")
    return plain_mapping(workload)


def _other_mappings(workload: Workload, config: Config, *, keep_results: bool) -> Iterator[OperatorMapping]:
    if workload.name in _MAPPED:
        enumerate_mappings, _ = _MAPPED[workload.name]
        for one in enumerate_mappings(workload, config):
            if not one.is_plain and (one.keeps_output_layout or not keep_results):
                yield one


class _Usual(NamedTuple):
    """The plain mapping. Its cycles are a bound if no plans were searched."""

    mapping: OperatorMapping
    plans: list[Candidate[Any]]
    cycles: float


def _saves_surely(
    mapping: OperatorMapping, usual: _Usual, config: Config, threads: int | None, *, quick: bool
) -> bool:
    """Return whether a mapping and its ties are chosen whatever the plain one's plans are."""
    limit = usual.cycles * (1 - _MIN_SAVING) / (1 + _TIE_SHARE)
    if _bound(mapping, config) * _PROMISING_FACTOR > limit:
        return False
    try:
        return find_candidates(mapping.workload, config, threads, quick=quick)[0].prediction.cycles <= limit
    except ScheduleError:
        return False


def _plans_if_promising(
    mapping: OperatorMapping,
    planned: list[_Planned],
    usual: _Usual,
    config: Config,
    threads: int | None,
    *,
    quick: bool,
) -> list[Candidate[Any]]:
    bound = _bound(mapping, config)
    if bound > _cycle_limit(mapping, usual):
        return []
    smaller = [
        one.data_bytes for one, plans in planned if bound > plans[0].prediction.cycles * (1 - _TIE_SHARE)
    ]
    if smaller and mapping.data_bytes >= min(smaller):
        return []
    try:
        return find_candidates(mapping.workload, config, threads, quick=quick)
    except ScheduleError:
        return []


def _cycle_limit(mapping: OperatorMapping, usual: _Usual) -> float:
    is_smaller = mapping.data_bytes < usual.mapping.data_bytes
    return usual.cycles * (1 - (_MIN_SAVING_IF_SMALLER if is_smaller else _MIN_SAVING))


def _best(planned: list[_Planned], usual: _Usual) -> _Planned:
    saving = [
        (one, plans) for one, plans in planned if plans[0].prediction.cycles <= _cycle_limit(one, usual)
    ]
    if not saving:
        return usual.mapping, usual.plans
    limit = min(plans[0].prediction.cycles for _, plans in saving) * (1 + _TIE_SHARE)
    ties = [(one, plans) for one, plans in saving if plans[0].prediction.cycles <= limit]
    return min(ties, key=lambda tie: tie[0].data_bytes)


def _compare(mapping: OperatorMapping, config: Config, plans: list[Candidate[Any]]) -> ComparedMapping:
    return ComparedMapping(
        name=mapping.name,
        least_cycles=_bound(mapping, config),
        predicted_cycles=round(plans[0].prediction.cycles) if plans else None,
        data_bytes=mapping.data_bytes,
        factor=mapping.factor,
    )


def _bound(mapping: OperatorMapping, config: Config) -> int:
    """Return a quick bound by slots, operand bytes and output bytes, or 0 for operators with one mapping."""
    workload = mapping.workload
    if mapping.source.name not in _MAPPED:
        return 0
    data, *_, out = workload_tensors(workload)
    operands = [read.tensor for read in workload.factors] if mapping.source.name == "conv2d" else [data]
    read = sum(prod(one.shape) for one in operands)
    slots = int(planner_of(workload).features(workload, config).slots)
    return max(slots, -(-read // config.bus_bytes), -(-prod(out.shape) // config.bus_bytes))
