"""The operations of ALU, each declared once.

A declaration says what an operation computes. The functional simulator, the manual, comments of instructions,
the compiler's names and the proof of the hardware follow from it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from accel.core.isa.opcodes import AluOp
from accel.core.lane_expressions import (
    Array,
    Lane,
    function_of,
    lane_input,
    maximum,
    minimum,
    select,
    ufunc_of,
    with_constant,
    wrapped,
)

LEFT, RIGHT = "x", "y"
"""Names of the operands: the accumulator that is written, and the second accumulator or the immediate."""
_BITS = 32


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operation on two int32 operands.

    Attributes:
        code: its number in the instruction.
        result: its result, an expression of int32.
        text: the result for the manual.
        symbol: the operator in comments of instructions, or empty for the name as a function.
        commutes: whether repeated application to one accumulator has one result in any order of the operands.
        repeated: the immediate whose single application equals applying an immediate several times.
        multiplies: whether it takes the slots of a multiplication.
    """

    code: AluOp
    result: Callable[[Lane, Lane], Lane]
    text: str
    symbol: str = ""
    commutes: bool = False
    repeated: Callable[[int, int], int] = field(default=lambda immediate, times: immediate)
    multiplies: bool = False

    @property
    def name(self) -> str:
        return self.code.name.lower()

    @cached_property
    def expression(self) -> Lane:
        """The result of the inputs :data:`LEFT` and :data:`RIGHT`."""
        return self.result(lane_input(LEFT, _BITS), lane_input(RIGHT, _BITS))

    @cached_property
    def function(self) -> Callable[[Array, Any], Array]:
        """The numpy function of two int32 operands."""
        return function_of(self.expression, (LEFT, RIGHT))

    def apply(self, target: Array, operand: Array | np.int32) -> None:
        """Replace ``target`` by the result of it and an operand, an array or an immediate."""
        if self._ufunc is not None:
            self._ufunc(target, operand, out=target)
        elif isinstance(operand, np.integer):
            target[...] = _of_immediate(self, int(operand))(target)
        else:
            target[...] = self.function(target, operand)

    @cached_property
    def _ufunc(self) -> np.ufunc | None:
        return ufunc_of(self.expression)


@lru_cache(maxsize=1024)
def _of_immediate(operation: Operation, immediate: int) -> Callable[[Array], Array]:
    return function_of(with_constant(operation.expression, RIGHT, immediate), (LEFT,))


def _signed(value: int) -> int:
    return (value + (1 << _BITS - 1)) % (1 << _BITS) - (1 << _BITS - 1)


def _shifted(x: Lane, y: Lane) -> Lane:
    """Right by y, or left by -y. By more bits than there are, the sign or zero is left."""
    left = x << minimum(maximum(-y, 0), _BITS - 1)
    right = x >> minimum(maximum(y, 0), _BITS - 1)
    return select(y < 0, select(y < 1 - _BITS, 0, wrapped(left, _BITS)), right)


OPERATIONS = (
    Operation(code=AluOp.MIN, result=minimum, text="min(x, y)", commutes=True),
    Operation(code=AluOp.MAX, result=maximum, text="max(x, y)", commutes=True),
    Operation(
        code=AluOp.ADD,
        result=lambda x, y: wrapped(x + y, _BITS),
        text="x + y",
        symbol="+",
        commutes=True,
        repeated=lambda immediate, times: _signed(immediate * times),
    ),
    Operation(
        code=AluOp.SHR,
        result=_shifted,
        text="x >> y; x << -y where y is negative",
        symbol=">>",
        repeated=lambda immediate, times: min(_BITS - 1, max(-_BITS, immediate * times)),
    ),
    Operation(
        code=AluOp.MUL,
        result=lambda x, y: wrapped(x * y, _BITS),
        text="x * y",
        symbol="*",
        commutes=True,
        repeated=lambda immediate, times: _signed(pow(immediate, times, 1 << _BITS)),
        multiplies=True,
    ),
)
"""All operations, by their numbers."""
BY_CODE: dict[int, Operation] = {one.code: one for one in OPERATIONS}
MULTIPLYING = frozenset(int(one.code) for one in OPERATIONS if one.multiplies)
"""Numbers of the operations that take the slots of a multiplication."""
