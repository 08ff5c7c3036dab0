"""Expressions over the fields of a machine, for example ``block_in * block_out <= 128``.

Python parses, and :class:`Expression` evaluates the syntax tree: only numbers, arithmetic, comparisons and a
few functions, so that a file cannot run code.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from accel.base.errors import SweepError, nearest

Number = int | float

_MAX_CHARACTERS = 1000
_MAX_MAGNITUDE = 1 << 128
"""Larger results are refused, since powers could exhaust memory."""
_MAX_EXPONENT = 128
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {"abs": abs, "max": max, "min": min}
FUNCTION_ARGUMENTS = {"abs": range(1, 2), "max": range(2, 100), "min": range(2, 100)}


class Expression:
    """``what`` describes the expression in messages.

    Raises:
        SweepError: no expression, an unknown name, or a forbidden operation.
    """

    def __init__(self, text: object, names: Mapping[str, object] | set[str], what: str) -> None:
        if not isinstance(text, str) or len(text) > _MAX_CHARACTERS:
            raise SweepError(f"{what} is {text!r}; it must be an expression in quotes, as 'batch <= 2'")
        self.text = text
        self._what = what
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise SweepError(f"{what} {text!r} is not an expression, as 'batch * block_in <= 32'") from None
        self.names: frozenset[str] = frozenset(self._check(self._tree, set(names)))

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def value(self, values: Mapping[str, Number]) -> Number:
        """Evaluate the expression.

        Raises:
            SweepError: a division by zero, or a result beyond 2**128.
        """
        try:
            found = self._value(self._tree, values)
        except ZeroDivisionError:
            raise SweepError(f"{self._what} {self.text!r} divides by zero") from None
        return int(found) if isinstance(found, bool) else found

    def _check(self, node: ast.AST, known: set[str]) -> set[str]:
        match node:
            case ast.Constant(value=int() | float()):
                return set()
            case ast.Name(id=name):
                if name not in known:
                    raise SweepError(f"{self._what} {self.text!r} names {name!r}; {nearest(name, known)}")
                return {name}
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return self._check(left, known) | self._check(right, known)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Not(), operand=operand):
                return self._check(operand, known)
            case ast.BoolOp(values=parts):
                return set().union(*(self._check(part, known) for part in parts))
            case ast.Compare(left=left, ops=ops, comparators=others) if all(
                type(op) in _COMPARISONS for op in ops
            ):
                return set().union(*(self._check(part, known) for part in (left, *others)))
            case ast.IfExp(test=test, body=body, orelse=other):
                return set().union(*(self._check(part, known) for part in (test, body, other)))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if (
                name in FUNCTIONS and len(arguments) in FUNCTION_ARGUMENTS[name]
            ):
                return set().union(*(self._check(part, known) for part in arguments))
            case _:
                raise SweepError(
                    f"{self._what} {self.text!r} has {ast.unparse(node)!r}; expressions have numbers, "
                    f"fields, arithmetic, comparisons, and, or, not, if, and {', '.join(sorted(FUNCTIONS))}"
                )

    def _value(self, node: ast.AST, values: Mapping[str, Number]) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return values[name]
            case ast.BinOp(left=left, op=op, right=right):
                return self._arithmetic(op, self._value(left, values), self._value(right, values))
            case ast.UnaryOp(op=op, operand=operand):
                value = self._value(operand, values)
                return not value if isinstance(op, ast.Not) else -value if isinstance(op, ast.USub) else value
            case ast.BoolOp(op=op, values=parts):
                decides = isinstance(op, ast.Or)
                return (
                    any(self._value(part, values) for part in parts)
                    if decides
                    else all(self._value(part, values) for part in parts)
                )
            case ast.Compare(left=left, ops=ops, comparators=others):
                terms = [self._value(part, values) for part in (left, *others)]
                return all(
                    _COMPARISONS[type(op)](one, two)
                    for op, one, two in zip(ops, terms, terms[1:], strict=False)
                )
            case ast.IfExp(test=test, body=body, orelse=other):
                return self._value(body if self._value(test, values) else other, values)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return FUNCTIONS[name](*(self._value(part, values) for part in arguments))
        raise AssertionError(ast.dump(node))  # _check() has refused it

    def _arithmetic(self, op: ast.operator, left: Any, right: Any) -> Any:
        if isinstance(op, ast.Pow) and not (abs(left) <= _MAX_MAGNITUDE and 0 <= right <= _MAX_EXPONENT):
            raise SweepError(
                f"{self._what} {self.text!r} has the exponent {right}; 0..{_MAX_EXPONENT} is allowed"
            )
        found = _ARITHMETIC[type(op)](left, right)
        if not abs(found) <= _MAX_MAGNITUDE:
            raise SweepError(f"{self._what} {self.text!r} exceeds 2**128")
        return found
