"""The list of passes that reorder emitted instructions, and their switches."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from accel.base.errors import ScheduleError, nearest
from accel.compiler.codegen.delay_first_loads import DelayFirstLoads
from accel.compiler.codegen.interleave_epilogues import InterleaveEpilogues
from accel.compiler.codegen.prefetch_residuals import PrefetchResiduals
from accel.compiler.codegen.reorder_pass import EmittedProgram, ReorderPass
from accel.compiler.codegen.split_last_steps import SplitLastSteps
from accel.compiler.codegen.write_padding_once import WritePaddingOnce
from accel.compiler.target.emitter_registry import Emitted
from accel.core.config import Config


class ListedPass(Struct, frozen=True):
    """A pass for machines with this ``post``, or for all if it is None."""

    reorder: ReorderPass
    post: int | None = None

    def applies_to(self, config: Config) -> bool:
        return self.post is None or self.post == config.post


REORDER_PASSES = (
    ListedPass(InterleaveEpilogues(), post=0),
    ListedPass(SplitLastSteps(), post=0),
    ListedPass(PrefetchResiduals(), post=1),
    ListedPass(WritePaddingOnce()),
    ListedPass(DelayFirstLoads()),
)
"""In the order in which they run."""

PASS_NAMES = tuple(listed.reorder.name for listed in REORDER_PASSES)


class PassEffect(Struct, frozen=True, kw_only=True):
    """The effect of a pass on a program.

    Attributes:
        state: ``ran``, ``off``, or ``needs post=0`` or ``needs post=1`` if it is for other machines.
        moved: number of instructions that another instruction overtook.
        removed, added: replaced instructions, and their replacements.
    """

    name: str
    reason: str
    state: str
    moved: int = 0
    removed: int = 0
    added: int = 0
    waits: int = 0

    def __str__(self) -> str:
        """For example, ``ran: moved 12, replaced 4 by 16``."""
        if self.state != "ran":
            return self.state
        parts = [
            *([f"moved {self.moved:,}"] if self.moved else []),
            *([f"replaced {self.removed:,} by {self.added:,}"] if self.added else []),
            *([f"delayed {self.waits:,}"] if self.waits else []),
        ]
        return f"ran: {', '.join(parts) or 'changed nothing'}"


def checked_pass_names(without: object) -> tuple[str, ...]:
    if isinstance(without, str) or not isinstance(without, Collection):
        raise ScheduleError(f"without is {without!r}; it must be a list of names of reorder passes")
    for name in without:
        if name not in PASS_NAMES:
            raise ScheduleError(f"the reorder pass is {name!r}; {nearest(str(name), PASS_NAMES)}")
    return tuple(name for name in PASS_NAMES if name in without)


def reorder(program: EmittedProgram, without: Collection[str] = ()) -> EmittedProgram:
    for listed in REORDER_PASSES:
        if listed.applies_to(program.config) and listed.reorder.name not in without:
            program = listed.reorder.run(program)
    return program


def pass_effects(program: EmittedProgram, without: Collection[str] = ()) -> Iterator[PassEffect]:
    """Run the passes, and yield the effect of each."""
    for listed in REORDER_PASSES:
        one = listed.reorder
        if not listed.applies_to(program.config):
            yield PassEffect(name=one.name, reason=one.reason, state=f"needs post={listed.post}")
        elif one.name in without:
            yield PassEffect(name=one.name, reason=one.reason, state="off")
        else:
            before, program = program, one.run(program)
            moved, removed, added = compare_orders(before.emitted, program.emitted)
            yield PassEffect(
                name=one.name,
                reason=one.reason,
                state="ran",
                moved=moved,
                removed=removed,
                added=added,
                waits=len(program.waits) - len(before.waits),
            )


def compare_orders(before: Sequence[Emitted], after: Sequence[Emitted]) -> tuple[int, int, int]:
    """Return how many instructions moved, are gone, and are new.

    Each occurrence of an instruction counts. As few as possible count as moved: if a, b, c becomes c, a, b,
    only c moved.
    """
    if before is after:
        return 0, 0, 0
    counts: Counter[int] = Counter()
    positions: dict[tuple[int, int], int] = {}
    for position, one in enumerate(before):
        positions[id(one), counts[id(one)]] = position
        counts[id(one)] += 1
    seen: Counter[int] = Counter()
    ends: list[int] = []
    """``ends[n]`` is the smallest old position that ends a run of n + 1 instructions in their old order."""
    common = 0
    for one in after:
        position = positions.get((id(one), seen[id(one)]), -1)
        seen[id(one)] += 1
        if position < 0:
            continue
        common += 1
        length = bisect_left(ends, position)
        ends[length : length + 1] = [position]
    return common - len(ends), len(before) - common, len(after) - common
