"""The operations of ALU, each declared once.

Simulator, timing, hardware and its proof, assembler, manual, and functions of tensor expressions follow from
a declaration. A machine has the operations that its field ``alu_ops`` names. VTA's are declared here.
:func:`register` adds others, for example::

    accel.register(accel.Operation(name="absdiff", result=lambda x, y: wrapped(absolute(x - y))))

An installed package declares operations as entry points of the group ``accel.operations``. They are loaded
when a machine names them.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import Any

import numpy as np

from accel.base.errors import AccelError, ConfigError, nearest
from accel.core.lane_evaluation import function_of, ufunc_of, with_constant
from accel.core.lane_expressions import (
    Array,
    Lane,
    crosses_lanes,
    lane_input,
    maximum,
    minimum,
    select,
    text_of,
    wrapped,
)

LEFT, RIGHT = "x", "y"
"""The operands: the accumulator that is written, and the second accumulator or the immediate."""
MAX_STAGES = 15
ENTRY_POINTS = "accel.operations"
_BITS = 32
INT32_MIN, INT32_MAX = -(1 << _BITS - 1), (1 << _BITS - 1) - 1


class AluOp(IntEnum):
    """Numbers of VTA's operations. Other operations have numbers from 5 on."""

    MIN = 0
    MAX = 1
    ADD = 2
    SHR = 3
    MUL = 4


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operation on two int32 operands, x and y.

    Attributes:
        name: in lower case. The mnemonic is ``ALU.NAME``.
        result: an expression of int32.
        text: the result for the manual, ``name(x, y)`` if empty.
        symbol: the operator in comments of instructions, empty for the name as a function.
        is_associative: whether ``f(f(x, a), b)`` equals ``f(x, f(a, b))``, so the simulator may combine
            operands first.
        repeated: the immediate whose single application equals applying an immediate several times, or None.
        stages: register stages of its hardware. With two, a micro-op takes three cycles, and its logic is cut
            into three parts of similar delay.
        slots_field: the timing field with the slots of a micro-op, instead of ``stages + 1``. VTA's
            multiplication has ``mul_slots``.
        datapath: hand-made hardware, or None for that of the expression. It gets the Amaranth module and the
            operands, signed values of 32 bits that are constant during a micro-op, and returns the low 32
            bits of the result in the last slot.

    Raises:
        AccelError: the name is malformed, or the result may leave int32.
    """

    name: str
    result: Callable[[Lane, Lane], Lane]
    text: str = ""
    symbol: str = ""
    is_associative: bool = False
    repeated: Callable[[int, int], int] | None = None
    stages: int = 0
    slots_field: str = ""
    datapath: Callable[[Any, Any, Any], Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"[a-z][a-z0-9_]{0,15}", self.name):
            raise AccelError(
                f"an operation is named {self.name!r}; a name has 1 to 16 letters a-z, digits and _, "
                f"and begins with a letter"
            )
        if not 0 <= self.stages <= MAX_STAGES:
            raise AccelError(
                f"operation {self.name!r} has {self.stages} stages; it must have 0 to {MAX_STAGES}"
            )
        low, high = self.expression.low, self.expression.high
        if low < INT32_MIN or high > INT32_MAX:
            raise AccelError(
                f"the result of operation {self.name!r} ranges from {low} to {high}; it must be int32: "
                f"end with wrapped(...) or saturated(...)"
            )

    def slots(self, config: object) -> int:
        """Return the slots of a micro-op on a machine."""
        return int(getattr(config, self.slots_field)) if self.slots_field else self.stages + 1

    @property
    def mnemonic(self) -> str:
        return self.name.upper()

    @property
    def description(self) -> str:
        """The result for the manual."""
        return self.text or f"{self.name}(x, y)"

    @cached_property
    def expression(self) -> Lane:
        """The result of the inputs :data:`LEFT` and :data:`RIGHT`."""
        return self.result(lane_input(LEFT, _BITS), lane_input(RIGHT, _BITS))

    @cached_property
    def crosses_lanes(self) -> bool:
        """Whether a lane's result depends on other lanes."""
        return crosses_lanes(self.expression)

    @cached_property
    def digest(self) -> str:
        """A hash of the expression and the stages, but not of hand-made hardware."""
        text = f"{self.name} stages={self.stages}\n{text_of(self.expression)}"
        return sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def function(self) -> Callable[[Array, Any], Array]:
        """The numpy function of two int32 operands, whose last dimension is the lanes of a row."""
        return function_of(self.expression, (LEFT, RIGHT))

    def apply(self, target: Array, operand: Array | np.int32) -> None:
        """Replace ``target`` by its result with an array or an immediate."""
        if self._ufunc is not None:
            self._ufunc(target, operand, out=target)
        elif isinstance(operand, np.integer):
            target[...] = _of_immediate(self, int(operand))(target)
        else:
            target[...] = self.function(target, operand)

    def apply_repeatedly(self, target: Array, immediate: int, times: int) -> None:
        """Apply an immediate several times."""
        if self.repeated is not None:
            immediate, times = self.repeated(immediate, times), 1
        for _ in range(times):
            self.apply(target, np.int32(immediate))

    @cached_property
    def _ufunc(self) -> np.ufunc | None:
        return ufunc_of(self.expression, (LEFT, RIGHT))


@lru_cache(maxsize=1024)
def _of_immediate(operation: Operation, immediate: int) -> Callable[[Array], Array]:
    return function_of(with_constant(operation.expression, RIGHT, immediate), (LEFT,))


def _signed(value: int) -> int:
    return (value + (1 << _BITS - 1)) % (1 << _BITS) - (1 << _BITS - 1)


