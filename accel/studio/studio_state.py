"""The state of the studio, as plain data for a link."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

from msgspec import Struct, field

from accel.base.errors import AccelError, ShapeError, nearest
from accel.base.json_types import kind_of
from accel.base.records import replace
from accel.compiler.mappings.mapping import AUTO
from accel.compiler.operators.declared_operator import Operator
from accel.compiler.operators.operator_parameters import JointParameter, Parameter, ParameterKind
from accel.compiler.operators.operator_registry import operator_of
from accel.compiler.ops.epilogue_operations import epilogue_operations
from accel.compiler.ops.workload import Workload
from accel.core.config import NAMED, Config
from accel.image.program_source import Step

DEFAULT_MACHINE = "vta"
_MAX_ENTRIES = 400


class StudioState(Struct, frozen=True, kw_only=True):
    """An operator or a file, with its machine and schedule.

    Attributes:
        workload: empty for a file.
        file: a name in ``StudioFiles``, empty for an operator.
        program: drawn program of a network, from 1. 0 draws all.
    """

    workload: str = ""
    file: str = ""
    program: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    machine: str = DEFAULT_MACHINE
    settings: Mapping[str, int | str] = field(default_factory=dict)
    mapping: str = AUTO
    steps: tuple[Step, ...] | None = None
    pinned: "StudioState | None" = None

    @classmethod
    def from_data(cls, data: object) -> Self:
        """Make a state from a page's data. Values are checked when used."""
        values = _object("the state", data)
        known = tuple(cls.__struct_fields__)
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
            raise AccelError("the state has no workload; it must name an operator or a file")
        program = values.get("program", 0)
        if type(program) is not int or program < 0:
            raise AccelError(f"program is {program!r}; it must be a number from 1, or 0 for all")
        steps, pinned = values.get("steps"), values.get("pinned")
        if steps is not None and not (isinstance(steps, list) and len(steps) <= _MAX_ENTRIES):
            raise AccelError(
                f"steps is {kind_of(steps)}; it must be a list of at most {_MAX_ENTRIES} objects"
            )
        return cls(
            **texts,
            program=program,
            parameters=_object("parameters", values.get("parameters") or {}),
            settings=_object("settings", values.get("settings") or {}),
            steps=None if steps is None else tuple(_object("a step", step) for step in steps),
            pinned=None
            if pinned is None
            else StudioState.from_data({**_object("pinned", pinned), "pinned": None}),
        )

    def to_data(self) -> dict[str, Any]:
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
        return json.dumps(replace(self, pinned=None).to_data(), sort_keys=True)

    @property
    def operator(self) -> Operator:
        return operator_of(self.workload)

    def arguments(self) -> dict[str, Any]:
        operator, found = self.operator, dict[str, Any]()
        for name, given in self.parameters.items():
            one = operator.spellings.get(name)
            if one is None:
                raise ShapeError(
                    f"{name!r} is not a parameter of {operator.name}; {nearest(name, operator.spellings)}"
                )
            value = parameter_value(one, given)
            if value is None or (isinstance(one, Parameter) and value is False):
                continue
            found[name] = value
        return found

    def make_workload(self) -> Workload:
        return self.operator.workload(self.arguments())

    def config(self) -> Config:
        if self.machine not in NAMED:
            raise AccelError(f"{self.machine!r} is not a machine; {nearest(self.machine, NAMED)}")
        return NAMED[self.machine].variant(self.settings)


def parameter_value(one: Parameter | JointParameter, given: object) -> Any:
    """Convert a parameter's value. Text is as on the command line, for example ``"3x3"`` for a kernel."""
    if given is None or given == "":
        return None
    form = one.metavar or "an integer"
    if isinstance(one, JointParameter):
        return _numbers(one.name, given, "x", range(1, len(one.names) + 1), form)
    if one.kind is ParameterKind.RECORD:
        assert one.make is not None
        return one.make(_object(one.name, given))
    if one.kind is ParameterKind.OPERATIONS:
        return tuple(map(str, epilogue_operations(given)))
    if one.kind in (ParameterKind.SCALES, ParameterKind.TABLE) and isinstance(given, list):
        return given
    if one.kind is ParameterKind.FLAG:
        if not isinstance(given, bool):
            raise ShapeError(f"{one.name} is {given!r}; it must be true or false")
        return given
    if one.kind.is_tuple:
        return _numbers(one.name, given, one.kind.separator, one.kind.counts, form)
    if one.kind is ParameterKind.INTEGER:
        (number,) = _numbers(one.name, given, ",", (1,), form)
        return number
    if one.kind in (ParameterKind.NUMBER, ParameterKind.SCALES):
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


def _object(name: str, data: object) -> dict[str, Any]:
    if (
        not isinstance(data, Mapping)
        or len(data) > _MAX_ENTRIES
        or not all(isinstance(key, str) for key in data)
    ):
        raise AccelError(f"{name} is {kind_of(data)}; it must be an object of at most {_MAX_ENTRIES} entries")
    return dict(data)
