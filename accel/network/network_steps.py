"""The steps of a compiled network."""

from collections.abc import Sequence
from typing import TypedDict

from accel.base.forked_tasks import run_tasks
from accel.base.records import replace
from accel.core.config import Config
from accel.graph.graph import Graph
from accel.network.chain_builder import build_chain
from accel.network.chain_grouping import split_into_chains
from accel.network.chained_program import Chain
from accel.network.layout_assignment import assign_layouts
from accel.network.layout_choice import LayoutChoice
from accel.network.network_part import NetworkPart
from accel.network.partition import Partition, PartitionSummary, partition_parts
from accel.network.tensor_aliases import find_aliases, may_alias


class BuiltSteps(TypedDict):
    """Attributes of a :class:`accel.NetworkProgram`."""

    steps: tuple[Chain | NetworkPart, ...]
    arrangements: tuple[LayoutChoice, ...]
    partition: PartitionSummary


def build_steps(
    graph: Graph, parts: Sequence[NetworkPart], config: Config, *, keep: bool = False, jobs: int = 1
) -> BuiltSteps:
    """Group the machine's parts into chains, and compile them in several processes."""
    groups, needed, partition = _group_parts(graph, parts, config, keep=keep)
    chained = [one for one in zip(groups, needed, strict=True) if _has_layers(one[0])]

    def build(number: int) -> tuple[Chain, Sequence[LayoutChoice]]:
        group, needed_outside = chained[number]
        explained = [_as_alias(part) if part.fused.output in partition.aliases else part for part in group]
        copied = find_aliases(graph, explained, needed_outside, config).copied
        compiled, choices = assign_layouts(graph, explained, needed_outside, config, copied=copied)
        own_jobs = jobs if len(chained) == 1 else 1
        return build_chain(graph, compiled, needed_outside, config, own_jobs), choices

    built = iter(run_tasks(build, len(chained), jobs))
    steps: list[Chain | NetworkPart] = []
    arrangements: list[LayoutChoice] = []
    for group in groups:
        if not _has_layers(group):
            steps += group
            continue
        chain, choices = next(built)
        steps.append(chain)
        arrangements += choices
    return BuiltSteps(steps=tuple(steps), arrangements=tuple(arrangements), partition=partition.summary)


def _group_parts(
    graph: Graph, parts: Sequence[NetworkPart], config: Config, *, keep: bool
) -> tuple[list[tuple[NetworkPart, ...]], list[set[str]], Partition]:
    """Return groups, the tensors that others need of each, and the partition.

    If a Concat or Slice cannot be an alias, the grouping starts again with it on the host.
    """
    aliases = {part.fused.output for part in parts if not part.on_machine and may_alias(graph, part)}
    first: PartitionSummary | None = None
    while True:
        partition = partition_parts(graph, parts, config, aliases)
        groups: list[tuple[NetworkPart, ...]] = []
        for group in partition.groups:
            groups += split_into_chains(graph, group, config) if _has_layers(group) else [group]
        needed = [_needed_outside(graph, groups, at, keep=keep) for at in range(len(groups))]
        failed: set[str] = set()
        for group, needed_outside in zip(groups, needed, strict=True):
            if _has_layers(group):
                failed |= find_aliases(graph, group, needed_outside, config).failed
            else:
                failed |= partition.aliases.intersection(part.fused.output for part in group)
        if not failed:
            return groups, needed, partition if first is None else replace(partition, summary=first)
        first = first or replace(partition.summary, is_exact=False)
        aliases -= failed


def _has_layers(group: Sequence[NetworkPart]) -> bool:
    return any(part.on_machine for part in group)


def _needed_outside(
    graph: Graph, groups: Sequence[Sequence[NetworkPart]], at: int, *, keep: bool
) -> set[str]:
    read_later = (name for other in groups[at + 1 :] for part in other for name in part.fused.inputs)
    kept = (part.fused.output for part in groups[at] if keep)
    return {*graph.outputs, *read_later, *kept}


def _as_alias(part: NetworkPart) -> NetworkPart:
    return replace(part, reason="layers write and take its values where they are")
