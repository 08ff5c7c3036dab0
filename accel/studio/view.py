"""From a state to what is seen of it, as plain data: one pure function."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from accel.base.errors import AccelError, LimitExceeded, MachineError, ShapeError
from accel.compiler.expr.metrics import compulsory
from accel.core.isa import Unit
from accel.core.states import State as UnitState
from accel.image.image import is_network
from accel.network.file import load_network
from accel.network.network import read_network
from accel.network.place import Part
from accel.network.program import NetworkProgram
from accel.network.report import network_sections
from accel.run.program import Program, build
from accel.run.replay import load_any
from accel.run.result import Result
from accel.studio.command import commands
from accel.studio.files import is_model
from accel.studio.state import State
from accel.views.report import run_view
from accel.views.scene import scene
from accel.views.tables import table

_KEPT = 6
"""Runs that are remembered, the pinned one among them."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a state may ask for.

    Attributes:
        macs: multiply-accumulates of the workload.
        instructions: of the program.
        cycles, uops: of the run.
    """

    macs: int = 1 << 32
    instructions: int = 40_000
    cycles: int = 50_000_000
    uops: int = 1 << 26


class Views:
    """Views of states; those of the last few runs are remembered.

    Args:
        limits: what a state may ask for.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._kept = OrderedDict[str, dict[str, Any]]()

    def view(self, state: State, paths: Mapping[str, str] | None = None) -> dict[str, Any]:
        """What is to be seen of a state, beside what it is compared with.

        Args:
            state: what is looked at.
            paths: of files, by the names under which states know them.

        Raises:
            AccelError: the state does not hold together, cannot be compiled, or asks for too much.
        """
        view = self._run(state, paths)
        if state.pinned is None:
            return view
        other = self._run(state.pinned, paths)
        against = {"title": other["title"], "figures": other["figures"]}
        section = {
            "name": "compared",
            "heading": "Against the pinned run",
            "html": _compared(view["figures"], other["figures"]),
        }
        return {**view, "pinned": against, "sections": [section, *view["sections"]]}

    def _run(self, state: State, paths: Mapping[str, str] | None) -> dict[str, Any]:
        key = state.key
        if key not in self._kept:
            self._kept[key] = view_of(state, self._limits, paths=paths)
        self._kept.move_to_end(key)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return self._kept[key]


