"""What has been measured is not measured again, whatever happened in between."""

from pathlib import Path

import pytest

import accel
from accel.errors import SweepError
from accel.sweeps import runner
from accel.sweeps.journal import Journal
from accel.sweeps.points import Task

SMALL = accel.gemm(16, 16, 16)
GRID = {"vthreads": [1, 2], "read_latency": [4, 8]}


def test_a_sweep_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, whole, measured = tmp_path / "j", accel.sweep(SMALL, **GRID), []

    def interrupted(task: Task) -> dict[str, object]:
        if len(measured) == 2:
            raise KeyboardInterrupt
        return counted(task)

    def counted(task: Task) -> dict[str, object]:
        measured.append(task)
        return real(task)

    real = runner.measure
    monkeypatch.setattr(runner, "measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        accel.sweep(SMALL, journal=journal, **GRID)
    monkeypatch.setattr(runner, "measure", counted)
    seen: list[tuple[int, int]] = []
    table = accel.sweep(SMALL, journal=journal, progress=lambda *n: seen.append(n), **GRID)
    assert len(measured) == 4
    assert seen == [(2, 4), (3, 4), (4, 4)]
    assert table.column("cycles") == whole.column("cycles")
    accel.sweep(SMALL, journal=journal, **GRID)
    assert len(measured) == 4


def test_a_wider_grid_measures_what_is_new(tmp_path: Path) -> None:
    accel.sweep(SMALL, journal=tmp_path / "j", vthreads=1)
    seen: list[tuple[int, int]] = []
    accel.sweep(SMALL, journal=tmp_path / "j", progress=lambda *n: seen.append(n), vthreads=[1, 2])
    assert seen == [(1, 2), (2, 2)]


def test_a_line_that_was_cut_off_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "j"
    log = Journal(path)
    log.add("a", {"cycles": 1})
    log.add("b", {"cycles": 2})
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    cut = Journal(path)
    assert cut.known == {"a": {"cycles": 1}}
    cut.add("b", {"cycles": 2})
    assert path.read_bytes() == whole


def test_fresh_begins_anew(tmp_path: Path) -> None:
    Journal(tmp_path / "j").add("a", {})
    assert Journal(tmp_path / "j", fresh=True).known == {}
    assert not (tmp_path / "j").exists()


@pytest.mark.parametrize("line", ["{", "[]", '{"key": "a"}', '{"key": "a", "figures": 3}'])
def test_damage_is_said(line: str, tmp_path: Path) -> None:
    path = tmp_path / "j"
    Journal(path).add("a", {})
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(SweepError, match="is damaged in line 2; --fresh begins anew"):
        Journal(path)


def test_a_journal_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match="cannot be used"):
        Journal(tmp_path)
    with pytest.raises(SweepError, match="cannot be written"):
        Journal(tmp_path / "no" / "j").add("a", {})
