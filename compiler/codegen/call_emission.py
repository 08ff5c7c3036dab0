"""Emit calls of intrinsics and ALU operations over boxes of iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from accel.base.records import replace
from accel.compiler.codegen.emission_state import EmissionState
from accel.compiler.codegen.perfect_nests import Box, operand_regions
from accel.compiler.expr.guarded_loops import Ranges, alike, boxes
from accel.compiler.expr.linear_expressions import Derived, Known, values_of, without
from accel.compiler.expr.scalar_expressions import IterVar
from accel.compiler.nest.nest import AluCall, Call, Copy, Region, walk_nodes
from accel.compiler.target.builtin_emitters import alu, fill_zero
from accel.compiler.target.emitter_registry import AccessPtr, Emitted, Target, find_emitter
from accel.core.isa import Gemm, Mac, SetAcc

MIN_SHARED_MICRO_OPS = 16
"""Micro-ops that an instruction for several boxes may have on any machine, since they always fit."""
SHARED_MEMORY_FRACTION = 64
"""An instruction for several boxes may also use this fraction of the micro-op memory, so that many lists fit
together."""


class CallGroup(NamedTuple):
    """Boxes of a call that become one instruction, if they differ only in micro-ops.

    ``emission`` returns the instructions for values of the loops around the boxes.
    """

    parts: list[Ranges]
    emission: Derived[_GroupEmission]


class _BoxOperands(NamedTuple):
    """The operands of one box.

    Attributes:
        taps: for each operand with taps, their number and the elements from one to the next.
        read: pointers to operands. Sums among them must hold their final value.
    """

    taps: Sequence[tuple[int, int]]
    read: Sequence[AccessPtr]
    extents: tuple[int, ...]


class _GroupEmission(NamedTuple):
    emitted: Sequence[Emitted]
    boxes: Sequence[_BoxOperands]


class CallEmission:
    """Emits calls into a state. Equal calls share their instructions."""

    def __init__(self, state: EmissionState) -> None:
        self._state = state
        self._loaded = {node.target.buffer for node in walk_nodes(state.nest.body) if isinstance(node, Copy)}
        self._groups: dict[tuple[object, ...], list[CallGroup]] = {}
        self._deciding: dict[tuple[int, tuple[IterVar, ...]], list[Known[int]]] = {}
        """By ``id`` of a call and the loops of its boxes, the values that its instructions depend on."""
        self._instructions: dict[tuple[object, ...], Sequence[Emitted]] = {}
        """By call, extents and pointers."""
        self._joined: dict[tuple[int, ...], Sequence[Emitted]] = {}
        """By ``id`` of each box's instructions."""

    def clear(self) -> None:
        """The caches refer to this object, and would need garbage collection."""
        for cache in (self._groups, self._instructions, self._joined):
            cache.clear()

    def emit_box(self, leaf: Call | AluCall, box: Box, env: Mapping[IterVar, int]) -> None:
        self.emit_groups(leaf, self.groups(leaf, box), env)

    def emit_groups(
        self, leaf: Call | AluCall, groups: Sequence[CallGroup], env: Mapping[IterVar, int]
    ) -> None:
        state = self._state
        for group in groups:
            emission = group.emission.at(env)
            if emission.boxes:
                written = operand_regions(leaf)[0].buffer
                if written in self._loaded:
                    state.contents.overwrite(written)
            for taps, read, extents in emission.boxes:
                for count, step in taps:
                    state.set(leaf, replace(state.setting(SetAcc), taps=count, step=step))
                for pointer in read:
                    state.settle(pointer, extents)
            state.emitted.extend(emission.emitted)

    def groups(self, leaf: Call | AluCall, box: Box) -> list[CallGroup]:
        key = (id(leaf), tuple(box.ranges.values()), box.margins)
        if key not in self._groups:
            parts = boxes(box.ranges, box.margins) if box.margins else [box.ranges]
            self._groups[key] = self.grouped(leaf, parts)
        return self._groups[key]

    def grouped(self, leaf: Call | AluCall, parts: list[Ranges]) -> list[CallGroup]:
        ranges = parts[0] if parts else {}
        depth = self._state.config.uop_depth
        most = min(depth, max(MIN_SHARED_MICRO_OPS, depth // SHARED_MEMORY_FRACTION))
        together = alike(parts, most) if len(parts) > 1 and len(ranges) > 1 else []
        return [self.group(leaf, *one) for one in together or [((), [part]) for part in parts]]

    def group(self, leaf: Call | AluCall, loops: tuple[int, ...], parts: list[Ranges]) -> CallGroup:
        deciding = self._values(leaf, {var: None for part in parts for var in part})
        return CallGroup(parts, Derived(deciding, lambda env: self._emission(leaf, loops, parts, env)))

    def _values(self, leaf: Call | AluCall, inner: Mapping[IterVar, None]) -> list[Known[int]]:
        """Return values outside some loops that determine a call's instructions."""
        key = (id(leaf), tuple(inner))
        if key not in self._deciding:
            addresses = self._state.addresses
            regions = operand_regions(leaf)
            places = [addresses.place(one, addresses.elements[one.buffer]) for one in regions]
            exprs = [expr for place in places for expr in place.follows_from]
            if isinstance(leaf, Call):
                for place, region, dims in zip(places, regions, leaf.dims, strict=True):
                    if _has_taps(region, dims) and dims[0] is not None:
                        exprs.append(place.dimensions[dims[0]].extent)
            self._deciding[key] = values_of(without(inner.keys(), exprs))
        return self._deciding[key]

    def _emission(
        self,
        leaf: Call | AluCall,
        loops: tuple[int, ...],
        parts: list[Ranges],
        around: Mapping[IterVar, int],
    ) -> _GroupEmission:
        state = self._state
        found: list[Sequence[Emitted]] = []
        operands: list[_BoxOperands] = []
        for ranges in parts:
            extents = tuple(end - first for first, end in ranges.values())
            if min(extents, default=1) <= 0:
                continue
            env = {**around, **{var: first for var, (first, _) in ranges.items()}}
            box = list(ranges)
            pointers = tuple(state.addresses.pointer(one, box, env) for one in operand_regions(leaf))
            taps: list[tuple[int, int]] = []
            if isinstance(leaf, Call):
                pointers, taps = self._with_taps(leaf, pointers, env)
            operands.append(_BoxOperands(taps, pointers[isinstance(leaf, Call) :], extents))
            key = (id(leaf), extents, pointers, loops)
            if key not in self._instructions:
                target = Target(config=state.config, extents=extents, loops=loops)
                emitted = self._lowered(leaf, target, pointers)
                self._instructions[key] = state.statements.labelled(leaf, emitted)
            found.append(self._instructions[key])
        joined = tuple(map(id, found))
        if joined not in self._joined:
            self._joined[joined] = _join(found, state.config.uop_depth)
        return _GroupEmission(self._joined[joined], operands)

    def _with_taps(
        self, leaf: Call, pointers: tuple[AccessPtr, ...], env: Mapping[IterVar, int]
    ) -> tuple[tuple[AccessPtr, ...], list[tuple[int, int]]]:
        """Return the pointers with their taps, and the taps and steps for SET.ACC."""
        found = []
        settings = []
        for pointer, region, dims in zip(pointers, operand_regions(leaf), leaf.dims, strict=True):
            if _has_taps(region, dims):
                taps, step = self._state.addresses.taps(region, dims[0], env)
                found.append(pointer._replace(taps=taps, step=step))
                settings.append((taps, step))
            else:
                found.append(pointer)
        return tuple(found), settings

    def _lowered(
        self, leaf: Call | AluCall, target: Target, pointers: tuple[AccessPtr, ...]
    ) -> Sequence[Emitted]:
        if isinstance(leaf, AluCall):
            if leaf.op == "zero":
                return fill_zero(target, pointers[0])
            operand = leaf.operand if isinstance(leaf.operand, int) else pointers[1]
            return alu(target, leaf.op, pointers[0], operand)
        of_tensor = dict(zip([leaf.intrin.op.tensor, *leaf.intrin.inputs], pointers, strict=False))
        emitted: list[Emitted] = []
        for call in leaf.intrin.calls(leaf.form):
            emitter = find_emitter(call.name, self._state.config)
            emitted.extend(emitter.emit(target, *(of_tensor[p.tensor] for p in call.pointers)))
        return emitted


def _join(found: Sequence[Sequence[Emitted]], most: int) -> Sequence[Emitted]:
    """Join instructions that differ only in their micro-ops, up to ``most``."""
    every = [item for part in found for item in part]
    gemms = [item.instruction for item in every if isinstance(item.instruction, Gemm | Mac)]
    templates = {replace(gemm, uop_end=0) for gemm in gemms}
    has_one_each = all(len(part) == 1 for part in found) and len(gemms) == len(found)
    if len(found) == 1 or not has_one_each or len(templates) > 1:
        return every
    (template,) = templates
    uops = np.concatenate([item.uops for item in every])
    if len(uops) > most:
        return every
    return [replace(every[0], instruction=replace(template, uop_end=len(uops)), uops=uops)]


def _has_taps(region: Region, dims: Sequence[int | None]) -> bool:
    assert region.buffer.scope is not None
    return len(dims) > len(region.buffer.scope.element)
