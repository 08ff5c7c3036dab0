"""Partition: parts of the machine and of the host in an order of execution with the fewest programs.

Given all placements, the earliest stages are optimal (:mod:`accel.network.partition_stages`). A search with a
lower bound decides which moves layers execute.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from msgspec import Struct

from accel.core.config import Config
from accel.graph.graph import Graph
from accel.image.manifest_entries import read_entry
from accel.network.chain_grouping import repacked_reads
from accel.network.network_part import NetworkPart
from accel.network.partition_stages import Kind, Read, bundle_numbers, earliest_stages, programs_of

MAX_EVALUATIONS = 600
"""After them, a search returns the best partition so far."""


class PartitionSummary(Struct, frozen=True, kw_only=True):
    """The quality of a partition.

    Attributes:
        bound: the longest alternation of machine and host over all paths of the graph, if layers could
            execute every move.
        is_exact: whether no partition has fewer programs.
    """

    bound: int
    is_exact: bool

    def describe(self) -> str:
        path = (
            f"a path of the graph alternates between machine and host so often that {self.bound} are needed"
        )
        return f"{path}; the search for fewer {'is complete' if self.is_exact else 'was cut short'}"

    def to_dict(self) -> dict[str, Any]:
        return {"bound": self.bound, "is_exact": self.is_exact}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "PartitionSummary":
        return cls(bound=read_entry(data, "bound", int), is_exact=data.get("is_exact") is True)


class Partition(Struct, frozen=True, kw_only=True):
    """Groups of parts, alternating between machine and host, in an order of execution.

    Attributes:
        aliases: results of moves that layers execute.
    """

    groups: tuple[tuple[NetworkPart, ...], ...]
    aliases: frozenset[str]
    summary: PartitionSummary


class _Solution(Struct, frozen=True):
    stages: list[int]
    in_place: frozenset[int]
    copied: frozenset[int]

    @property
    def programs(self) -> int:
        return programs_of(self.stages)

    @property
    def rank(self) -> tuple[int, int]:
        return self.programs, len(self.copied)


@dataclass
class PartitionProblem:
    """Parts with the constraints on their order.

    Args:
        aliases: results of moves that layers may execute.
        flexible: results of layers that may also run on the host.
        repacked: of :func:`~accel.network.chain_grouping.repacked_reads`. None derives them from the layers'
            programs.
    """

    graph: Graph
    parts: Sequence[NetworkPart]
    config: Config
    aliases: Collection[str] = ()
    flexible: Collection[str] = ()
    repacked: Collection[tuple[str, str]] | None = None
    reads: list[list[Read]] = field(init=False)
    readers: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        producers = {part.fused.output: at for at, part in enumerate(self.parts)}
        repacked = self.repacked
        if repacked is None:
            repacked = repacked_reads(self.graph, self.parts, self.config)
        self.reads = [
            [
                Read(producer=producers[name], repacks=(name, part.fused.output) in repacked)
                for name in part.fused.inputs
                if name in producers
            ]
            for part in self.parts
        ]
        self.readers = [[] for _ in self.parts]
        for at, reads in enumerate(self.reads):
            for read in reads:
                self.readers[read.producer].append(at)
        self._members = {
            at: self._alias_members(at)
            for at, part in enumerate(self.parts)
            if part.fused.output in self.aliases
        }
        self._left = MAX_EVALUATIONS

    def kind(self, at: int) -> Kind:
        part = self.parts[at]
        if part.moves_nothing or part.fused.output in self.flexible:
            return "either"
        return "machine" if part.on_machine else "host"

    def solve(self) -> tuple[_Solution, int, bool]:
        """Minimize programs, then copies. Also return the programs' lower bound, and whether the solution is
        proven best.
        """
        self._left = MAX_EVALUATIONS
        root = self._evaluate(frozenset(), frozenset(), None)
        assert root is not None  # nothing is joined
        bound = programs_of(root)
        undecided = [at for at, members in self._members.items() if members is not None]
        impossible = frozenset(self._members) - set(undecided)
        whole = self._evaluate(frozenset(undecided), impossible, None)
        if whole is not None and programs_of(whole) == bound:
            best: _Solution | None = _Solution(whole, frozenset(undecided), impossible)
        else:
            self._left = MAX_EVALUATIONS - 1
            best = self._search(undecided, frozenset(), impossible, None)
        assert best is not None  # the host can execute all moves
        stages = self._settled(best)
        is_exact = self._left > 0 or programs_of(stages) == bound
        return _Solution(stages, best.in_place, best.copied), bound, is_exact

    def _alias_members(self, at: int) -> frozenset[int] | None:
        """Return the parts that must be in one program with a move, or None if there is no such program.

        These are the layers that write its values, and their other moves. Readers can be anywhere, because
        layers store values again for another program.
        """
        found, pending = {at}, [at]
        while pending:
            one = pending.pop()
            names = {name for name in self.parts[one].fused.inputs if name not in self.graph.constants}
            producers = {read.producer for read in self.reads[one]}
            if len(names) != len(producers):  # an input of the graph
                return None
            for producer in producers - found:
                part = self.parts[producer]
                found.add(producer)
                if part.moves_nothing or part.fused.output in self.aliases:
                    pending.append(producer)
                elif not part.on_machine:
                    return None
        return frozenset(found)

    def _evaluate(
        self, in_place: frozenset[int], copied: frozenset[int], last_stage: int | None
    ) -> list[int] | None:
        """Undecided moves run wherever they are."""
        self._left -= 1
        kinds: list[Kind] = []
        for at in range(len(self.parts)):
            is_open = at in self._members and at not in in_place and at not in copied
            kinds.append("either" if is_open else self.kind(at))
        joined = [sorted(self._members[at] or ()) for at in sorted(in_place)]
        reads = [
            [Read(producer=one.producer, repacks=one.repacks and self._is_packed(one.producer, in_place))
             for one in row]
            for row in self.reads
        ]  # fmt: skip
        bundles = bundle_numbers(len(self.parts), joined)
        if any(bundles[at] >= 0 for at in copied):
            return None
        stages_at_most = 2 * len(self.parts) if last_stage is None else last_stage
        return earliest_stages(kinds, reads, bundles, stages_at_most)

    def _is_packed(self, at: int, in_place: frozenset[int]) -> bool:
        return at not in self._members or at in in_place

    def _search(
        self,
        undecided: Sequence[int],
        in_place: frozenset[int],
        copied: frozenset[int],
        best: _Solution | None,
    ) -> _Solution | None:
        """Decide about the first undecided part, the more promising branch first."""
        if best is not None and self._left <= 0:
            return best
        if not undecided:
            stages = self._evaluate(in_place, copied, None)
            found = None if stages is None else _Solution(stages, in_place, copied)
            return found if best is None or (found is not None and found.rank < best.rank) else best
        first, rest = undecided[0], undecided[1:]
        branches = []
        for number, (inside, outside) in enumerate(
            ((in_place | {first}, copied), (in_place, copied | {first}))
        ):
            last_stage = None if best is None else 2 * best.rank[0]
            stages = self._evaluate(inside, outside, last_stage)
            if stages is not None:
                branches.append((programs_of(stages), len(outside), number, inside, outside))
        for programs, copies, _, inside, outside in sorted(branches, key=lambda one: one[:3]):
            if best is None or (programs, copies) < best.rank:
                best = self._search(rest, inside, outside, best)
        return best

    def _settled(self, solution: _Solution) -> list[int]:
        """Move flexible parts from the host into the next program, if there is one."""
        stages = list(solution.stages)
        programs = {stage for at, stage in enumerate(stages) if self.parts[at].on_machine and stage % 2}
        for at in reversed(range(len(stages))):
            part, stage = self.parts[at], stages[at]
            is_either = self.kind(at) == "either" and at not in self._members
            if not is_either or stage % 2 or stage + 1 not in programs:
                continue
            if part.moves_nothing and (self.reads[at] or not self.readers[at]):
                continue
            if all(self._follows(stages, reader, at, stage + 1) for reader in self.readers[at]):
                stages[at] = stage + 1
        return stages

    def _follows(self, stages: Sequence[int], reader: int, producer: int, stage: int) -> bool:
        repacks = any(read.repacks for read in self.reads[reader] if read.producer == producer)
        return stages[reader] > stage or (stages[reader] == stage and not repacks)


def partition_parts(
    graph: Graph,
    parts: Sequence[NetworkPart],
    config: Config,
    aliases: Collection[str] = (),
    flexible: Collection[str] = (),
) -> Partition:
    """``parts`` are in an order of execution."""
    problem = PartitionProblem(graph, parts, config, aliases, flexible)
    solution, bound, is_exact = problem.solve()
    return Partition(
        groups=tuple(_groups(parts, solution.stages)),
        aliases=frozenset(parts[at].fused.output for at in solution.in_place),
        summary=PartitionSummary(bound=bound, is_exact=is_exact),
    )


def _groups(parts: Sequence[NetworkPart], stages: Sequence[int]) -> Iterator[tuple[NetworkPart, ...]]:
    order = sorted(range(len(parts)), key=lambda at: stages[at])
    starts = [n for n, at in enumerate(order) if not n or stages[at] != stages[order[n - 1]]]
    for start, stop in pairwise([*starts, len(order)]):
        yield tuple(parts[at] for at in order[start:stop])
