"""From a tensorized nest to instructions: the loops run once, at compile time.

A perfect nest of loops around one call, whose extents do not depend on one another, is a box that becomes
as few instructions as the hardware can express; all other loops, and those that ``unroll`` names, run one by
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from accel.base.errors import TensorizeError
from accel.compiler.codegen.addresses import Addresses, Dimension, Place
from accel.compiler.codegen.ahead import loads_ahead
from accel.compiler.codegen.ending import stored_early
from accel.compiler.codegen.handover import handed_over
from accel.compiler.codegen.memory import (
    DramMap,
    DramTensor,
    block_count,
    transfer_memory,
)
from accel.compiler.codegen.residuals import residuals_ahead
from accel.compiler.codegen.starting import Elements, Unstarted, boxes_of, first_step
from accel.compiler.codegen.startup import parameters_last, settings_first
from accel.compiler.codegen.zeros import zeros_once
from accel.compiler.expr.guards import Ranges, alike, boxes, first_steps
from accel.compiler.expr.linear import (
    Derived,
    Known,
    Linear,
    evaluate,
    margins_of,
    value_of,
    values_of,
    variables,
    without,
)
from accel.compiler.expr.post import StoreAdd, StoreRequantize
from accel.compiler.expr.scalar import IterVar
from accel.compiler.nest.finishing import carried_out
from accel.compiler.nest.nest import (
    Alu,
    Buffer,
    Call,
    Clear,
    Copy,
    For,
    Guard,
    Identity,
    Nest,
    Node,
    Parameters,
    Post,
    Region,
    Store,
    Widen,
    walk_nodes,
)
from accel.compiler.target.emitters import alu, dma_copy2d, fill_zero, overwrites
from accel.compiler.target.registry import AccessPtr, Emitted, Target, find_emitter
from accel.compiler.target.store_emitter import finish_tile
from accel.core.access import dram_rows
from accel.core.config import Config
from accel.core.isa import Gemm, Instruction, Load, Mac, Memory, Set, SetAcc, SetInp, SetOut, SetSum

_SHARE, _SHORT_LIST = 64, 16
"""Boxes become one instruction if that takes this share of the micro-op memory, or so few micro-ops that all
of them fit."""


_Env = dict[IterVar, int]
"""The values of loop variables, as loops set them."""


class _Box(NamedTuple):
    """A perfect nest around one call, and what must not be negative for the call to take place.

    The first ``single`` loops run one by one.
    """

    loops: list[For]
    margins: list[Linear]
    leaf: Node
    single: int
    rest: Derived[tuple[Ranges, tuple[Linear, ...]] | tuple[()]]
    """Of all but these, the ranges, and the margins within them; nothing if one of them does not run."""


_MOST_TRANSFERS = 1 << 16
"""Ways to carry out a copy that are kept: what one iteration moves, another one often moves again."""


class _CopyPlan(NamedTuple):
    """What is the same whenever a copy is carried out."""

    store: bool
    dram: Region
    local: Region
    place: Place
    outside: Place
    """The region in DRAM, in the scratchpad's elements."""
    memory: IntEnum
    tensor: DramTensor
    strides: tuple[int, ...]
    """In DRAM, from block to block that is copied."""


class _Moved(NamedTuple):
    """What a copy moves while some loops stand where they do."""

    emitted: Sequence[Emitted] = ()
    local: AccessPtr = AccessPtr("", 0, ())
    extents: tuple[int, ...] = ()
    """What is not padding."""
    copy: int = 0
    """Which thread's copy of the buffer is meant."""
    content: tuple[object, ...] = ()
    """What the buffer holds afterwards."""


class _Executed(NamedTuple):
    """What a call over some boxes is emitted as while the loops around stand where they do."""

    emitted: Sequence[Emitted]
    parts: Sequence[tuple[Sequence[tuple[int, int]], Sequence[AccessPtr], tuple[int, ...]]]
    """For each box, the taps that are to be set and their steps, what is read of accumulators that were
    settled before, and how far."""


class _Group(NamedTuple):
    """Boxes that a call runs over.

    Attributes:
        parts: these boxes.
        executed: what the call is emitted as.
    """

    parts: list[Ranges]
    executed: Derived[_Executed]


