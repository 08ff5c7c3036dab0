"""The built-in emitters: GEMM, ALU and DMA instructions from access pointers.

They are pure functions of the machine, the box of blocks and the pointers. A box becomes as few instructions
as the two hardware loops and micro-ops allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from accel.base.errors import TensorizeError
from accel.base.records import replace
from accel.compiler.target.emitter_registry import AccessPtr, Emitted, Target, register_emitter
from accel.core.config import Config
from accel.core.config.alu_ops_field import alu_ops_text, checked_alu_ops
from accel.core.instruction_access import COLUMNS
from accel.core.isa import (
    PAD_BITS,
    SIZE_BITS,
    VARIANTS,
    Gemm,
    Load,
    Loops,
    Mac,
    Memory,
    Store,
    StoreAcc,
    UopArray,
    alu_of,
    class_slots,
    without_tokens,
)


def overwrites(config: Config) -> bool:
    """Whether a product can overwrite accumulators, so that sums need no reset."""
    return bool(config.post)


@register_emitter("fill_zero", ("acc_buffer",))
def fill_zero(target: Target, acc: AccessPtr) -> list[Emitted]:
    """``acc = 0``: GEMM with the reset flag."""
    return emit_loops(Gemm(reset=True), target, acc)


@register_emitter("fused_gemm_add", ("inp_buffer", "wgt_buffer", "acc_buffer"))
def fused_gemm_add(target: Target, inp: AccessPtr, wgt: AccessPtr, acc: AccessPtr) -> list[Emitted]:
    """``acc += inp @ wgt.T``."""
    return emit_loops(Gemm(), target, acc, inp, wgt)


@register_emitter("gemm", ("inp_buffer", "wgt_buffer", "acc_buffer"))
def gemm(target: Target, inp: AccessPtr, wgt: AccessPtr, acc: AccessPtr) -> list[Emitted]:
    """``acc = inp @ wgt.T``: reset, then update. Where products can overwrite, the first one does."""
    if not overwrites(target.config):
        return fill_zero(target, acc) + fused_gemm_add(target, inp, wgt, acc)
    return _overwriting(Mac(), Gemm(), target, acc, inp, wgt)


@register_emitter("fused_depthwise_add", ("inp_buffer", "wgt_buffer", "acc_buffer"))
def fused_depthwise_add(target: Target, inp: AccessPtr, wgt: AccessPtr, acc: AccessPtr) -> list[Emitted]:
    """``acc += sum of inp[tap] * wgt[:, tap]``, after a SET.ACC with the taps and the step of ``inp``."""
    return emit_loops(Mac(depthwise=True), target, acc, inp, wgt)


@register_emitter("depthwise", ("inp_buffer", "wgt_buffer", "acc_buffer"))
def depthwise(target: Target, inp: AccessPtr, wgt: AccessPtr, acc: AccessPtr) -> list[Emitted]:
    """``acc = sum of inp[tap] * wgt[:, tap]``, after the same SET.ACC."""
    template = Mac(depthwise=True)
    return _overwriting(template, template, target, acc, inp, wgt)


def _overwriting(
    first: Mac, others: Gemm | Mac, target: Target, acc: AccessPtr, inp: AccessPtr, wgt: AccessPtr
) -> list[Emitted]:
    extents = list(target.extents)
    summed = [n for n, stride in enumerate(acc.strides) if not stride]
    for n in summed:
        extents[n] = min(1, extents[n])
    starting = replace(first, overwrite=True)
    emitted = emit_loops(starting, replace(target, extents=tuple(extents)), acc, inp, wgt)
    for n in reversed(summed):
        extents[n] = max(0, target.extents[n] - 1)
        rest = replace(target, extents=tuple(extents))
        behind = (p._replace(base=p.base + p.strides[n]) for p in (acc, inp, wgt))
        emitted += emit_loops(others, rest, *behind)
        extents[n] = target.extents[n]
    return emitted


def alu(target: Target, op: str, acc: AccessPtr, operand: AccessPtr | int) -> list[Emitted]:
    """``acc = op(acc, operand)`` with an immediate or another accumulator.

    Raises:
        TensorizeError: the machine's ALU lacks the operation.
    """
    codes = target.config.operation_codes
    if op not in codes:
        raise missing_operations([op], target.config)
    if isinstance(operand, int):
        return emit_loops(alu_of(codes[op])(alu_op=codes[op], use_imm=True, imm=operand), target, acc)
    return emit_loops(alu_of(codes[op])(alu_op=codes[op]), target, acc, operand)


def missing_operations(names: Sequence[str], config: Config) -> TensorizeError:
    """Return the error for operations that a machine's ALU lacks. It names the ``alu_ops`` that has them."""
    needed = list(dict.fromkeys(names))
    right = alu_ops_text(checked_alu_ops([*config.alu_ops, *needed]))
    return TensorizeError(
        f"the program needs the ALU operation{'s' if len(needed) > 1 else ''} "
        f"{' and '.join(map(repr, needed))}; configuration {config.name!r} has "
        f"alu_ops={','.join(config.alu_ops)}: take a machine with alu_ops={right}"
    )


