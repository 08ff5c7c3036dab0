"""The machines that an exploration may propose."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

from accel.base.errors import AccelError, SweepError
from accel.compiler.target.machine import machine
from accel.core.config import SPECS, Config
from accel.explore.machine_figures import MACHINE_FIGURES, machine_figures
from accel.explore.space_expressions import Expression, Number

Values = tuple[int, ...]
"""The values of a point, in the order of the space's fields."""


@dataclass(frozen=True)
class Domain:
    """The values of a field, in order.

    Attributes:
        is_ordered: whether a value's neighbours are the next smaller and the next larger one. Otherwise all
            other values are neighbours.
    """

    values: tuple[int, ...]
    is_ordered: bool = True

    def neighbours(self, value: int) -> tuple[int, ...]:
        """Return the neighbours of one of the values."""
        if not self.is_ordered:
            return tuple(one for one in self.values if one != value)
        at = self.values.index(value)
        return tuple(self.values[n] for n in (at - 1, at + 1) if 0 <= n < len(self.values))


class Infeasible(Exception):
    """A point that violates a constraint or a limit, or is no machine. The message says why."""


@dataclass(frozen=True, kw_only=True)
class Space:
    """A search space.

    Attributes:
        base: the machine whose other fields all points have.
        base_name: its name or file, for commands.
        domains: values by field.
        derived: expressions for fields that follow from others.
        constraints: expressions that are not 0 for every machine of the space.
        limits: upper bounds by figure, see :data:`~accel.explore.machine_figures.MACHINE_FIGURES`.
    """

    base: Config
    base_name: str
    domains: Mapping[str, Domain]
    derived: Mapping[str, Expression] = field(default_factory=dict)
    constraints: Sequence[Expression] = ()
    limits: Mapping[str, Number] = field(default_factory=dict)

    @cached_property
    def size(self) -> int:
        """Number of combinations, including infeasible ones."""
        return math.prod(len(domain.values) for domain in self.domains.values())

    def points(self) -> Iterator[Values]:
        """Yield all combinations. The last field varies fastest."""
        yield from product(*(domain.values for domain in self.domains.values()))

    def neighbours(self, point: Values) -> Iterator[Values]:
        """Yield the points that differ in one field, by one step."""
        for at, (domain, value) in enumerate(zip(self.domains.values(), point, strict=True)):
            for other in domain.neighbours(value):
                yield (*point[:at], other, *point[at + 1 :])

    def exchanges(self, point: Values) -> Iterator[Values]:
        """Yield the points in which one ordered field has half of its value, and another one twice its
        value."""
        halved = list(self._scaled(point, 1, 2))
        doubled = list(self._scaled(point, 2, 1))
        for at, half in halved:
            for other, double in doubled:
                if at != other:
                    changed = list(point)
                    changed[at], changed[other] = half, double
                    yield tuple(changed)

    def _scaled(self, point: Values, numerator: int, denominator: int) -> Iterator[tuple[int, int]]:
        """Yield the index and the new value of each ordered field whose domain has the scaled value."""
        for at, (domain, value) in enumerate(zip(self.domains.values(), point, strict=True)):
            scaled, rest = divmod(value * numerator, denominator)
            if domain.is_ordered and not rest and scaled != value and scaled in domain.values:
                yield at, scaled

    def settings(self, point: Values) -> dict[str, int]:
        """Return a point's fields that differ from the base machine, with derived fields."""
        values = self._values(point)
        return {name: value for name, value in values.items() if value != getattr(self.base, name)}

    def config(self, point: Values) -> Config:
        """Return a point's machine.

        Raises:
            Infeasible: a constraint or a limit is violated, or the configuration is inconsistent.
        """
        try:
            config = machine(self.base, **self._values(point)).config
        except AccelError as error:
            raise Infeasible(str(error)) from None
        values = numbers_of(config)
        for constraint in self.constraints:
            try:
                holds = constraint.value(values)
            except SweepError as error:
                raise Infeasible(str(error)) from None
            if not holds:
                raise Infeasible(f"constraint {constraint.text!r} does not hold")
        for name, limit in self.limits.items():
            if name in MACHINE_FIGURES and values[name] > limit:
                raise Infeasible(f"{name} is {values[name]:,}; the limit is {limit:,}")
        return config

    def _values(self, point: Values) -> dict[str, int]:
        values = dict(zip(self.domains, point, strict=True))
        if not self.derived:
            return values
        known: dict[str, Any] = {**_fields(self.base), **values}
        for name, expression in self.derived.items():
            value = expression.value(known)
            if value != int(value):
                raise SweepError(
                    f"{name} is {value:g}; the expression {expression.text!r} must be an integer"
                )
            values[name] = known[name] = int(value)
        return values


def _fields(config: Config) -> dict[str, int]:
    return {name: int(value) for name, value in config.to_dict().items() if isinstance(value, int)}


def numbers_of(config: Config) -> dict[str, Number]:
    """Return all names of constraints with their values: every field, and every figure of a machine."""
    return {**{name: int(getattr(config, name)) for name in SPECS}, **machine_figures(config)}
