"""Addresses of scratchpad buffers, and of tensors, micro-ops and instructions in DRAM."""

from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property
from math import prod

import numpy as np
from msgspec import Struct, field

from accel.base.errors import ScheduleError
from accel.compiler.expr.scalar_expressions import BYTES
from accel.compiler.expr.tensor_expressions import Placeholder, Tensor, producers
from accel.compiler.nest.element_packing import Element, block_shape
from accel.compiler.nest.nest import Buffer
from accel.core.config import PAGE_BYTES, Config
from accel.core.isa import Load, Memory, Store, routes_of
from accel.image.dram_references import Part
from accel.image.packed_layout import PackedLayout, blocked


class DramTensor(Struct, frozen=True, kw_only=True, dict=True):
    """One packed copy of a tensor.

    Attributes:
        memory: the memory id by whose elements it is addressed.
    """

    buffer: Buffer
    layout: PackedLayout
    part: int
    memory: IntEnum
    element_bytes: int

    @cached_property
    def strides(self) -> tuple[int, ...]:
        return row_major(self.layout.packed[: len(self.layout.shape)])


def row_major(sizes: Sequence[int]) -> tuple[int, ...]:
    strides = []
    step = 1
    for size in reversed(sizes):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def check_room(outputs: Sequence[Tensor], config: Config) -> None:
    """Refuse tensors that fit DRAM in no layout, before time is spent on them."""
    kept = [t for t in producers(outputs) if isinstance(t.op, Placeholder) or t in outputs]
    least = PAGE_BYTES + sum(prod(t.shape) * np.dtype(t.dtype).itemsize for t in kept)
    if least > config.mem_size:
        raise ScheduleError(
            f"the program's tensors need at least {least} bytes of DRAM; the window has "
            f"mem_size={config.mem_size}"
        )


class DramMap(Struct):
    """The parts of DRAM, by default page-aligned from the second page on."""

    config: Config
    parts: list[Part] = field(default_factory=list)
    tensors: dict[tuple[Buffer, Element], DramTensor] = field(default_factory=dict)

    def add(self, name: str, size: int, *, alignment: int = PAGE_BYTES) -> int:
        step = max(alignment, PAGE_BYTES)
        reached = self.parts[-1].stop if self.parts else PAGE_BYTES
        part = Part(offset=-(-reached // step) * step, nbytes=size, name=name)
        if part.stop > self.config.mem_size:
            raise ScheduleError(
                f"the program's tensors need {part.stop} bytes of DRAM; the window has "
                f"mem_size={self.config.mem_size}"
            )
        self.parts.append(part)
        return len(self.parts) - 1

    def offset(self, tensor: DramTensor) -> int:
        return self.parts[tensor.part].offset

    def place(self, buffer: Buffer, element: Element, memory: IntEnum) -> DramTensor:
        key = (buffer, element)
        if key not in self.tensors:
            layout = blocked(buffer.shape, element)
            routes = routes_of(Store if memory is Memory.OUT else Load, self.config)
            size = routes[memory].element_bytes(self.config)
            part = self.add(buffer.name, layout.elements * size, alignment=size)
            self.tensors[key] = DramTensor(
                buffer=buffer, layout=layout, part=part, memory=memory, element_bytes=size
            )
        return self.tensors[key]


def transfer_memory(dram: Buffer, local: Buffer, *, store: bool) -> IntEnum:
    if store:
        return Memory.OUT if dram.dtype in BYTES else Memory.ACC
    assert local.scope is not None
    memory = local.scope.memory
    return Memory.ACC_8BIT if memory is Memory.ACC and dram.dtype in BYTES else memory


def place_buffers(locals_: Sequence[Buffer], elements: dict[Buffer, Element]) -> dict[Buffer, int]:
    """Return the first element of every scratchpad buffer."""
    used: dict[str, int] = {}
    bases: dict[Buffer, int] = {}
    for buffer in locals_:
        if buffer.scope is None:
            continue
        name = buffer.scope.name
        bases[buffer] = used.get(name, 0)
        used[name] = bases[buffer] + buffer.sets * block_count(buffer, elements[buffer])
        if used[name] > buffer.scope.depth and any(b.sets > 1 for b in locals_ if b.scope == buffer.scope):
            raise ScheduleError(_too_many_threads(locals_, elements, name))
        if used[name] > buffer.scope.depth:
            raise ScheduleError(
                f"{name} would hold {used[name]} elements with {buffer.name}{list(buffer.shape)}; "
                f"configuration {buffer.scope.config.name!r} has {buffer.scope.depth}: "
                f"use smaller tiles, or compute_at an inner loop"
            )
    return bases


def _too_many_threads(buffers: Sequence[Buffer], elements: dict[Buffer, Element], name: str) -> str:
    threads = max(buffer.sets for buffer in buffers)
    most = threads
    scopes = {b.scope.name: b.scope for b in buffers if b.scope is not None}
    for scope in scopes.values():
        here = [(b.sets, block_count(b, elements[b])) for b in buffers if b.scope == scope]
        shared = sum(count for copies, count in here if copies == 1)
        own = sum(count for copies, count in here if copies > 1)
        if own:
            most = min(most, max(0, scope.depth - shared) // own)
    config = next(iter(scopes.values())).config
    advice = f"at most {most} do" if most else "not even one does: use smaller tiles"
    return (
        f"{threads} virtual threads do not fit {name} of configuration {config.name!r} "
        f"with these tiles; {advice}"
    )


def block_count(buffer: Buffer, element: Element) -> int:
    """Return the elements of one copy of a buffer at its largest."""
    count = 1
    for size, width in zip(buffer.shape, block_shape(element, len(buffer.shape)), strict=True):
        count *= -(-size // width)
    return count
