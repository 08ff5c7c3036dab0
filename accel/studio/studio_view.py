"""The content of the studio's page."""

from collections import OrderedDict
from collections.abc import Mapping
from html import escape
from typing import Any

from accel.base.errors import AccelError, LimitExceeded, MachineError
from accel.compiler.expr.compulsory_cost import compulsory
from accel.image.image import is_network
from accel.run.build_program import build
from accel.run.machine_advice import advise
from accel.run.program import Program
from accel.run.replay import load_any
from accel.run.result import Result
from accel.run.run_headline import headline
from accel.studio.network_view import render_network
from accel.studio.rendered_state import Limits, RenderedState, check_limit, page_figures
from accel.studio.state_commands import commands
from accel.studio.studio_files import is_model
from accel.studio.studio_state import StudioState
from accel.views.analyzed_run import analyze_run
from accel.views.run_comparison import Comparison, comparison_sections, summary
from accel.views.run_report import run_view, view_page
from accel.views.saved_run import SavedRun

_CACHED_STATES = 6
_ADVICE_SECONDS = 8.0


class ViewCache:
    """Computes views, and caches the runs of the last states."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._cache = OrderedDict[str, RenderedState]()

    def view(self, state: StudioState, paths: Mapping[str, str] | None = None) -> dict[str, Any]:
        shown = self.render(state, paths)
        if state.pinned is None:
            return shown.view
        pinned = self.render(state.pinned, paths)
        section = {
            "name": "compared",
            "heading": "Comparison with the pinned run",
            "html": _comparison_html(Comparison(pinned.saved_run, shown.saved_run)),
        }
        return {
            **shown.view,
            "pinned": {"title": pinned.view["title"], "figures": pinned.view["figures"]},
            "sections": [section, *shown.view["sections"]],
        }

    def page(self, state: StudioState, paths: Mapping[str, str] | None = None) -> str:
        return view_page(self.view(state, paths))

    def advice(self, state: StudioState, paths: Mapping[str, str] | None = None) -> dict[str, Any]:
        found = self.render(state, paths).advise(_ADVICE_SECONDS)
        texts = [{"change": one.change, "how": one.how} for one in found.advice]
        data = found.to_dict()
        advice = [one | text for one, text in zip(data["advice"], texts, strict=True)]
        return data | {"advice": advice, "left_out": found.left_out}

    def render(self, state: StudioState, paths: Mapping[str, str] | None) -> RenderedState:
        key = state.key
        if key not in self._cache:
            self._cache[key] = render_state(state, self._limits, paths or {})
        self._cache.move_to_end(key)
        while len(self._cache) > _CACHED_STATES:
            self._cache.popitem(last=False)
        return self._cache[key]


def state_view(
    state: StudioState, limits: Limits | None = None, *, paths: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the view of a state.

    It is a ``run_view`` with schedule, figures for comparisons, and shell commands.
    """
    return render_state(state, limits or Limits(), paths or {}).view


def render_state(state: StudioState, limits: Limits, paths: Mapping[str, str]) -> RenderedState:
    if state.file:
        path = _path(state, paths)
        if is_model(path) or is_network(path):
            return render_network(state, path, limits)
        program = load_any(path)
        program = program.with_timing(program.config.override(state.settings, kinds=("timing",)))
        return _render_program(state, program, limits)
    workload = state.make_workload()
    check_limit("multiply-accumulates", compulsory((workload.output,)).macs, limits.macs)
    steps = None if state.steps is None else [dict(step) for step in state.steps]
    program = build(workload, state.config(), steps=steps, mapping=state.mapping)
    return _render_program(state, program, limits)


def _path(state: StudioState, paths: Mapping[str, str]) -> str:
    if state.file not in paths:
        raise AccelError(f"{state.file!r} is not a file of the studio; open it again")
    return paths[state.file]


def _render_program(state: StudioState, program: Program, limits: Limits) -> RenderedState:
    check_limit("instructions", len(program.instructions), limits.instructions)
    try:
        result: Result = program.run(max_cycles=limits.cycles, max_uops=limits.uops)
    except MachineError as error:
        partial = error.result
        if isinstance(error, LimitExceeded) or not isinstance(partial, Result) or partial.cycles is None:
            raise
        result = partial
    source = program.source
    schedule = None
    if source is not None and source.schedule is not None and not state.file:
        schedule = {
            "steps": source.schedule,
            "mapping": program.mapping,
            "edited": state.steps is not None,
        }
    view = run_view(analyze_run(result, state.file or None)) | {
        "state": state.to_data(),
        "machine": result.config.to_dict(),
        "schedule": schedule,
        "headline": "" if (said := headline(result)) is None else said.text,
        "figures": page_figures(result.to_dict()),
        "commands": commands(state),
    }
    return RenderedState(
        view,
        make_saved_run=lambda: SavedRun.of(result),
        advise=lambda seconds: advise(result, seconds=seconds),
    )


def _comparison_html(found: Comparison) -> str:
    sections = {name: html for name, _, html in comparison_sections(found)}
    parts = [f"<p>{escape(summary(found))}. A is the pinned run.</p>", sections["timelines"]]
    if found.explaining:
        parts.append(sections["explaining"])
    if found.layers:
        parts.append("<h3>Layers</h3>" + sections["layers"])
    more = sections["figures"] + sections["critical"] + sections["units"]
    return "".join(parts) + f"<details><summary>figures, causes and units of both</summary>{more}</details>"


def error_data(error: AccelError, paths: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return an error as data. Its message has names instead of ``paths``."""
    message = str(error)
    for name, path in (paths or {}).items():
        message = message.replace(path, name)
    return {"error": {"kind": type(error).__name__, "message": message}}
