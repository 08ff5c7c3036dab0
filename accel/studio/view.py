"""From a state to what is seen of it, as plain data: one pure function."""

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from html import escape
from typing import Any

from accel.base.errors import AccelError, LimitExceeded, MachineError, ShapeError
from accel.compiler.expr.metrics import compulsory
from accel.core.config import INSTRUCTION_BYTES
from accel.core.states import State as UnitState
from accel.image.image import is_network
from accel.network.advice import advise_network
from accel.network.file import load_network
from accel.network.network import read_network
from accel.network.place import Part
from accel.network.program import NetworkProgram
from accel.network.report import network_scenes, network_sections
from accel.network.result import NetworkResult
from accel.network.saved import saved_network, whole_figures
from accel.run.advice import Advised, advise
from accel.run.build import build
from accel.run.program import Program
from accel.run.replay import load_any
from accel.run.result import Result
from accel.studio.command import commands
from accel.studio.files import is_model
from accel.studio.state import State
from accel.views.comparison import Comparison, comparison_sections, summary
from accel.views.report import run_view, runs_view
from accel.views.saved import SavedRun
from accel.views.scene import scene
from accel.views.scenes import Scenes
from accel.views.sections import sections_data

_KEPT = 6
"""Runs that are remembered, the pinned one among them."""
_ADVICE_SECONDS = 8.0
"""Of processor time, in which changes are tried."""


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


@dataclass(frozen=True, eq=False)
class Look:
    """A state that was looked at.

    Attributes:
        view: what is to be seen, as plain data.
        saved: makes what it is compared by.
        advise: says what would help, in at most so many seconds of processor time.
    """

    view: dict[str, Any]
    saved: Callable[[], SavedRun]
    advise: Callable[[float], Advised]

    @cached_property
    def run(self) -> SavedRun:
        """What it is compared by."""
        return self.saved()


class Views:
    """Views of states; those of the last few runs are remembered.

    Args:
        limits: what a state may ask for.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._kept = OrderedDict[str, Look]()

    def view(self, state: State, paths: Mapping[str, str] | None = None) -> dict[str, Any]:
        """What is to be seen of a state, beside what it is compared with.

        Args:
            state: what is looked at.
            paths: of files, by the names under which states know them.

        Raises:
            AccelError: the state does not hold together, cannot be compiled, or asks for too much.
        """
        here = self.look(state, paths)
        if state.pinned is None:
            return here.view
        there = self.look(state.pinned, paths)
        against = {"title": there.view["title"], "figures": there.view["figures"]}
        section = {
            "name": "compared",
            "heading": "Against the pinned run",
            "html": _compared(Comparison(there.run, here.run)),
        }
        return {**here.view, "pinned": against, "sections": [section, *here.view["sections"]]}

    def advice(self, state: State, paths: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Which single changes of the machine would make a state's run faster, and by how much.

        Args:
            state: what is looked at.
            paths: of files, by the names under which states know them.

        Raises:
            AccelError: as :meth:`view`, or the run ended early.
        """
        found = self.look(state, paths).advise(_ADVICE_SECONDS)
        more = [{"change": one.change, "how": one.how} for one in found.advice]
        data = found.to_dict()
        advice = [one | two for one, two in zip(data["advice"], more, strict=True)]
        return data | {"advice": advice, "left_out": found.left_out}

    def look(self, state: State, paths: Mapping[str, str] | None) -> Look:
        """A state's run, from memory if it is there."""
        key = state.key
        if key not in self._kept:
            self._kept[key] = look_at(state, self._limits, paths or {})
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
    return look_at(state, limits or Limits(), paths or {}).view


def look_at(state: State, most: Limits, paths: Mapping[str, str]) -> Look:
    """Compile and run what a state says; as :func:`view_of`, with the run.

    Args:
        state: what is looked at.
        most: what it may ask for.
        paths: of files, by the names under which states know them.

    Raises:
        AccelError: as :func:`view_of`.
    """
    if state.file:
        path = _path(state, paths)
        if is_model(path) or is_network(path):
            return _look_at_network(state, path, most)
        program = load_any(path)
        program = program.with_timing(program.config.override(state.settings, kinds=("timing",)))
        return _look_at_program(state, program, most)
    workload = state.make_workload()
    _check("multiply-accumulates", compulsory((workload.output,)).macs, most.macs)
    steps = None if state.steps is None else [dict(step) for step in state.steps]
    return _look_at_program(state, build(workload, state.config(), steps=steps, mapping=state.mapping), most)


def _path(state: State, paths: Mapping[str, str]) -> str:
    if state.file not in paths:
        raise AccelError(f"{state.file!r} is no file that the studio was given; open it again")
    return paths[state.file]


def _look_at_program(state: State, program: Program, most: Limits) -> Look:
    """A program's run."""
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
    view = run_view(scene(result, state.file or None)) | {
        "state": state.to_data(),
        "machine": result.config.to_dict(),
        "schedule": schedule,
        "figures": figures(result.to_dict()),
        "commands": commands(state),
    }
    return Look(
        view, saved=lambda: SavedRun.of(result), advise=lambda seconds: advise(result, seconds=seconds)
    )


