"""What an operator is: all that the command line, sweeps and the default schedules know of it."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from accel.base.errors import ShapeError, nearest
from accel.compiler.operators.parameter import Joint, Kind, Parameter
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.planner import Planner


@dataclass(frozen=True, kw_only=True)
class Family:
    """A command that several operators share.

    Attributes:
        command: its name.
        option: what tells them apart.
        summary: what it does, a line.
    """

    command: str
    option: str
    summary: str


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One of a family; ``value`` is the option's."""

    family: Family
    value: str


@dataclass(frozen=True, kw_only=True)
class Operator:
    """An operator, declared once.

    Attributes:
        name: of the function that makes its workloads, of sweeps' workloads, and with hyphens of the command.
        make: makes a workload. Which parameters may be left out, and their values then, stand in its
            signature.
        parameters: those of ``make``, in its order.
        joint: names for several of them at once.
        planner: how it is scheduled.
        machine: the configuration that the command line takes if none is given.
        summary: what it computes, a line.
        text: shapes, types, and what follows.
        examples: arguments of ``accel compile``.
        variant: another command that it is a part of.
    """

    name: str
    make: Callable[..., Workload]
    parameters: tuple[Parameter, ...]
    planner: Planner[Any, Any]
    summary: str
    text: str
    examples: tuple[str, ...]
    machine: str = "vta"
    joint: tuple[Joint, ...] = ()
    variant: Variant | None = None

    @property
    def command(self) -> str:
        """Of ``accel compile``."""
        return self.name.replace("_", "-")

    def default(self, parameter: Parameter) -> Any:
        """What a parameter is where it is not given; :attr:`inspect.Parameter.empty` if it must be."""
        if parameter.otherwise is not None:
            return parameter.otherwise
        return inspect.signature(self.make).parameters[parameter.name].default

    def is_needed(self, parameter: Parameter) -> bool:
        """Whether a parameter must be given."""
        return self.default(parameter) is inspect.Parameter.empty

    @property
    def spellings(self) -> dict[str, Parameter | Joint]:
        """Parameters by every name that sweeps and files know them by."""
        found: dict[str, Parameter | Joint] = {}
        for one in self.parameters:
            names = (one.name, one.name.lower(), *(name for name in one.also if len(name) > 1))
            found |= dict.fromkeys(names, one)
        found |= {field.name: field for record in self.records for field in record.fields}
        return found | {joint.name: joint for joint in self.joint}

    @property
    def records(self) -> list[Parameter]:
        """The parameters that are several together."""
        return [one for one in self.parameters if one.kind is Kind.RECORD]

    def named(self, name: str) -> set[str]:
        """The parameters that a name stands for; none if it is unknown."""
        found = self.spellings.get(name)
        return set() if found is None else {found.name} if isinstance(found, Parameter) else set(found.of)

    def takes_tuples(self, name: str) -> bool:
        """Whether a value under a name may be several numbers."""
        found = self.spellings.get(name)
        return isinstance(found, Joint) or (found is not None and found.kind.is_tuple)

    def arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values under any names as arguments of :attr:`make`.

        Raises:
            ShapeError: a name that is no parameter's, or a parameter that is given twice or not at all.
        """
        known, found = self.spellings, dict[str, Any]()
        given: dict[str, str] = {}
        for name, value in values.items():
            if name not in known:
                raise ShapeError(f"{name!r} is no parameter of {self.name}; {nearest(name, known)}")
            one = known[name]
            for key, part in {one.name: value}.items() if isinstance(one, Parameter) else _parts(one, value):
                if key in found:
                    raise ShapeError(f"{key} of {self.name} is given twice, as {given[key]} and as {name}")
                found[key], given[key] = part, name
        for record in self.records:
            self._gather(record, found, given)
        rest = [one for one in self.parameters if one.name not in found]
        missing = [one for one in rest if self.is_needed(one)]
        if missing:
            named = ", ".join(f"{one.name} ({one.text[0].lower()}{one.text[1:-1]})" for one in missing)
            raise ShapeError(f"{self.name} lacks {named}; each must be given")
        return found | {one.name: one.otherwise for one in rest if one.otherwise is not None}

    @staticmethod
    def _gather(record: Parameter, found: dict[str, Any], given: Mapping[str, str]) -> None:
        """Make one argument of a record's fields, if any of them is given.

        Raises:
            ShapeError: the record is given, too, or its fields do not go together.
        """
        fields = {one.name: found.pop(one.name) for one in record.fields if one.name in found}
        values = {name: value for name, value in fields.items() if value is not None and value is not False}
        if not values:
            return
        if found.get(record.name) is not None:
            raise ShapeError(f"{next(iter(values))} is given besides {given[record.name]}, which has it")
        values |= {name: found.pop(name) for name in record.shared if name in found}
        assert record.make is not None
        found[record.name] = record.make(values)

    def workload(self, values: Mapping[str, Any]) -> Workload:
        """A workload from values under any names.

        Raises:
            ShapeError: as :meth:`arguments`, or a bad value.
        """
        return self.make(**self.arguments(values))


def _parts(joint: Joint, value: Any) -> list[tuple[str, Any]]:
    """What a joint value is of each parameter.

    Raises:
        ShapeError: too few or too many numbers.
    """
    if not isinstance(value, list | tuple):
        return [(name, value) for name in joint.of]
    numbers = value * len(joint.of) if len(value) == 1 else value
    if len(numbers) != len(joint.of):
        raise ShapeError(f"{joint.name} is {value!r}; it must be one number, or {' and '.join(joint.of)}")
    return list(zip(joint.of, numbers, strict=True))
