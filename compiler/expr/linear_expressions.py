"""Index expressions as sums of multiples of variables, their ranges and normal form.

``(yo*8 + yi)*2 + 1`` is the constant 1, 16 times ``yo`` and 2 times ``yi``.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Generic, NamedTuple, TypeVar

from accel.base.errors import ShapeError
from accel.compiler.expr.scalar_expressions import (
    Binary,
    Condition,
    Const,
    Expr,
    Guarded,
    IterVar,
    format_expr,
    rewrite,
    walk,
)


class Linear(NamedTuple):
    """``constant + sum(factor * atom)``. Atoms are variables or nonlinear. No factor is zero."""

    constant: int
    terms: tuple[tuple[Expr, int], ...]

    def factor(self, atom: Expr) -> int:
        return next((f for a, f in self.terms if a == atom), 0)

    def expr(self) -> Expr:
        """Return a readable form: ``yo*8+yi``."""
        result: Expr | None = None
        for atom, factor in self.terms:
            term: Expr = atom if abs(factor) == 1 else Binary("*", atom, Const(abs(factor)))
            if result is None:
                result = term if factor > 0 else Binary("*", atom, Const(factor))
            else:
                result = Binary("+" if factor > 0 else "-", result, term)
        if result is None:
            return Const(self.constant)
        if not self.constant:
            return result
        if self.terms[0][1] < 0 or all(f < 0 for _, f in self.terms):
            rest = Linear(0, self.terms)
            return _subtract(self.constant, rest)
        return Binary("+" if self.constant > 0 else "-", result, Const(abs(self.constant)))


def _subtract(constant: int, rest: Linear) -> Expr:
    result: Expr = Const(constant)
    for atom, factor in rest.terms:
        term: Expr = atom if abs(factor) == 1 else Binary("*", atom, Const(abs(factor)))
        result = Binary("+" if factor > 0 else "-", result, term)
    return result


def linear(expr: Expr) -> Linear:
    """The linear form. ``//``, ``%``, ``min``, ``max`` and products of variables become atoms."""
    if isinstance(expr, Const):
        return Linear(expr.value, ())
    if isinstance(expr, Binary):
        if expr.op in ("+", "-"):
            return _add(linear(expr.a), linear(expr.b), 1 if expr.op == "+" else -1)
        if expr.op == "*":
            a, b = linear(expr.a), linear(expr.b)
            if not a.terms:
                return _scale(b, a.constant)
            if not b.terms:
                return _scale(a, b.constant)
        simple = simplify(expr)
        if simple != expr:
            return linear(simple)
        return Linear(0, ((simple, 1),))
    return Linear(0, ((expr, 1),))


def _add(a: Linear, b: Linear, sign: int) -> Linear:
    terms = dict(a.terms)
    for atom, factor in b.terms:
        terms[atom] = terms.get(atom, 0) + sign * factor
    return Linear(a.constant + sign * b.constant, tuple((t, f) for t, f in terms.items() if f))


def _scale(a: Linear, factor: int) -> Linear:
    if not factor:
        return Linear(0, ())
    return Linear(a.constant * factor, tuple((t, f * factor) for t, f in a.terms))


def simplify(expr: Expr) -> Expr:
    """The shortest normal form of an index expression that the ranges of variables allow."""
    if not isinstance(expr, Binary):
        return expr
    if expr.op in ("+", "-", "*"):
        form = linear(expr) if expr.op != "*" else _product(expr)
        return form.expr()
    a, b = simplify(expr.a), simplify(expr.b)
    if isinstance(a, Const) and isinstance(b, Const):
        return Const(evaluate(Binary(expr.op, a, b), {}))
    if expr.op in ("min", "max"):
        return _simplify_choice(expr.op, a, b)
    if expr.op in ("//", "%") and isinstance(b, Const) and b.value > 0:
        return _simplify_division(expr.op, a, b.value)
    return Binary(expr.op, a, b)


def simplify_conditions(expr: Expr) -> Expr:
    """The same value with the conditions of its guards in normal form."""

    def change(node: Expr) -> Expr | None:
        if not isinstance(node, Guarded):
            return None
        conditions = tuple((simplify(a), simplify(b)) for a, b in node.conditions)
        return Guarded(simplify_conditions(node.value), conditions, node.otherwise)

    return rewrite(expr, change)


