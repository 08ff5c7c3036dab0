"""Scalar expressions: elements of tensor expressions, and indices.

Nodes are immutable and compare by structure, iteration variables by identity. Arithmetic is int32 and wraps.
``cast`` to a shorter type also wraps, ``clip`` saturates.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy.typing as npt
from msgspec import Struct

from accel.base.arguments import plain_integer, plain_integers
from accel.base.errors import ShapeError
from accel.base.records import AbstractRecord

Dtype = Literal["int8", "uint8", "int16", "int32"]
"""A byte minus a zero point is int16. No tensor in DRAM has this type."""
DTYPES: tuple[Dtype, ...] = ("int8", "uint8", "int16", "int32")
BYTES = ("int8", "uint8")
"""Types of quantized values."""
AxisKind = Literal["space", "reduce"]

INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1


class Operand(Protocol):
    """A tensor, or a buffer in its place."""

    @property
    def name(self) -> str: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> Dtype: ...


class Expr:
    """Base of all nodes. Python's operators build new ones."""

    dtype: Dtype = "int32"

    def __add__(self, other: Expr | int) -> Expr:
        return Binary("+", self, as_expr(other))

    def __radd__(self, other: int) -> Expr:
        return Binary("+", as_expr(other), self)

    def __sub__(self, other: Expr | int) -> Expr:
        return Binary("-", self, as_expr(other))

    def __rsub__(self, other: int) -> Expr:
        return Binary("-", as_expr(other), self)

    def __mul__(self, other: Expr | int) -> Expr:
        return Binary("*", self, as_expr(other))

    def __rmul__(self, other: int) -> Expr:
        return Binary("*", as_expr(other), self)

    def __neg__(self) -> Expr:
        return Binary("*", self, Const(-1))

    def __floordiv__(self, other: Expr | int) -> Expr:
        return Binary("//", self, as_expr(other))

    def __mod__(self, other: Expr | int) -> Expr:
        return Binary("%", self, as_expr(other))

    def __rshift__(self, other: Expr | int) -> Expr:
        return Binary(">>", self, as_expr(other))

    def __lshift__(self, other: Expr | int) -> Expr:
        return Binary("<<", self, as_expr(other))

    def astype(self, dtype: str) -> Expr:
        return cast(self, dtype)

    def __bool__(self) -> bool:
        raise ShapeError("an expression has no truth value; it stands for all elements at once")


class Const(Expr, Struct, frozen=True):
    value: int


@dataclass(frozen=True, eq=False)
class IterVar(Expr):
    """A loop's variable, from 0 to ``extent - 1``."""

    name: str
    extent: int
    kind: AxisKind = "space"

    def __repr__(self) -> str:
        return f"IterVar({self.name}, {self.extent}, {self.kind})"


class Binary(Expr, Struct, frozen=True):
    """``a op b``. Division and remainder round down, ``>>`` is arithmetic."""

    op: str
    a: Expr
    b: Expr

    def __post_init__(self) -> None:
        if self.op not in PRECEDENCE:
            raise ShapeError(
                f"{self.op!r} is not an operation on expressions; valid are {' '.join(PRECEDENCE)}"
            )


class Cast(Expr, Struct, frozen=True):
    """The value modulo the range of ``to``."""

    value: Expr
    to: Dtype

    @property
    def dtype(self) -> Dtype:  # type: ignore[override]
        return self.to


class Read(Expr, Struct, frozen=True):
    tensor: Operand
    indices: tuple[Expr, ...]

    @property
    def dtype(self) -> Dtype:  # type: ignore[override]
        return self.tensor.dtype


class Sum(Expr, Struct, frozen=True):
    """``body`` summed over all values of ``axes``. Only a computation's outermost node may be one."""

    body: Expr
    axes: tuple[IterVar, ...]


Condition = tuple[Expr, Expr]
"""The condition holds if the first value is less than the second."""