class _Axis(NamedTuple):
    extent: int
    strides: tuple[int, int, int]


def emit_loops(
    template: Loops,
    target: Target,
    dst: AccessPtr,
    src: AccessPtr | None = None,
    wgt: AccessPtr | None = None,
) -> list[Emitted]:
    """Return GEMM or ALU instructions that run ``template`` over a box of blocks."""
    pointers = (dst, src, wgt)
    base = tuple(p.base if p is not None else 0 for p in pointers)
    axes = []
    for number, extent in enumerate(target.extents):
        strides = tuple(p.strides[number] if p is not None else 0 for p in pointers)
        axes.append(_Axis(extent, strides))  # type: ignore[arg-type]
    if any(axis.extent == 0 for axis in axes):
        return []
    if target.loops and all(_fits_loop(axes[n], target.config) for n in target.loops):
        return _with_loops(template, target.config, base, axes, list(target.loops))  # type: ignore[arg-type]
    return _emit_box(template, target.config, base, _merged(axes))  # type: ignore[arg-type]


def _merged(axes: Sequence[_Axis]) -> list[_Axis]:
    """Join axes where one step of an outer axis is the end of an inner one."""
    merged: list[_Axis] = []
    for axis in axes:
        if axis.extent == 1:
            continue
        if merged and merged[-1].strides == tuple(s * axis.extent for s in axis.strides):
            merged[-1] = _Axis(merged[-1].extent * axis.extent, axis.strides)
        else:
            merged.append(axis)
    return merged


def _emit_box(
    template: Loops, config: Config, base: tuple[int, int, int], axes: list[_Axis]
) -> list[Emitted]:
    limit = _most_iterations(config)
    for number, axis in enumerate(axes):
        if axis.extent > limit:
            return _cut(template, config, base, axes, number)
    loops = sorted(
        (n for n, axis in enumerate(axes) if min(axis.strides) >= 0), key=lambda n: -axes[n].extent
    )[:2]
    return _with_loops(template, config, base, axes, sorted(loops))


def _fits_loop(axis: _Axis, config: Config) -> bool:
    return min(axis.strides) >= 0 and axis.extent <= _most_iterations(config)


def _with_loops(
    template: Loops, config: Config, base: tuple[int, int, int], axes: list[_Axis], loops: list[int]
) -> list[Emitted]:
    """Emit at most two axes as hardware loops, the others as micro-ops."""
    single = _Axis(1, (0, 0, 0))  # without the stride of its axis, which may exceed its field
    outer, inner = ([axes[n] if axes[n].extent > 1 else single for n in loops] + [single] * 2)[:2]
    values: dict[str, int] = {"iter_out": outer.extent, "iter_in": inner.extent}
    for operand in template.OPERANDS:
        column, (factor_out, factor_in) = COLUMNS[operand.name], operand.factors
        values |= {factor_out: outer.strides[column], factor_in: inner.strides[column]}
    uops = _listed_uops(base, [axis for number, axis in enumerate(axes) if number not in loops])
    lists = [uops[begin : begin + config.uop_depth] for begin in range(0, len(uops), config.uop_depth)]
    looped = replace(without_tokens(template), uop_begin=0, **values)  # type: ignore[arg-type]  # they are numbers, not flags
    return [Emitted(replace(looped, uop_end=len(part)), part) for part in lists]


def _most_iterations(config: Config) -> int:
    return next(slot.high for slot in class_slots(Gemm, config) if slot.name == "iter_out")


def _cut(
    template: Loops, config: Config, base: tuple[int, int, int], axes: list[_Axis], number: int
) -> list[Emitted]:
    axis, limit = axes[number], _most_iterations(config)
    emitted = []
    for begin in range(0, axis.extent, limit):
        piece = _Axis(min(limit, axis.extent - begin), axis.strides)
        start = tuple(b + begin * s for b, s in zip(base, axis.strides, strict=True))
        part = [*axes[:number], piece, *axes[number + 1 :]]
        emitted.extend(_emit_box(template, config, start, _merged(part)))  # type: ignore[arg-type]
    return emitted


def _listed_uops(base: tuple[int, int, int], axes: list[_Axis]) -> UopArray:
    """Return micro-ops for the axes that are no hardware loop, outermost first."""
    rows = np.array([base], dtype=np.int64)
    for axis in axes:
        steps = np.arange(axis.extent, dtype=np.int64)[:, None] * np.array(axis.strides, dtype=np.int64)
        rows = (rows[:, None] + steps).reshape(-1, 3)
    return rows


class _Dim(NamedTuple):
    """A dimension of a transfer: strides in both memories, and zeros around it in the scratchpad."""

    extent: int
    dram: int
    sram: int
    before: int = 0
    after: int = 0

    @property
    def size(self) -> int:
        return self.before + self.extent + self.after

    def bare(self, begin: int = 0, most: int | None = None) -> _Dim:
        rest = self.extent - begin
        return _Dim(rest if most is None else min(most, rest), self.dram, self.sram)


