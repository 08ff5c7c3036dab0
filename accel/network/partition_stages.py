"""Stages: the earliest program or time of the host in which each part of a network can run.

Stage 0 is the host's, stage 1 the first program, stage 2 the host's after it, and so on up to
``2 * programs``.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

Kind = Literal["machine", "host", "either"]
"""A part of the kind ``either`` joins the stage of its operands."""


class Read(Struct, frozen=True, kw_only=True):
    """An operand of a part.

    Attributes:
        producer: index of the part that computes it.
        repacks: whether the host must repack it if a layer writes it and another reads it.
    """

    producer: int
    repacks: bool = False


def earliest_stages(
    kinds: Sequence[Kind], reads: Sequence[Sequence[Read]], bundles: Sequence[int], last_stage: int
) -> list[int] | None:
    """Return the earliest stage of each part. No order of execution has fewer stages.

    All constraints are of the form "not before this stage" or "in the same stage". So all earliest stages are
    possible at the same time.

    Args:
        kinds: of parts in an order of execution.
        bundles: each part's bundle, or -1. The parts of a bundle are in one stage of the machine.

    Returns:
        None if a part would be after ``last_stage``, also if two parts of a bundle need the host between
        them.
    """
    stages = [0] * len(kinds)
    of_bundles = [0] * (max(bundles, default=-1) + 1)
    is_stable = False
    while not is_stable:
        is_stable = True
        for at, kind in enumerate(kinds):
            bundle = bundles[at]
            stage = 0 if bundle < 0 else of_bundles[bundle]
            for read in reads[at]:
                before = stages[read.producer]
                stage = max(stage, before + (read.repacks and before % 2))
            is_machine = bundle >= 0 or kind == "machine"
            if kind != "either" or is_machine:
                stage += (stage + is_machine) % 2
            if stage > last_stage:
                return None
            stages[at] = stage
            if bundle >= 0 and stage > of_bundles[bundle]:
                of_bundles[bundle] = stage
                is_stable = False  # earlier members move to the stage, too
    return stages


def programs_of(stages: Sequence[int]) -> int:
    return (max(stages, default=0) + 1) // 2


def bundle_numbers(count: int, joined: Sequence[Sequence[int]]) -> list[int]:
    """Join sets that share a part, and return the number of each part's set, or -1."""
    roots = list(range(count))

    def root(at: int) -> int:
        while roots[at] != at:
            roots[at] = roots[roots[at]]
            at = roots[at]
        return at

    for members in joined:
        for at in members:
            roots[root(at)] = root(members[0])
    inside = {at for members in joined for at in members}
    numbers: dict[int, int] = {}
    return [numbers.setdefault(root(at), len(numbers)) if at in inside else -1 for at in range(count)]
