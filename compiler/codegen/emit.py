"""From a tensorized nest to instructions: the loops run once, at compile time.

A perfect nest of loops around one call, whose extents do not depend on one another, is a box that becomes
as few instructions as the hardware can express; all other loops, and those that ``unroll`` names, run one by
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from accel.base.errors import TensorizeError
from accel.compiler.codegen.memory import (
    DramMap,
    DramTensor,
    block_count,
    place_buffers,
    row_major,
    transfer_memory,
)
from accel.compiler.expr.guards import Ranges, alike, boxes
from accel.compiler.expr.linear import Linear, evaluate, linear, margins_of, variables
from accel.compiler.expr.scalar import Const, Expr, IterVar
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
    Post,
    Region,
    Widen,
    walk_nodes,
)
from accel.compiler.nest.packing import Element, buffer_elements, widths
from accel.compiler.nest.text import format_region
from accel.compiler.target.emitters import alu, dma_copy2d, fill_zero
from accel.compiler.target.registry import AccessPtr, Emitted, Target, find_emitter
from accel.core.access import dram_rows
from accel.core.config import Config
from accel.core.isa import Gemm, Instruction, Memory

Env = dict[IterVar, int]

_SHARE, _SHORT_LIST = 64, 16
"""Boxes become one instruction if that takes this share of the micro-op memory, or so few micro-ops that all
of them fit."""


class _Dimension(NamedTuple):
    """One dimension of a region: where it starts, in blocks of ``width``."""

    start: Linear
    extent: Expr
    width: int


class _Place(NamedTuple):
    """What of a region does not change from call to call."""

    dimensions: list[_Dimension]
    extents: _Blocks
    held: _Blocks
    strides: tuple[int, ...] | None
    """Of a scratchpad buffer that always holds as much, elements from block to block."""
    copy: Linear
    apart: int
    """Elements from one thread's copy of the buffer to the next."""