class Guarded(Expr, Struct, frozen=True):
    """``value`` where all conditions hold, otherwise ``otherwise`` without evaluating ``value``."""

    value: Expr
    conditions: tuple[Condition, ...]
    otherwise: int = 0

    @property
    def dtype(self) -> Dtype:  # type: ignore[override]
        return self.value.dtype if self.otherwise == 0 else "int32"


class Composed(Expr, AbstractRecord, frozen=True):
    """A value with a name for its meaning."""

    @abstractmethod
    def plain(self) -> Expr: ...

    @abstractmethod
    def parts(self) -> tuple[Expr, ...]: ...

    @abstractmethod
    def rewritten(self, change: Callable[[Expr], Expr]) -> Expr: ...


class Function(Expr, AbstractRecord, frozen=True):
    """A function that int32 arithmetic cannot express. ``NAME`` names its kind in data."""

    NAME: ClassVar[str]

    @property
    def name(self) -> str:
        """The name in expressions, :attr:`NAME` unless a function has several."""
        return self.NAME

    @abstractmethod
    def parts(self) -> tuple[Expr, ...]: ...

    @abstractmethod
    def rewritten(self, change: Callable[[Expr], Expr]) -> Expr: ...

    @abstractmethod
    def values(self, *parts: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return its values for arrays of arguments that broadcast."""

    def settings(self) -> dict[str, Any]:
        """Return the parameters, for texts."""
        return {}


PRECEDENCE = {"min": 0, "max": 0, "<<": 1, ">>": 1, "+": 2, "-": 2, "*": 3, "//": 3, "%": 3}


_ASSOCIATIVE = {"+": ("+", "-"), "*": ("*",)}
"""By operation: those on its right that need no parentheses despite equal precedence."""


def as_expr(value: Expr | int) -> Expr:
    if isinstance(value, Expr):
        return value
    number = plain_integer(value)
    if number is None:
        raise ShapeError(f"{value!r} is a {type(value).__name__}; expressions hold integers only")
    if not INT32_MIN <= number <= INT32_MAX:
        raise ShapeError(f"the constant is {number}; it must fit int32")
    return Const(number)


def minimum(a: Expr | int, b: Expr | int) -> Expr:
    """Return the smaller of two values."""
    return Binary("min", as_expr(a), as_expr(b))


def maximum(a: Expr | int, b: Expr | int) -> Expr:
    """Return the larger of two values."""
    return Binary("max", as_expr(a), as_expr(b))


def clip(value: Expr | int, low: int, high: int) -> Expr:
    """Return ``value`` saturated to ``low..high``. For example, ``clip(300, -128, 127)`` is 127.

    Raises:
        ShapeError: ``low`` is above ``high``, or one is not an integer.
    """
    bounds = plain_integers((low, high))
    if bounds is None:
        raise ShapeError(f"clip has the range {low!r}..{high!r}; it must be of two integers")
    low, high = bounds
    if low > high:
        raise ShapeError(f"clip has the range {low}..{high}; it must not be empty")
    return minimum(maximum(value, low), high)


def cast(value: Expr | int, dtype: str) -> Expr:
    """Return the value's low bits as another type. For example, ``cast(300, "int8")`` is 44."""
    checked = check_dtype(dtype)
    expr = as_expr(value)
    return expr if expr.dtype == checked else Cast(expr, checked)


def check_dtype(dtype: str) -> Dtype:
    for known in DTYPES:
        if dtype == known:
            return known
    raise ShapeError(f"the dtype is {dtype!r}; it must be 'int8', 'uint8', 'int16' or 'int32'")


def children(expr: Expr) -> tuple[Expr, ...]:
    if isinstance(expr, Const | IterVar):  # most nodes
        return ()
    if isinstance(expr, Binary):
        return (expr.a, expr.b)
    if isinstance(expr, Cast):
        return (expr.value,)
    if isinstance(expr, Read):
        return expr.indices
    if isinstance(expr, Sum):
        return (expr.body,)
    if isinstance(expr, Guarded):
        return (expr.value, *(side for condition in expr.conditions for side in condition))
    return expr.parts() if isinstance(expr, Composed | Function) else ()


def walk(expr: Expr) -> Iterator[Expr]:
    left = [expr]
    while left:
        one = left.pop()
        yield one
        left.extend(reversed(children(one)))


def rewrite(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Replace every node for which ``change`` returns another, from the top down."""
    changed = change(expr)
    if changed is not None:
        return changed
    if isinstance(expr, Binary):
        return Binary(expr.op, rewrite(expr.a, change), rewrite(expr.b, change))
    if isinstance(expr, Cast):
        return Cast(rewrite(expr.value, change), expr.to)
    if isinstance(expr, Read):
        return Read(expr.tensor, tuple(rewrite(index, change) for index in expr.indices))
    if isinstance(expr, Sum):
        return Sum(rewrite(expr.body, change), expr.axes)
    if isinstance(expr, Guarded):
        conditions = tuple((rewrite(a, change), rewrite(b, change)) for a, b in expr.conditions)
        return Guarded(rewrite(expr.value, change), conditions, expr.otherwise)
    return (
        expr.rewritten(lambda part: rewrite(part, change)) if isinstance(expr, Composed | Function) else expr
    )


def substitute(expr: Expr, values: dict[IterVar, Expr]) -> Expr:
    return rewrite(expr, lambda node: values.get(node) if isinstance(node, IterVar) else None)


def arithmetic(expr: Expr) -> Expr:
    """Write all composed values as arithmetic."""
    return rewrite(expr, lambda node: arithmetic(node.plain()) if isinstance(node, Composed) else None)


def without_zero(expr: Expr) -> tuple[Expr, int | None]:
    """The value and its zero point, or ``expr`` and None."""
    if isinstance(expr, Cast) and expr.to == "int16":
        inner = expr.value
        if isinstance(inner, Binary) and inner.op == "-" and isinstance(inner.b, Const):
            return inner.a, inner.b.value
    return expr, None


def reads(expr: Expr) -> list[Read]:
    """All elements that ``expr`` reads, left to right, except in indices."""
    if isinstance(expr, Read):
        return [expr]
    return [read for child in children(expr) for read in reads(child)]


def format_expr(expr: Expr, brackets: int = -1) -> str:
    """Text in the notation of loop nests: ``A[ko*8+ki][yo*8+yi] * 2``."""
    if isinstance(expr, Const):
        return str(expr.value)
    if isinstance(expr, IterVar):
        return expr.name
    if isinstance(expr, Cast):
        return f"{expr.to}({format_expr(expr.value)})"
    if isinstance(expr, Read):
        return expr.tensor.name + "".join(f"[{format_expr(i)}]" for i in expr.indices)
    if isinstance(expr, Sum):
        axes = ", ".join(axis.name for axis in expr.axes)
        return f"sum({format_expr(expr.body)}, axis=[{axes}])"
    if isinstance(expr, Guarded):
        return f"({format_expr(expr.value)} if {format_conditions(expr.conditions)} else {expr.otherwise})"
    if isinstance(expr, Composed):
        return format_expr(expr.plain(), brackets)
    if isinstance(expr, Function):
        settings = [f"{name}={value}" for name, value in expr.settings().items()]
        return f"{expr.name}({', '.join([*map(format_expr, expr.parts()), *settings])})"
    assert isinstance(expr, Binary)
    if expr.op in ("min", "max"):
        return f"{expr.op}({format_expr(expr.a)}, {format_expr(expr.b)})"
    level = PRECEDENCE[expr.op]
    left = format_expr(expr.a, level)
    grouped = isinstance(expr.b, Binary) and expr.b.op not in _ASSOCIATIVE.get(expr.op, ())
    right = format_expr(expr.b, level + grouped)
    spaced = any(isinstance(node, Read) for node in walk(expr)) or expr.op in ("<<", ">>")
    text = f"{left} {expr.op} {right}" if spaced else f"{left}{expr.op}{right}"
    return f"({text})" if level < brackets else text


def format_conditions(conditions: Sequence[Condition]) -> str:
    """For example, ``yi < 100-yo*8 and xi < 4``."""
    return " and ".join(f"{format_expr(a)} < {format_expr(b)}" for a, b in conditions)
