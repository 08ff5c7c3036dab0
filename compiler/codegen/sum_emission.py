"""Emission of reductions whose first product overwrites, so that no reset is needed."""

import numpy as np

from accel.compiler.codegen.call_emission import CallEmission, CallGroup
from accel.compiler.codegen.emission_state import EmissionState
from accel.compiler.codegen.perfect_nests import Box
from accel.compiler.codegen.sum_initialization import Elements, UnstartedSums, boxes_of, first_step
from accel.compiler.expr.guarded_loops import Ranges, first_steps
from accel.compiler.expr.scalar_expressions import IterVar
from accel.compiler.nest.nest import Call


class SumEmission:
    """Emits updates of sums."""

    def __init__(self, state: EmissionState, unstarted: UnstartedSums, calls: CallEmission) -> None:
        self._state, self._unstarted, self._calls = state, unstarted, calls
        self._first_steps: dict[int, Call] = {}
        """By ``id`` of a call that adds to sums, the call that starts them."""
        self._splits: dict[tuple[object, ...], tuple[list[CallGroup], list[CallGroup]]] = {}
        """Groups that start sums, and groups that add to them."""

    def clear(self) -> None:
        self._splits.clear()

    def emit(self, leaf: Call, box: Box, env: dict[IterVar, int]) -> None:
        """``env`` is changed."""
        unstarted = self._unstarted
        if leaf.form == "reset":
            for group in self._calls.groups(leaf, box):
                for part in group.parts:
                    unstarted.reset(self._sums(leaf, part, env)[1], self._state.statements.number(leaf))
            return
        if not unstarted.any:
            self._calls.emit_box(leaf, box, env)
            return
        firsts, rest = self._split(leaf, box, env)
        step = self._first_step(leaf)
        for first in firsts:
            self._calls.emit_groups(step, [first], env)
            for part in first.parts:
                unstarted.start(self._sums(leaf, part, env)[1])
        self._calls.emit_groups(leaf, rest, env)

    def _split(
        self, leaf: Call, box: Box, env: dict[IterVar, int]
    ) -> tuple[list[CallGroup], list[CallGroup]]:
        loops, elements = self._sums(leaf, box.ranges, env)
        mask = self._unstarted.among(elements)
        key = (id(leaf), tuple(box.ranges.values()), box.margins, tuple(loops), mask.tobytes())
        if key not in self._splits:
            wanted = boxes_of(mask, loops, box.ranges)
            starting, rest = first_steps(box.ranges, box.margins, wanted)
            step = self._first_step(leaf)
            self._splits[key] = (
                [self._calls.group(step, (), [part]) for part in starting],
                self._calls.grouped(leaf, rest),
            )
        return self._splits[key]

    def _sums(self, leaf: Call, ranges: Ranges, env: dict[IterVar, int]) -> tuple[list[IterVar], Elements]:
        """Return the loops over different sums, and each iteration's accumulator."""
        env.update({var: first for var, (first, _) in ranges.items()})
        pointer = self._state.addresses.pointer(leaf.output, list(ranges), env)
        loops = [var for var, stride in zip(ranges, pointer.strides, strict=True) if stride]
        elements = np.array(pointer.base, dtype=np.intp)
        for (first, end), stride in zip(ranges.values(), pointer.strides, strict=True):
            if stride:
                elements = elements[..., None] + np.arange(end - first) * stride
        return loops, elements

    def _first_step(self, leaf: Call) -> Call:
        if id(leaf) not in self._first_steps:
            self._first_steps[id(leaf)] = found = first_step(leaf)
            self._state.statements.add_same(found, leaf)
        return self._first_steps[id(leaf)]