def view_of(
    state: State, limits: Limits | None = None, *, paths: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What is to be seen of a state: that of :func:`~accel.views.report.run_view`, with the schedule's steps,
    the figures that runs are compared by, and the commands that give the same. Nothing but the state and its
    file decide what it holds, except for how long it took.

    Args:
        state: what is looked at.
        limits: what it may ask for.
        paths: of files, by the names under which states know them.

    Raises:
        AccelError: the state does not hold together, cannot be compiled, or asks for too much.
    """
    most = limits or Limits()
    if state.file:
        path = _path(state, paths or {})
        if is_model(path) or is_network(path):
            return network_view(state, path, most)
        program = load_any(path)
        program = program.with_timing(program.config.override(state.settings, kinds=("timing",)))
        return _seen(state, program, most)
    workload = state.make_workload()
    _check("multiply-accumulates", compulsory((workload.output,)).macs, most.macs)
    steps = None if state.steps is None else [dict(step) for step in state.steps]
    return _seen(state, build(workload, state.config(), steps=steps, mapping=state.mapping), most)


def _path(state: State, paths: Mapping[str, str]) -> str:
    if state.file not in paths:
        raise AccelError(f"{state.file!r} is no file that the studio was given; open it again")
    return paths[state.file]


def _seen(state: State, program: Program, most: Limits) -> dict[str, Any]:
    """The view of a program's run."""
    _check("instructions", len(program.instructions), most.instructions)
    try:
        result: Result = program.run(max_cycles=most.cycles, max_uops=most.uops)
    except MachineError as error:
        known = error.result
        if isinstance(error, LimitExceeded) or not isinstance(known, Result) or known.cycles is None:
            raise
        result = known
    source = program.source
    schedule = (
        None
        if source is None or source.schedule is None or state.file
        else {
            "steps": source.schedule,
            "mapping": program.mapping,
            "edited": state.steps is not None,
        }
    )
    return run_view(scene(result, state.file or None)) | {
        "state": state.to_data(),
        "machine": result.config.to_dict(),
        "schedule": schedule,
        "figures": figures(result),
        "commands": commands(state),
    }


def network_view(state: State, path: str, most: Limits) -> dict[str, Any]:
    """What is to be seen of a network's run: its layers, and its longest program in every detail.

    Args:
        state: what is looked at.
        path: of the network.
        most: what it may ask for.

    Raises:
        AccelError: it cannot be read or compiled, or asks for too much.
    """
    program = _network(path, state)
    for chain in program.chains:
        _check("instructions", len(chain.program.instructions), most.instructions)
    if not program.chains:
        raise AccelError(f"no layer of {state.file!r} runs on {state.machine!r}; there is nothing to draw")
    result = program.run(max_cycles=most.cycles, max_uops=most.uops, record=True)
    number = max(range(len(result.runs)), key=lambda n: result.runs[n].cycles or 0)
    run, chain = result.runs[number], program.chains[number]
    named = [(part.stage.name, end) for part, end in zip(chain.layers, chain.ends, strict=True)]
    view = run_view(scene(run, state.file, layers=named))
    own = [
        {"name": name, "heading": heading, "html": html}
        for name, heading, html in network_sections(program, result)
    ]
    taken = {one["name"] for one in own} | {"loops"}
    cycles = result.cycles or 0
    return view | {
        "title": f"{result.graph.name} on {result.config.label}",
        "facts": f"{cycles:,} cycles in {_programs(len(program.chains))}, {len(result.layers)} layers",
        "sections": [*own, *(one for one in view["sections"] if one["name"] not in taken)],
        "stages": None,
        "layers": [_layer(part) for part in program.parts],
        "state": state.to_data(),
        "machine": program.config.to_dict(),
        "schedule": None,
        "figures": figures(run)
        | {"cycles": cycles, "utilization": result.utilization, "roofline_fraction": None},
        "commands": commands(state),
    }


def _programs(count: int) -> str:
    return "one program" if count == 1 else f"{count} programs, of which the longest is drawn"


def _network(path: str, state: State) -> NetworkProgram:
    """A network on the state's machine; compiled networks have theirs."""
    if is_network(path):
        return load_network(path).with_timing(state.settings)
    config = state.config()
    geometry = {name: value for name, value in config.to_dict().items() if name != "name"}
    key = f"{path} {geometry}"
    if key not in _BUILT:
        _BUILT.clear()
        _BUILT[key] = read_network(path).build(config)
    return _BUILT[key]


_BUILT: dict[str, NetworkProgram] = {}
"""The network that was compiled last, since that takes long; by its path and machine."""


def _layer(part: Part) -> dict[str, Any]:
    """A layer, and the state that looks at it alone; that is None where it does not run on the machine."""
    if part.layer is None:
        return {"name": part.stage.name, "state": None}
    workload = part.layer.workload()
    given = {
        name: value for name, value in workload.parameters.items() if value is not None and value is not False
    }
    return {"name": part.stage.name, "state": {"workload": part.layer.operator, "parameters": given}}


def _check(what: str, count: int, most: int) -> None:
    if count > most:
        raise ShapeError(f"{what} are {count:,}; the studio looks at up to {most:,}, commands at more")


def figures(result: Result) -> dict[str, Any]:
    """The figures by which runs are compared.

    Args:
        result: of a run that has cycles.
    """
    assert result.stalls is not None
    return {
        "cycles": result.cycles,
        "utilization": result.utilization,
        "roofline_fraction": result.roofline_fraction,
        "bound_by": result.bound_by,
        "instructions": len(result.instructions),
        "read_bytes": result.load_bytes + result.bytes_by_kind["instructions"],
        "written_bytes": result.store_bytes,
        "units": {
            unit.label: dict(
                zip(
                    (state.name.lower() for state in UnitState),
                    result.stalls[unit.label].to_dict().values(),
                    strict=True,
                )
            )
            for unit in Unit
        },
    }


def _compared(here: dict[str, Any], there: dict[str, Any]) -> str:
    """A table of what differs."""
    rows = [
        _row(name, here[key], there[key], form)
        for name, key, form in (
            ("cycles", "cycles", _count),
            ("GEMM core used", "utilization", _share),
            ("of the roofline", "roofline_fraction", _share),
            ("instructions", "instructions", _count),
            ("bytes read", "read_bytes", _count),
            ("bytes written", "written_bytes", _count),
        )
        if here[key] is not None and there[key] is not None
    ]
    for unit in ("load", "compute", "store"):
        for state in UnitState:
            key = state.name.lower()
            one, two = here["units"][unit][key], there["units"][unit][key]
            if one != two:
                rows.append(_row(f"{unit}: {state.label}", one, two, _count))
    return table(("", "here", "pinned", "difference", "times"), rows)


def _row(name: str, here: float, there: float, form: Callable[[float], str]) -> tuple[str, ...]:
    change = here - there
    sign = "+" if change > 0 else "-" if change < 0 else ""
    times = f"{here / there:.2f}" if there else ""
    return name, form(here), form(there), f"{sign}{form(abs(change))}" if change else "0", times


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _share(value: float) -> str:
    return f"{value:.1%}"


def error_of(error: AccelError) -> dict[str, Any]:
    """What a page is told of a state that cannot be shown."""
    return {"error": {"kind": type(error).__name__, "message": str(error)}}
