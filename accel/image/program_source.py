"""The source of a program, as data in its file."""

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, Self

from msgspec import Struct, field

from accel.base.errors import ProgramError, nearest
from accel.base.json_types import kind_of
from accel.base.records import field_names

Step = dict[str, Any]
"""A step of a schedule: ``op`` and its arguments."""


class Options(Struct, frozen=True, kw_only=True):
    """The options of a schedule.

    Attributes:
        workload: for example ``conv2d``, or None for a user's schedule.
        fold: whether reset and bias are one step, if known.
    """

    workload: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    fold: bool | None = None
    without: tuple[str, ...] = ()

    def to_data(self) -> dict[str, Any]:
        named = {} if self.workload is None else {"workload": self.workload}
        fold = {} if self.fold is None else {"fold": self.fold}
        without = {"without": list(self.without)} if self.without else {}
        return named | dict(self.parameters) | fold | without

    @classmethod
    def from_data(cls, data: object) -> Self:
        values = _object("the options of the source are", data)
        workload, fold = values.pop("workload", None), values.pop("fold", None)
        if not isinstance(workload, str | None):
            raise ProgramError(f"the workload of the source is {workload!r}; it must be a name")
        if not isinstance(fold, bool | None):
            raise ProgramError(f"fold is {fold!r} in the source; it must be true or false")
        without = values.pop("without", [])
        if not isinstance(without, list) or not all(isinstance(name, str) for name in without):
            raise ProgramError(
                f"without is {without!r} in the source; it must be a list of names of reorder passes"
            )
        return cls(workload=workload, parameters=values, fold=fold, without=tuple(without))


PLAIN = "plain"


class Mapped(Struct, frozen=True, kw_only=True):
    """The expression computed instead of the requested one."""

    name: str
    expression: Mapping[str, Any]

    def to_data(self) -> dict[str, Any]:
        return {"name": self.name, "expression": self.expression}

    @classmethod
    def from_data(cls, data: object) -> Self:
        values = _object("the mapping of the source is", data)
        name, expression = values.get("name"), values.get("expression")
        if not isinstance(name, str) or not name:
            raise ProgramError(
                f"the mapping of the source has the name {reprlib.repr(name)}; it must be text"
            )
        return cls(name=name, expression=_object("the expression of the mapping is", expression))


class Source(Struct, frozen=True, kw_only=True):
    """Known source of a program.

    Attributes:
        expression: as :mod:`accel.compiler.expr.expression_data` writes it.
        mapped: the schedule's expression, if not ``expression``.
    """

    expression: Mapping[str, Any] | None = None
    schedule: Sequence[Step] | None = None
    options: Options | None = None
    mapped: Mapped | None = None

    def to_data(self) -> dict[str, Any]:
        data = {
            "expression": self.expression,
            "schedule": self.schedule,
            "options": None if self.options is None else self.options.to_data(),
            "mapped": None if self.mapped is None else self.mapped.to_data(),
        }
        return {name: value for name, value in data.items() if value is not None}

    @classmethod
    def from_data(cls, data: object) -> Self:
        """Expression and schedule are checked later."""
        values = _object("the source is", data)
        known = field_names(cls)
        for name in values:
            if name not in known:
                raise ProgramError(f"the source has {name!r}; {nearest(name, known)}")
        expression, schedule, options, mapped = (values.get(name) for name in known)
        if not isinstance(schedule, list | None):
            raise ProgramError(
                f"the schedule of the source is {kind_of(schedule)}; it must be a list of steps"
            )
        return cls(
            expression=None if expression is None else _object("the expression of the source is", expression),
            schedule=schedule,
            options=None if options is None else Options.from_data(options),
            mapped=None if mapped is None else Mapped.from_data(mapped),
        )


def _object(subject: str, data: object) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ProgramError(f"{subject} {kind_of(data)}; a JSON object is needed")
    return dict(data)