@register_emitter("dma_copy2d", (None, None))
def dma_copy2d(target: Target, to: AccessPtr, source: AccessPtr) -> list[Emitted]:
    """LOAD or STORE a box, depending on the scopes. The scratchpad side is contiguous.

    Raises:
        TensorizeError: both or neither side is in DRAM, the scratchpad's elements are not contiguous, or a
            STORE has padding.
    """
    if (to.scope == "dram") == (source.scope == "dram"):
        raise TensorizeError(f"dma_copy2d goes from {source.scope} to {to.scope}; one side must be dram")
    dram, sram = (to, source) if to.scope == "dram" else (source, to)
    padding = target.padding or ((0, 0),) * len(target.extents)
    if to.scope == "dram" and any(map(any, padding)):
        raise TensorizeError(f"dma_copy2d to dram has padding {padding}; only LOADs write zeros")
    boxes = zip(target.extents, dram.strides, sram.strides, padding, strict=True)
    dims = [_Dim(extent, a, b, *zeros) for extent, a, b, zeros in boxes]
    if not all(d.size for d in dims):
        return []
    if not all(d.extent for d in dims):
        return _zeros(target, sram.base, prod(d.size for d in dims))
    kind: type[Load] | type[Store] = _LOADS.get(target.memory, Load)
    if to.scope == "dram":
        kind = StoreAcc if target.memory == Memory.ACC else Store
    return list(_transfers(kind, target, dram.base, sram.base, _merged_dims(dims)))


_LOADS: Mapping[int, type[Load]] = {
    cls.MEMORY: cls for cls in VARIANTS.values() if issubclass(cls, Load) and cls.MEMORY is not None
}
"""LOADs into the store unit's scratchpads, by memory id."""
_LONGEST = (1 << SIZE_BITS) - 1
"""Largest x_size, y_size and x_stride."""
_WIDEST = (1 << PAD_BITS) - 1
"""Most zeros on one side."""


def _transfers(
    kind: type[Load] | type[Store], target: Target, dram: int, sram: int, dims: list[_Dim]
) -> list[Emitted]:
    """Emit one instruction if its fields can hold the box's rows, otherwise several."""
    row = dims[-1] if dims and dims[-1].dram == 1 else _Dim(1, 1, 1)
    outer = dims[:-1] if dims and dims[-1].dram == 1 else dims
    rows = outer[-1] if outer else _Dim(1, row.extent, row.size)
    zeros = (row.before, row.after, rows.before, rows.after)
    if outer and (len(outer) > 1 or max(row.extent, rows.dram) > _LONGEST or max(zeros[:2]) > _WIDEST):
        return _piecewise(kind, target, dram, sram, dims, 1)
    if dims and (dims[0].extent > _LONGEST or max(zeros) > _WIDEST):
        return _piecewise(kind, target, dram, sram, dims, _LONGEST)
    if row.sram != 1 or rows.sram != row.size:
        raise TensorizeError("dma_copy2d fills a scratchpad in order; its elements must follow one another")
    instruction = kind(
        memory=Memory.OUT if kind is Store else target.memory,
        sram_base=sram,
        dram_base=dram,
        y_size=rows.extent,
        x_size=row.extent,
        x_stride=rows.dram,
        x_pad_0=row.before,
        x_pad_1=row.after,
        y_pad_0=rows.before,
        y_pad_1=rows.after,
    )
    return [Emitted(instruction)]


def _piecewise(
    kind: type[Load] | type[Store], target: Target, dram: int, sram: int, dims: list[_Dim], step: int
) -> list[Emitted]:
    """Emit ``step`` iterations of the outermost dimension at a time, and the zeros around."""
    first, *rest = dims
    emitted = _zeros(target, sram, first.before * first.sram)
    start = sram + first.before * first.sram
    for n in range(0, first.extent, step):
        piece = _merged_dims([first.bare(n, step), *rest])
        emitted += _transfers(kind, target, dram + n * first.dram, start + n * first.sram, piece)
    return emitted + _zeros(target, start + first.extent * first.sram, first.after * first.sram)


def _zeros(target: Target, sram: int, count: int) -> list[Emitted]:
    return [
        Emitted(
            Load(memory=target.memory, sram_base=sram + begin, x_size=min(_LONGEST, count - begin), y_pad_0=1)
        )
        for begin in range(0, count, _LONGEST)
    ]


def _merged_dims(dims: list[_Dim]) -> list[_Dim]:
    merged: list[_Dim] = []
    for dim in dims:
        if dim.size == 1:
            continue
        if merged:
            outer = merged[-1]
            chained = outer.dram == dim.dram * dim.extent and outer.sram == dim.sram * dim.extent
            if chained and outer.size == outer.extent and dim.size == dim.extent:
                merged[-1] = _Dim(outer.extent * dim.extent, dim.dram, dim.sram)
                continue
        merged.append(dim)
    return merged
