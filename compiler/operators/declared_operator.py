"""The declaration of an operator for the command line, sweeps and planners."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from accel.base.errors import ShapeError, nearest
from accel.compiler.operators.operator_parameters import JointParameter, Parameter, ParameterKind
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.planner import Planner


class CommandFamily(Struct, frozen=True, kw_only=True):
    """A command for several operators."""

    command: str
    option: str
    summary: str


class CommandVariant(Struct, frozen=True, kw_only=True):
    """An operator's value of the family's option."""

    family: CommandFamily
    value: str


class Operator(Struct, frozen=True, kw_only=True):
    """An operator.

    Attributes:
        name: name of ``make`` and of the workloads in sweeps.
        make: makes a workload. Its signature says which parameters are optional, and their defaults.
        machine: the default configuration on the command line.
        text: description of shapes, types and epilogue.
        variant: another command that also compiles it.
    """

    name: str
    make: Callable[..., Workload]
    parameters: tuple[Parameter, ...]
    planner: Planner[Any, Any]
    summary: str
    text: str
    examples: tuple[str, ...]
    machine: str = "vta"
    joint_parameters: tuple[JointParameter, ...] = ()
    variant: CommandVariant | None = None

    @property
    def command(self) -> str:
        return self.name.replace("_", "-")

    def default_of(self, parameter: Parameter) -> Any:
        """Return ``inspect.Parameter.empty`` for a required parameter."""
        if parameter.omitted_value is not None:
            return parameter.omitted_value
        return inspect.signature(self.make).parameters[parameter.name].default

    def is_needed(self, parameter: Parameter) -> bool:
        return self.default_of(parameter) is inspect.Parameter.empty

    @property
    def spellings(self) -> dict[str, Parameter | JointParameter]:
        found: dict[str, Parameter | JointParameter] = {}
        for one in self.parameters:
            names = (one.name, one.name.lower(), *(name for name in one.aliases if len(name) > 1))
            found |= dict.fromkeys(names, one)
        found |= {field.name: field for record in self.records for field in record.fields}
        return found | {joint.name: joint for joint in self.joint_parameters}

    @property
    def records(self) -> list[Parameter]:
        return [one for one in self.parameters if one.kind is ParameterKind.RECORD]

    def parameters_named(self, name: str) -> set[str]:
        found = self.spellings.get(name)
        return set() if found is None else {found.name} if isinstance(found, Parameter) else set(found.names)

    def takes_tuples(self, name: str) -> bool:
        found = self.spellings.get(name)
        return isinstance(found, JointParameter) or (found is not None and found.kind.is_tuple)

    def workload(self, values: Mapping[str, Any]) -> Workload:
        return self.make(**self.arguments(values))

    def arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Convert values under any of the parameters' names."""
        known, found = self.spellings, dict[str, Any]()
        given: dict[str, str] = {}
        for name, value in values.items():
            if name not in known:
                raise ShapeError(f"{name!r} is not a parameter of {self.name}; {nearest(name, known)}")
            one = known[name]
            parts = {one.name: value} if isinstance(one, Parameter) else _joint_values(one, value)
            for key, part in parts.items():
                if key in found:
                    raise ShapeError(f"{key} of {self.name} is given twice, as {given[key]} and as {name}")
                found[key], given[key] = part, name
        for record in self.records:
            self._make_record(record, found, given)
        rest = [one for one in self.parameters if one.name not in found]
        missing = [one for one in rest if self.is_needed(one)]
        if missing:
            named = ", ".join(f"{one.name} ({one.text[0].lower()}{one.text[1:-1]})" for one in missing)
            raise ShapeError(f"{self.name} lacks {named}; each must be given")
        return found | {one.name: one.omitted_value for one in rest if one.omitted_value is not None}

    @staticmethod
    def _make_record(record: Parameter, found: dict[str, Any], given: Mapping[str, str]) -> None:
        fields = {one.name: found.pop(one.name) for one in record.fields if one.name in found}
        values = {name: value for name, value in fields.items() if value is not None and value is not False}
        if not values:
            return
        if found.get(record.name) is not None:
            name = next(iter(values))
            raise ShapeError(f"{name} is given twice, alone and in {given[record.name]}; give it once")
        values |= {name: found.pop(name) for name in record.shared if name in found}
        assert record.make is not None
        found[record.name] = record.make(values)


def _joint_values(joint: JointParameter, value: Any) -> dict[str, Any]:
    if not isinstance(value, list | tuple):
        return dict.fromkeys(joint.names, value)
    numbers = value * len(joint.names) if len(value) == 1 else value
    if len(numbers) != len(joint.names):
        raise ShapeError(f"{joint.name} is {value!r}; it must be one number, or {' and '.join(joint.names)}")
    return dict(zip(joint.names, numbers, strict=True))