def _look_at_network(state: State, path: str, most: Limits) -> Look:
    """A network's run: its layers, and its programs one behind the other, or one of them in every detail."""
    program, run_it = _network(path, state)
    for chain in program.chains:
        _check("instructions", len(chain.program.instructions), most.instructions)
    count = len(program.chains)
    if not count:
        raise AccelError(f"no layer of {state.file!r} runs on {state.machine!r}; there is nothing to draw")
    if state.program > count:
        raise AccelError(f"program is {state.program}; {state.file!r} has {count} on this machine")
    result = run_it(most)
    drawn = _drawn(state, result, most)
    every = network_scenes(program, result)
    scenes = tuple(every[number] for number in drawn)
    view = run_view(scenes[0]) if len(scenes) == 1 else runs_view(Scenes(scenes))
    own = sections_data(network_sections(program, result))
    taken = {one["name"] for one in own} | {"loops"}
    alone = f" of program {drawn[0] + 1}" if len(drawn) < count else ""
    inside = [
        one | {"heading": one["heading"] + alone} for one in view["sections"] if one["name"] not in taken
    ]
    told = "one program"
    if count > 1:
        told = f"{count} programs" + (f", of which number {drawn[0] + 1} is drawn" if alone else "")
    view |= {
        "title": f"{result.graph.name} on {result.config.label}",
        "facts": f"{result.cycles or 0:,} cycles in {told}, {len(result.layers)} layers",
        "sections": [*own, *inside],
        "stages": None,
        "layers": [_layer(part) for part in program.parts],
        "programs": [
            {
                "number": n + 1,
                "cycles": ran.cycles,
                "layers": [part.stage.name for part in one.layers],
                "drawn": n in drawn,
            }
            for n, (one, ran) in enumerate(zip(program.chains, result.runs, strict=True))
        ],
        "state": state.to_data(),
        "machine": program.config.to_dict(),
        "schedule": None,
        "figures": figures(whole_figures(result)),
        "commands": commands(state),
    }
    return Look(
        view,
        saved=lambda: saved_network(result, name=state.file),
        advise=lambda seconds: advise_network(program, result, seconds=seconds),
    )


def _drawn(state: State, result: NetworkResult, most: Limits) -> list[int]:
    """The places of the programs that are drawn: the one that the state names, else all of them, or the
    longest if they have too many instructions together."""
    if state.program:
        return [state.program - 1]
    every = list(range(len(result.runs)))
    if sum(len(run.instructions) for run in result.runs) <= most.instructions:
        return every
    return [max(every, key=lambda n: result.runs[n].cycles or 0)]


def _network(path: str, state: State) -> tuple[NetworkProgram, Callable[[Limits], NetworkResult]]:
    """A network on the state's machine, and its run; compiled networks have their machine."""
    compiled = is_network(path)
    config = None if compiled else state.config()
    fields = state.settings if config is None else config.to_dict()
    key = f"{path} {json.dumps({name: value for name, value in fields.items() if name != 'name'})}"
    if key not in _KNOWN:
        if config is None:
            program = load_network(path).with_timing(state.settings)
        else:
            program = read_network(path).build(config)
        _KNOWN.clear()
        _KNOWN[key] = (
            program,
            cache(lambda most: program.run(max_cycles=most.cycles, max_uops=most.uops, record=True)),
        )
    return _KNOWN[key]


_KNOWN: dict[str, tuple[NetworkProgram, Callable[[Limits], NetworkResult]]] = {}
"""The network that was looked at last, by its path and machine, since compiling and running it takes long."""


def _layer(part: Part) -> dict[str, Any]:
    """A layer, and the state that looks at it alone; that is None where there is none, and why."""
    if part.layer is None:
        why = "it runs on the host"
        if part.on_machine:
            why = "a compiled network does not hold its layers by themselves; open the model"
        return {"name": part.stage.name, "state": None, "why": why}
    workload = part.layer.workload()
    given = {
        name: value for name, value in workload.parameters.items() if value is not None and value is not False
    }
    return {"name": part.stage.name, "state": {"workload": part.layer.operator, "parameters": given}}


def _check(what: str, count: int, most: int) -> None:
    if count > most:
        raise ShapeError(f"{what} are {count:,}; the studio looks at up to {most:,}, commands at more")


def figures(found: Mapping[str, Any]) -> dict[str, Any]:
    """The figures by which runs are compared.

    Args:
        found: as :meth:`~accel.run.result.Result.to_dict` has them, of a run that has cycles.
    """
    names = [state.name.lower() for state in UnitState]
    return {
        **{key: found[key] for key in ("cycles", "utilization", "roofline_fraction", "bound_by")},
        "instructions": found["instructions"],
        "read_bytes": found["load_bytes"] + found["instructions"] * INSTRUCTION_BYTES,
        "written_bytes": found["store_bytes"],
        "units": {
            unit: dict(zip(names, cycles.values(), strict=True)) for unit, cycles in found["stalls"].items()
        },
    }


def _compared(found: Comparison) -> str:
    """What differs, and why: A is the pinned run, B the one that is looked at."""
    known = {name: html for name, _, html in comparison_sections(found)}
    parts = [f"<p>{escape(summary(found))}. A is the pinned run.</p>", known["timelines"]]
    if found.explaining:
        parts.append(known["explaining"])
    if found.layers:
        parts.append("<h3>Layers</h3>" + known["layers"])
    more = known["figures"] + known["critical"] + known["units"]
    return "".join(parts) + f"<details><summary>figures, causes and units of both</summary>{more}</details>"


def error_of(error: AccelError, paths: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What a page is told of a state that cannot be shown.

    Args:
        error: why.
        paths: of files, by the names under which the page knows them, which it is told in their place.
    """
    message = str(error)
    for name, path in (paths or {}).items():
        message = message.replace(path, name)
    return {"error": {"kind": type(error).__name__, "message": message}}
