"""Emission of STOREs that requantize, on machines with ``post=1``."""

from collections.abc import Mapping, Sequence

from accel.base.records import replace
from accel.compiler.codegen.dram_map import DramTensor
from accel.compiler.codegen.emission_state import EmissionState
from accel.compiler.expr.epilogue_operators import StoreAdd, StoreLookUp, StoreMultiply, StoreRequantize
from accel.compiler.expr.scalar_expressions import IterVar
from accel.compiler.nest.nest import AppliedOp, Region, StoreEpilogue, has_channel_shape
from accel.compiler.target.emitter_registry import AccessPtr, Emitted, Target
from accel.compiler.target.store_emitter import emit_stores
from accel.core.isa import Memory, SetOut, SetSum


class StoreEmission:
    """Emits requantizing STOREs and LOADs of their residuals into a state."""

    def __init__(self, state: EmissionState) -> None:
        self._state = state
        self._instructions: dict[tuple[object, ...], Sequence[Emitted]] = {}
        """By statement, pointers and extents."""

    def emit(self, node: StoreEpilogue, env: Mapping[IterVar, int]) -> None:
        state = self._state
        place = state.addresses.place(node.source, state.addresses.elements[node.source.buffer])
        extents = place.extents.at(env)
        if min(extents) <= 0:
            return
        tensor, to = self._dram_pointer(node.target, node, env)
        acc = state.addresses.pointer_to(node.source, place, env)
        requantize, *rest = node.ops
        par = self._parameter_pointer(requantize, len(extents), env)
        added, residual = None, None
        table, is_product = None, False
        for one in rest:
            assert one.operand is not None
            if isinstance(one.op, StoreLookUp):
                table = self._table_element(one.operand, env)
                continue
            added, residual = self._dram_pointer(one.operand, node, env)
            residual = residual._replace(strides=_steps(one.operand, node.target, residual.strides))
            is_product = isinstance(one.op, StoreMultiply)
        state.settle(acc, extents)
        state.set(node, *store_settings(node))
        state.stored(node.target.buffer)
        key = (id(node), tensor.part, added and added.part, to, acc, par, table, residual, extents)
        if key not in self._instructions:
            target = Target(config=state.config, extents=extents)
            stores, loads = (
                state.statements.labelled(node, emitted)
                for emitted in emit_stores(target, to, acc, par, residual, table=table, is_product=is_product)
            )
            self._instructions[key] = _paired(
                [] if added is None else [replace(one, part=added.part) for one in loads],
                [replace(one, part=tensor.part) for one in stores],
            )
        state.emitted.extend(self._instructions[key])

    def _parameter_pointer(self, requantize: AppliedOp, rank: int, env: Mapping[IterVar, int]) -> AccessPtr:
        """Return a pointer with a stride per dimension of the tile, 0 except for channels with elements of
        their own."""
        assert isinstance(requantize.op, StoreRequantize)
        assert requantize.operand is not None
        addresses, region = self._state.addresses, requantize.operand
        place = addresses.place(region, addresses.elements[region.buffer])
        pointer = addresses.pointer_to(region, place, env)
        has_several = place.extents.at(env)[0] > 1
        strides = tuple(
            pointer.strides[0] if has_several and d == requantize.dims[0] else 0 for d in range(rank)
        )
        return pointer._replace(strides=strides)

    def _table_element(self, region: Region, env: Mapping[IterVar, int]) -> int:
        addresses = self._state.addresses
        place = addresses.place(region, addresses.elements[region.buffer])
        return addresses.pointer_to(region, place, env).base

    def _dram_pointer(
        self, region: Region, node: StoreEpilogue, env: Mapping[IterVar, int]
    ) -> tuple[DramTensor, AccessPtr]:
        state = self._state
        element = state.addresses.elements[node.source.buffer]
        tensor = state.dram.place(region.buffer, element, Memory.OUT)
        base = state.addresses.outside(region, state.addresses.place(region, element), tensor.strides, env)
        return tensor, AccessPtr("dram", base, tensor.strides)


def _steps(residual: Region, target: Region, strides: tuple[int, ...]) -> tuple[int, ...]:
    """Return a residual's strides for a tile: 0 for pixels that share one element."""
    if has_channel_shape(residual.buffer.shape, target.buffer.shape):
        return (*strides[:2], *(0 for _ in strides[2:]))
    return strides


def _paired(loads: list[Emitted], stores: list[Emitted]) -> list[Emitted]:
    if not loads:
        return stores
    return [one for pair in zip(loads, stores, strict=True) for one in pair]


def store_settings(node: StoreEpilogue) -> tuple[SetOut] | tuple[SetOut, SetSum]:
    """Return a tile's SET.OUT, and its SET.SUM if it has a residual."""
    first, *rest = node.ops
    assert isinstance(first.op, StoreRequantize)
    out = SetOut(zero=first.op.zero, low=first.op.low, high=first.op.high)
    if rest and isinstance(rest[0].op, StoreLookUp):
        out = replace(out, table_unsigned=len(rest) > 1 and rest[0].op.to == "uint8")
        del rest[0]
    if not rest:
        return (out,)
    (last,) = rest
    combined, operand = last.op, last.operand
    assert isinstance(combined, StoreAdd | StoreMultiply)
    out = replace(
        out,
        left_zero=combined.zeros[0],
        right_zero=combined.zeros[1],
        unsigned=operand is not None and operand.buffer.dtype == "uint8",
        offset=combined.offset,
        shift=combined.shift,
    )
    left, right = combined.multipliers if isinstance(combined, StoreAdd) else (combined.multiplier, 0)
    total = SetSum(
        left_multiplier=left, right_multiplier=right, zero=combined.zero, low=combined.low, high=combined.high
    )
    return out, total
