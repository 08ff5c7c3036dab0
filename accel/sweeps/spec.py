"""What a sweep is to measure and draw, as a file or a table says it."""

import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel.base.errors import SweepError, nearest
from accel.base.plain import shown
from accel.compiler.operators.operator import Operator
from accel.compiler.operators.registry import operator_of
from accel.sweeps.grid import RUN, flatten, knobs, points
from accel.sweeps.plots import Plot, make_plot
from accel.sweeps.points import Point

_KEYS = ("title", "seed", "workload", "grid", "plot")


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A sweep before it is run.

    Attributes:
        name: what its files are called.
        title: a line for people.
        points: what is measured, in the table's order.
        plots: what is drawn from the table.
    """

    name: str
    title: str
    points: tuple[Point, ...]
    plots: tuple[Plot, ...] = ()


def load_spec(path: str | Path, vary: Mapping[str, Sequence[Any]] | None = None) -> Spec:
    """The sweep that a TOML file describes.

    Args:
        path: of the file.
        vary: values that replace those in it, see :func:`make_spec`.

    Raises:
        SweepError: it cannot be read, or describes no sweep.
        ConfigError, ProgramError, ScheduleError, ShapeError: a value in it cannot be.
    """
    source = Path(path)
    try:
        data = tomllib.loads(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise SweepError(f"sweep {str(path)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SweepError(f"sweep {str(path)!r} is no text file") from None
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
    """The sweep that a table of the form of a sweep file describes.

    Args:
        data: ``title``, ``seed``, and lists of tables ``workload``, ``grid`` and ``plot``.
        name: what its files are called.
        vary: values by key that replace those in every workload, if the key is a parameter of one, or in
            every grid; they span the grid like lists in the file.
        folder: what other files named in it are relative to.

    Raises:
        SweepError: it is not of that form.
        ConfigError, ProgramError, ScheduleError, ShapeError: a value in it cannot be.
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
        points=tuple(points(workloads, grids, seed=data.get("seed", 0), folder=folder)),
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
    """Give a key these values wherever it belongs."""
    value = values[0] if len(values) == 1 else values
    of = [(table, operator) for table, operator in _operators(workloads) if operator.named(key)]
    if of:
        for table, operator in of:
            for other in [name for name in table if name != "name"]:
                if operator.named(other) and operator.named(other) <= operator.named(key):
                    del table[other]
            table[key] = [[one] for one in values] if operator.takes_tuples(key) else value
        return
    known = knobs()
    if key not in known or key == "zip":
        every = {name for _, operator in _operators(workloads) for name in operator.spellings}
        raise SweepError(f"{key!r} cannot be varied; {nearest(key, [*known, *every])}")
    for table in grids:
        for lists in (table.get("zip", {}), table.get(RUN[:-1], {}), table):
            lists.pop(key.removeprefix(RUN), None)
        flat = flatten(table) | {key: value}
        if not flat.get("zip", True):
            del flat["zip"]
        table.clear()
        table.update(flat)


def _operators(workloads: list[dict[str, Any]]) -> list[tuple[dict[str, Any], Operator]]:
    """The workloads that have a name, each with its operator."""
    return [(table, operator_of(table["name"])) for table in workloads if isinstance(table.get("name"), str)]
