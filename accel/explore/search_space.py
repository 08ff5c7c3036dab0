"""Spaces of machines."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any

from msgspec import Struct, field

from accel.base.errors import AccelError, SweepError
from accel.compiler.target.machine import machine
from accel.core.config import SPECS, Config
from accel.explore.machine_figures import MACHINE_FIGURES, machine_figures
from accel.explore.space_expressions import Expression, Number

Values = tuple[int, ...]
"""A point: values in the order of fields."""


class Domain(Struct, frozen=True):
    """Values of a field, in order.

    Attributes:
        is_ordered: whether neighbours are the next smaller and larger value, and not all others.
    """

    values: tuple[int, ...]
    is_ordered: bool = True

    def neighbours(self, value: int) -> tuple[int, ...]:
        if not self.is_ordered:
            return tuple(one for one in self.values if one != value)
        at = self.values.index(value)
        return tuple(self.values[n] for n in (at - 1, at + 1) if 0 <= n < len(self.values))


class Infeasible(Exception):
    """A point is no machine, or violates a constraint or limit."""


class Space(Struct, frozen=True, kw_only=True, dict=True):
    """A search space.

    Attributes:
        base: machine with all other fields.
        base_name: its name or file.
        derived: expressions for dependent fields.
        constraints: expressions that must not be 0.
        limits: maxima by figure, see :data:`~accel.explore.machine_figures.MACHINE_FIGURES`.
    """

    base: Config
    base_name: str
    domains: Mapping[str, Domain]
    derived: Mapping[str, Expression] = field(default_factory=dict)
    constraints: Sequence[Expression] = ()
    limits: Mapping[str, Number] = field(default_factory=dict)

    @cached_property
    def size(self) -> int:
        return math.prod(len(domain.values) for domain in self.domains.values())

    def points(self) -> Iterator[Values]:
        """The last field varies fastest."""
        yield from product(*(domain.values for domain in self.domains.values()))

    def neighbours(self, point: Values) -> Iterator[Values]:
        for at, (domain, value) in enumerate(zip(self.domains.values(), point, strict=True)):
            for other in domain.neighbours(value):
                yield (*point[:at], other, *point[at + 1 :])

    def exchanges(self, point: Values) -> Iterator[Values]:
        """Yield points with half of one ordered field, and twice another."""
        halved = list(self._scaled(point, 1, 2))
        doubled = list(self._scaled(point, 2, 1))
        for at, half in halved:
            for other, double in doubled:
                if at != other:
                    changed = list(point)
                    changed[at], changed[other] = half, double
                    yield tuple(changed)

    def _scaled(self, point: Values, numerator: int, denominator: int) -> Iterator[tuple[int, int]]:
        """Yield index and scaled value of ordered fields that have it."""
        for at, (domain, value) in enumerate(zip(self.domains.values(), point, strict=True)):
            scaled, rest = divmod(value * numerator, denominator)
            if domain.is_ordered and not rest and scaled != value and scaled in domain.values:
                yield at, scaled

    def settings(self, point: Values) -> dict[str, int]:
        """Return fields that differ from the base machine, with derived ones."""
        values = self._values(point)
        return {name: value for name, value in values.items() if value != getattr(self.base, name)}

    def config(self, point: Values) -> Config:
        """Return a point's machine, or raise :class:`Infeasible`."""
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
    """Return the values of names in constraints: fields and figures of a machine."""
    return {**{name: int(getattr(config, name)) for name in SPECS}, **machine_figures(config)}
