"""Grids of values, and their points."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from accel.base.arguments import check_integer
from accel.base.errors import AccelError, SweepError, nearest
from accel.base.json_types import shown
from accel.compiler.mappings.mapping import AUTO
from accel.compiler.operators.operator_registry import OPERATORS, make_workload, takes_tuples
from accel.compiler.schedule.schedule_files import load_schedule
from accel.compiler.target.machine import machine
from accel.core.config import SPECS, Config
from accel.core.isa import check_encodable
from accel.sweeps.sweep_points import Point, Run, Source, Synthesis, Values

RUN_PREFIX = "run."
"""Prefix of a timing field of the run, which the schedule ignores."""
TILE_SIDES = tuple(
    dict.fromkeys(side.key for operator in OPERATORS.values() for side in operator.planner.sides)
)
GRID_KEYS = ("label", "config", "mapping", "vthreads", *TILE_SIDES, "schedule", "cells")
DEFAULT_CONFIG = "gemm8x8"


def grid_keys() -> list[str]:
    timing = [RUN_PREFIX + name for name, spec in SPECS.items() if spec.kind == "timing"]
    return [*GRID_KEYS, "zip", *SPECS, *timing]


def grid_points(
    workloads: list[dict[str, Any]], grids: list[dict[str, Any]], *, seed: int = 0, folder: Path | None = None
) -> list[Point]:
    """Return points of all workloads on all grids, without duplicates.

    Args:
        workloads: names and parameters. Lists span several workloads.
    """
    seed = check_integer("seed", seed, least=0, error=SweepError)
    found: dict[Point, None] = {}
    for table in workloads:
        for workload in expand(_with_tuples(table)):
            with _errors_name(workload):
                name, parameters = _workload(workload)
            for grid in grids:
                _check_keys(grid)
                for values in expand(grid):
                    with _errors_name(workload, values):
                        found[_point(name, parameters, values, seed, folder)] = None
    return list(found)


@contextmanager
def _errors_name(workload: Mapping[str, Any], values: Mapping[str, Any] | None = None) -> Iterator[None]:
    settings = {**workload, **(values or {})}
    name = settings.pop("name", "a workload")
    where = " ".join([str(name), *(f"{key}={value}" for key, value in settings.items())])
    try:
        yield
    except AccelError as error:
        raise type(error)(f"{where}: {error}") from None


def expand(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every choice of a table's lists. The last list varies fastest.

    For example, ``{"a": [1, 2], "b": 3}`` yields ``{"a": 1, "b": 3}`` and ``{"a": 2, "b": 3}``.
    """
    axes: list[list[dict[str, Any]]] = []
    for name, value in flatten(table).items():
        if name == "zip":
            axes.append(_zipped(value))
        elif isinstance(value, list):
            if not value:
                raise SweepError(f"{name} is an empty list; give at least one value")
            axes.append([{name: one} for one in value])
        else:
            axes.append([{name: value}])
    for choice in product(*axes):
        yield {name: value for part in choice for name, value in part.items()}