def _product(expr: Binary) -> Linear:
    a, b = linear(expr.a), linear(expr.b)
    if not a.terms:
        return _scale(b, a.constant)
    if not b.terms:
        return _scale(a, b.constant)
    return Linear(0, ((Binary("*", a.expr(), b.expr()), 1),))


def _simplify_choice(op: str, a: Expr, b: Expr) -> Expr:
    kept: list[Expr] = []
    for part in (*_alternatives(op, a), *_alternatives(op, b)):
        if not any(_decides(op, other, part) for other in kept):
            kept = [*(other for other in kept if not _decides(op, part, other)), part]
    return reduce(partial(Binary, op), kept)


def _alternatives(op: str, expr: Expr) -> list[Expr]:
    if isinstance(expr, Binary) and expr.op == op:
        return [*_alternatives(op, expr.a), *_alternatives(op, expr.b)]
    return [expr]


def _decides(op: str, a: Expr, b: Expr) -> bool:
    low, high = bounds(Binary("-", a, b))
    return high <= 0 if op == "min" else low >= 0


def _simplify_division(op: str, a: Expr, divisor: int) -> Expr:
    form = linear(a)
    whole = Linear(
        form.constant // divisor, tuple((t, f // divisor) for t, f in form.terms if f % divisor == 0)
    )
    rest = Linear(form.constant % divisor, tuple((t, f) for t, f in form.terms if f % divisor))
    low, high = bounds(rest.expr())
    if low >= 0 and high < divisor:
        return whole.expr() if op == "//" else rest.expr()
    if op == "//" and isinstance(a, Binary) and a.op == "min":
        return simplify(Binary("min", Binary("//", a.a, Const(divisor)), Binary("//", a.b, Const(divisor))))
    if op == "//":
        return _add(whole, Linear(0, ((Binary("//", rest.expr(), Const(divisor)), 1),)), 1).expr()
    return Binary("%", rest.expr(), Const(divisor))


def bounds(expr: Expr) -> tuple[int, int]:
    """The least and the greatest value over the ranges of independent variables."""
    if isinstance(expr, Const):
        return expr.value, expr.value
    if isinstance(expr, IterVar):
        return 0, expr.extent - 1
    if isinstance(expr, Binary):
        if expr.op in ("+", "-"):
            return _linear_bounds(linear(expr))
        (a, b), (c, d) = bounds(expr.a), bounds(expr.b)
        if expr.op == "min":
            return min(a, c), min(b, d)
        if expr.op == "max":
            return max(a, c), max(b, d)
        if expr.op == "*":
            corners = (a * c, a * d, b * c, b * d)
            return min(corners), max(corners)
        if expr.op == "//" and c == d and c > 0:
            return a // c, b // c
        if expr.op == "%" and c == d and c > 0:
            return (a % c, b % c) if a // c == b // c else (0, c - 1)
    raise ShapeError(
        f"the index has the term {format_expr(expr)}; it may use + - * min max // %, the last two by "
        f"positive constants"
    )


def margin(condition: Condition) -> Linear:
    """The expression that is nonnegative exactly where a condition holds."""
    below, limit = condition
    return linear(Binary("-", Binary("-", limit, below), Const(1)))


def margins_of(condition: Condition) -> list[Linear]:
    """The margins of a condition, one per alternative of a minimum on the right. All must hold."""
    below, limit = condition
    return [margin((below, part)) for part in _alternatives("min", limit)]


def holds_in_loops(condition: Condition, extents: Mapping[IterVar, Expr]) -> bool:
    """Whether a condition provably holds in all iterations.

    An extent may depend on outer loops: ``yo*8+yi < 100`` holds for ``yi`` below ``min(8, 100-yo*8)``.
    """
    return all(_is_never_negative(form, extents) for form in margins_of(condition))


def _is_never_negative(form: Linear, extents: Mapping[IterVar, Expr]) -> bool:
    if bounds(form.expr())[0] >= 0:
        return True
    for var, factor in form.terms:
        if not isinstance(var, IterVar) or factor > 0 or var not in extents:
            continue
        others = {one: extent for one, extent in extents.items() if one is not var}
        rest = Linear(form.constant - factor, tuple(term for term in form.terms if term[0] is not var))
        for extent in _alternatives("min", extents[var]):  # the last iteration is at most extent - 1
            if _is_never_negative(_add(rest, _scale(linear(extent), factor), 1), others):
                return True
    return False


