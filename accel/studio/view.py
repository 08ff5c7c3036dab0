"""From a state to what is seen of it, as plain data: one pure function."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from accel.base.errors import AccelError, LimitExceeded, MachineError, ShapeError
from accel.compiler.expr.metrics import compulsory
from accel.core.isa import Unit
from accel.core.states import State as UnitState
from accel.run.program import build
from accel.run.result import Result
from accel.studio.command import commands
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

    def view(self, state: State) -> dict[str, Any]:
        """What is to be seen of a state, beside what it is compared with.

        Raises:
            AccelError: the state does not hold together, cannot be compiled, or asks for too much.
        """
        view = self._run(state)
        if state.pinned is None:
            return view
        other = self._run(state.pinned)
        against = {"title": other["title"], "figures": other["figures"]}
        section = {
            "name": "compared",
            "heading": "Against the pinned run",
            "html": _compared(view["figures"], other["figures"]),
        }
        return {**view, "pinned": against, "sections": [section, *view["sections"]]}

    def _run(self, state: State) -> dict[str, Any]:
        key = state.key
        if key not in self._kept:
            self._kept[key] = view_of(state, self._limits)
        self._kept.move_to_end(key)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return self._kept[key]


def view_of(state: State, limits: Limits | None = None) -> dict[str, Any]:
    """What is to be seen of a state: that of :func:`~accel.views.report.run_view`, with the schedule's steps,
    the figures that runs are compared by, and the commands that give the same. Nothing but the state decides
    what it holds, except for how long it took.

    Args:
        state: what is looked at.
        limits: what it may ask for.

    Raises:
        AccelError: the state does not hold together, cannot be compiled, or asks for too much.
    """
    most = limits or Limits()
    workload = state.make_workload()
    _check("multiply-accumulates", compulsory((workload.output,)).macs, most.macs)
    steps = None if state.steps is None else [dict(step) for step in state.steps]
    program = build(workload, state.config(), steps=steps, mapping=state.mapping)
    _check("instructions", len(program.instructions), most.instructions)
    try:
        result: Result = program.run(max_cycles=most.cycles, max_uops=most.uops)
    except MachineError as error:
        if (
            isinstance(error, LimitExceeded)
            or not isinstance(error.result, Result)
            or error.result.cycles is None
        ):
            raise
        result = error.result
    seen = scene(result)
    return run_view(seen) | {
        "state": state.to_data(),
        "schedule": {
            "steps": program.schedule().steps,
            "mapping": program.mapping,
            "edited": steps is not None,
        },
        "figures": figures(result),
        "commands": commands(state),
    }


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