def flatten(table: Mapping[str, Any]) -> dict[str, Any]:
    """Replace a table ``run`` by keys ``run.NAME``."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if name == RUN_PREFIX[:-1] and isinstance(value, Mapping):
            flat |= {RUN_PREFIX + inner: one for inner, one in value.items()}
        else:
            flat[name] = value
    return flat


def _zipped(table: Any) -> list[dict[str, Any]]:
    if not isinstance(table, Mapping) or not all(isinstance(v, list) for v in flatten(table).values()):
        raise SweepError("zip is not a table of lists; give lists that advance together")
    lists = flatten(table)
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) != 1 or not all(lengths.values()):
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise SweepError(f"the lists under zip have lengths {listed or 0}; they must be equal and not 0")
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def _check_keys(grid: Mapping[str, Any]) -> None:
    known = grid_keys()
    for table in (grid, grid.get("zip", {})):
        if not isinstance(table, Mapping):
            continue  # expand() reports it
        for name in flatten(table):
            if name in known:
                continue
            if name.startswith(RUN_PREFIX) and name.removeprefix(RUN_PREFIX) in SPECS:
                field = name.removeprefix(RUN_PREFIX)
                raise SweepError(
                    f"a grid has {name!r}; a program is compiled for it, so the run cannot have another; "
                    f"give {field} instead"
                )
            raise SweepError(f"a grid has {name!r}; {nearest(name, known)}")


def _with_tuples(table: Mapping[str, Any]) -> dict[str, Any]:
    """All lists except tuple parameters are axes."""
    name = table.get("name")
    if not isinstance(name, str):
        return dict(table)  # _workload() reports it
    return {key: _tuples(value) if takes_tuples(name, key) else value for key, value in table.items()}


def _tuples(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    if any(isinstance(one, list) for one in value):
        return [tuple(one) if isinstance(one, list) else one for one in value]
    return tuple(value)


def _workload(table: Mapping[str, Any]) -> tuple[str, Values]:
    parameters = dict(table)
    name = parameters.pop("name", None)
    if name is None:
        raise SweepError("a workload has no name; give one, as name = 'gemm'")
    if not isinstance(name, str):
        raise SweepError(f"a workload's name is {shown(name)}; it must be text, as 'gemm'")
    workload = make_workload(name, parameters)
    values = (
        (key, tuple(value) if isinstance(value, list) else value)
        for key, value in workload.parameters.items()
    )
    return workload.name, tuple(values)


def _point(
    workload: str, parameters: Values, values: dict[str, Any], seed: int, folder: Path | None
) -> Point:
    fields = {name: value for name, value in values.items() if name in SPECS}
    timing = {
        name.removeprefix(RUN_PREFIX): value for name, value in values.items() if name.startswith(RUN_PREFIX)
    }
    config = machine(_config(values.get("config", DEFAULT_CONFIG), folder), **fields).config
    check_encodable(config)
    schedule, mapping = values.get("schedule"), values.get("mapping")
    steps, saved_mapping = (None, None) if schedule is None else load_schedule((folder or Path()) / schedule)
    if not isinstance(mapping, str | None):
        raise SweepError(f"mapping is {mapping!r}; it must be a name, as 'plain'")
    source = Source(
        workload=workload,
        parameters=parameters,
        config=config,
        vthreads=_count("vthreads", values),
        tile=_tile(values),
        steps=None if steps is None else json.dumps(steps),
        mapping=mapping or saved_mapping or AUTO,
    )
    run = Run(source=source, timing=_timing(config.override(timing, kinds=("timing",)), timing), seed=seed)
    labels = {"grid": _label(values, dict(parameters)), "schedule": schedule, "mapping": mapping}
    return Point(
        run=run,
        labels=tuple((name, str(value)) for name, value in labels.items() if value is not None),
        synthesis=Synthesis(config=run.machine.hardware) if values.get("cells") else None,
    )


def _label(values: Mapping[str, Any], parameters: Mapping[str, Any]) -> str | None:
    """For example ``V = {vthreads}`` is ``V = 2``."""
    text = values.get("label")
    if text is None:
        return None
    known = {name.removeprefix(RUN_PREFIX): value for name, value in (*parameters.items(), *values.items())}

    def value_of(found: re.Match[str]) -> str:
        if found[1] not in known:
            raise SweepError(f"the label {text!r} names {found[1]!r}; {nearest(found[1], known)}")
        return str(known[found[1]])

    return re.sub(r"{(.*?)}", value_of, str(text))


def _config(name: object, folder: Path | None) -> str | Path:
    if not isinstance(name, str):
        raise SweepError(f"config is {name!r}; it must be a configuration's name or file")
    path = (folder or Path()) / name
    return path if name.endswith(".json") and path.exists() else name


def _timing(config: Config, values: Mapping[str, Any]) -> Values:
    return tuple((name, getattr(config, name)) for name in sorted(values))


def _tile(values: Mapping[str, Any]) -> Values:
    return tuple((name, _count(name, values)) for name in TILE_SIDES if values.get(name) is not None)


def _count(name: str, values: Mapping[str, Any]) -> int | None:
    value = values.get(name)
    return None if value is None else check_integer(name, value, error=SweepError)
