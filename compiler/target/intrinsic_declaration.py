"""Declared intrinsics: the computation of a hardware operation, the scopes of its operands, and its
lowering.

``machine_intrinsics.gemm`` is an example.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from msgspec import Struct

from accel.base.errors import ScheduleError, TensorizeError
from accel.compiler.expr.expression_data import expression_to_data
from accel.compiler.expr.scalar_expressions import reads
from accel.compiler.expr.tensor_expressions import Compute, Placeholder, Tensor

FORMS = ("compute", "reset", "update")


class OperandPtr(Struct, frozen=True):
    """Access to an operand in a lowering rule. The nest replaces it by a block."""

    tensor: Tensor
    mode: Literal["r", "w", "rw"]


class IntrinOperand(Struct, frozen=True):
    """The operand that a lowering rule receives."""

    tensor: Tensor

    def access_ptr(self, mode: str) -> OperandPtr:
        """Return access to read (``"r"``), write (``"w"``) or both (``"rw"``)."""
        if mode == "r":
            return OperandPtr(self.tensor, "r")
        if mode == "w":
            return OperandPtr(self.tensor, "w")
        if mode == "rw":
            return OperandPtr(self.tensor, "rw")
        raise TensorizeError(f"the access mode is {mode!r}; it must be 'r', 'w' or 'rw'")


class HardwareCall(Struct, frozen=True):
    name: str
    pointers: tuple[OperandPtr, ...]


def hardware_intrin(name: str, *pointers: OperandPtr) -> HardwareCall:
    """Call the emitter registered under ``name`` when instructions are emitted.

    Raises:
        TensorizeError: an argument is not a pointer of the lowering rule's operands.
    """
    for pointer in pointers:
        if not isinstance(pointer, OperandPtr):
            raise TensorizeError(f"{name} is given {pointer!r}; it takes pointers made by access_ptr")
    return HardwareCall(name, pointers)


@dataclass(frozen=True, kw_only=True, eq=False)
class Intrinsic:
    """Base of the intrinsics that loop nests are tensorized with."""

    name: str


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TensorIntrin(Intrinsic):
    """A declared intrinsic. Equality compares names, computations, calls and scopes, and operands by name.

    Attributes:
        op: its computation.
        inputs: its operands, in order of their first appearance.
        compute: calls that compute the whole.
        reset, update: for a reduction, calls that set the result to zero and that add to it.
        scopes: names of the memory scopes of output and inputs.
    """

    op: Compute
    inputs: tuple[Tensor, ...]
    compute: tuple[HardwareCall, ...]
    reset: tuple[HardwareCall, ...]
    update: tuple[HardwareCall, ...]
    scopes: Mapping[Tensor, str]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorIntrin):
            return NotImplemented
        return type(self) is type(other) and self._as_data() == other._as_data()

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def _as_data(self) -> tuple[Any, ...]:
        calls = [
            (form, call.name, [(pointer.tensor.name, pointer.mode) for pointer in call.pointers])
            for form in FORMS
            for call in self.calls(form)
        ]
        scopes = {tensor.name: scope for tensor, scope in self.scopes.items()}
        return self.name, expression_to_data([self.op.tensor]), calls, scopes

    def __repr__(self) -> str:
        operands = ", ".join(map(str, self.inputs))
        return f"{type(self).__name__}({self.name}: {self.op.tensor} of {operands})"

    def calls(self, form: str) -> tuple[HardwareCall, ...]:
        calls: tuple[HardwareCall, ...] = getattr(self, form)
        return calls

    def form_name(self, form: str) -> str:
        """Return the name under which nests show a form."""
        return "+".join(call.name for call in self.calls(form))


Lowered = HardwareCall | Sequence[HardwareCall] | None
LoweringRule = Callable[[Sequence[IntrinOperand], Sequence[IntrinOperand]], Lowered | tuple[Lowered, ...]]


def decl_tensor_intrin(
    op: Compute | Tensor,
    lower: LoweringRule,
    *,
    name: str | None = None,
    scopes: Mapping[Tensor, object] | None = None,
) -> TensorIntrin:
    """Declare an intrinsic by its computation and a lowering rule.

    Args:
        op: the tensor expression.
        lower: given the inputs and outputs, returns the hardware calls of its forms: ``compute``, or
            ``(compute, reset, update)`` for a reduction. A form may be several calls in a row.
        name: defaults to the name of the compute call.
        scopes: the memory scope of operands, by default that of the emitters.

    Raises:
        TensorizeError: the rule returns something else, or a reduction without reset and update.
    """
    computed = op.op if isinstance(op, Tensor) else op
    if not isinstance(computed, Compute | Placeholder):
        raise TensorizeError(f"an intrinsic is declared by {computed!r}; it must be what te.compute makes")
    if not isinstance(computed, Compute):
        raise TensorizeError(
            f"{computed.name} is a placeholder; an intrinsic is declared by what it computes"
        )
    inputs = tuple(dict.fromkeys(_placeholder(r.tensor) for r in reads(computed.body)))
    result = lower([IntrinOperand(t) for t in inputs], [IntrinOperand(computed.tensor)])
    forms = result if isinstance(result, tuple) and len(result) == len(FORMS) else (result, None, None)
    compute, reset, update = (_calls(form) for form in forms)
    if not compute:
        raise TensorizeError(f"the lowering rule of {computed.name} returns no call of hardware_intrin")
    if computed.reduce_axis and not (reset and update):
        raise TensorizeError(
            f"{computed.name} is a reduction; its lowering rule must return (compute, reset, update)"
        )
    return TensorIntrin(
        name=name or compute[0].name,
        op=computed,
        inputs=inputs,
        compute=compute,
        reset=reset,
        update=update,
        scopes={tensor: str(scope) for tensor, scope in (scopes or {}).items()},
    )


def _placeholder(tensor: object) -> Tensor:
    if isinstance(tensor, Tensor) and isinstance(tensor.op, Placeholder):
        return tensor
    raise TensorizeError("an intrinsic is one computation on placeholders; it reads another computation")


def _calls(form: Lowered) -> tuple[HardwareCall, ...]:
    if form is None:
        return ()
    calls = (form,) if isinstance(form, HardwareCall) else tuple(form)
    for call in calls:
        if not isinstance(call, HardwareCall):
            raise TensorizeError(f"a lowering rule returns {call!r}; it must return calls of hardware_intrin")
    return calls


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CopyIntrin(TensorIntrin):
    """It is declared on one element, and applied to boxes of any size."""


@dataclass(frozen=True, kw_only=True)
class AluIntrin(Intrinsic):
    """The vector ALU: any expression that a chain of in-place operations on accumulators computes."""

    block: tuple[int, int]
    """Rows and columns of an accumulator."""


@dataclass(frozen=True, kw_only=True)
class StoreIntrin(Intrinsic):
    """The store unit of machines with ``post=1``, which applies epilogues on the way to DRAM."""


def check_intrinsic(intrin: object) -> Intrinsic:
    if isinstance(intrin, Intrinsic):
        return intrin
    raise ScheduleError(
        f"{intrin!r} is not an intrinsic; declare one with decl_tensor_intrin or take a machine's"
    )
