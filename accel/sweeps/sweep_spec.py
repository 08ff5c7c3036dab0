"""Points and plots of sweeps."""

import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel.base.errors import SweepError, nearest
from accel.base.json_types import shown
from accel.compiler.operators.declared_operator import Operator
from accel.compiler.operators.operator_registry import operator_of
from accel.sweeps.sweep_grid import RUN_PREFIX, flatten, grid_keys, grid_points
from accel.sweeps.sweep_plots import Plot, make_plot
from accel.sweeps.sweep_points import Point

_KEYS = ("title", "seed", "workload", "grid", "plot")


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A sweep that has not run yet."""

    name: str
    title: str
    points: tuple[Point, ...]
    plots: tuple[Plot, ...] = ()


def load_spec(path: str | Path, vary: Mapping[str, Sequence[Any]] | None = None) -> Spec:
    """Read a sweep from a TOML file."""
    source = Path(path)
    try:
        data = tomllib.loads(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise SweepError(f"sweep {str(path)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SweepError(f"sweep {str(path)!r} is not a text file") from None
    except tomllib.TOMLDecodeError as error:
        raise SweepError(f"sweep {str(path)!r} is not TOML: {error}") from None
    return make_spec(data, name=source.stem, vary=vary, folder=source.parent)


def make_spec(
    data: Mapping[str, Any],
    *,
    name: str = "sweep",
    vary: Mapping[str, Sequence[Any]] | None = None,
    folder: Path | None = None,
) -> Spec:
    """Make a sweep from a file's content.

    Args:
        data: ``title``, ``seed``, and lists of tables ``workload``, ``grid`` and ``plot``.
        name: the stem of file names.
        vary: values by key, which replace parameters of workloads, or keys of grids.
        folder: of files named in the table.

    Raises:
        SweepError: the table has another form.
        ConfigError, ProgramError, ScheduleError, ShapeError: an impossible value.
    """
    for key in data:
        if key not in _KEYS:
            raise SweepError(f"a sweep has {key!r}; {nearest(key, _KEYS)}")
    workloads = _tables(data, "workload")
    if not workloads:
        raise SweepError("the sweep has no workload; give one, as [[workload]] with name = 'gemm'")
    title = data.get("title", name)
    if not isinstance(title, str) or not title.isprintable():
        raise SweepError(f"title is {shown(title)}; it must be a line of text")
    grids = _tables(data, "grid") or [{}]
    for key, values in (vary or {}).items():
        _replace(key, list(values), workloads, grids)
    return Spec(
        name=name,
        title=title,
        points=tuple(grid_points(workloads, grids, seed=data.get("seed", 0), folder=folder)),
        plots=tuple(make_plot(table) for table in _tables(data, "plot")),
    )


def _tables(data: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = data.get(key, [])
    tables = [found] if isinstance(found, Mapping) else found
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        raise SweepError(f"{key} is {found!r}; it must be a table, as [[{key}]]")
    return [deepcopy(dict(table)) for table in tables]


def _replace(
    key: str, values: list[Any], workloads: list[dict[str, Any]], grids: list[dict[str, Any]]
) -> None:
    matching = [
        (table, operator) for table, operator in _operators(workloads) if operator.parameters_named(key)
    ]
    if matching:
        for table, operator in matching:
            _replace_parameter(key, values, table, operator)
        return
    known = grid_keys()
    if key not in known or key == "zip":
        parameters = {name for _, operator in _operators(workloads) for name in operator.spellings}
        raise SweepError(f"{key!r} cannot be varied; {nearest(key, [*known, *parameters])}")
    for table in grids:
        _replace_setting(key, values, table)


def _replace_parameter(key: str, values: list[Any], table: dict[str, Any], operator: Operator) -> None:
    replaced = operator.parameters_named(key)
    for other in [name for name in table if name != "name"]:
        named = operator.parameters_named(other)
        if named and named <= replaced:
            del table[other]
    if operator.takes_tuples(key):
        table[key] = [[one] for one in values]
    else:
        table[key] = values[0] if len(values) == 1 else values


def _replace_setting(key: str, values: list[Any], table: dict[str, Any]) -> None:
    for lists in (table.get("zip", {}), table.get(RUN_PREFIX[:-1], {}), table):
        lists.pop(key.removeprefix(RUN_PREFIX), None)
    flat = flatten(table) | {key: values[0] if len(values) == 1 else values}
    if not flat.get("zip", True):
        del flat["zip"]
    table.clear()
    table.update(flat)


def _operators(workloads: list[dict[str, Any]]) -> list[tuple[dict[str, Any], Operator]]:
    return [(table, operator_of(table["name"])) for table in workloads if isinstance(table.get("name"), str)]
