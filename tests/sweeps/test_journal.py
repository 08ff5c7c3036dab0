"""What has been measured is not measured again, whatever happened in between."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import accel
from accel.base.errors import SweepError
from accel.sweeps import run_sweep, runner
from accel.sweeps.figures import Figures
from accel.sweeps.journal import Journal
from accel.sweeps.points import Task
from accel.sweeps.spec import make_spec

SMALL = accel.gemm(16, 16, 16)
FIGURES: Figures = {"error": None, "message": None, "cycles": 1}
OTHERS: Figures = {"error": "refused", "message": "no", "vthreads": None}
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


def written(path: Path, **outcomes: Figures) -> bytes:
    """A journal's content with some outcomes."""
    with Journal(path) as log:
        for name, figures in outcomes.items():
            log.add(name, figures)
    return path.read_bytes()


@pytest.mark.parametrize("cut", [1, 5, 24, 26])
def test_a_line_that_was_cut_off_is_dropped_and_told(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "j"
    first = written(path, a=FIGURES)
    whole = written(path, b=OTHERS)
    assert len(whole) - len(first) > 26
    path.write_bytes(whole[:-cut])
    with Journal(path) as log:
        assert log.dropped
        assert log.known == {"a": FIGURES}
        assert path.read_bytes() == first
        log.add("b", OTHERS)
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
    written(tmp_path / "j", a=FIGURES)
    with Journal(tmp_path / "j", fresh=True) as log:
        assert log.known == {}
    assert (tmp_path / "j").read_bytes() == b""


def run_line(**figures: object) -> str:
    """A line of a run with some figures."""
    return json.dumps({"key": "a", "figures": {"error": None, "message": None, "cycles": 1} | figures}) + "\n"


NUMBER = "it must be a number in 0..2**63-1 or null"
TEXT = "it must be a text or null"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{\n", "it is not JSON"),
        ("[" * 100_000 + "\n", "it is not JSON"),
        ('{"key": "\xff"}\n', "it is not JSON"),
        ("[]\n", 'it must be an object with "key" and "figures"'),
        ('{"key": "a"}\n', 'it must be an object with "key" and "figures"'),
        ('{"key": [1], "figures": {"cells_lut4": 1}}\n', "key is [1]; it must be a text"),
        ('{"key": "a", "figures": 3}\n', "figures is 3; an object of figures by name is needed"),
        ('{"key": "a", "figures": []}\n', "figures is []; an object of figures by name is needed"),
        ('{"key": "a", "figures": {}}\n', "figures is {}; an object of figures by name is needed"),
        ('{"key": "a", "figures": {"error": null}}\n', "figures lacks 'message'; every run has it"),
        ('{"key": "a", "figures": {"cycles": 1}}\n', "figures lacks 'error'; every run has it"),
        (run_line(cycles=None), "cycles is None; an integer is needed of a run without error"),
        (run_line(cycles=1.5), "cycles is 1.5; an integer is needed of a run without error"),
        (run_line(cycles="9"), f"'cycles' is '9'; {NUMBER}"),
        (run_line(macs=[1]), f"'macs' is [1]; {NUMBER}"),
        (run_line(macs=True), f"'macs' is True; {NUMBER}"),
        (run_line(macs=-1), f"'macs' is -1; {NUMBER}"),
        (run_line(macs=1 << 63), f"'macs' is {1 << 63}; {NUMBER}"),
        (run_line(macs=10**400), f"'macs' is 100000000000000000...0000000000000000000; {NUMBER}"),
        (run_line(utilization=float("nan")), f"'utilization' is nan; {NUMBER}"),
        (run_line(utilization=float("inf")), f"'utilization' is inf; {NUMBER}"),
        (run_line(error=3), f"error is 3; {TEXT}"),
        (run_line(message={}), f"message is {{}}; {TEXT}"),
        (run_line(message="\ud800"), f"message is '\\ud800'; {TEXT}"),
        ("not a journal", "it begins otherwise than a line of a journal"),
        ('{"keys": 3}', "it begins otherwise than a line of a journal"),
        ('{"key": "' + "a" * (1 << 20), "it is longer than 1,048,576 bytes"),
    ],
    ids=range(27),
)
def test_damage_is_said(line: str, why: str, tmp_path: Path) -> None:
    """What does not look like a line that was cut off stays as it is."""
    path = tmp_path / "j"
    path.write_bytes(written(path, a=FIGURES) + line.encode("latin-1"))
    message = (
        f"journal {str(path)!r} is damaged in line 2: {why}. Remove that line and its point is measured "
        f"again, or begin anew with --fresh"
    )
    content = path.read_bytes()
    for _ in range(2):
        with pytest.raises(SweepError) as raised:
            Journal(path)
        assert str(raised.value) == message
        assert path.read_bytes() == content
    path.write_bytes(content[: -len(line)])
    with Journal(path) as log:
        assert log.known == {"a": FIGURES}


