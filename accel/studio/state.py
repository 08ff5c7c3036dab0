"""What the studio shows a view of: workload, machine and schedule, as plain data that a link can hold."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from accel.base.errors import AccelError, ShapeError, nearest
from accel.base.plain import kind_of
from accel.compiler.mappings.mapping import AUTO
from accel.compiler.operators.operator import Operator
from accel.compiler.operators.parameter import Joint, Kind, Parameter
from accel.compiler.operators.registry import operator_of
from accel.compiler.ops.workload import Workload
from accel.core.config import NAMED, Config
from accel.image.source import Step

DEFAULT_MACHINE = "vta"
_LONGEST = 400
"""Steps of a schedule, and parameters, at most."""


@dataclass(frozen=True, kw_only=True)
class State:
    """What is looked at.

    Attributes:
        workload: an operator's name; empty where a file is looked at.
        file: the name under which the studio knows a network or a program; empty where there is none.
        program: of a network with several programs, the number of that which is drawn, from 1; 0 for all
            of them, one behind the other.
        parameters: of the operator, by its names; those that are left out have their defaults.
        machine: one of :data:`~accel.core.config.NAMED`.
        settings: fields of the machine that are changed.
        mapping: as which operator it is computed, see :func:`accel.run.build.build`.
        steps: of the schedule; None for the best plan.
        pinned: a state that this one is compared with; None for none.
    """

    workload: str = ""
    file: str = ""
    program: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    machine: str = DEFAULT_MACHINE
    settings: Mapping[str, int | str] = field(default_factory=dict)
    mapping: str = AUTO
    steps: tuple[Step, ...] | None = None
    pinned: "State | None" = None

    @classmethod
    def from_data(cls, data: object) -> Self:
        """A state from what a page sends.

        Raises:
            AccelError: it is of another form; what it names is looked at when it is used.
        """
        values = _object("the state", data)
        known = tuple(cls.__dataclass_fields__)
        for name in values:
            if name not in known:
                raise AccelError(f"the state has {name!r}; {nearest(name, known)}")
        texts = {
            name: values[name]
            for name in ("workload", "file", "machine", "mapping")
            if values.get(name) is not None
        }
        for name, text in texts.items():
            if not isinstance(text, str):
                raise AccelError(f"{name} is {text!r}; it must be a name")
        if not texts.get("workload") and not texts.get("file"):
            raise AccelError("the state has no workload; it must name an operator, or a file that was given")
        program = values.get("program", 0)
        if type(program) is not int or program < 0:
            raise AccelError(f"program is {program!r}; it must be a number from 1, or 0 for all")
        steps, pinned = values.get("steps"), values.get("pinned")
        if steps is not None and not (isinstance(steps, list) and len(steps) <= _LONGEST):
            raise AccelError(f"the steps are no list of at most {_LONGEST}")
        return cls(
            **texts,
            program=program,
            parameters=_object("parameters", values.get("parameters") or {}),
            settings=_object("settings", values.get("settings") or {}),
            steps=None if steps is None else tuple(_object("a step", step) for step in steps),
            pinned=None if pinned is None else State.from_data({**_object("pinned", pinned), "pinned": None}),
        )

    def to_data(self) -> dict[str, Any]:
        """The inverse of :meth:`from_data`, without what is as it would be anyway."""
        found: dict[str, Any] = {"file": self.file} if self.file else {}
        if self.workload:
            found |= {"workload": self.workload, "parameters": dict(self.parameters)}
        if self.program:
            found["program"] = self.program
        found["machine"] = self.machine
        if self.settings:
            found["settings"] = dict(self.settings)
        if self.mapping != AUTO:
            found["mapping"] = self.mapping
        if self.steps is not None:
            found["steps"] = [dict(step) for step in self.steps]
        if self.pinned is not None:
            found["pinned"] = self.pinned.to_data()
        return found

    @property
    def key(self) -> str:
        """The same text for the same state, whatever it is compared with."""
        return json.dumps(replace(self, pinned=None).to_data(), sort_keys=True)

    @property
    def operator(self) -> Operator:
        """What is computed.

        Raises:
            ShapeError: there is no such operator.
        """
        return operator_of(self.workload)

    def arguments(self) -> dict[str, Any]:
        """Those parameters that are given and not as they would be anyway, as the operator takes them.

        Raises:
            ShapeError: an unknown operator or parameter, or a value that cannot be read.
        """
        operator, found = self.operator, dict[str, Any]()
        for name, given in self.parameters.items():
            one = operator.spellings.get(name)
            if one is None:
                raise ShapeError(
                    f"{name!r} is no parameter of {operator.name}; {nearest(name, operator.spellings)}"
                )
            value = parameter_value(one, given)
            if value is None or (isinstance(one, Parameter) and value is False):
                continue
            found[name] = value
        return found

    def make_workload(self) -> Workload:
        """The workload.

        Raises:
            ShapeError: a parameter is missing or wrong.
        """
        return self.operator.workload(self.arguments())

    def config(self) -> Config:
        """The machine.

        Raises:
            ConfigError: there is none of this name, or a field has a value that it cannot have.
        """
        if self.machine not in NAMED:
            raise AccelError(f"{self.machine!r} is no machine; {nearest(self.machine, NAMED)}")
        return NAMED[self.machine].variant(self.settings)


def parameter_value(one: Parameter | Joint, given: object) -> Any:
    """A parameter's value as the operator takes it, from a value or from text as on the command line; None
    where there is none.

    Raises:
        ShapeError: it is of another form.
    """
    if given is None or given == "":
        return None
    form = one.form or "an integer"
    if isinstance(one, Joint):
        return _numbers(one.name, given, "x", range(1, len(one.of) + 1), form)
    if one.kind is Kind.RECORD:
        assert one.make is not None
        return one.make(_object(one.name, given))
    if one.kind is Kind.SCALES and isinstance(given, list):
        return given
    if one.kind is Kind.FLAG:
        if not isinstance(given, bool):
            raise ShapeError(f"{one.name} is {given!r}; it must be true or false")
        return given
    if one.kind.is_tuple:
        return _numbers(one.name, given, one.kind.separator, one.kind.counts, form)
    if one.kind is Kind.INTEGER:
        (number,) = _numbers(one.name, given, ",", (1,), form)
        return number
    if one.kind in (Kind.NUMBER, Kind.SCALES):
        try:
            return float(given)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise ShapeError(f"{one.name} is {given!r}; it must be a number") from None
    return given


def _numbers(name: str, given: object, separator: str, counts: Sequence[int], form: str) -> tuple[int, ...]:
    parts: list[Any] = [given]
    if isinstance(given, str):
        parts = list(given.split(separator))
    elif isinstance(given, list | tuple):
        parts = list(given)
    try:
        numbers = tuple(int(part) for part in parts if not isinstance(part, bool | float))
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != len(parts) or len(numbers) not in counts:
        raise ShapeError(f"{name} is {given!r}; it must be of the form {form}")
    return numbers


def _object(what: str, data: object) -> dict[str, Any]:
    if not isinstance(data, Mapping) or len(data) > _LONGEST or not all(isinstance(key, str) for key in data):
        raise AccelError(f"{what} is {kind_of(data)}; it must be an object of at most {_LONGEST} entries")
    return dict(data)
