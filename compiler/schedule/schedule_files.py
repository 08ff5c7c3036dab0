"""Schedules in files: their steps as JSON or TOML."""

import json
import tomllib
from pathlib import Path
from typing import Any

from accel.base.arguments import check_path
from accel.base.atomic_files import write_atomically
from accel.base.errors import ProgramError, ScheduleError, nearest
from accel.compiler.ops.workload import Workload
from accel.compiler.schedule.schedule import Schedule, Step, create_schedule
from accel.compiler.schedule.schedule_steps import apply_steps, with_threads
from accel.compiler.target.machine import Machine

FORMAT = "accel-schedule"
FORMAT_VERSION = 1
_KEYS = ("format", "version", "mapping", "steps")


def save_steps(path: str | Path, steps: list[Step], mapping: str | None = None) -> None:
    """Write a schedule's steps as TOML if the file's name ends in ``.toml``, otherwise as JSON.

    Args:
        mapping: name of the mapping whose operator they schedule, if any.

    Raises:
        ProgramError: the file cannot be written.
    """
    target = check_path("schedule", path)
    head: dict[str, Any] = {"format": FORMAT, "version": FORMAT_VERSION}
    head |= {} if mapping is None else {"mapping": mapping}
    text = _toml(head, steps) if target.suffix == ".toml" else _json(head, steps)
    write_atomically(target, text.encode())


def load_steps(path: str | Path) -> list[Step]:
    """Return the steps in a schedule file.

    Raises:
        ProgramError: the file cannot be read, or is not a schedule.
    """
    return load_schedule(path)[0]


def load_schedule(path: str | Path) -> tuple[list[Step], str | None]:
    """Return the steps in a file, and the name of their mapping or None.

    Raises:
        ProgramError: as in :func:`load_steps`.
    """
    source = check_path("schedule", path)
    try:
        text = source.read_text(encoding="utf-8")
    except OSError as error:
        raise ProgramError(f"schedule {str(path)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ProgramError(f"schedule {str(path)!r} is not a text file") from None
    try:
        data: Any = tomllib.loads(text) if source.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        kind = "TOML" if source.suffix == ".toml" else "JSON"
        raise ProgramError(f"schedule {str(path)!r} is not {kind}: {error}") from None
    try:
        return _steps(data)
    except ProgramError as error:
        raise ProgramError(f"schedule {str(path)!r}: {error}") from None


def _steps(data: Any) -> tuple[list[Step], str | None]:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ProgramError(f"it is not a schedule file; its format must be {FORMAT!r}")
    version = data.get("version")
    if type(version) is not int or version < 1:
        raise ProgramError(f"its version is {version!r}; it must be a positive integer")
    if version > FORMAT_VERSION:
        raise ProgramError(
            f"its format version is {version}; this release reads up to {FORMAT_VERSION}, "
            f"so a newer release of accel is needed"
        )
    for key in data:
        if key not in _KEYS:
            raise ProgramError(f"it has {key!r}; {nearest(key, _KEYS)}")
    steps = data.get("steps", [])
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise ProgramError("its steps are not a list of tables")
    mapping = data.get("mapping")
    if not isinstance(mapping, str | None):
        raise ProgramError(f"its mapping is {mapping!r}; it must be a name")
    return steps, mapping


def _json(head: dict[str, Any], steps: list[Step]) -> str:
    lines = ",\n".join("  " + json.dumps(step) for step in steps)
    return f'{json.dumps(head)[:-1]}, "steps": [\n{lines}\n]}}\n'


def _toml(head: dict[str, Any], steps: list[Step]) -> str:
    """Return one table per step. JSON's strings, numbers, booleans and lists are valid TOML."""
    tables = ["\n".join(f"{key} = {json.dumps(value)}" for key, value in head.items())]
    for step in steps:
        lines = [f"{key} = {json.dumps(value)}" for key, value in step.items() if value is not None]
        tables.append("\n".join(["[[steps]]", *lines]))
    return "\n\n".join(tables) + "\n"


def scheduled(workload: Workload, machine: Machine, steps: list[Step]) -> Schedule:
    """Return a workload's schedule after applying ``steps``.

    Raises:
        ScheduleError: a step does not apply.
    """
    schedule = create_schedule(workload.output)
    apply_steps(schedule, steps, machine.intrinsic, machine.scope)
    return schedule


def rethreaded(schedule: Schedule, machine: Machine, threads: int) -> Schedule:
    """Return the schedule with another number of virtual threads.

    Raises:
        ScheduleError: no split loop is bound to virtual threads, or the loop is too short.
    """
    fresh = create_schedule(schedule.outputs)
    apply_steps(fresh, with_threads(schedule.steps, threads), machine.intrinsic, machine.scope)
    most = max(loop.extent for stage in fresh.stages for loop in stage.threads)
    if most < threads:
        raise ScheduleError(
            f"{threads} virtual threads are too many for these tiles; there is work for {most}"
        )
    return fresh
