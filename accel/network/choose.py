"""Choice: of the ways to fuse and place the nodes of a group, the one with the fewest predicted cycles.

Groups are small and do not share nodes, so each is decided by itself, among all of its alternatives. Products
are on the machine wherever it can do them; other nodes are where they take fewer cycles. Of alternatives that
take as many, that with the fewer stages is taken.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from accel.base.errors import ScheduleError, ShapeError
from accel.core.config import Config
from accel.graph.graph import Graph
from accel.image.manifest import read_entry, read_object
from accel.network.cost import NOTHING, Cost, on_host, on_machine
from accel.network.fuse import Group
from accel.network.lower import Layer, NotOnMachine, lower
from accel.network.stage import Stage

Where = Literal["machine", "host"]
_KEPT = 6
"""Alternatives that are told, besides that which fuses nothing."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """A stage in a place.

    Attributes:
        stage: of the graph.
        layer: what the machine does; None on the host.
        reason: why the machine cannot do it; empty if it can.
    """

    stage: Stage
    layer: Layer | None = None
    reason: str = ""

    @property
    def where(self) -> Where:
        """The place."""
        return "host" if self.layer is None else "machine"

    @property
    def why(self) -> str:
        """Why it is on the host; empty on the machine."""
        return "" if self.layer is not None else self.reason or "the host is predicted to take fewer cycles"


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """A way to carry out a group, as it is told.

    Attributes:
        stages: operators of each stage and where they run, as ``Conv + Clip`` or ``Add on the host``.
        cost: predicted; None if it is not possible.
        refused: why it is not possible.
        apart: whether every node is a stage of its own.
    """

    stages: tuple[str, ...]
    cost: Cost | None
    refused: str = ""
    apart: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "stages": list(self.stages),
            "cost": None if self.cost is None else self.cost.to_dict(),
            "refused": self.refused,
            "apart": self.apart,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Alternative":
        """The inverse of :meth:`to_dict`.

        Raises:
            ProgramError: an entry is missing or of another type.
        """
        return cls(
            stages=tuple(map(str, read_entry(data, "stages", list))),
            cost=read_object(data, "cost", Cost.from_dict),
            refused=read_entry(data, "refused", str),
            apart=data.get("apart") is True,
        )


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What was compared for a group.

    Attributes:
        name: of the group: of its main nodes.
        alternatives: the one that was taken, then the others, best first, and those that are not possible.
    """

    name: str
    alternatives: tuple[Alternative, ...]

    @property
    def saved(self) -> Cost:
        """What fusion is predicted to save: that with every node by itself, less what was taken."""
        taken = self.alternatives[0].cost or NOTHING
        apart = [one.cost for one in self.alternatives if one.apart and one.cost is not None]
        return min(apart, key=lambda cost: cost.cycles) - taken if apart else NOTHING

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "name": self.name,
            "alternatives": [one.to_dict() for one in self.alternatives],
            "savings": self.saved.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Choice":
        """The inverse of :meth:`to_dict`.

        Raises:
            ProgramError: an entry is missing or of another type.
        """
        found = tuple(Alternative.from_dict(one) for one in read_entry(data, "alternatives", list))
        return cls(name=read_entry(data, "name", str), alternatives=found)


def savings(choices: Sequence[Choice]) -> Cost:
    """What all fusions together are predicted to save."""
    return sum((choice.saved for choice in choices), NOTHING)


class Chooser:
    """Chooses, and remembers what stages take.

    Args:
        graph: the stages'.
        config: the machine.
        approximate: whether additions may differ from floating point.
    """

    def __init__(self, graph: Graph, config: Config, *, approximate: bool) -> None:
        self._graph = graph
        self._config = config
        self._approximate = approximate
        self._known: dict[tuple[str, ...], tuple[list[Option], str, Cost]] = {}

    def choose(self, group: Group) -> tuple[tuple[Option, ...], Choice]:
        """The best alternative's stages, in an order in which they can run, and what it was compared with."""
        possible: list[tuple[Cost, tuple[Option, ...], bool]] = []
        refused: list[tuple[Stage, str, Alternative]] = []
        for stages in group.alternatives:
            wrong = next((stage for stage in stages if not self._options(stage)), None)
            apart = stages is group.apart
            if wrong is not None:
                reason = self._known[_key(wrong)][1]
                names = tuple(stage.operators() for stage in stages)
                told = Alternative(stages=names, cost=None, refused=reason, apart=apart)
                refused.append((wrong, reason, told))
                continue
            for options in product(*map(self._options, stages)):
                possible.append((self._cost(options), options, apart))
        ranked = sorted(possible, key=lambda one: (one[0].cycles, len(one[1])))
        taken = tuple(_with_reason(option, ranked[0][1], refused) for option in ranked[0][1])
        least = next((one for one in ranked if one[2]), None)
        shown = [one for n, one in enumerate(ranked) if n < _KEPT or one is least]
        mains = [stage.name for stage in group.alternatives[0]]
        return taken, Choice(
            name=", ".join(mains),
            alternatives=(
                *(_told(cost, options, apart) for cost, options, apart in shown),
                *(told for _, _, told in refused[:_KEPT]),
            ),
        )

    def refuse(self, option: Option, reason: str) -> None:
        """Note that the machine cannot do what it was thought to."""
        key = _key(option.stage)
        self._known[key] = (self._on_host(option.stage, reason), reason, NOTHING)

    def _options(self, stage: Stage) -> list[Option]:
        """The places that a stage can have; none if the machine cannot do it as a whole."""
        key = _key(stage)
        if key not in self._known:
            self._known[key] = self._found(stage)
        return self._known[key][0]

    def _found(self, stage: Stage) -> tuple[list[Option], str, Cost]:
        try:
            layer = lower(self._graph, stage, approximate=self._approximate)
            cost = on_machine(self._graph, stage, layer, self._config)
        except (NotOnMachine, ScheduleError, ShapeError) as error:
            return self._on_host(stage, str(error)), str(error), NOTHING
        found = [Option(stage=stage, layer=layer)]
        if not stage.macs(self._graph):
            found += self._on_host(stage, "")
        return found, "", cost

    def _on_host(self, stage: Stage, reason: str) -> list[Option]:
        return [Option(stage=stage, reason=reason)] if len(stage.nodes) == 1 else []

    def _cost(self, options: Sequence[Option]) -> Cost:
        return sum(self._costs(options), NOTHING)

    def _costs(self, options: Sequence[Option]) -> Iterator[Cost]:
        made: set[str] = set()
        for option in options:
            if option.layer is not None:
                yield self._known[_key(option.stage)][2]
                continue
            switch = made.isdisjoint(option.stage.inputs)
            yield on_host(self._graph, option.stage, self._config, switch=switch)
            made.add(option.stage.output)


def _key(stage: Stage) -> tuple[str, ...]:
    return tuple(node.output for node in stage.nodes)


def _told(cost: Cost, options: Sequence[Option], apart: bool) -> Alternative:
    ends = {"machine": "", "host": " on the host"}
    stages = tuple(f"{option.stage.operators()}{ends[option.where]}" for option in options)
    return Alternative(stages=stages, cost=cost, apart=apart)


def _with_reason(
    option: Option, taken: Sequence[Option], refused: Sequence[tuple[Stage, str, Alternative]]
) -> Option:
    """A stage on the host with the reason why no other takes it, where there is one."""
    if option.layer is not None:
        return option
    mains = [other.stage.name for other in taken if other.layer is not None]
    for stage, reason, _ in refused:
        if stage.addition is option.stage.main and stage.name in mains:
            return Option(stage=option.stage, reason=reason)
    return option
