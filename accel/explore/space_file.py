"""Read an exploration from a TOML file."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel.base.arguments import check_integer
from accel.base.errors import ConfigError, SweepError, nearest
from accel.base.json_types import shown
from accel.base.records import replace
from accel.base.run_choices import SAMPLERS
from accel.benchmarks import NETWORKS
from accel.compiler.operators.operator_registry import make_workload, takes_tuples
from accel.compiler.target.machine import machine
from accel.core.config import NAMED, SPECS, parse_quantity
from accel.explore.exploration_tasks import (
    TIMINGS,
    MakeLayer,
    MakeModel,
    MakeNetwork,
    Timing,
    Workload,
)
from accel.explore.machine_figures import MACHINE_FIGURES
from accel.explore.objectives import Objective, check_timing, find_objectives, objectives_of
from accel.explore.placement_tasks import DEFAULT_TIME_LIMIT, DEVICE_LIMITS, PlacementOptions
from accel.explore.search_space import Domain, Space
from accel.explore.space_expressions import Expression, Number
from accel.network.model_files import is_model
from accel.sweeps.task_figures import FREQUENCY

_KEYS = (
    "title",
    "config",
    "timing",
    "sampler",
    "trials",
    "seed",
    "objectives",
    "constraints",
    "field",
    "derived",
    "limit",
    "placement",
    "workload",
)
_PLACEMENT_KEYS = ("seeds", "target", "time_limit")
_MAX_SEEDS = 1000
_DOMAIN_KINDS = ("integers", "powers_of_two", "choices")
_DEFAULT_TRIALS = 100
_DEFAULT_SAMPLER = "nsga2"
_DEFAULT_OBJECTIVES = ("cycles", "block_rams")
_MAX_VALUES = 100_000
_MAX_TRIALS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class ExplorationSpec:
    """An exploration that has not run yet.

    Attributes:
        name: stem of file names.
        trials: machines to measure. Infeasible ones do not count.
        measured_constraints: constraints that name a figure of a measurement. Those of ``space`` need none.
        placement: how machines are placed, or None if no objective, constraint or limit needs a frequency.
    """

    name: str
    title: str
    space: Space
    workloads: tuple[Workload, ...]
    objectives: tuple[Objective, ...]
    timing: Timing = "predicted"
    sampler: str = _DEFAULT_SAMPLER
    trials: int = _DEFAULT_TRIALS
    seed: int = 0
    measured_constraints: tuple[Expression, ...] = ()
    placement: PlacementOptions | None = None

    def with_options(
        self, *, sampler: str | None = None, trials: int | None = None, seed: int | None = None
    ) -> "ExplorationSpec":
        """Return the exploration with some settings replaced. None keeps a setting."""
        return replace(
            self,
            sampler=self.sampler if sampler is None else _sampler(sampler),
            trials=self.trials if trials is None else _trials(trials),
            seed=self.seed if seed is None else check_integer("seed", seed, least=0, error=SweepError),
        )

    @property
    def measured_limits(self) -> dict[str, Number]:
        """The limits on figures that only a measurement knows."""
        return {name: one for name, one in self.space.limits.items() if name not in MACHINE_FIGURES}


def load_exploration(path: str | Path) -> ExplorationSpec:
    """Read an exploration from a TOML file.

    Raises:
        SweepError: an unreadable file, or another form.
        ConfigError, ShapeError: a machine or a workload is impossible.
    """
    source = Path(path)
    try:
        data = tomllib.loads(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise SweepError(f"search space {str(path)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SweepError(f"search space {str(path)!r} is not a text file") from None
    except tomllib.TOMLDecodeError as error:
        raise SweepError(f"search space {str(path)!r} is not TOML: {error}") from None
    return make_exploration(data, name=source.stem, folder=source.parent)


def make_exploration(
    data: Mapping[str, Any], *, name: str = "exploration", folder: Path | None = None
) -> ExplorationSpec:
    """Make an exploration from the content of its file.

    Args:
        data: see ``docs/how-to/explore-machines.md``.
        name: the stem of file names.
        folder: of files named in the table.

    Raises:
        SweepError: the table has another form.
        ConfigError, ShapeError: an impossible machine or workload.
    """
    for key in data:
        if key not in _KEYS:
            raise SweepError(f"a search space has {key!r}; {nearest(key, _KEYS)}")
    title = data.get("title", name)
    if not isinstance(title, str) or not title.isprintable():
        raise SweepError(f"title is {shown(title)}; it must be a line of text")
    timing = data.get("timing", TIMINGS[0])
    if timing not in TIMINGS:
        raise SweepError(f"timing is {shown(timing)}; {nearest(str(timing), TIMINGS)}")
    workloads = _workloads(data, folder or Path())
    if timing != "simulated" and any(isinstance(one.make, MakeModel) for one in workloads):
        raise SweepError(f'timing is {timing}, and a network is in a file; write timing = "simulated"')
    objectives = find_objectives(_texts(data, "objectives", _DEFAULT_OBJECTIVES), workloads, timing)
    constraints = _constraints(data, workloads, timing)
    limits = _limits(data, workloads, timing)
    placement = _placement(data, _names_placement(objectives, constraints, limits, workloads))
    if placement is not None:  # larger machines do not fit the device
        limits |= {name: min(most, limits.get(name, most)) for name, most in DEVICE_LIMITS.items()}
    known = {*SPECS, *MACHINE_FIGURES}
    spec = ExplorationSpec(
        name=name,
        title=title,
        space=_space(data, folder or Path(), [one for one in constraints if one.names <= known], limits),
        workloads=workloads,
        objectives=objectives,
        timing=timing,
        measured_constraints=tuple(one for one in constraints if not one.names <= known),
        placement=placement,
    )
    return spec.with_options(
        sampler=data.get("sampler", _DEFAULT_SAMPLER),
        trials=data.get("trials", _DEFAULT_TRIALS),
        seed=data.get("seed", 0),
    )


def _sampler(name: object) -> str:
    if not isinstance(name, str) or name not in SAMPLERS:
        raise SweepError(f"sampler is {shown(name)}; {nearest(str(name), SAMPLERS)}")
    return name


def _trials(value: object) -> int:
    trials = check_integer("trials", value, error=SweepError)
    if trials > _MAX_TRIALS:
        raise SweepError(f"trials is {trials:,}; at most {_MAX_TRIALS:,} are possible")
    return trials


def _texts(data: Mapping[str, Any], key: str, default: Sequence[str] = ()) -> list[str]:
    found = data.get(key, list(default))
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise SweepError(f"{key} is {shown(found)}; it must be a list of texts")
    if not found and default:
        raise SweepError(f"{key} is empty; give at least one")
    return found


def _table(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key, {})
    if not isinstance(found, Mapping):
        raise SweepError(f"{key} is {shown(found)}; it must be a table, as [{key}]")
    return found


# --- the space -------------------------------------------------------------------------------------


def _space(
    data: Mapping[str, Any], folder: Path, constraints: Sequence[Expression], limits: Mapping[str, Number]
) -> Space:
    name = data.get("config")
    if not isinstance(name, str):
        raise SweepError(
            f"config is {shown(name)}; it must be the base machine's name or file, as 'ecp5-int8'"
        )
    place = name if name in NAMED else str(folder / name)
    domains = {field: _domain(field, table) for field, table in _table(data, "field").items()}
    if not domains:
        raise SweepError("the space has no field; give one, as field.block_in.powers_of_two = [4, 32]")
    derived: dict[str, Expression] = {}
    for field, text in _table(data, "derived").items():
        _check_field(field)
        if field in domains:
            raise SweepError(f"{field} is a field of the space and derived; give one of them")
        derived[field] = Expression(text, {*SPECS}, f"the expression of {field}")
    return Space(
        base=machine(place).config,
        base_name=place,
        domains=domains,
        derived=derived,
        constraints=constraints,
        limits=limits,
    )


def _constraints(data: Mapping[str, Any], workloads: Sequence[Workload], timing: Timing) -> list[Expression]:
    known = {*SPECS, *objectives_of(workloads)}
    found = [Expression(text, known, "the constraint") for text in _texts(data, "constraints")]
    for constraint in found:
        for name in sorted(constraint.names):
            check_timing(name, timing)
    return found


def _limits(data: Mapping[str, Any], workloads: Sequence[Workload], timing: Timing) -> dict[str, Number]:
    known = objectives_of(workloads)
    found: dict[str, Number] = {}
    for name, value in _table(data, "limit").items():
        if name not in known:
            raise SweepError(f"limit has {name!r}; {nearest(name, known)}")
        if name == FREQUENCY:
            raise SweepError(
                "limit has 'frequency', and a limit is the largest value; give the smallest one, as "
                "constraints = ['frequency >= 60']"
            )
        check_timing(name, timing)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise SweepError(f"the limit of {name} is {shown(value)}; it must be a positive number")
        found[name] = value
    return found


def _names_placement(
    objectives: Sequence[Objective],
    constraints: Sequence[Expression],
    limits: Mapping[str, Number],
    workloads: Sequence[Workload],
) -> bool:
    placed = {name for name, one in objectives_of(workloads).items() if one.source == "placement"}
    used = {one.name for one in objectives}.union(limits, *(one.names for one in constraints))
    return not placed.isdisjoint(used)


def _placement(data: Mapping[str, Any], is_needed: bool) -> PlacementOptions | None:
    table = _table(data, "placement")
    for key in table:
        if key not in _PLACEMENT_KEYS:
            raise SweepError(f"placement has {key!r}; {nearest(key, _PLACEMENT_KEYS)}")
    if not is_needed:
        if "placement" in data:
            raise SweepError(
                "the space has placement, and nothing needs the frequency; add 'frequency' or 'microseconds' "
                "to the objectives"
            )
        return None
    for key in ("target", "time_limit"):
        value = table.get(key, 1)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise SweepError(f"{key} of placement is {shown(value)}; it must be a positive number")
    target = table.get("target")
    return PlacementOptions(
        seeds=check_integer("seeds of placement", table.get("seeds", 1), most=_MAX_SEEDS, error=SweepError),
        target=None if target is None else float(target),
        time_limit=float(table.get("time_limit", DEFAULT_TIME_LIMIT)),
    )


def _check_field(name: str) -> None:
    if name not in SPECS:
        raise SweepError(f"{name!r} is not a configuration field; {nearest(name, SPECS)}")


def _domain(field: str, table: object) -> Domain:
    _check_field(field)
    if not isinstance(table, Mapping) or not table:
        raise SweepError(
            f"field {field} is {shown(table)}; it must be a table, as {{ powers_of_two = [4, 32] }}"
        )
    for key in table:
        if key not in (*_DOMAIN_KINDS, "step"):
            raise SweepError(f"field {field} has {key!r}; {nearest(key, (*_DOMAIN_KINDS, 'step'))}")
    kinds = [kind for kind in _DOMAIN_KINDS if kind in table]
    if len(kinds) != 1 or ("step" in table and kinds != ["integers"]):
        raise SweepError(
            f"field {field} has {', '.join(table)}; give one of {', '.join(_DOMAIN_KINDS)}, "
            f"and step with integers only"
        )
    (kind,) = kinds
    listed = table[kind]
    if not isinstance(listed, list) or not listed:
        raise SweepError(f"{kind} of {field} is {shown(listed)}; it must be a list of values")
    try:
        values = [parse_quantity(field, value) for value in listed]
    except ConfigError as error:
        raise SweepError(str(error)) from None
    if kind == "choices":
        if len(set(values)) != len(values):
            raise SweepError(f"choices of {field} has a value twice; give each once")
        return Domain(tuple(values), is_ordered=values == sorted(values))
    if len(values) != 2 or values[0] > values[1]:
        raise SweepError(f"{kind} of {field} is {shown(listed)}; it must be the least and the largest value")
    low, high = values
    if kind == "powers_of_two":
        if low < 1:
            raise SweepError(f"powers_of_two of {field} is {shown(listed)}; both must be at least 1")
        exponents = range((low - 1).bit_length(), high.bit_length())
        found = tuple(1 << one for one in exponents)
    else:
        step = check_integer(f"step of {field}", table.get("step", 1), error=SweepError)
        if (high - low) // step >= _MAX_VALUES:
            raise SweepError(f"{field} has more than {_MAX_VALUES:,} values; give a larger step")
        found = tuple(range(low, high + 1, step))
    if not found:
        raise SweepError(f"{kind} of {field} is {shown(listed)}; it contains no value")
    return Domain(found)


# --- workloads -------------------------------------------------------------------------------------


def _workloads(data: Mapping[str, Any], folder: Path) -> tuple[Workload, ...]:
    tables = data.get("workload", [])
    tables = [tables] if isinstance(tables, Mapping) else tables
    if not isinstance(tables, list) or not all(isinstance(one, Mapping) for one in tables):
        raise SweepError(f"workload is {shown(tables)}; it must be a table, as [[workload]]")
    if not tables:
        raise SweepError("the space has no workload; give one, as [[workload]] with network = 'resnet18'")
    found = [_workload(dict(table), folder) for table in tables]
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise SweepError(f"two workloads are called {name!r}; give one a label")
    return tuple(found)


def _workload(table: dict[str, Any], folder: Path) -> Workload:
    weight = table.pop("weight", 1)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < float("inf"):
        raise SweepError(f"weight is {shown(weight)}; it must be a positive number")
    label = table.pop("label", None)
    if label is not None and not (isinstance(label, str) and label.isprintable() and label):
        raise SweepError(f"label is {shown(label)}; it must be a text")
    if ("name" in table) == ("network" in table):
        raise SweepError("a workload needs a name, as 'conv2d', or a network, as 'resnet18', and not both")
    if "network" in table:
        return _network(table, folder, weight, label)
    name = table.pop("name")
    if not isinstance(name, str):
        raise SweepError(f"a workload's name is {shown(name)}; it must be text, as 'gemm'")
    parameters = {
        key: tuple(value) if isinstance(value, list) and takes_tuples(name, key) else value
        for key, value in table.items()
    }
    workload = make_workload(name, parameters)
    values = tuple(workload.parameters.items())
    return Workload(
        name=label or name,
        weight=weight,
        make=MakeLayer(workload.name, values),
        command=("accel", "compile", name, *_options(parameters)),
    )


def _options(parameters: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for key, value in parameters.items():
        option = f"--{key.lower().replace('_', '-')}"
        if isinstance(value, bool):
            found += [option] if value else []
        else:
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            found += [option, text]
    return found


def _network(table: dict[str, Any], folder: Path, weight: float, label: str | None) -> Workload:
    network = table.pop("network")
    if table:
        raise SweepError(
            f"a workload with a network has {next(iter(table))!r}; only weight and label are known"
        )
    if not isinstance(network, str):
        raise SweepError(f"network is {shown(network)}; it must be a name, as 'resnet18', or a file")
    if network in NETWORKS:
        return Workload(
            name=label or network,
            weight=weight,
            make=MakeNetwork(network),
            command=("accel", "bench", network),
        )
    if not is_model(network):
        raise SweepError(
            f"network is {network!r}; {nearest(network, NETWORKS)} Or give an .onnx or .tflite file"
        )
    make = MakeModel(folder / network)
    _ = make.digest  # a missing file is reported now
    name = label or Path(network).stem
    return Workload(name=name, weight=weight, make=make, command=("accel", "compile", str(make.path)))