def test_every_outcome_can_be_read_back(tmp_path: Path) -> None:
    """Of a run, of one that is refused and of one at fault; integers and floats come back as they were."""
    table = accel.sweep(SMALL, journal=tmp_path / "j", vthreads=[1, 9999])
    assert table.column("error") == [None, "refused"]
    assert repr(accel.sweep(SMALL, journal=tmp_path / "j", vthreads=[1, 9999]).rows) == repr(table.rows)


def test_figures_of_another_kind_of_task_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "j"
    accel.sweep(SMALL, journal=path, vthreads=1)
    entry = json.loads(path.read_bytes())
    path.write_text(json.dumps(entry | {"figures": {"cells_lut4": 1}}) + "\n", encoding="utf-8")
    message = f"figures of {entry['key']} are cells_lut4, which is no run; remove that line"
    with pytest.raises(SweepError, match=message):
        accel.sweep(SMALL, journal=path, vthreads=1)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX devices and pipes")
def test_what_has_no_end_is_no_journal(tmp_path: Path) -> None:
    (tmp_path / "zeros").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    for name in ("zeros", "pipe"):
        for fresh in (False, True):
            with pytest.raises(SweepError, match="is a device or a pipe; a regular file is needed"):
                Journal(tmp_path / name, fresh=fresh)


def test_a_file_that_would_fill_memory_is_refused(tmp_path: Path) -> None:
    """By its size, or as soon as a line has no end."""
    path = tmp_path / "j"
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)
    with pytest.raises(SweepError, match="has 1,073,741,825 bytes; at most 1,073,741,824 are read"):
        Journal(path)
    with path.open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(SweepError, match="is damaged in line 1: it is longer than 1,048,576 bytes"):
        Journal(path)
    with Journal(path, fresh=True) as log:
        assert log.known == {}


def test_a_journal_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no" / "j"):
        with pytest.raises(SweepError, match="cannot be used"):
            Journal(path)


def test_a_full_disk_keeps_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "j"
    first = written(path, a=FIGURES)
    script = (
        "import resource, sys; from pathlib import Path; from accel.sweeps.journal import Journal\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(first) + 9},) * 2)\n"
        "Journal(Path(sys.argv[1])).add('b', {'cycles': 2})"
    )
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("cannot be written: File too large\n")
    with Journal(path) as log:
        assert log.known == {"a": FIGURES}
        assert log.dropped


def test_a_journal_is_of_one_sweep_at_a_time(tmp_path: Path) -> None:
    """Its lock dies with the process, however that ends."""
    path = tmp_path / "j"
    written(path, a=FIGURES)
    with Journal(path) as log, pytest.raises(SweepError, match="is being written by another sweep; wait"):
        accel.sweep(SMALL, journal=path, vthreads=1)
    assert log.known == {"a": FIGURES}
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
        assert log.known == {"a": FIGURES}