class Emission:
    """The instructions of a nest, in program order, and the map of its memories."""

    def __init__(self, nest: Nest, config: Config) -> None:
        self.nest, self.config = nest, config
        self.addresses = Addresses(nest)
        self.dram = DramMap(config)
        copies = [node for node in walk_nodes(nest.body) if isinstance(node, Copy)]
        self._loaded = {node.target.buffer for node in copies}
        finished = [node for node in walk_nodes(nest.body) if isinstance(node, Store)]
        stored = {node.target.buffer for node in copies} | {node.target.buffer for node in finished}
        read = {node.source.buffer for node in copies}
        read |= {one.operand.buffer for node in finished for one in node.ops if one.operand is not None}
        self.rereads = any(buffer.scope is None for buffer in stored & read)
        """Whether something is loaded from DRAM that was stored there."""
        self.emitted: list[Emitted] = []
        self.statements: list[tuple[Node, tuple[str, ...]]] = []
        """What can be emitted, each with the names of the loops around it; ``emitted`` numbers them."""
        self._numbers: dict[int, int] = {}
        """By id, where those are."""
        self._around: dict[int, tuple[str, ...]] = {}
        """By the id of what follows the sums of a tile, the names of the loops around it."""
        self._number(nest.body, ())
        self.first_loads: dict[Buffer, Instruction] = {}
        """The first LOAD into each buffer."""
        self._extents: dict[int, Known[int]] = {}
        """By the id of a loop, how often it runs."""
        self._boxes: dict[int, _Box | None] = {}
        self._parts: dict[tuple[object, ...], list[_Group]] = {}
        self._deciding: dict[tuple[int, tuple[IterVar, ...]], list[Known[int]]] = {}
        """By the id of a call and the loops of boxes that it runs over, what decides what is emitted."""
        self._copies: dict[int, tuple[_CopyPlan, Known[_Moved]]] = {}
        """By the id of a copy."""
        self._joined: dict[tuple[int, ...], Sequence[Emitted]] = {}
        self._known: dict[tuple[object, ...], Sequence[Emitted]] = {}
        """What calls were emitted as; equal ones are the same instructions."""
        self._content: dict[tuple[Buffer, int], tuple[object, ...]] = {}
        """What was loaded last into each copy of a buffer, so that it need not be loaded again."""
        self._unstarted = Unstarted(config) if overwrites(config) else None
        self._firsts: dict[int, Call] = {}
        """By the id of a call that adds to sums, the one that starts them."""
        self._split: dict[tuple[object, ...], tuple[list[_Group], list[_Group]]] = {}
        """Boxes in which sums start, and those in which they go on."""
        self._settings: dict[type[Set], Set] = {}
        """What has been set last."""
        self._finishing: dict[int, list[Node]] = {}
        """By the id of what follows the sums of a tile, the nodes that carry it out."""
        self._keep: list[object] = []
        """What the caches above know by its id."""
        self._run(nest.body, {})
        self._forget()
        self._reorder()
        for node in copies:  # what no iteration has loaded is an input nevertheless
            if node.source.buffer.scope is None:
                self._placed(node.source.buffer, node.target.buffer, store=False)

    def _forget(self) -> None:
        """Let go of what is known of copies and calls: it takes room, and refers to this object, which would
        wait for the garbage collector."""
        for known in (self._copies, self._parts, self._split, self._known, self._joined):
            known.clear()

    def _reorder(self) -> None:
        """Bring what is emitted into the order in which units wait least for one another. Where the first
        LOAD into a buffer is cut, its first piece takes its place."""
        self.emitted = zeros_once(loads_ahead(self._handed_over(), self.config, self._kept), self.config)
        loads = [one.instruction for one in self.emitted if isinstance(one.instruction, Load)]
        there = {id(load) for load in loads}
        for buffer, first in self.first_loads.items():
            if id(first) not in there:
                assert isinstance(first, Load)
                begin = first.route, first.sram_base, first.dram_base
                self.first_loads[buffer] = next(
                    load for load in loads if (load.route, load.sram_base, load.dram_base) == begin
                )

    def _handed_over(self) -> list[Emitted]:
        if self._unstarted is None:
            return handed_over(self.emitted, self.config)
        early = parameters_last(stored_early(self.emitted, self.config.token_limit))
        return residuals_ahead(settings_first(early), self.config)

    @property
    def _kept(self) -> set[int]:
        """Numbers of the statements that bring what scratchpads keep."""
        return {
            number
            for number, (node, _) in enumerate(self.statements)
            if isinstance(node, Copy) and node.target.buffer.keeps
        }

    def _number(self, nodes: Sequence[Node], loops: tuple[str, ...]) -> None:
        for node in nodes:
            if isinstance(node, For):
                self._number(node.body, (*loops, node.var.name))
            elif isinstance(node, Guard):
                self._number(node.body, loops)
            elif isinstance(node, Post):
                self._around[id(node)] = loops
            else:
                self._numbers[id(node)] = len(self.statements)
                self.statements.append((node, loops))

    def _from(self, node: Node, emitted: Iterable[Emitted]) -> list[Emitted]:
        """Instructions that know their statement."""
        return [replace(one, statement=self._numbers[id(node)]) for one in emitted]

    # --- loops -----------------------------------------------------------------------------------

    def _run(self, nodes: Sequence[Node], env: _Env) -> None:
        for node in nodes:
            if isinstance(node, For):
                self._run_loop(node, env)
            elif isinstance(node, Copy):
                self._emit_copy(node, env)
            elif isinstance(node, Post):
                self._run(self._carried_out(node), env)
            elif isinstance(node, Clear):
                self._emit_clear(node)
            elif isinstance(node, Widen | Identity | Parameters):
                continue  # the host's work
            elif isinstance(node, Guard):
                if all(evaluate(a, env) < evaluate(b, env) for a, b in node.conditions):
                    self._run(node.body, env)
            else:
                self._emit(node, env)

    def _run_loop(self, node: For, env: _Env) -> None:
        box = self._box(node)
        if box is not None:
            self._run_singly(box, 0, env)
            return
        for value in range(self._extent(node, env)):
            env[node.var] = value
            self._run(node.body, env)

    def _extent(self, loop: For, env: _Env) -> int:
        """How often a loop runs now."""
        found = self._extents.get(id(loop))
        if found is None:
            self._keep.append(loop)
            found = self._extents[id(loop)] = value_of(loop.extent)
        return found.at(env)

    def _carried_out(self, node: Post) -> list[Node]:
        """The nodes that carry out what follows the sums of a tile."""
        if id(node) not in self._finishing:
            self._keep.append(node)
            self._finishing[id(node)] = carried_out(node)
            self._number(self._finishing[id(node)], self._around[id(node)])
        return self._finishing[id(node)]

    def _box(self, node: For) -> _Box | None:
        """The loops and conditions of a perfect nest around one call, or None."""
        key = id(node)
        if key not in self._boxes:
            self._keep.append(node)
            loops: list[For] = []
            margins: list[Linear] = []
            inner: Node = node
            while isinstance(inner, For | Guard) and len(inner.body) == 1:
                if isinstance(inner, Guard):
                    margins += (part for condition in inner.conditions for part in margins_of(condition))
                elif inner.unrolled:
                    break
                else:
                    loops.append(inner)
                inner = inner.body[0]
                if isinstance(inner, Post) and len(self._carried_out(inner)) == 1:
                    (inner,) = self._carried_out(inner)
            known = isinstance(inner, Call | Alu)
            self._boxes[key] = self._boxed(loops, margins, inner) if known else None
        return self._boxes[key]

    def _boxed(self, loops: list[For], margins: list[Linear], leaf: Node) -> _Box:
        single = self._single(loops, margins, leaf)
        inner = {loop.var for loop in loops[single:]}
        atoms = [atom for form in margins for atom, _ in form.terms]
        of = without(inner, [*(loop.extent for loop in loops[single:]), *atoms])

        def rest(env: Mapping[IterVar, int]) -> tuple[Ranges, tuple[Linear, ...]] | tuple[()]:
            ranges = {loop.var: (0, evaluate(loop.extent, env)) for loop in loops[single:]}
            if any(behind <= 0 for _, behind in ranges.values()):
                return ()
            return ranges, tuple(_with_known(form, ranges, env) for form in margins)

        return _Box(loops, margins, leaf, single, Derived(values_of(of), rest))

    def _single(self, loops: Sequence[For], margins: Sequence[Linear], leaf: Node) -> int:
        """How many outer loops cannot be a box: inner extents depend on them, or an address does not grow
        evenly with them."""
        places = [
            self.addresses.place(region, self.addresses.elements[region.buffer]) for region in _regions(leaf)
        ]
        starts = [form for place in places for form in (place.copy, *(d.start for d in place.dimensions))]
        uneven = {
            var
            for form in (*starts, *margins)
            for atom, _ in form.terms
            if not isinstance(atom, IterVar)
            for var in variables(atom)
        }
        deciding = uneven | {var for loop in loops for var in variables(loop.extent)}
        return max((n + 1 for n, loop in enumerate(loops) if loop.var in deciding), default=0)

    def _run_singly(self, box: _Box, done: int, env: _Env) -> None:
        if done < box.single:
            loop = box.loops[done]
            for value in range(self._extent(loop, env)):
                env[loop.var] = value
                self._run_singly(box, done + 1, env)
            return
        rest = box.rest.at(env)
        if rest:
            self._emit_box(box.leaf, *rest, env)

    def _emit_box(self, leaf: Node, ranges: Ranges, margins: tuple[Linear, ...], env: _Env) -> None:
        """A call wherever no margin is negative."""
        if self._unstarted is not None and isinstance(leaf, Call) and leaf.form != "compute":
            self._emit_sums(self._unstarted, leaf, ranges, margins, env)
            return
        self._emit_groups(leaf, self._groups(leaf, ranges, margins), env)

    def _groups(self, leaf: Node, ranges: Ranges, margins: tuple[Linear, ...]) -> list[_Group]:
        """The part of a box in which no margin is negative."""
        key = (id(leaf), tuple(ranges.values()), margins)
        if key not in self._parts:
            self._keep.append(leaf)
            parts = boxes(ranges, margins) if margins else [ranges]
            self._parts[key] = self._together(leaf, parts)
        return self._parts[key]

    def _together(self, leaf: Node, parts: list[Ranges]) -> list[_Group]:
        """Boxes over the same loops, in few groups."""
        ranges = parts[0] if parts else {}
        depth = self.config.uop_depth
        most = min(depth, max(_SHORT_LIST, depth // _SHARE))
        together = alike(parts, most) if len(parts) > 1 and len(ranges) > 1 else []
        return [self._group(leaf, *one) for one in together or [((), [part]) for part in parts]]

    # --- how sums start --------------------------------------------------------------------------

    def _emit_sums(
        self, unstarted: Unstarted, leaf: Call, ranges: Ranges, margins: tuple[Linear, ...], env: _Env
    ) -> None:
        """Calls that reset sums, or add to them; the first to add to one starts it."""
        if leaf.form == "reset":
            for group in self._groups(leaf, ranges, margins):
                for part in group.parts:
                    unstarted.reset(self._sums(leaf, part, env)[1], self._numbers[id(leaf)])
            return
        if not unstarted.any:
            self._emit_groups(leaf, self._groups(leaf, ranges, margins), env)
            return
        loops, elements = self._sums(leaf, ranges, env)
        mask = unstarted.among(elements)
        key = (id(leaf), tuple(ranges.values()), margins, tuple(loops), mask.tobytes())
        if key not in self._split:
            self._keep.append(leaf)
            starting, rest = first_steps(ranges, margins, boxes_of(mask, loops, ranges))
            step = self._first_step(leaf)
            self._split[key] = (
                [self._group(step, (), [part]) for part in starting],
                self._together(leaf, rest),
            )
        firsts, groups = self._split[key]
        for first in firsts:
            self._emit_group(self._first_step(leaf), first, env)
            for part in first.parts:
                unstarted.start(self._sums(leaf, part, env)[1])
        self._emit_groups(leaf, groups, env)

    def _sums(self, leaf: Call, ranges: Ranges, env: _Env) -> tuple[list[IterVar], Elements]:
        """The loops that run over different sums, and for each of their iterations the accumulator."""
        env.update({var: first for var, (first, _) in ranges.items()})
        pointer = self.addresses.pointer(leaf.output, list(ranges), env)
        loops = [var for var, stride in zip(ranges, pointer.strides, strict=True) if stride]
        elements = np.array(pointer.base, dtype=np.intp)
        for (first, behind), stride in zip(ranges.values(), pointer.strides, strict=True):
            if stride:
                elements = elements[..., None] + np.arange(behind - first) * stride
        return loops, elements

    def _first_step(self, leaf: Call) -> Call:
        """The call that starts sums, which counts as the same statement."""
        if id(leaf) not in self._firsts:
            self._keep.append(leaf)
            self._firsts[id(leaf)] = found = first_step(leaf)
            self._numbers[id(found)] = self._numbers[id(leaf)]
        return self._firsts[id(leaf)]

    def _settle(self, pointer: AccessPtr, extents: tuple[int, ...]) -> None:
        """Have the accumulators behind a pointer be there that nothing was added to, before they are read."""
        if self._unstarted is None or not self._unstarted.any or pointer.scope != "acc_buffer":
            return
        reach = [stride * (extent - 1) for stride, extent in zip(pointer.strides, extents, strict=True)]
        begin = pointer.base + sum(min(0, n) for n in reach)
        end = pointer.base + sum(max(0, n) for n in reach) + 1
        self.emitted.extend(self._unstarted.settled(begin, end))

    # --- one call --------------------------------------------------------------------------------

    def _emit_groups(self, leaf: Node, groups: list[_Group], env: _Env) -> None:
        for group in groups:
            self._emit_group(leaf, group, env)

    def _emit_group(self, leaf: Node, group: _Group, env: _Env) -> None:
        executed = group.executed.at(env)
        if executed.parts:
            written = _regions(leaf)[0].buffer
            if written in self._loaded:
                for copy in range(written.copies):
                    self._content.pop((written, copy), None)
        for settings, read, extents in executed.parts:
            for taps, step in settings:
                self._set(leaf, replace(self._acc_setting, taps=taps, step=step))
            for pointer in read:
                self._settle(pointer, extents)
        self.emitted.extend(executed.emitted)

    def _group(self, leaf: Node, loops: tuple[int, ...], parts: list[Ranges]) -> _Group:
        """Boxes that a call runs over, which are equally long along ``loops``."""
        of = self._decided(leaf, {var: None for part in parts for var in part})
        return _Group(parts, Derived(of, lambda env: self._executed(leaf, loops, parts, env)))

    def _decided(self, leaf: Node, inner: Mapping[IterVar, None]) -> list[Known[int]]:
        """The values that decide what a call over boxes of some loops is emitted as."""
        key = (id(leaf), tuple(inner))
        if key not in self._deciding:
            self._keep.append(leaf)
            regions = _regions(leaf)
            places = [self.addresses.place(one, self.addresses.elements[one.buffer]) for one in regions]
            exprs = [expr for place in places for expr in place.follows_from]
            if isinstance(leaf, Call):
                for place, region, dims in zip(places, regions, leaf.dims, strict=True):
                    if _has_taps(region, dims) and dims[0] is not None:
                        exprs.append(place.dimensions[dims[0]].extent)
            self._deciding[key] = values_of(without(inner.keys(), exprs))
        return self._deciding[key]

    def _emit(self, node: Node, env: _Env) -> None:
        if isinstance(node, Store):
            self._emit_store(node, env)
        else:
            self._emit_box(node, {}, (), env)

    def _executed(
        self, node: Node, loops: tuple[int, ...], parts: list[Ranges], around: Mapping[IterVar, int]
    ) -> _Executed:
        """A call over boxes."""
        found = []
        settled = []
        for ranges in parts:
            extents = tuple(behind - first for first, behind in ranges.values())
            if min(extents, default=1) <= 0:
                continue
            env = {**around, **{var: first for var, (first, _) in ranges.items()}}
            box = list(ranges)
            pointers = tuple(self.addresses.pointer(region, box, env) for region in _regions(node))
            settings: list[tuple[int, int]] = []
            if isinstance(node, Call):
                pointers, settings = self._tapped(node, pointers, env)
            settled.append((settings, pointers[isinstance(node, Call) :], extents))
            key = (id(node), extents, pointers, loops)
            known = self._known.get(key)
            if known is None:
                self._keep.append(node)
                target = Target(config=self.config, extents=extents, loops=loops)
                known = self._known[key] = self._from(node, self._call(node, target, pointers))
            found.append(known)
        joined = tuple(map(id, found))
        if joined not in self._joined:
            self._joined[joined] = _joined(found)
        return _Executed(self._joined[joined], settled)

    def _tapped(
        self, node: Call, pointers: tuple[AccessPtr, ...], env: _Env
    ) -> tuple[tuple[AccessPtr, ...], list[tuple[int, int]]]:
        """Pointers of a call, some to several blocks at once, and the taps and steps that the compute unit is
        set to for these."""
        found = []
        settings = []
        for pointer, region, dims in zip(pointers, _regions(node), node.dims, strict=True):
            if _has_taps(region, dims):
                taps, step = self.addresses.taps(region, dims[0], env)
                found.append(pointer._replace(taps=taps, step=step))
                settings.append((taps, step))
            else:
                found.append(pointer)
        return tuple(found), settings

    @property
    def _acc_setting(self) -> SetAcc:
        """What the compute unit is set to."""
        found = self._settings.get(SetAcc)
        return found if isinstance(found, SetAcc) else SetAcc()

    def _call(self, node: Node, target: Target, pointers: tuple[AccessPtr, ...]) -> Sequence[Emitted]:
        if isinstance(node, Alu) and node.op == "zero":
            return fill_zero(target, pointers[0])
        if isinstance(node, Alu):
            return alu(
                target, node.op, pointers[0], node.operand if isinstance(node.operand, int) else pointers[1]
            )
        assert isinstance(node, Call)
        of_tensor = dict(zip([node.intrin.op.tensor, *node.intrin.inputs], pointers, strict=False))
        emitted: list[Emitted] = []
        for call in node.intrin.calls(node.form):
            emitter = find_emitter(call.name, self.config)
            emitted.extend(emitter.emit(target, *(of_tensor[p.tensor] for p in call.pointers)))
        return emitted

    def _emit_clear(self, node: Clear) -> None:
        buffer = node.buffer
        assert buffer.scope is not None
        elements = buffer.copies * block_count(buffer, self.addresses.elements[buffer])
        pointer = AccessPtr(buffer.scope.name, self.addresses.bases[buffer], (1,))
        target = Target(config=self.config, extents=(elements,))
        self.emitted.extend(self._from(node, fill_zero(target, pointer)))

    def _emit_copy(self, node: Copy, env: _Env) -> None:
        plan, known = self._copies.get(id(node)) or self._planned(node)
        moved = known.at(env)
        if not moved.emitted:
            return
        if plan.store:
            if self.rereads:
                self._content = {p: c for p, c in self._content.items() if c[0] is not plan.dram.buffer}
            self._settle(moved.local, moved.extents)
            self.emitted.extend(moved.emitted)
            return
        where = (plan.local.buffer, moved.copy)
        if self._content.get(where) != moved.content:
            self._content[where] = moved.content
            self._set_for(node)
            self.first_loads.setdefault(plan.local.buffer, moved.emitted[0].instruction)
            self.emitted.extend(moved.emitted)

    def _moved(self, node: Copy, plan: _CopyPlan, env: Mapping[IterVar, int]) -> _Moved:
        """What a copy moves."""
        extents = plan.place.extents.at(env)
        if min(extents) <= 0:
            return _Moved()
        local = self.addresses.pointer_to(plan.local, plan.place, env)
        padding = tuple((evaluate(a, env), evaluate(b, env)) for a, b in node.padding)
        if padding:
            extents = tuple([n - a - b for n, (a, b) in zip(extents, padding, strict=True)])
        if padding or node.steps:
            zeros, steps = padding or ((0, 0),) * len(plan.strides), node.steps or (1,) * len(plan.strides)
            _check_whole_elements(node, plan.outside.dimensions, zeros, steps)
        start = self.addresses.outside(plan.dram, plan.outside, plan.tensor.strides, env)
        dram = AccessPtr("dram", start, plan.strides)
        target = Target(config=self.config, extents=extents, memory=plan.memory, padding=padding)
        emitted = dma_copy2d(target, *((dram, local) if plan.store else (local, dram)))
        return _Moved(
            emitted=[
                replace(one, part=plan.tensor.part) if dram_rows(one.instruction, self.config) else one
                for one in self._from(node, emitted)
            ],
            local=local,
            extents=extents,
            copy=evaluate(plan.local.copy, env),
            content=(plan.dram.buffer, extents, padding, dram, local),
        )

    def _planned(self, node: Copy) -> tuple[_CopyPlan, Known[_Moved]]:
        """What is the same whenever a copy is carried out, and what is not."""
        store = node.target.buffer.scope is None
        dram, local = (node.target, node.source) if store else (node.source, node.target)
        element = self.addresses.elements[local.buffer]
        memory, tensor = self._placed(dram.buffer, local.buffer, store=store)
        steps = node.steps or (1,) * len(tensor.strides)
        plan = _CopyPlan(
            store=store,
            dram=dram,
            local=local,
            place=self.addresses.place(local, element),
            outside=self.addresses.place(dram, element),
            memory=memory,
            tensor=tensor,
            strides=tuple(step * n for step, n in zip(steps, tensor.strides, strict=True)),
        )
        of = plan.place.variables | plan.outside.variables
        of |= {var for pair in node.padding for end in pair for var in variables(end)}
        self._keep.append(node)
        moved = Known(list(of), lambda env: self._moved(node, plan, env), _MOST_TRANSFERS)
        found = self._copies[id(node)] = plan, moved
        return found

    # --- the store unit --------------------------------------------------------------------------

    def _emit_store(self, node: Store, env: _Env) -> None:
        place = self.addresses.place(node.source, self.addresses.elements[node.source.buffer])
        extents = place.extents.at(env)
        if min(extents) <= 0:
            return
        tensor, to = self._finished(node.target, node, env)
        acc = self.addresses.pointer_to(node.source, place, env)
        first, *rest = node.ops
        assert isinstance(first.op, StoreRequantize)
        assert first.operand is not None
        parameters = self.addresses.place(first.operand, self.addresses.elements[first.operand.buffer])
        pointer = self.addresses.pointer_to(first.operand, parameters, env)
        own = parameters.extents.at(env)[0] > 1
        steps = tuple(pointer.strides[0] if own and d == first.dims[0] else 0 for d in range(len(extents)))
        par = pointer._replace(strides=steps)
        added, residual = None, None
        for one in rest:
            assert one.operand is not None
            added, residual = self._finished(one.operand, node, env)
        self._settle(acc, extents)
        self._set(node, *settings_of(node))
        if self.rereads:
            self._content = {p: c for p, c in self._content.items() if c[0] is not node.target.buffer}
        key = (id(node), tensor.part, added and added.part, to, acc, par, residual, extents)
        known = self._known.get(key)
        if known is None:
            target = Target(config=self.config, extents=extents)
            found = finish_tile(target, to, acc, par, residual)
            stores = [replace(one, part=tensor.part) for one in self._from(node, found[0])]
            loads = (
                [] if added is None else [replace(one, part=added.part) for one in self._from(node, found[1])]
            )
            pairs = zip(loads, stores, strict=True)
            known = self._known[key] = [one for pair in pairs for one in pair] if loads else stores
        self.emitted.extend(known)

    def _finished(self, region: Region, node: Store, env: _Env) -> tuple[DramTensor, AccessPtr]:
        """A tensor whose elements are as the accumulators', and the pointer to a part of it."""
        element = self.addresses.elements[node.source.buffer]
        tensor = self.dram.place(region.buffer, element, Memory.OUT)
        base = self.addresses.outside(region, self.addresses.place(region, element), tensor.strides, env)
        return tensor, AccessPtr("dram", base, tensor.strides)

    # --- settings --------------------------------------------------------------------------------

    def _set_for(self, node: Copy) -> None:
        """How bytes are read and centered on the way into a scratchpad, as a LOAD wants it."""
        scope = node.target.buffer.scope
        if scope is None or not self.config.post or node.source.buffer.dtype == "int32":
            return
        unsigned = node.source.buffer.dtype == "uint8"
        if scope.name == "inp_buffer":
            self._set(node, SetInp(zero=node.zero, unsigned=unsigned))
        elif scope.name == "acc_buffer":
            self._set(node, replace(self._acc_setting, unsigned=unsigned))

    def _set(self, node: Node, *settings: Set) -> None:
        """SETs where something else has been set before."""
        for one in settings:
            if self._settings.get(type(one), type(one)()) != one:
                self._settings[type(one)] = one
                self.emitted.extend(self._from(node, [Emitted(one)]))

    def _placed(self, dram: Buffer, local: Buffer, *, store: bool) -> tuple[IntEnum, DramTensor]:
        """The memory id of a transfer, and the tensor that it is from or to."""
        memory = transfer_memory(dram, local, store=store)
        return memory, self.dram.place(dram, self.addresses.elements[local], memory)


def _joined(found: Sequence[Sequence[Emitted]]) -> Sequence[Emitted]:
    """One GEMM or MAC instead of several that only differ in their micro-ops, if that is what they are."""
    every = [item for part in found for item in part]
    gemms = [item.instruction for item in every if isinstance(item.instruction, Gemm | Mac)]
    templates = {replace(gemm, uop_end=0) for gemm in gemms}
    single = all(len(part) == 1 for part in found) and len(gemms) == len(found)
    if len(found) == 1 or not single or len(templates) > 1:
        return every
    (template,) = templates
    uops = np.concatenate([item.uops for item in every])
    return [replace(every[0], instruction=replace(template, uop_end=len(uops)), uops=uops)]


def settings_of(node: Store) -> tuple[SetOut] | tuple[SetOut, SetSum]:
    """What the store unit has to be set to."""
    first, *rest = (one.op for one in node.ops)
    assert isinstance(first, StoreRequantize)
    out = SetOut(zero=first.zero, low=first.low, high=first.high)
    if not rest:
        return (out,)
    (added,) = rest
    assert isinstance(added, StoreAdd)
    operand = node.ops[1].operand
    out = replace(
        out,
        left_zero=added.zeros[0],
        right_zero=added.zeros[1],
        unsigned=operand is not None and operand.buffer.dtype == "uint8",
        offset=added.offset,
        shift=added.shift,
    )
    left, right = added.multipliers
    total = SetSum(
        left_multiplier=left, right_multiplier=right, zero=added.zero, low=added.low, high=added.high
    )
    return out, total


def _has_taps(region: Region, dims: Sequence[int | None]) -> bool:
    """Whether a call reads several blocks of a region at once, along the first of its dimensions."""
    assert region.buffer.scope is not None
    return len(dims) > len(region.buffer.scope.element)


def _regions(node: Node) -> tuple[Region, ...]:
    if isinstance(node, Call):
        return (node.output, *node.inputs)
    assert isinstance(node, Alu)
    return (node.target,) if isinstance(node.operand, int) else (node.target, node.operand)


def _with_known(form: Linear, ranges: Ranges, env: Mapping[IterVar, int]) -> Linear:
    """A form with all but the variables of ``ranges`` put in."""
    known = [(atom, factor) for atom, factor in form.terms if atom not in ranges]
    constant = form.constant + sum(factor * evaluate(atom, env) for atom, factor in known)
    return Linear(constant, tuple(term for term in form.terms if term[0] in ranges))


def _check_whole_elements(
    node: Copy, dimensions: list[Dimension], padding: Sequence[tuple[int, int]], steps: Sequence[int]
) -> None:
    """Refuse what a copy of whole elements cannot do along the dimensions that these are blocks of."""
    for d, (dimension, zeros, step) in enumerate(zip(dimensions, padding, steps, strict=True)):
        if dimension.width > 1 and (any(zeros) or step > 1):
            raise TensorizeError(
                f"{node.target.buffer.name} has padding or steps in dimension {d}, of which an element holds "
                f"{dimension.width}; dma_copy2d moves whole elements"
            )
