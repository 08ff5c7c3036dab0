"""Knobs: the choices that a template leaves open, and the constraints between them.

A template is a function that returns a schedule, and calls :func:`knob` for each choice
(docs/how-to/tune-a-schedule.md). :func:`run_template` chooses their values.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import permutations
from math import factorial
from typing import Any, TypeVar

from msgspec import Struct, field

from accel.base.errors import AccelError, ScheduleError

T = TypeVar("T")

_MAX_ORDERS = 5040
"""Orders of seven items."""


class PointExcluded(ScheduleError):
    """The values of some knobs violate a constraint of the template."""


class _AllDeclared(BaseException):
    """Ends the run of a template after its last knob or constraint."""


class Knob(Struct, frozen=True, kw_only=True):
    """A choice. Values of an order are tuples."""

    name: str
    values: tuple[Any, ...]


class _Run(Struct, kw_only=True):
    """A run of a template.

    Attributes:
        known: knobs of earlier runs, or None in the first run, which finds them.
        stop_after: number of declarations after which the run ends, or None.
        excludes: whether violated constraints end the run.
    """

    known: Mapping[str, Knob] | None
    choices: Mapping[str, Any]
    stop_after: int | None = None
    excludes: bool = True
    found: dict[str, Knob] = field(default_factory=dict)
    declared: int = 0

    def count(self) -> None:
        self.declared += 1
        if self.declared == self.stop_after:
            raise _AllDeclared


_run: ContextVar[_Run | None] = ContextVar("template run", default=None)


def knob(name: str, values: Sequence[T]) -> T:
    """Return the value of a choice.

    For example, ``te.knob("tile_k", [8, 16, 32])`` is 8 if the template is called directly.

    Args:
        name: unique in the template.
        values: distinct numbers, texts or flags, at least one. They must not depend on other knobs.

    Raises:
        ScheduleError: a name or values are unusable, or differ from those of the template's first run.
    """
    if not isinstance(name, str) or not name:
        raise ScheduleError(f"the name of a knob is {name!r}; it must be text")
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise ScheduleError(f"the values of knob {name!r} are {values!r}; it must be a list of values")
    for value in values:
        if not isinstance(value, int | float | str):
            raise ScheduleError(
                f"knob {name!r} has the value {value!r}; it must be a number, a text or a flag"
            )
    return _value(Knob(name=name, values=tuple(values)))  # type: ignore[no-any-return]


def knob_order(name: str, items: Sequence[T]) -> tuple[T, ...]:
    """Return an order of some items: ``te.knob_order("order", ["y", "x"])`` is ``("y", "x")`` or ``("x",
    "y")``.

    Args:
        name: unique in the template.
        items: two to seven distinct numbers or texts.

    Raises:
        ScheduleError: as :func:`knob`.
    """
    if isinstance(items, str) or not isinstance(items, Sequence) or len(items) < 2:
        raise ScheduleError(f"knob {name!r} orders {items!r}; it must be a list of at least two items")
    for item in items:
        if not isinstance(item, int | float | str):
            raise ScheduleError(f"knob {name!r} orders {item!r}; it must be a number or a text")
    if factorial(len(items)) > _MAX_ORDERS:
        raise ScheduleError(f"knob {name!r} orders {len(items)} items; at most 7 have few enough orders")
    return _value(Knob(name=name, values=tuple(permutations(items))))  # type: ignore[no-any-return]


def require(condition: object, message: str) -> None:
    """Exclude the point if a condition is false.

    For example, ``te.require(tile_m * tile_n <= 2048, "the tile must fit the accumulators")``. Constraints
    before the first scheduling operator save building the schedule.

    Raises:
        ScheduleError: the condition is false.
    """
    run = _run.get()
    if not condition and (run is None or run.excludes):
        raise PointExcluded(message)
    if run is not None:
        run.count()


def _value(one: Knob) -> Any:
    if len({(type(value), value) for value in one.values}) < len(one.values):
        raise ScheduleError(f"knob {one.name!r} has a value twice: {list(one.values)}")
    run = _run.get()
    if run is None:
        return one.values[0]
    if one.name in run.found:
        raise ScheduleError(f"knob {one.name!r} is declared twice")
    run.found[one.name] = one
    if run.known is not None:
        before = run.known.get(one.name)
        if before is None:
            raise ScheduleError(
                f"knob {one.name!r} is not declared in every run; declare all knobs at the start of the "
                f"template"
            )
        if before != one:
            raise ScheduleError(
                f"knob {one.name!r} has the values {list(one.values)}, and {list(before.values)} in another "
                f"run; they must not depend on other knobs"
            )
    value = run.choices.get(one.name, one.values[0])
    run.count()
    return value


@contextmanager
def _running(run: _Run) -> Iterator[None]:
    token = _run.set(run)
    try:
        yield
    finally:
        _run.reset(token)


class Declarations(Struct, frozen=True, kw_only=True):
    """A template's knobs, in order, and the number of knobs and constraints."""

    knobs: tuple[Knob, ...]
    count: int


def find_declarations(template: Callable[[], Any]) -> Declarations:
    """Return the knobs of a template, from a run in which constraints exclude nothing.

    Raises:
        ScheduleError: it declares none, or its run fails before it declares any.
    """
    run = _Run(known=None, choices={}, excludes=False)
    failure: AccelError | ArithmeticError | None = None
    with _running(run):
        try:
            template()
        except (AccelError, ArithmeticError) as error:  # the first values may be a point that cannot be built
            failure = error
    if not run.found:
        if failure is not None:
            raise ScheduleError(f"the template fails before it declares a knob: {failure}") from failure
        raise ScheduleError("the template declares no knobs; te.knob declares one")
    return Declarations(knobs=tuple(run.found.values()), count=run.declared)


def exclusion(
    template: Callable[[], Any], declarations: Declarations, choices: Mapping[str, Any]
) -> str | None:
    """Return the violated constraint's message, or None."""
    run = _Run(
        known={one.name: one for one in declarations.knobs}, choices=choices, stop_after=declarations.count
    )
    with _running(run):
        try:
            template()
        except _AllDeclared:
            return None
        except AccelError as error:
            return str(error)
    return None


def run_template(template: Callable[[], T], declarations: Declarations, choices: Mapping[str, Any]) -> T:
    """Run a template with values for its knobs.

    Raises:
        ScheduleError: a constraint excludes the point, or a step does not apply.
    """
    run = _Run(known={one.name: one for one in declarations.knobs}, choices=choices)
    with _running(run):
        return template()
