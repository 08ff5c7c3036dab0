"""Place and route machines in worker processes, for the objectives that need their frequency.

Journals identify tasks by class names, field names and values: do not rename them.
"""

import tempfile
from pathlib import Path

from msgspec import Struct

from accel.base.errors import DesignError, EngineError
from accel.core.config import Config
from accel.hw.export.nextpnr import AVAILABLE, DEVICE
from accel.sweeps.task_figures import Figures

DEVICE_LIMITS = {
    "block_rams": AVAILABLE["block_ram"],
    "multipliers": AVAILABLE["multipliers"],
    "lut_slots": AVAILABLE["slots"],
    "flip_flops": AVAILABLE["flip_flops"],
}
"""Cells of the device by the figures of a machine that predict them."""
DEFAULT_TIME_LIMIT = 3600.0
TIME_LIMIT = "time_limit"
"""Figure of a placement that its time limit ended, in seconds."""


class PlacementOptions(Struct, frozen=True, kw_only=True):
    """How an exploration places its machines.

    Attributes:
        seeds: nextpnr places each machine with the seeds 1 to this number. The frequency is the median.
        target: frequency to reach in MHz. None ends routing at the first legal solution.
        time_limit: seconds for a machine's synthesis, and for each placement.
    """

    seeds: int = 1
    target: float | None = None
    time_limit: float = DEFAULT_TIME_LIMIT

    def describe(self) -> str:
        seeds = "seed 1" if self.seeds == 1 else f"the median of seeds 1 to {self.seeds}"
        target = "" if self.target is None else f", with a target of {self.target:g} MHz"
        return f"placed and routed on an {DEVICE}: {seeds}{target}"


class ToolVersions(Struct, frozen=True, kw_only=True):
    """Versions of the tools, which frequencies depend on."""

    yosys: str
    nextpnr: str


class PlacementRun(Struct, frozen=True, kw_only=True):
    """Placements of a :attr:`Config.hardware`."""

    config: Config
    seeds: int
    target: float | None
    tools: ToolVersions


def placement_tools() -> ToolVersions:
    """Return the versions of Yosys and nextpnr, or raise an EngineError if one is missing."""
    from accel.hw.export.place_and_route import check_tools  # most explorations place nothing

    check_tools()
    return _versions()


def _versions() -> ToolVersions:
    from accel.hw.export.place_and_route import tool_versions

    yosys, nextpnr = tool_versions()
    return ToolVersions(yosys=yosys, nextpnr=nextpnr)


def measure_placement(task: PlacementRun, *, time_limit: float, folder: Path | None = None) -> Figures:
    """Return the seeds' median frequency in MHz with that placement's cells, or the error of a design that
    cannot be placed.

    Args:
        time_limit: seconds, see :class:`PlacementOptions`.
        folder: for temporary files, ignored if it does not exist on this machine.

    Raises:
        EngineError: a tool is missing, has another version than the task says, or was ended from outside.
    """
    from accel.hw.export.machine_placement import TimeLimitError, place_machine
    from accel.hw.export.place_and_route import median_placement

    found = _versions()
    if found != task.tools:
        raise EngineError(
            f"a worker has Yosys {found.yosys!r} and nextpnr {found.nextpnr!r}; this exploration uses "
            f"{task.tools.yosys!r} and {task.tools.nextpnr!r}"
        )
    existing = folder if folder is not None and folder.is_dir() else None
    with tempfile.TemporaryDirectory(dir=existing, ignore_cleanup_errors=True) as name:
        try:
            placements = place_machine(
                task.config, task.seeds, Path(name), target=task.target, time_limit=time_limit
            )
        except TimeLimitError as error:
            return {"error": "refused", "message": str(error), TIME_LIMIT: time_limit}
        except DesignError as error:
            return {"error": "refused", "message": str(error)}
    median = median_placement(placements)
    frequencies = [one.mhz for one in placements]
    return {
        "error": None,
        "message": None,
        "frequency": median.mhz,
        "frequency_low": min(frequencies),
        "frequency_high": max(frequencies),
        "placed_lut_slots": median.resources["slots"],
        "placed_flip_flops": median.resources["flip_flops"],
    }


def is_final(figures: Figures, time_limit: float) -> bool:
    """Whether another run with this time limit would give the same figures."""
    ended_after = figures.get(TIME_LIMIT)
    return not isinstance(ended_after, int | float) or ended_after >= time_limit
