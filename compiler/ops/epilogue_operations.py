"""Declared operations in the epilogue of an operator, and their form as text.

For example, ``"max=7,mul=channel"`` replaces each sum by ``max(sum, 7)``, and the result by ``mul(result,
operand0[channel])``. ``operand0`` is an input with one int32 value per channel, like the bias. Further inputs
have the names ``operand1``, ``operand2`` and so on.
"""

import re
import reprlib
from collections.abc import Sequence

from msgspec import Struct

from accel.base.arguments import check_integer
from accel.base.errors import ShapeError
from accel.compiler.expr.applied_operations import elementwise_operation
from accel.compiler.target.alu_epilogue import IMMEDIATE_HIGH, IMMEDIATE_LOW
from accel.core.alu_operations import Operation

CHANNEL = "channel"
"""The operand that is one value per channel."""
OPERATION_FORM = "NAME=N | NAME=channel"
"""The form of an operation as text."""


class EpilogueOperation(Struct, frozen=True):
    """``sum = operation(sum, operand)``.

    Attributes:
        operation: the name of a declared operation.
        operand: an immediate of the instruction, or :data:`CHANNEL`.
    """

    operation: str
    operand: int | str

    @property
    def reads_channels(self) -> bool:
        return self.operand == CHANNEL

    def __str__(self) -> str:
        return f"{self.operation}={self.operand}"


Operations = Sequence[tuple[Operation | str, int | str] | EpilogueOperation | str] | str
"""The argument of operators, see :func:`epilogue_operations`."""


def epilogue_operations(value: object) -> tuple[EpilogueOperation, ...]:
    """Return the operations of an operator's argument.

    Args:
        value: pairs, :class:`EpilogueOperation` objects, or texts such as ``"max=7"``. One text may have
            several operations, separated by commas.

    Raises:
        ConfigError: an operation is not declared.
        ShapeError: another form, an operation that crosses lanes, or an operand that does not fit the
            instruction.
    """
    if not isinstance(value, str | list | tuple):
        raise _wrong_form(value)
    found = list[EpilogueOperation]()
    for one in [value] if isinstance(value, str) else value:
        if isinstance(one, str):
            found += [_checked(*_divided(text)) for text in one.split(",")]
        elif isinstance(one, EpilogueOperation):
            found.append(_checked(one.operation, one.operand))
        elif isinstance(one, list | tuple) and len(one) == 2 and isinstance(one[0], str | Operation):
            found.append(_checked(*one))
        else:
            raise _wrong_form(one)
    return tuple(found)


def _divided(text: str) -> tuple[str, int | str]:
    name, equals, operand = (part.strip() for part in text.partition("="))
    if not equals or not name:
        raise _wrong_form(text)
    return name, int(operand) if re.fullmatch(r"[+-]?[0-9]{1,10}", operand) else operand


def _checked(operation: Operation | str, operand: object) -> EpilogueOperation:
    name = elementwise_operation(operation).name
    if isinstance(operand, str):
        if operand != CHANNEL:
            raise ShapeError(
                f"the operand of {name} is {reprlib.repr(operand)}; it must be a number, or {CHANNEL!r} "
                f"for one value per channel"
            )
        return EpilogueOperation(name, CHANNEL)
    number = check_integer(f"the operand of {name}", operand, least=IMMEDIATE_LOW, most=IMMEDIATE_HIGH)
    return EpilogueOperation(name, number)


def _wrong_form(value: object) -> ShapeError:
    return ShapeError(
        f"operations has {reprlib.repr(value)}; it must be pairs of an operation and its operand, as "
        f"('max', 7), or text of the form {OPERATION_FORM}"
    )
