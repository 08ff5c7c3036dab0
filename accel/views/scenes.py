"""Runs one behind the other, as the programs of a network, to be looked at as one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from accel.core.isa import Instruction, Unit
from accel.core.token_rules import Counter
from accel.run.critical import Segment
from accel.views.scene import Scene
from accel.views.states import NOBODY, Activity


@dataclass(frozen=True)
class Scenes:
    """What a chart and a list of instructions are made from.

    Instructions are numbered through all programs.

    Attributes:
        parts: the runs in order, at least one.
    """

    parts: tuple[Scene, ...]

    @cached_property
    def begins(self) -> list[int]:
        """The number of each program's first instruction."""
        return [0, *accumulate(len(one.instructions) for one in self.parts[:-1])]

    @cached_property
    def seen(self) -> Activity:
        """What the units did, in cycles of all runs."""
        return behind_one_another([one.seen for one in self.parts], self.begins)

    @cached_property
    def instructions(self) -> Sequence[Instruction]:
        """The decoded programs."""
        return [one for part in self.parts for one in part.instructions]

    @cached_property
    def names(self) -> list[str]:
        """As :attr:`Scene.names`."""
        return [one for part in self.parts for one in part.names]

    @cached_property
    def tensors(self) -> list[str]:
        """As :attr:`Scene.tensors`."""
        return [one for part in self.parts for one in part.tensors]

    @cached_property
    def layers(self) -> list[tuple[str, int]]:
        """As :attr:`Scene.layers`."""
        return [
            (name, begin + end)
            for part, begin in zip(self.parts, self.begins, strict=True)
            for name, end in part.layers
        ]

    def critical_path(self) -> Iterator[Segment]:
        """The critical paths, in order of time."""
        cycle = 0
        for part, begin in zip(self.parts, self.begins, strict=True):
            for one in part.result.critical_path() or ():
                number = None if one.instruction is None else begin + one.instruction
                yield one._replace(start=cycle + one.start, instruction=number)
            cycle += part.seen.cycles


def behind_one_another(runs: Sequence[Activity], begins: Sequence[int]) -> Activity:
    """What units did in several runs, each of which begins in the cycle in which the one before has ended.

    Args:
        runs: at least one.
        begins: the number of the first instruction of each.
    """
    if len(runs) == 1:
        return runs[0]
    found = Activity(
        cycles=sum(one.cycles for one in runs),
        handed=sum(one.handed for one in runs),
        slices=[],
        spans={unit: [] for unit in Unit},
        flows=[],
        bursts=[],
        queues={unit: [] for unit in runs[0].queues},
        tokens={counter: [] for counter in Counter},
    )
    starts = [0, *accumulate(one.cycles for one in runs)]
    for one, cycle, first in zip(runs, starts, begins, strict=False):
        found.slices.extend(
            s._replace(
                instruction=first + s.instruction,
                **{key: cycle + getattr(s, key) for key in ("queued", "start", "stop", "begin", "end")},
            )
            for s in one.slices
        )
        for unit, spans in one.spans.items():
            found.spans[unit].extend(
                span._replace(
                    start=cycle + span.start,
                    stop=cycle + span.stop,
                    instruction=_numbered(span.instruction, first),
                    other=_numbered(span.other, first),
                )
                for span in spans
            )
        found.flows.extend(
            flow._replace(
                source=first + flow.source,
                target=first + flow.target,
                pushed=cycle + flow.pushed,
                popped=cycle + flow.popped,
            )
            for flow in one.flows
        )
        found.bursts.extend(
            burst._replace(
                instruction=first + burst.instruction,
                **{key: cycle + getattr(burst, key) for key in ("grant", "start", "stop")},
            )
            for burst in one.bursts
        )
        for unit, levels in one.queues.items():
            found.queues[unit].extend((cycle + at, level) for at, level in levels)
        for counter, levels in one.tokens.items():
            found.tokens[counter].extend((cycle + at, level) for at, level in levels)
    return found


def _numbered(instruction: int, first: int) -> int:
    return instruction if instruction == NOBODY else first + instruction
