"""Grids: tables of values and lists of values, and the points that they span."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from accel.base.arguments import check_integer
from accel.base.errors import AccelError, SweepError, nearest
from accel.base.plain import shown
from accel.compiler.mappings.mapping import AUTO
from accel.compiler.operators.registry import OPERATORS, make_workload, takes_tuples
from accel.compiler.schedule.files import load_schedule
from accel.compiler.target.machine import machine
from accel.core.config import SPECS
from accel.core.isa import check_encodable
from accel.sweeps.points import Point, Run, Source, Synthesis, Values

RUN = "run."
"""Before a timing field: it is set for the run only, the program is compiled without it."""
TILE = tuple(dict.fromkeys(side.key for operator in OPERATORS.values() for side in operator.planner.sides))
"""Sides of the tiles of any operator."""
KNOBS = ("label", "config", "mapping", "vthreads", *TILE, "schedule", "cells")
"""Of a grid, besides configuration fields."""
DEFAULT_CONFIG = "gemm8x8"


def knobs() -> list[str]:
    """Every key that a grid takes."""
    return [*KNOBS, "zip", *SPECS, *(RUN + name for name, spec in SPECS.items() if spec.kind == "timing")]


def points(
    workloads: list[dict[str, Any]], grids: list[dict[str, Any]], *, seed: int = 0, folder: Path | None = None
) -> list[Point]:
    """The points of all workloads on all grids, each once and in order.

    Args:
        workloads: a name and parameters each; lists span several.
        grids: keys of :func:`knobs`; lists span several, those under ``zip`` advance together.
        seed: of the inputs.
        folder: what schedule files are relative to.

    Raises:
        SweepError: an unknown key, or a bad seed.
        ConfigError, ProgramError, ScheduleError, ShapeError: a value that cannot be.
    """
    seed = check_integer("seed", seed, least=0, error=SweepError)
    found: dict[Point, None] = {}
    for table in workloads:
        for workload in expand(_with_tuples(table)):
            with _told_of(workload):
                name, parameters = _workload(workload)
            for grid in grids:
                _check_keys(grid)
                for values in expand(grid):
                    with _told_of(workload, values):
                        found[_point(name, parameters, values, seed, folder)] = None
    return list(found)


@contextmanager
def _told_of(workload: Mapping[str, Any], values: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Errors begin with the workload, or the point on the grid, that they are about."""
    settings = {**workload, **(values or {})}
    name = settings.pop("name", "a workload")
    where = " ".join([str(name), *(f"{key}={value}" for key, value in settings.items())])
    try:
        yield
    except AccelError as error:
        raise type(error)(f"{where}: {error}") from None


