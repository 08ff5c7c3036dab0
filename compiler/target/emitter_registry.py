"""Emitters by name. An emitter ``emit(target, *pointers)`` turns calls of an intrinsic into instructions.

Names of the built-in ones contain the machine's geometry.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np
from msgspec import Struct

from accel.base.errors import TensorizeError, nearest
from accel.compiler.expr.tensor_expressions import Tensor
from accel.compiler.target.intrinsic_declaration import TensorIntrin
from accel.core.config import Config
from accel.core.isa import Instruction, UopArray
from accel.image.dram_references import NO_PART


class AccessPtr(NamedTuple):
    """Access to blocks of one operand, in elements of its memory.

    Attributes:
        scope: ``inp_buffer``, ``wgt_buffer``, ``acc_buffer`` or ``dram``.
        base: element of the first block.
        strides: elements from block to block along each axis of the target's box.
        taps: blocks that are read together each time.
        step: elements from one of them to the next.
    """

    scope: str
    base: int
    strides: tuple[int, ...]
    taps: int = 1
    step: int = 0


@dataclass(frozen=True, kw_only=True)
class Target:
    """The target of an emitter.

    Attributes:
        config: the machine.
        extents: the box of blocks over which the call is repeated, outermost axis first.
        memory: the memory id of a transfer.
        padding: per axis of the box, zeros that a LOAD writes before and after it, or empty.
        loops: the axes that hardware loops iterate over. If empty, the emitter chooses.
    """

    config: Config
    extents: tuple[int, ...]
    memory: int = 0
    padding: tuple[tuple[int, int], ...] = ()
    loops: tuple[int, ...] = ()


@dataclass(frozen=True)
class Emitted:
    """An instruction. GEMM and ALU have the micro-ops (dst, src, wgt) that they run.

    Until the micro-ops have an address, ``uop_begin`` is zero and ``uop_end`` their number. Until the
    accessed part of DRAM has one, ``dram_base`` counts from its start. Emitters leave open ``part``, the
    number of that part, and ``statement``, the number of the nest's statement.
    """

    instruction: Instruction
    uops: UopArray = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    part: int = NO_PART
    statement: int = -1


Emit = Callable[..., Sequence[Emitted]]
EmitT = TypeVar("EmitT", bound=Emit)


class Emitter(Struct, frozen=True):
    name: str
    scopes: tuple[str | None, ...]
    emit: Emit


_REGISTERED: dict[str, Emitter] = {}


def register_emitter(name: str, scopes: Sequence[str | None]) -> Callable[[EmitT], EmitT]:
    """Make ``emit(target, *pointers)`` available to ``hardware_intrin(name, ...)``, as a decorator.

    Args:
        scopes: the memory scope of each pointer, or None for any.

    Raises:
        TensorizeError: the name is taken by another function.
    """

    def register(emit: EmitT) -> EmitT:
        known = _REGISTERED.get(name)
        if known is not None and known.emit is not emit:
            raise TensorizeError(f"an emitter named {name!r} is registered already; choose another name")
        _REGISTERED[name] = Emitter(name, tuple(scopes), emit)
        return emit

    return register


def find_emitter(name: str, config: Config) -> Emitter:
    """Raise a TensorizeError if there is none."""
    generic = name.replace(f"gemm{config.block_name}", "gemm")
    found = _REGISTERED.get(name) or _REGISTERED.get(generic)
    if found is None:
        names = [n.replace("gemm", f"gemm{config.block_name}") for n in _REGISTERED]
        raise TensorizeError(
            f"no emitter is registered as {name!r} for configuration {config.name!r}; {nearest(name, names)}"
        )
    return found


def operand_scopes(intrin: TensorIntrin, config: Config) -> dict[Tensor, str]:
    """Return the memory scopes of an intrinsic's operands: as declared, or as its emitters expect."""
    scopes: dict[Tensor, str] = {}
    for form in ("compute", "reset", "update"):
        for call in intrin.calls(form):
            emitter = find_emitter(call.name, config)
            if len(emitter.scopes) != len(call.pointers):
                raise TensorizeError(
                    f"{call.name} is given {len(call.pointers)} pointers; it takes {len(emitter.scopes)}"
                )
            for pointer, scope in zip(call.pointers, emitter.scopes, strict=True):
                if scope is not None:
                    scopes[pointer.tensor] = scope
    return scopes | dict(intrin.scopes)
