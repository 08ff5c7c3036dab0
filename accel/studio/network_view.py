"""Views of networks."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from accel.base.errors import AccelError
from accel.base.forked_tasks import default_jobs
from accel.image.image import is_network
from accel.network.network import read_network
from accel.network.network_advice import advise_network
from accel.network.network_file import load_network
from accel.network.network_headline import network_headline
from accel.network.network_part import NetworkPart
from accel.network.network_program import NetworkProgram
from accel.network.network_report import analyzed_programs, network_sections
from accel.network.network_result import NetworkResult
from accel.network.saved_network_run import saved_network, whole_figures
from accel.studio.rendered_state import Limits, RenderedState, check_limit, page_figures
from accel.studio.state_commands import commands
from accel.studio.studio_state import StudioState
from accel.views.page_sections import sections_data
from accel.views.run_report import run_view, sequence_view
from accel.views.run_sequence import RunSequence

_Runner = Callable[[Limits], NetworkResult]


def render_network(state: StudioState, path: str, limits: Limits) -> RenderedState:
    """Compile and run a network."""
    program, run = _compiled(path, state)
    for chain in program.chains:
        check_limit("instructions", len(chain.program.instructions), limits.instructions)
    count = len(program.chains)
    if not count:
        raise AccelError(f"no layer of {state.file!r} runs on {state.machine!r}; there is nothing to draw")
    if state.program > count:
        raise AccelError(f"program is {state.program}; {state.file!r} has {count} on this machine")
    result = run(limits)
    shown = _shown_programs(state, result, limits)
    every = analyzed_programs(program, result)
    runs = tuple(every[number] for number in shown)
    view = run_view(runs[0]) if len(runs) == 1 else sequence_view(RunSequence(runs))
    view |= {
        "title": f"{result.graph.name} on {result.config.label}",
        "facts": _facts(result, shown),
        "sections": _sections(program, result, view, shown),
        "stages": None,
        "layers": [_layer(part) for part in program.parts],
        "programs": [
            {
                "number": n + 1,
                "cycles": ran.cycles,
                "layers": [part.fused.name for part in chain.layers],
                "drawn": n in shown,
            }
            for n, (chain, ran) in enumerate(zip(program.chains, result.runs, strict=True))
        ],
        "state": state.to_data(),
        "machine": program.config.to_dict(),
        "schedule": None,
        "headline": "" if (said := network_headline(result)) is None else said.text,
        "figures": page_figures(whole_figures(result)),
        "commands": commands(state),
    }
    return RenderedState(
        view,
        make_saved_run=lambda: saved_network(result, name=state.file),
        advise=lambda seconds: advise_network(program, result, seconds=seconds),
    )


def _facts(result: NetworkResult, shown: list[int]) -> str:
    count = len(result.runs)
    programs = "one program" if count == 1 else f"{count} programs"
    if len(shown) < count:
        programs += f", of which number {shown[0] + 1} is drawn"
    return f"{result.cycles or 0:,} cycles in {programs}, {len(result.layers)} layers"


def _sections(
    program: NetworkProgram, result: NetworkResult, view: dict[str, Any], shown: list[int]
) -> list[dict[str, str]]:
    own = sections_data(network_sections(program, result))
    names = {one["name"] for one in own} | {"loops"}
    suffix = f" of program {shown[0] + 1}" if len(shown) < len(result.runs) else ""
    return [
        *own,
        *(one | {"heading": one["heading"] + suffix} for one in view["sections"] if one["name"] not in names),
    ]


def _shown_programs(state: StudioState, result: NetworkResult, limits: Limits) -> list[int]:
    """Return the program that the state names, all, or the longest if all have too many instructions."""
    if state.program:
        return [state.program - 1]
    every = list(range(len(result.runs)))
    if sum(len(run.instructions) for run in result.runs) <= limits.instructions:
        return every
    return [max(every, key=lambda n: result.runs[n].cycles or 0)]


def _compiled(path: str, state: StudioState) -> tuple[NetworkProgram, _Runner]:
    config = None if is_network(path) else state.config()
    fields = state.settings if config is None else config.to_dict()
    key = f"{path} {json.dumps({name: value for name, value in fields.items() if name != 'name'})}"
    if key not in _CACHE:
        if config is None:
            program = load_network(path).with_timing(state.settings)
        else:
            program = read_network(path).build(config, jobs=default_jobs())
        _CACHE.clear()
        _CACHE[key] = (
            program,
            cache(lambda limits: program.run(max_cycles=limits.cycles, max_uops=limits.uops, record=True)),
        )
    return _CACHE[key]


_CACHE: dict[str, tuple[NetworkProgram, _Runner]] = {}
"""Compiling and running take long, so the last network stays."""


def _layer(part: NetworkPart) -> dict[str, Any]:
    if part.layer is None:
        why = "it runs on the host"
        if part.on_machine:
            why = "a compiled network does not contain its layers as workloads; open the model"
        return {"name": part.fused.name, "state": None, "why": why}
    workload = part.layer.workload()
    parameters = {
        name: value for name, value in workload.parameters.items() if value is not None and value is not False
    }
    return {
        "name": part.fused.name,
        "state": {"workload": part.layer.operator, "parameters": parameters},
    }