class _Blocks:
    """Sizes in blocks, along each dimension."""

    def __init__(self, sizes: Sequence[Expr], widths_: Sequence[int]) -> None:
        self._pairs = list(zip(sizes, widths_, strict=True))
        fixed = all(isinstance(size, Const) for size in sizes)
        self.fixed = self._evaluated({}) if fixed else None
        """If they are always the same."""

    def at(self, env: Env) -> tuple[int, ...]:
        return self._evaluated(env) if self.fixed is None else self.fixed

    def _evaluated(self, env: Env) -> tuple[int, ...]:
        return tuple(-(-evaluate(size, env) // width) for size, width in self._pairs)


class _Box(NamedTuple):
    """A perfect nest around one call, and what must not be negative for the call to take place.

    The first ``single`` loops run one by one.
    """

    loops: list[For]
    margins: list[Linear]
    leaf: Node
    single: int


_Group = tuple[tuple[int, ...], list[Ranges]]
"""Boxes, and the loops along which they are equally long, if that is known."""


class Emission:
    """The instructions of a nest, in program order, and the map of its memories."""

    def __init__(self, nest: Nest, config: Config) -> None:
        self.nest = nest
        self.config = config
        self.elements = buffer_elements(nest)
        self.bases = place_buffers(nest.locals, self.elements)
        self.dram = DramMap(config)
        copies = [node for node in walk_nodes(nest.body) if isinstance(node, Copy)]
        self._loaded = {node.target.buffer for node in copies}
        self.rereads = not self._loaded.isdisjoint(node.source.buffer for node in copies)
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
        self._places: dict[tuple[int, Element], _Place] = {}
        self._boxes: dict[int, _Box | None] = {}
        self._known_strides: dict[tuple[object, ...], tuple[int, ...]] = {}
        self._parts: dict[tuple[object, ...], list[_Group]] = {}
        self._joined: dict[tuple[int, ...], Sequence[Emitted]] = {}
        self._known: dict[tuple[object, ...], Sequence[Emitted]] = {}
        """What calls were emitted as; equal ones are the same instructions."""
        self._content: dict[tuple[Buffer, int], tuple[object, ...]] = {}
        """What was loaded last into each copy of a buffer, so that it need not be loaded again."""
        self._finishing: dict[int, list[Node]] = {}
        """By the id of what follows the sums of a tile, the nodes that carry it out."""
        self._keep: list[object] = []
        """What the caches above know by its id."""
        self._run(nest.body, {})
        for node in copies:  # what no iteration has loaded is an input nevertheless
            if node.source.buffer.scope is None:
                self._placed(node.source.buffer, node.target.buffer, store=False)

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

    def _run(self, nodes: Sequence[Node], env: Env) -> None:
        for node in nodes:
            if isinstance(node, For):
                self._run_loop(node, env)
            elif isinstance(node, Post):
                self._run(self._carried_out(node), env)
            elif isinstance(node, Clear):
                self._emit_clear(node)
            elif isinstance(node, Widen | Identity):
                continue  # the host's work
            elif isinstance(node, Guard):
                if all(evaluate(a, env) < evaluate(b, env) for a, b in node.conditions):
                    self._run(node.body, env)
            else:
                self._emit(node, env)

    def _run_loop(self, node: For, env: Env) -> None:
        box = self._box(node)
        if box is not None:
            self._run_singly(box, 0, env)
            return
        for value in range(evaluate(node.extent, env)):
            env[node.var] = value
            self._run(node.body, env)

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
            self._boxes[key] = (
                _Box(loops, margins, inner, self._single(loops, margins, inner)) if known else None
            )
        return self._boxes[key]

    def _single(self, loops: Sequence[For], margins: Sequence[Linear], leaf: Node) -> int:
        """How many outer loops cannot be a box: inner extents depend on them, or an address does not grow
        evenly with them."""
        places = [self._place(region, self.elements[region.buffer]) for region in _regions(leaf)]
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

    def _run_singly(self, box: _Box, done: int, env: Env) -> None:
        if done < box.single:
            loop = box.loops[done]
            for value in range(evaluate(loop.extent, env)):
                env[loop.var] = value
                self._run_singly(box, done + 1, env)
            return
        ranges = {loop.var: (0, evaluate(loop.extent, env)) for loop in box.loops[done:]}
        if any(behind <= 0 for _, behind in ranges.values()):
            return
        margins = tuple(_with_known(form, ranges, env) for form in box.margins)
        key = (id(box.leaf), tuple(ranges.values()), margins)
        if key not in self._parts:
            self._parts[key] = self._in_parts(ranges, margins)
        for loops, group in self._parts[key]:
            self._emit_group(box.leaf, loops, group, env)

    def _in_parts(self, ranges: Ranges, margins: Sequence[Linear]) -> list[_Group]:
        """The part of a box in which no margin is negative."""
        if not margins:
            return [((), [ranges])]
        parts = boxes(ranges, margins)
        depth = self.config.uop_depth
        most = min(depth, max(_SHORT_LIST, depth // _SHARE))
        together = alike(parts, most) if len(parts) > 1 and len(ranges) > 1 else []
        return together or [((), [part]) for part in parts]

    # --- one call --------------------------------------------------------------------------------

    def _emit_group(self, leaf: Node, loops: tuple[int, ...], group: list[Ranges], env: Env) -> None:
        """Boxes that are equally long along ``loops``."""
        found = [self._emitted(leaf, part, env, loops) for part in group]
        key = tuple(map(id, found))
        if key not in self._joined:
            self._joined[key] = _joined(found)
        self.emitted.extend(self._joined[key])

    def _emit(self, node: Node, env: Env) -> None:
        if isinstance(node, Copy):
            self._emit_copy(node, env)
        else:
            self.emitted.extend(self._emitted(node, {}, env, ()))

    def _emitted(self, node: Node, ranges: Ranges, env: Env, loops: tuple[int, ...]) -> Sequence[Emitted]:
        """The instructions of a call over a box."""
        extents = tuple(behind - first for first, behind in ranges.values())
        if min(extents, default=1) <= 0:
            return ()
        box = list(ranges)
        for var, (first, _) in ranges.items():
            env[var] = first
        regions = _regions(node)
        if regions[0].buffer in self._loaded:
            for copy in range(regions[0].buffer.copies):
                self._content.pop((regions[0].buffer, copy), None)
        pointers = tuple(self._pointer(region, box, env) for region in regions)
        key = (id(node), extents, pointers, loops)
        known = self._known.get(key)
        if known is None:
            self._keep.append(node)
            target = Target(config=self.config, extents=extents, loops=loops)
            known = self._known[key] = self._from(node, self._call(node, target, pointers))
        return known

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
        elements = buffer.copies * block_count(buffer, self.elements[buffer])
        pointer = AccessPtr(buffer.scope.name, self.bases[buffer], (1,))
        target = Target(config=self.config, extents=(elements,))
        self.emitted.extend(self._from(node, fill_zero(target, pointer)))

    def _emit_copy(self, node: Copy, env: Env) -> None:
        store = node.target.buffer.scope is None
        dram, local = (node.target, node.source) if store else (node.source, node.target)
        place = self._place(local, self.elements[local.buffer])
        extents = place.extents.at(env)
        if min(extents) <= 0:
            return
        memory, tensor = self._placed(dram.buffer, local.buffer, store=store)
        outside = self._place(dram, self.elements[local.buffer])
        local_ptr = self._pointer_to(local, place, env)
        strides = tensor.strides
        padding = tuple((evaluate(a, env), evaluate(b, env)) for a, b in node.padding)
        if padding:
            extents = tuple(n - a - b for n, (a, b) in zip(extents, padding, strict=True))
        if padding or node.steps:
            steps = node.steps or (1,) * len(strides)
            _check_whole_elements(node, outside.dimensions, padding or ((0, 0),) * len(strides), steps)
            strides = tuple(step * n for step, n in zip(steps, strides, strict=True))
        dram_ptr = AccessPtr("dram", self._base(dram, outside, tensor.strides, 0, env), strides)
        if store:
            if self.rereads:
                self._content = {p: c for p, c in self._content.items() if c[0] is not dram.buffer}
            self.emitted.extend(self._transfers(node, tensor, dram_ptr, local_ptr, extents, padding, memory))
            return
        where = (local.buffer, evaluate(local.copy, env))
        content = (dram.buffer, extents, padding, dram_ptr, local_ptr)
        if self._content.get(where) != content:
            self._content[where] = content
            loads = self._transfers(node, tensor, local_ptr, dram_ptr, extents, padding, memory)
            self.first_loads.setdefault(local.buffer, loads[0].instruction)
            self.emitted.extend(loads)

    def _placed(self, dram: Buffer, local: Buffer, *, store: bool) -> tuple[Memory, DramTensor]:
        """The memory id of a transfer, and the tensor that it is from or to."""
        memory = transfer_memory(dram, local, store=store)
        return memory, self.dram.place(dram, self.elements[local], memory)

    def _transfers(
        self,
        node: Copy,
        tensor: DramTensor,
        to: AccessPtr,
        source: AccessPtr,
        extents: tuple[int, ...],
        padding: tuple[tuple[int, int], ...],
        memory: Memory,
    ) -> Sequence[Emitted]:
        key = (id(node), tensor.part, to, source, extents, padding, memory)
        known = self._known.get(key)
        if known is None:
            target = Target(config=self.config, extents=extents, memory=memory, padding=padding)
            known = self._known[key] = [
                replace(one, part=tensor.part) if dram_rows(one.instruction, self.config) else one
                for one in self._from(node, dma_copy2d(target, to, source))
            ]
        return known

    # --- addresses -------------------------------------------------------------------------------

    def _pointer(self, region: Region, box: list[IterVar], env: Env) -> AccessPtr:
        """To the blocks that a region covers while the variables of ``box`` run."""
        place = self._place(region, self.elements[region.buffer])
        steps = self._strides(place, env)
        base = self._base(region, place, steps, self._copy_base(region, place, env), env)
        key = (id(region), steps, tuple(box))
        strides = self._known_strides.get(key)
        if strides is None:
            strides = self._known_strides[key] = tuple(self._stride(region, place, steps, var) for var in box)
        assert region.buffer.scope is not None
        return AccessPtr(region.buffer.scope.name, base, strides)

    @staticmethod
    def _stride(region: Region, place: _Place, steps: Sequence[int], var: IterVar) -> int:
        """Elements from one iteration of a loop to the next."""
        stride = place.copy.factor(var) * place.apart
        for dimension, step in zip(place.dimensions, steps, strict=True):
            factor = dimension.start.factor(var)
            if factor % dimension.width:
                raise _inside_element(region, dimension)
            stride += factor // dimension.width * step
        return stride

    def _pointer_to(self, region: Region, place: _Place, env: Env) -> AccessPtr:
        """To the blocks of a scratchpad region."""
        steps = self._strides(place, env)
        base = self._base(region, place, steps, self._copy_base(region, place, env), env)
        assert region.buffer.scope is not None
        return AccessPtr(region.buffer.scope.name, base, steps)

    def _base(self, region: Region, place: _Place, steps: Sequence[int], base: int, env: Env) -> int:
        for dimension, step in zip(place.dimensions, steps, strict=True):
            start = dimension.start.constant
            for atom, factor in dimension.start.terms:
                start += factor * (env[atom] if isinstance(atom, IterVar) else evaluate(atom, env))
            if start % dimension.width:
                raise _inside_element(region, dimension)
            base += start // dimension.width * step
        return base

    def _copy_base(self, region: Region, place: _Place, env: Env) -> int:
        """First element of the thread's copy of a scratchpad buffer."""
        base = self.bases[region.buffer]
        return base if region.buffer.copies == 1 else base + evaluate(region.copy, env) * place.apart

    def _strides(self, place: _Place, env: Env) -> tuple[int, ...]:
        """Elements from block to block along each dimension of what a buffer holds now."""
        return row_major(place.held.at(env)) if place.strides is None else place.strides

    def _place(self, region: Region, element: Element) -> _Place:
        """A region in blocks of an element's size."""
        key = (id(region), element)
        found = self._places.get(key)
        if found is None:
            self._keep.append(region)
            sizes = widths(element, len(region.ranges))
            held = _Blocks(region.held, sizes)
            found = self._places[key] = _Place(
                dimensions=[
                    _Dimension(linear(r.start), r.extent, w)
                    for r, w in zip(region.ranges, sizes, strict=True)
                ],
                extents=_Blocks([r.extent for r in region.ranges], sizes),
                held=held,
                strides=None if held.fixed is None else row_major(held.fixed),
                copy=linear(region.copy),
                apart=block_count(region.buffer, element),
            )
        return found


def _joined(found: Sequence[Sequence[Emitted]]) -> Sequence[Emitted]:
    """One GEMM instead of several that only differ in their micro-ops, if that is what they are."""
    every = [item for part in found for item in part]
    gemms = [item.instruction for item in every if isinstance(item.instruction, Gemm)]
    templates = {replace(gemm, uop_end=0) for gemm in gemms}
    single = all(len(part) == 1 for part in found) and len(gemms) == len(found)
    if len(found) == 1 or not single or len(templates) > 1:
        return every
    (template,) = templates
    uops = np.concatenate([item.uops for item in every])
    return [replace(every[0], instruction=replace(template, uop_end=len(uops)), uops=uops)]


def _regions(node: Node) -> tuple[Region, ...]:
    if isinstance(node, Call):
        return (node.output, *node.inputs)
    assert isinstance(node, Alu)
    return (node.target,) if isinstance(node.operand, int) else (node.target, node.operand)


def _with_known(form: Linear, ranges: Ranges, env: Env) -> Linear:
    """A form with all but the variables of ``ranges`` put in."""
    known = [(atom, factor) for atom, factor in form.terms if atom not in ranges]
    constant = form.constant + sum(factor * evaluate(atom, env) for atom, factor in known)
    return Linear(constant, tuple(term for term in form.terms if term[0] in ranges))


def _check_whole_elements(
    node: Copy, dimensions: list[_Dimension], padding: Sequence[tuple[int, int]], steps: Sequence[int]
) -> None:
    """Refuse what a copy of whole elements cannot do along the dimensions that these are blocks of."""
    for d, (dimension, zeros, step) in enumerate(zip(dimensions, padding, steps, strict=True)):
        if dimension.width > 1 and (any(zeros) or step > 1):
            raise TensorizeError(
                f"{node.target.buffer.name} has padding or steps in dimension {d}, of which an element holds "
                f"{dimension.width}; dma_copy2d moves whole elements"
            )


def _inside_element(region: Region, dimension: _Dimension) -> TensorizeError:
    return TensorizeError(
        f"{format_region(region)} starts inside an element of {dimension.width}; "
        f"tiles must be multiples of the intrinsic's block"
    )
