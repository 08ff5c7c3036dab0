"""Records of tuning: the fastest known schedules of computations, in a file of JSON lines.

A line is an object with these keys:

=============  =====================================================================
``workload``   name and digest of the computation without scales and tables, on which timing does not depend
``machine``    name of the machine, and digest of all its fields except the name
``timing``     :data:`~accel.core.timing_rules.TIMING_CONTRACT_VERSION` of the measurement
``cycles``     simulated cycles, or null if the schedule is invalid
``error``      the message of an invalid schedule, or null
``mapping``    name of the mapping whose operator the schedule is for
``steps``      steps of the schedule, or null for trials that were not the fastest so far
``knobs``      values of the knobs, by name
``features``   numbers by name that a learned cost model is trained with
=============  =====================================================================

Nothing in a file is executed.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from accel.base.arguments import check_path
from accel.base.errors import TuningError
from accel.base.json_types import shown
from accel.compiler.expr.expression_data import expression_to_data
from accel.compiler.expr.tensor_expressions import Tensor
from accel.compiler.mappings.mapping import PLAIN
from accel.core.config import Config
from accel.core.timing_rules import TIMING_CONTRACT_VERSION

STOCK = "stock"
"""Stands for :data:`STOCK_FILE` where no file has this name."""
STOCK_FILE = Path(__file__).with_name("stock_records.jsonl")
"""Schedules of layers of benchmark networks that take at least 0.5 % fewer cycles than the default ones."""
_DIGEST_DIGITS = 16
_KEYS = {
    "workload": str,
    "machine": str,
    "timing": int,
    "cycles": int | None,
    "error": str | None,
    "mapping": str,
    "steps": list | None,
    "knobs": dict,
    "features": dict | None,
}


@dataclass(frozen=True, kw_only=True)
class RecordKey:
    """Everything but the schedule that a measurement depends on.

    Attributes:
        workload: name and digest, for example ``conv2d/8c1f7cd0f0aa12be``.
    """

    workload: str
    machine: str
    timing: int = TIMING_CONTRACT_VERSION

    @property
    def identity(self) -> tuple[str, str, int]:
        """The key without names."""
        return self.workload.rpartition("/")[2], self.machine.rpartition("/")[2], self.timing


def record_key(name: str, outputs: Sequence[Tensor], config: Config) -> RecordKey:
    """Return the key of a computation on a machine. ``name`` is for readers."""
    fields = {key: value for key, value in config.to_dict().items() if key != "name"}
    return RecordKey(
        workload=f"{name}/{_digest(_without_parameters(expression_to_data(outputs)))}",
        machine=f"{config.name}/{_digest(fields)}",
    )


_PARAMETERS = {"scales", "entries", "addition", "multiplication"}
"""Scales, tables, and integers that follow from scales."""


def _without_parameters(data: Any) -> Any:
    """Remove values of an expression that do not affect timing.

    The number of scales replaces scales of channels, and 0 other scales.
    """
    if isinstance(data, dict):
        return {
            name: _shape_of(value) if name in _PARAMETERS else _without_parameters(value)
            for name, value in data.items()
        }
    if isinstance(data, list):
        return [_without_parameters(one) for one in data]
    return 0 if isinstance(data, float) else data


def _shape_of(parameters: Any) -> int | None:
    return len(parameters) if isinstance(parameters, list) else None


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:_DIGEST_DIGITS]


@dataclass(frozen=True, kw_only=True)
class Record:
    """A line of a file of records. See the table above for attributes."""

    key: RecordKey
    cycles: int | None
    error: str | None = None
    mapping: str = PLAIN
    steps: list[dict[str, Any]] | None = None
    knobs: dict[str, Any] = field(default_factory=dict)
    features: dict[str, float] | None = None

    def to_line(self) -> str:
        """Return the line, without its end."""
        return json.dumps(
            {
                "workload": self.key.workload,
                "machine": self.key.machine,
                "timing": self.key.timing,
                "cycles": self.cycles,
                "error": self.error,
                "mapping": self.mapping,
                "steps": self.steps,
                "knobs": self.knobs,
                "features": self.features,
            }
        )


class Records:
    """The lines of a file of records.

    Attributes:
        every: records in the order of the file.
    """

    def __init__(self, path: Path, every: Sequence[Record]) -> None:
        self.path = path
        self.every = tuple(every)

    @cached_property
    def _fastest(self) -> Mapping[tuple[str, str, int], list[Record]]:
        found: dict[tuple[str, str, int], list[Record]] = {}
        for record in self.every:
            if record.steps is not None and record.cycles is not None:
                found.setdefault(record.key.identity, []).append(record)
        for records in found.values():
            records.sort(key=lambda one: one.cycles or 0)
        return found

    def fastest(self, key: RecordKey, mapping: str | None = None) -> Record | None:
        """Return the fastest record with a schedule, or None.

        Args:
            mapping: name of the record's mapping, or None for any.
        """
        known = self._fastest.get(key.identity, [])
        return next((one for one in known if mapping in (None, one.mapping)), None)

    def of(self, key: RecordKey) -> list[Record]:
        """Return all records of a key."""
        return [one for one in self.every if one.key.identity == key.identity]


def records_path(path: str | os.PathLike[str]) -> Path:
    """The name may be :data:`STOCK`."""
    given = check_path("file of records", path)
    return STOCK_FILE if str(given) == STOCK and not given.exists() else given


def load_records(path: str | os.PathLike[str], *, missing_ok: bool = False) -> Records:
    """Return the records of a file.

    Args:
        missing_ok: return no records for a missing file.

    Raises:
        TuningError: the file is unreadable, or a line is damaged. The message names the line.
    """
    source = check_path("file of records", path) if missing_ok else records_path(path)
    try:
        content = source.read_bytes()
    except FileNotFoundError:
        if missing_ok:
            return Records(source, ())
        raise TuningError(f"file of records {str(path)!r} cannot be read: no such file") from None
    except OSError as error:
        raise TuningError(f"file of records {str(path)!r} cannot be read: {error.strerror}") from None
    every = []
    for number, line in enumerate(content.splitlines(), 1):
        try:
            every.append(_record(line))
        except _Damage as damage:
            raise TuningError(
                f"file of records {str(path)!r} is damaged in line {number}: {damage}; remove the line"
            ) from None
    return Records(source, every)


def faster_record(
    records: Records,
    name: str,
    outputs: Sequence[Tensor],
    config: Config,
    cycles: int,
    mapping: str | None = None,
) -> Record | None:
    """Return the fastest record of a mapping, or of any, if it takes fewer than ``cycles``."""
    found = records.fastest(record_key(name, outputs, config), mapping)
    return None if found is None or found.cycles is None or found.cycles >= cycles else found


def append_records(path: str | os.PathLike[str], records: Sequence[Record]) -> None:
    """Append records to a file, or create it.

    Raises:
        TuningError: the file cannot be written.
    """
    target = check_path("file of records", path)
    try:
        with target.open("ab", buffering=0) as file:
            file.write("".join(f"{one.to_line()}\n" for one in records).encode())
    except OSError as error:
        raise TuningError(f"file of records {str(path)!r} cannot be written: {error.strerror}") from None


class _Damage(Exception):
    pass


def _record(line: bytes) -> Record:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        raise _Damage("it is not JSON") from None
    if not isinstance(data, dict):
        raise _Damage(f"it is {shown(data)}; it must be an object")
    for name in data:
        if name not in _KEYS:
            raise _Damage(f"it has {name!r}, which no record has")
    for name, kind in _KEYS.items():
        if name not in data:
            raise _Damage(f"it has no {name!r}")
        if not isinstance(data[name], kind) or isinstance(data[name], bool):
            raise _Damage(f"{name} is {shown(data[name])}")
    if data["cycles"] is not None and data["cycles"] < 1:
        raise _Damage(f"cycles is {data['cycles']}; it must be positive")
    if (data["cycles"] is None) == (data["error"] is None):
        raise _Damage("it must have either cycles or an error")
    if not all(isinstance(step, dict) for step in data["steps"] or ()):
        raise _Damage("its steps are not a list of objects")
    features = data["features"]
    if features is not None and not all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in features.values()
    ):
        raise _Damage("its features are not numbers")
    return Record(
        key=RecordKey(workload=data["workload"], machine=data["machine"], timing=data["timing"]),
        cycles=data["cycles"],
        error=data["error"],
        mapping=data["mapping"],
        steps=data["steps"],
        knobs=data["knobs"],
        features=features,
    )