def guarded_bounds(index: Expr, conditions: Sequence[Condition]) -> tuple[int, int]:
    """The smallest and the largest value where all conditions on the index itself hold."""
    low, high = bounds(index)
    for condition in conditions:
        rest = margin(condition)
        below = linear(Binary("-", rest.expr(), index))
        above = linear(Binary("+", rest.expr(), index))
        if not below.terms:
            low = max(low, -below.constant)
        if not above.terms:
            high = min(high, above.constant)
    return low, high


def _linear_bounds(form: Linear) -> tuple[int, int]:
    low = high = form.constant
    for atom, factor in form.terms:
        a, b = bounds(atom)
        low += min(factor * a, factor * b)
        high += max(factor * a, factor * b)
    return low, high


def variables(expr: Expr) -> list[IterVar]:
    return list(dict.fromkeys(node for node in walk(expr) if isinstance(node, IterVar)))


def evaluate(expr: Expr, values: Mapping[IterVar, int]) -> int:
    """Evaluate an index expression."""
    if isinstance(expr, Const):
        return expr.value
    if isinstance(expr, IterVar):
        return values[expr]
    assert isinstance(expr, Binary)
    a, b = evaluate(expr.a, values), evaluate(expr.b, values)
    if expr.op == "+":
        return a + b
    if expr.op == "-":
        return a - b
    if expr.op == "*":
        return a * b
    if expr.op == "//":
        return a // b
    if expr.op == "%":
        return a % b
    return min(a, b) if expr.op == "min" else max(a, b)


_MAX_REMEMBERED = 1 << 12

ValueT = TypeVar("ValueT")


class Known(Generic[ValueT]):
    """A cache of at most ``most`` results that depend on the values of the variables ``of``."""

    def __init__(
        self,
        of: Sequence[IterVar],
        find: Callable[[Mapping[IterVar, int]], ValueT],
        most: int = _MAX_REMEMBERED,
    ) -> None:
        self.variables = tuple(of)
        self._most = most
        self._find = find
        self._one = self.variables[0] if len(self.variables) == 1 else None
        self._found: dict[object, ValueT] = {}

    def at(self, values: Mapping[IterVar, int]) -> ValueT:
        key: object = None
        if self._one is not None:
            key = values[self._one]
        elif self.variables:
            key = tuple([values[var] for var in self.variables])
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= self._most:
                self._found.clear()
            found = self._found[key] = self._find(values)
        return found


class Derived(Generic[ValueT]):
    """A cache of results that depend only on some expressions, which many values of their variables share."""

    def __init__(self, of: Sequence[Known[int]], find: Callable[[Mapping[IterVar, int]], ValueT]) -> None:
        self._of = of
        self._find = find
        self._found: dict[tuple[int, ...], ValueT] = {}

    def at(self, values: Mapping[IterVar, int]) -> ValueT:
        key = tuple([one.at(values) for one in self._of])
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= _MAX_REMEMBERED:
                self._found.clear()
            found = self._found[key] = self._find(values)
        return found


def values_of(exprs: Iterable[Expr]) -> list[Known[int]]:
    return [value_of(expr) for expr in dict.fromkeys(exprs) if variables(expr)]


def without(inner: Collection[IterVar], exprs: Iterable[Expr]) -> Iterator[Expr]:
    """Replace each expression that uses ``inner`` variables by its other variables."""
    for expr in exprs:
        of = variables(expr)
        yield from [var for var in of if var not in inner] if any(var in inner for var in of) else [expr]


def value_of(expr: Expr) -> Known[int]:
    return Known(variables(expr), lambda values: evaluate(expr, values))


def ceil_div(expr: Expr, divisor: int) -> Expr:
    if isinstance(expr, Binary) and expr.op == "min":
        return simplify(Binary("min", ceil_div(expr.a, divisor), ceil_div(expr.b, divisor)))
    return simplify(Binary("//", Binary("+", expr, Const(divisor - 1)), Const(divisor)))


def at_zero(expr: Expr, inner: set[IterVar]) -> Expr:
    return simplify(
        rewrite(expr, lambda node: Const(0) if isinstance(node, IterVar) and node in inner else None)
    )
