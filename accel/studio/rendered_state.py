"""A state with its run."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from accel.base.errors import ShapeError
from accel.core.config import INSTRUCTION_BYTES
from accel.core.unit_states import State
from accel.run.machine_advice import AdviceReport
from accel.views.saved_run import SavedRun


class Limits(Struct, frozen=True, kw_only=True):
    macs: int = 1 << 32
    instructions: int = 40_000
    cycles: int = 50_000_000
    uops: int = 1 << 26


class RenderedState(Struct, frozen=True, eq=False, dict=True):
    """The view of a state as plain data, and functions that are called on request."""

    view: dict[str, Any]
    make_saved_run: Callable[[], SavedRun]
    advise: Callable[[float], AdviceReport]

    @cached_property
    def saved_run(self) -> SavedRun:
        return self.make_saved_run()


def check_limit(name: str, count: int, limit: int) -> None:
    if count > limit:
        raise ShapeError(
            f"{name} are {count:,}; the studio shows up to {limit:,}, and commands have no limit"
        )


def page_figures(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Select the page's figures from those of ``Result.to_dict``."""
    names = [state.name.lower() for state in State]
    return {
        **{key: figures[key] for key in ("cycles", "utilization", "roofline_fraction")},
        "instructions": figures["instructions"],
        "read_bytes": figures["load_bytes"] + figures["instructions"] * INSTRUCTION_BYTES,
        "written_bytes": figures["store_bytes"],
        "units": {
            unit: dict(zip(names, cycles.values(), strict=True)) for unit, cycles in figures["stalls"].items()
        },
    }
