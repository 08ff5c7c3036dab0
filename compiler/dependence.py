"""Tokens from dependence analysis.

Two instructions of neighbouring units that touch the same scratchpad elements, one of them writing, must
keep their program order. Of all such pairs between two units only those are given a token that no other
pair implies: from instruction i to j, unless a token already goes from i or later to j or earlier.
Since i and j both grow from token to token, each instruction needs at most one of each kind, and the k-th
push meets the k-th pop.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from accel.access import AccessSets, Elements
from accel.config import Config
from accel.isa import Instruction, Loops, Transfer, Unit

_CHAIN = (Unit.LOAD, Unit.COMPUTE, Unit.STORE)


class _Last:
    """For each element of a scratchpad: the last instruction of each unit that read or wrote it."""

    def __init__(self, depth: int) -> None:
        self._of: dict[tuple[Unit, bool], np.ndarray] = {}
        self._depth = depth

    def latest(self, unit: Unit, write: bool, elements: Elements) -> int:
        """The latest such access to any of ``elements``, as the unit's position; -1 if there is none."""
        last = self._of.get((unit, write))
        return -1 if last is None else int(last[elements].max())

    def record(self, unit: Unit, write: bool, elements: Elements, position: int) -> None:
        key = (unit, write)
        if key not in self._of:
            self._of[key] = np.full(self._depth, -1, dtype=np.int64)
        self._of[key][elements] = position


def insert_tokens(
    instructions: Sequence[Instruction], config: Config, uop_words: np.ndarray
) -> list[Instruction]:
    """The same program with the tokens that its dependences need, and no others.

    Args:
        instructions: in program order, without token flags; LOADs of micro-ops count ``dram_base`` from
            the start of ``uop_words``.
        config: the machine.
        uop_words: all micro-ops in DRAM.
    """
    sets = AccessSets(config)
    memories = {name: _Last(getattr(config, f"{name}_depth")) for name in ("inp", "wgt", "acc")}
    members: dict[Unit, list[int]] = {unit: [] for unit in _CHAIN}
    synced: dict[tuple[Unit, Unit], int] = {}
    flags: list[set[str]] = [set() for _ in instructions]
    uops = np.zeros(config.uop_depth, dtype=np.uint32)
    for index, instruction in enumerate(instructions):
        unit = instruction.unit
        position = len(members[unit])
        members[unit].append(index)
        if isinstance(instruction, Transfer):
            touches = sets.transfer(instruction)
            if touches and touches[0].memory == "uop":
                begin = instruction.dram_base
                uops[touches[0].elements] = uop_words[begin : begin + instruction.x_size]
                continue
        elif isinstance(instruction, Loops) and instruction.uop_count:
            words = uops[instruction.uop_begin : instruction.uop_end]
            touches = tuple(t for t in sets.loops(instruction, words).touches if t.memory != "uop")
        else:
            continue
        for other in (unit.previous, unit.next):
            if other is None:
                continue
            needed = -1
            for memory, write, elements in touches:
                last = memories[memory]
                needed = max(needed, last.latest(other, True, elements))
                if write:
                    needed = max(needed, last.latest(other, False, elements))
            if needed > synced.get((other, unit), -1):
                synced[other, unit] = needed
                _order(flags, members[other][needed], index, forward=other is unit.previous)
        for memory, write, elements in touches:
            memories[memory].record(unit, write, elements, position)
    return [
        replace(instruction, **dict.fromkeys(names, True)) if names else instruction
        for instruction, names in zip(instructions, flags, strict=True)
    ]


def _order(flags: list[set[str]], first: int, second: int, *, forward: bool) -> None:
    """A token from instruction ``first`` to ``second``; forward is toward the store unit."""
    flags[first].add("push_next" if forward else "push_prev")
    flags[second].add("pop_prev" if forward else "pop_next")