def _shifted(x: Lane, y: Lane) -> Lane:
    """Shift right by y, or left by -y. A shift by 32 bits or more leaves the sign or zero."""
    left = x << minimum(maximum(-y, 0), _BITS - 1)
    right = x >> minimum(maximum(y, 0), _BITS - 1)
    return select(y < 0, select(y < 1 - _BITS, 0, wrapped(left, _BITS)), right)


STOCK = (
    Operation(
        name="min",
        result=minimum,
        text="min(x, y)",
        is_associative=True,
        repeated=lambda immediate, times: immediate,
    ),
    Operation(
        name="max",
        result=maximum,
        text="max(x, y)",
        is_associative=True,
        repeated=lambda immediate, times: immediate,
    ),
    Operation(
        name="add",
        result=lambda x, y: wrapped(x + y, _BITS),
        text="x + y",
        symbol="+",
        is_associative=True,
        repeated=lambda immediate, times: _signed(immediate * times),
    ),
    Operation(
        name="shr",
        result=_shifted,
        text="x >> y; x << -y where y is negative",
        symbol=">>",
        repeated=lambda immediate, times: min(_BITS - 1, max(-_BITS, immediate * times)),
    ),
    Operation(
        name="mul",
        result=lambda x, y: wrapped(x * y, _BITS),
        text="x * y",
        symbol="*",
        is_associative=True,
        repeated=lambda immediate, times: _signed(pow(immediate, times, 1 << _BITS)),
        slots_field="mul_slots",
    ),
)
"""VTA's operations, by their numbers."""
STOCK_NAMES = tuple(one.name for one in STOCK)
_REGISTERED: dict[str, Operation] = {one.name: one for one in STOCK}


def register(operation: Operation) -> Operation:
    """Add an operation that machines can name in ``alu_ops``.

    Raises:
        AccelError: another declaration has its name, or ``is_associative`` or ``repeated`` is wrong for
            random operands.
    """
    known = _REGISTERED.get(operation.name)
    if known is not None and known.digest != operation.digest:
        raise AccelError(f"another operation is registered as {operation.name!r}; choose another name")
    if known is None:
        check_properties(operation)
        _REGISTERED[operation.name] = operation
    return _REGISTERED[operation.name]


def check_properties(operation: Operation, *, trials: int = 256, seed: int = 0) -> None:
    """Check ``is_associative`` and ``repeated`` on random operands, or raise an AccelError."""
    rng = np.random.default_rng(seed)
    limit = 1 << _BITS - 1
    values = rng.integers(-limit, limit, (3, trials, 4)).astype(np.int32)
    small = rng.random(values.shape) < 0.5  # shifts and bounds differ for small numbers
    x, a, b = np.where(small, values % 64 - 32, values).astype(np.int32)
    f = operation.function
    if operation.is_associative:
        wrong = np.argwhere(f(f(x, a), b) != f(x, f(a, b)))
        if len(wrong):
            operands = ", ".join(str(one[tuple(wrong[0])]) for one in (x, a, b))
            raise AccelError(
                f"operation {operation.name!r} is declared as associative; with x, a, b = {operands}, "
                f"f(f(x, a), b) is not f(x, f(a, b))"
            )
    if operation.repeated is None:
        return
    for immediate in (*range(-40, 41), -(1 << 15), (1 << 15) - 1):
        for times in (1, 2, 5):
            wanted = x
            for _ in range(times):
                wanted = f(wanted, np.int32(immediate))
            if (f(x, np.int32(operation.repeated(immediate, times))) != wanted).any():
                raise AccelError(
                    f"operation {operation.name!r} declares repeated({immediate}, {times}) = "
                    f"{operation.repeated(immediate, times)}; applying {immediate} {times} times differs"
                )


def _entry_points(name: str) -> Iterable[Any]:
    from importlib.metadata import entry_points  # slow, and stock machines need none

    return entry_points(group=ENTRY_POINTS, name=name)


def find_operation(name: str) -> Operation:
    """Return an operation by name, also of installed packages.

    Raises:
        ConfigError: no such operation is declared.
    """
    if name not in _REGISTERED:
        for point in _entry_points(name):
            loaded = point.load()
            if not isinstance(loaded, Operation) or loaded.name != name:
                raise ConfigError(
                    f"entry point {point.value!r} declares operation {name!r}, and is {loaded!r:.80}"
                )
            register(loaded)
    if name not in _REGISTERED:
        raise ConfigError(
            f"operation {name!r} is not declared in this installation; {nearest(name, _REGISTERED)}; "
            f"accel.register or an entry point of {ENTRY_POINTS!r} declares others"
        )
    return _REGISTERED[name]


class OperationCode(int):
    """The number of an operation on one machine, with its name."""

    name: str

    def __new__(cls, value: int, name: str) -> "OperationCode":
        code = super().__new__(cls, value)
        code.name = name
        return code

    def __reduce__(self) -> tuple[Any, ...]:
        return OperationCode, (int(self), self.name)


@lru_cache(maxsize=256)
def operations_by_code(names: tuple[str, ...]) -> Mapping[int, Operation]:
    """Return the operations by number: VTA's, then the others in order."""
    codes = {name: AluOp[name.upper()] for name in STOCK_NAMES if name in names}
    others = (name for name in names if name not in STOCK_NAMES)
    numbered: dict[str, int] = {**codes}
    for number, name in enumerate(others, len(STOCK_NAMES)):
        numbered[name] = OperationCode(number, name.upper())
    return MappingProxyType({code: find_operation(name) for name, code in numbered.items()})


def operation_of_code(code: int) -> Operation:
    """A plain number is that of a VTA operation."""
    return find_operation(code.name.lower() if isinstance(code, OperationCode) else AluOp(code).name.lower())
