"""What has been measured is not measured again, whatever happened in between."""

import subprocess
import sys
from pathlib import Path

import pytest

import accel
from accel.base.errors import SweepError
from accel.sweeps import run_sweep, runner
from accel.sweeps.journal import Journal
from accel.sweeps.points import Task
from accel.sweeps.spec import make_spec

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


def written(path: Path, **outcomes: dict[str, object]) -> bytes:
    """A journal's content with some outcomes."""
    with Journal(path) as log:
        for name, figures in outcomes.items():
            log.add(name, figures)
    return path.read_bytes()


@pytest.mark.parametrize("cut", [1, 5, 24, 26])
def test_a_line_that_was_cut_off_is_dropped_and_told(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "j"
    first = written(path, a={"cycles": 1})
    whole = written(path, b={"cycles": 2})
    assert len(whole) - len(first) > 26
    path.write_bytes(whole[:-cut])
    with Journal(path) as log:
        assert log.dropped
        assert log.known == {"a": {"cycles": 1}}
        assert path.read_bytes() == first
        log.add("b", {"cycles": 2})
    assert path.read_bytes() == whole
    with Journal(path) as log:
        assert not log.dropped


def test_what_was_cut_off_is_measured_again(tmp_path: Path) -> None:
    journal = tmp_path / "j"
    spec = make_spec({"workload": {"name": "gemm", "M": 16, "N": 16, "K": 16}, "grid": dict(GRID)})
    whole, notes = run_sweep(spec, journal=journal), []
    lines = journal.read_bytes()
    journal.write_bytes(lines[:-9])
    seen: list[tuple[int, int]] = []
    table = run_sweep(spec, journal=journal, progress=lambda *n: seen.append(n), note=notes.append)
    assert seen == [(3, 4), (4, 4)]
    assert notes == ["its last line had been cut off; that point is measured again"]
    assert table.column("cycles") == whole.column("cycles")
    run_sweep(spec, journal=journal, note=notes.append)
    assert len(notes) == 1


def test_fresh_begins_anew(tmp_path: Path) -> None:
    written(tmp_path / "j", a={})
    with Journal(tmp_path / "j", fresh=True) as log:
        assert log.known == {}
    assert (tmp_path / "j").read_bytes() == b""


@pytest.mark.parametrize(
    "line",
    [*("{\n", "[]\n", '{"key": "a"}\n', '{"key": "a", "figures": 3}\n'), "not a journal", '{"keys": 3}'],
)
def test_damage_is_said(line: str, tmp_path: Path) -> None:
    """What does not look like a line that was cut off stays as it is."""
    path = tmp_path / "j"
    path.write_bytes(written(path, a={}) + line.encode())
    message = "is damaged in line 2; remove that line and its point is measured again, or begin anew"
    content = path.read_bytes()
    for _ in range(2):
        with pytest.raises(SweepError, match=message):
            Journal(path)
        assert path.read_bytes() == content
    path.write_bytes(content[: -len(line)])
    with Journal(path) as log:
        assert log.known == {"a": {}}


def test_a_journal_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no" / "j"):
        with pytest.raises(SweepError, match="cannot be used"):
            Journal(path)


def test_a_full_disk_keeps_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "j"
    first = written(path, a={"cycles": 1})
    script = (
        "import resource, sys; from pathlib import Path; from accel.sweeps.journal import Journal\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(first) + 9},) * 2)\n"
        "Journal(Path(sys.argv[1])).add('b', {'cycles': 2})"
    )
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("cannot be written: File too large\n")
    with Journal(path) as log:
        assert log.known == {"a": {"cycles": 1}}
        assert log.dropped


def test_a_journal_is_of_one_sweep_at_a_time(tmp_path: Path) -> None:
    """Its lock dies with the process, however that ends."""
    path = tmp_path / "j"
    written(path, a={})
    with Journal(path) as log, pytest.raises(SweepError, match="is being written by another sweep; wait"):
        accel.sweep(SMALL, journal=path, vthreads=1)
    assert log.known == {"a": {}}
    script = (
        "import sys; from pathlib import Path; from accel.sweeps.journal import Journal\n"
        "log = Journal(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        for fresh in (False, True):
            with pytest.raises(SweepError, match="is being written by another sweep; wait"):
                Journal(path, fresh=fresh)
        other.kill()
        other.wait()
    with Journal(path) as log:
        assert log.known == {"a": {}}
