"""Consecutive runs."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate

from msgspec import Struct

from accel.core.isa import Instruction, Unit
from accel.core.token_rules import Counter
from accel.run.critical_path import Segment
from accel.views.activity_records import NO_INSTRUCTION, Activity
from accel.views.analyzed_run import AnalyzedRun


class RunSequence(Struct, frozen=True, dict=True):
    """Consecutive runs, for example programs of a network, as one timeline."""

    runs: tuple[AnalyzedRun, ...]

    @cached_property
    def begins(self) -> list[int]:
        return [0, *accumulate(len(run.instructions) for run in self.runs[:-1])]

    @cached_property
    def activity(self) -> Activity:
        return concatenate_activity([run.activity for run in self.runs], self.begins)

    @cached_property
    def instructions(self) -> Sequence[Instruction]:
        return [one for run in self.runs for one in run.instructions]

    @cached_property
    def names(self) -> list[str]:
        return [one for run in self.runs for one in run.names]

    @cached_property
    def tensors(self) -> list[str]:
        return [one for run in self.runs for one in run.tensors]

    @cached_property
    def layers(self) -> list[tuple[str, int]]:
        return [
            (name, begin + stop)
            for run, begin in zip(self.runs, self.begins, strict=True)
            for name, stop in run.layers
        ]

    def critical_path(self) -> Iterator[Segment]:
        cycle = 0
        for run, begin in zip(self.runs, self.begins, strict=True):
            for one in run.result.known_path or ():
                number = None if one.instruction is None else begin + one.instruction
                yield one._replace(start=cycle + one.start, instruction=number)
            cycle += run.activity.cycles


def concatenate_activity(activities: Sequence[Activity], begins: Sequence[int]) -> Activity:
    """Concatenate runs without a gap. ``begins`` has the number of each run's first instruction."""
    if len(activities) == 1:
        return activities[0]
    found = Activity(
        cycles=sum(one.cycles for one in activities),
        dispatched=sum(one.dispatched for one in activities),
        slices=[],
        spans={unit: [] for unit in Unit},
        flows=[],
        bursts=[],
        queue_levels={unit: [] for unit in activities[0].queue_levels},
        token_levels={counter: [] for counter in Counter},
    )
    starts = [0, *accumulate(one.cycles for one in activities)]
    for one, cycle, begin in zip(activities, starts, begins, strict=False):
        _append_shifted(found, one, cycle, begin)
    return found


_SLICE_CYCLES = ("dispatched", "start", "stop", "work_start", "work_stop")
_BURST_CYCLES = ("granted", "start", "stop")


def _append_shifted(found: Activity, activity: Activity, cycle: int, begin: int) -> None:
    def number(instruction: int) -> int:
        return instruction if instruction == NO_INSTRUCTION else begin + instruction

    found.slices.extend(
        one._replace(
            instruction=begin + one.instruction, **{key: cycle + getattr(one, key) for key in _SLICE_CYCLES}
        )
        for one in activity.slices
    )
    for unit, spans in activity.spans.items():
        found.spans[unit].extend(
            span._replace(
                start=cycle + span.start,
                stop=cycle + span.stop,
                instruction=number(span.instruction),
                awaited=number(span.awaited),
            )
            for span in spans
        )
    found.flows.extend(
        flow._replace(
            source=begin + flow.source,
            target=begin + flow.target,
            pushed=cycle + flow.pushed,
            popped=cycle + flow.popped,
        )
        for flow in activity.flows
    )
    found.bursts.extend(
        burst._replace(
            instruction=begin + burst.instruction,
            **{key: cycle + getattr(burst, key) for key in _BURST_CYCLES},
        )
        for burst in activity.bursts
    )
    for unit, levels in activity.queue_levels.items():
        found.queue_levels[unit].extend((cycle + at, level) for at, level in levels)
    for counter, levels in activity.token_levels.items():
        found.token_levels[counter].extend((cycle + at, level) for at, level in levels)