def expand(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every choice of one value from each list in a table; the last list runs fastest.

    Raises:
        SweepError: an empty list, or lists of different lengths under ``zip``.
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
    """A table with ``run.`` in its keys instead of a table in it."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if name == RUN[:-1] and isinstance(value, Mapping):
            flat |= {RUN + inner: one for inner, one in value.items()}
        else:
            flat[name] = value
    return flat


def _zipped(table: Any) -> list[dict[str, Any]]:
    if not isinstance(table, Mapping) or not all(isinstance(v, list) for v in flatten(table).values()):
        raise SweepError("zip is no table of lists; give lists that advance together")
    lists = flatten(table)
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) != 1 or not all(lengths.values()):
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise SweepError(f"the lists under zip have lengths {listed or 0}; they must be equal and not 0")
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def _check_keys(grid: Mapping[str, Any]) -> None:
    known = knobs()
    for table in (grid, grid.get("zip", {})):
        if not isinstance(table, Mapping):
            continue  # said when it is expanded
        for name in flatten(table):
            if name in known:
                continue
            if name.startswith(RUN) and name.removeprefix(RUN) in SPECS:
                field = name.removeprefix(RUN)
                raise SweepError(
                    f"a grid has {name!r}; a program is compiled for it, so the run cannot have another; "
                    f"give {field} instead"
                )
            raise SweepError(f"a grid has {name!r}; {nearest(name, known)}")


def _with_tuples(table: Mapping[str, Any]) -> dict[str, Any]:
    """A workload whose parameters that are tuples hold tuples, so that lists are axes only."""
    name = table.get("name")
    if not isinstance(name, str):
        return dict(table)  # said when it is made
    return {key: _tuples(value) if takes_tuples(name, key) else value for key, value in table.items()}


def _tuples(value: Any) -> Any:
    """A list of numbers as a tuple; of lists, each as a tuple."""
    if not isinstance(value, list):
        return value
    if any(isinstance(one, list) for one in value):
        return [tuple(one) if isinstance(one, list) else one for one in value]
    return tuple(value)


def _workload(table: Mapping[str, Any]) -> tuple[str, Values]:
    """Name and parameters; the workload is made once to see whether it can be."""
    parameters = dict(table)
    name = parameters.pop("name", None)
    if name is None:
        raise SweepError("a workload has no name; give one, as name = 'gemm'")
    if not isinstance(name, str):
        raise SweepError(f"a workload's name is {shown(name)}; it must be text, as 'gemm'")
    made = make_workload(name, parameters)
    values = (
        (key, tuple(value) if isinstance(value, list) else value) for key, value in made.parameters.items()
    )
    return made.name, tuple(values)


def _point(
    workload: str, parameters: Values, values: dict[str, Any], seed: int, folder: Path | None
) -> Point:
    fields = {name: value for name, value in values.items() if name in SPECS}
    timing = {name.removeprefix(RUN): value for name, value in values.items() if name.startswith(RUN)}
    config = machine(_config(values.get("config", DEFAULT_CONFIG), folder), **fields).config
    check_encodable(config)
    schedule, mapping = values.get("schedule"), values.get("mapping")
    steps, kept = (None, None) if schedule is None else load_schedule((folder or Path()) / schedule)
    if not isinstance(mapping, str | None):
        raise SweepError(f"mapping is {mapping!r}; it must be a name, as 'plain'")
    source = Source(
        workload=workload,
        parameters=parameters,
        config=config,
        vthreads=_count("vthreads", values),
        tile=_tile(values),
        steps=None if steps is None else json.dumps(steps),
        mapping=mapping or kept or AUTO,
    )
    run = Run(source=source, timing=_timing(config.override(timing, kinds=("timing",)), timing), seed=seed)
    labels = {"grid": _label(values, dict(parameters)), "schedule": schedule, "mapping": mapping}
    return Point(
        run=run,
        labels=tuple((name, str(value)) for name, value in labels.items() if value is not None),
        synthesis=Synthesis(config=run.machine.hardware) if values.get("cells") else None,
    )


def _label(values: Mapping[str, Any], parameters: Mapping[str, Any]) -> str | None:
    """The label of a point, with values in place of names in braces.

    Raises:
        SweepError: there is no such name.
    """
    text = values.get("label")
    if text is None:
        return None
    known = {name.removeprefix(RUN): value for name, value in (*parameters.items(), *values.items())}

    def value_of(found: re.Match[str]) -> str:
        if found[1] not in known:
            raise SweepError(f"the label {text!r} names {found[1]!r}; {nearest(found[1], known)}")
        return str(known[found[1]])

    return re.sub(r"{(.*?)}", value_of, str(text))


def _config(name: object, folder: Path | None) -> str | Path:
    """A configuration's name, or the path of its file, which is relative to the sweep's."""
    if not isinstance(name, str):
        raise SweepError(f"config is {name!r}; it must be a configuration's name or file")
    path = (folder or Path()) / name
    return path if name.endswith(".json") and path.exists() else name


def _timing(config: Any, values: Mapping[str, Any]) -> Values:
    return tuple((name, getattr(config, name)) for name in sorted(values))


def _tile(values: Mapping[str, Any]) -> Values:
    return tuple((name, _count(name, values)) for name in TILE if values.get(name) is not None)


def _count(name: str, values: Mapping[str, Any]) -> int | None:
    value = values.get(name)
    return None if value is None else check_integer(name, value, error=SweepError)
