"""Emission of copies between DRAM and scratchpads as LOADs and STOREs."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from accel.base.errors import TensorizeError
from accel.base.records import replace
from accel.compiler.codegen.block_addresses import Dimension, Place
from accel.compiler.codegen.dram_map import DramTensor, transfer_memory
from accel.compiler.codegen.emission_state import EmissionState
from accel.compiler.expr.linear_expressions import Known, evaluate, variables
from accel.compiler.expr.scalar_expressions import IterVar
from accel.compiler.nest.nest import Buffer, Copy, Region
from accel.compiler.target.builtin_emitters import dma_copy2d
from accel.compiler.target.emitter_registry import AccessPtr, Emitted, Target
from accel.core.config import Config
from accel.core.instruction_access import dram_rows
from accel.core.isa import SetAcc, SetInp, SetWgt

MAX_CACHED_TRANSFERS = 1 << 16
"""Per copy. Later iterations often transfer the same data again."""


class _CopyPlan(NamedTuple):
    """The part of a copy that is the same in all iterations.

    Attributes:
        dram_place: address of the DRAM region, in the scratchpad's elements.
        strides: DRAM elements from one copied block to the next along each dimension.
    """

    is_store: bool
    dram: Region
    local: Region
    place: Place
    dram_place: Place
    memory: IntEnum
    tensor: DramTensor
    strides: tuple[int, ...]


class _Transfer(NamedTuple):
    """A copy for fixed values of the loop variables.

    Attributes:
        content: the buffer's values afterwards, see ``BufferContents``.
    """

    emitted: Sequence[Emitted] = ()
    local: AccessPtr = AccessPtr("", 0, ())
    extents: tuple[int, ...] = ()
    copy: int = 0
    content: tuple[object, ...] = ()


class CopyEmission:
    """Emits copies into a state, except LOADs of data that their buffer holds already."""

    def __init__(self, state: EmissionState) -> None:
        self._state = state
        self._plans: dict[int, tuple[_CopyPlan, Known[_Transfer]]] = {}
        """By ``id`` of a copy."""

    def clear(self) -> None:
        self._plans.clear()

    def emit(self, node: Copy, env: Mapping[IterVar, int]) -> None:
        state = self._state
        plan, transfers = self._plans.get(id(node)) or self._plan(node)
        transfer = transfers.at(env)
        if not transfer.emitted:
            return
        if plan.is_store:
            state.stored(plan.dram.buffer)
            state.settle(transfer.local, transfer.extents)
            state.emitted.extend(transfer.emitted)
        elif state.contents.replace(plan.local.buffer, transfer.copy, transfer.content):
            self._emit_settings(node)
            state.emitted.extend(transfer.emitted)

    def reserve(self, node: Copy) -> None:
        """Reserve DRAM for an input that no iteration copies."""
        if node.source.buffer.scope is None:
            self._dram_tensor(node.source.buffer, node.target.buffer, is_store=False)

    def _plan(self, node: Copy) -> tuple[_CopyPlan, Known[_Transfer]]:
        state = self._state
        is_store = node.target.buffer.scope is None
        dram, local = (node.target, node.source) if is_store else (node.source, node.target)
        element = state.addresses.elements[local.buffer]
        memory, tensor = self._dram_tensor(dram.buffer, local.buffer, is_store=is_store)
        steps = node.strides or (1,) * len(tensor.strides)
        plan = _CopyPlan(
            is_store=is_store,
            dram=dram,
            local=local,
            place=state.addresses.place(local, element),
            dram_place=state.addresses.place(dram, element),
            memory=memory,
            tensor=tensor,
            strides=tuple(step * stride for step, stride in zip(steps, tensor.strides, strict=True)),
        )
        deciding = plan.place.variables | plan.dram_place.variables
        deciding |= {var for pair in node.padding for end in pair for var in variables(end)}
        transfers = Known(list(deciding), lambda env: self._transfer(node, plan, env), MAX_CACHED_TRANSFERS)
        found = self._plans[id(node)] = plan, transfers
        return found

    def _transfer(self, node: Copy, plan: _CopyPlan, env: Mapping[IterVar, int]) -> _Transfer:
        state = self._state
        extents = plan.place.extents.at(env)
        if min(extents) <= 0:
            return _Transfer()
        local = state.addresses.pointer_to(plan.local, plan.place, env)
        padding = tuple((evaluate(a, env), evaluate(b, env)) for a, b in node.padding)
        if padding:
            extents = tuple([n - a - b for n, (a, b) in zip(extents, padding, strict=True)])
        if padding or node.strides:
            zeros, steps = padding or ((0, 0),) * len(plan.strides), node.strides or (1,) * len(plan.strides)
            _check_whole_elements(node, plan.dram_place.dimensions, zeros, steps)
        start = state.addresses.outside(plan.dram, plan.dram_place, plan.tensor.strides, env)
        dram = AccessPtr("dram", start, plan.strides)
        target = Target(config=state.config, extents=extents, memory=plan.memory, padding=padding)
        emitted = dma_copy2d(target, *((dram, local) if plan.is_store else (local, dram)))
        return _Transfer(
            emitted=[
                replace(one, part=plan.tensor.part) if dram_rows(one.instruction, state.config) else one
                for one in state.statements.labelled(node, emitted)
            ],
            local=local,
            extents=extents,
            copy=evaluate(plan.local.set_index, env),
            content=(plan.dram.buffer, extents, padding, dram, local),
        )

    def _emit_settings(self, node: Copy) -> None:
        state, setting = self._state, operand_setting(node, self._state.config)
        if setting is not None:
            state.set(node, setting)
        elif _reads_bytes(node, state.config, "acc_buffer"):
            is_unsigned = node.source.buffer.dtype == "uint8"
            state.set(node, replace(state.setting(SetAcc), unsigned=is_unsigned))

    def _dram_tensor(self, dram: Buffer, local: Buffer, *, is_store: bool) -> tuple[IntEnum, DramTensor]:
        memory = transfer_memory(dram, local, store=is_store)
        return memory, self._state.dram.place(dram, self._state.addresses.elements[local], memory)


def operand_setting(node: Copy, config: Config) -> SetInp | SetWgt | None:
    """Return the zero point and type of an operand's bytes, or None if the copy loads no such bytes."""
    is_unsigned = node.source.buffer.dtype == "uint8"
    if _reads_bytes(node, config, "inp_buffer"):
        return SetInp(zero=node.zero_point, unsigned=is_unsigned)
    if config.wgt_zero and _reads_bytes(node, config, "wgt_buffer"):
        return SetWgt(zero=node.zero_point, unsigned=is_unsigned)
    return None


def _reads_bytes(node: Copy, config: Config, target: str) -> bool:
    scope = node.target.buffer.scope
    is_wide = node.source.buffer.dtype == "int32"
    return scope is not None and scope.name == target and bool(config.post) and not is_wide


def _check_whole_elements(
    node: Copy, dimensions: list[Dimension], padding: Sequence[tuple[int, int]], steps: Sequence[int]
) -> None:
    for d, (dimension, zeros, step) in enumerate(zip(dimensions, padding, steps, strict=True)):
        if dimension.width > 1 and (any(zeros) or step > 1):
            raise TensorizeError(
                f"{node.target.buffer.name} has padding or steps in dimension {d}, of which an element holds "
                f"{dimension.width}; dma_copy2d moves whole elements"
            )
