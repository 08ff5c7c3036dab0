"""Measured points are never measured again, and damaged lines are ignored."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import accel
from accel.base.errors import SweepError
from accel.sweeps import run_sweep, sweep_runner
from accel.sweeps.sweep_journal import Journal
from accel.sweeps.sweep_points import Task
from accel.sweeps.sweep_spec import make_spec
from accel.sweeps.task_figures import Figures

SMALL = accel.gemm(16, 16, 16)
FIGURES: Figures = {"error": None, "message": None, "cycles": 1}
OTHERS: Figures = {"error": "refused", "message": "no", "vthreads": None}
GRID = {"vthreads": [1, 2], "read_latency": [4, 8]}


def test_an_interrupted_sweep_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, whole, measured = tmp_path / "j", accel.sweep(SMALL, **GRID), []

    def interrupted(task: Task) -> dict[str, object]:
        if len(measured) == 2:
            raise KeyboardInterrupt
        return counted(task)

    def counted(task: Task) -> dict[str, object]:
        measured.append(task)
        return real(task)

    real = sweep_runner.measure
    monkeypatch.setattr(sweep_runner, "measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        accel.sweep(SMALL, journal=journal, **GRID)
    monkeypatch.setattr(sweep_runner, "measure", counted)
    seen: list[tuple[int, int]] = []
    table = accel.sweep(SMALL, journal=journal, progress=lambda *n: seen.append(n), **GRID)
    assert len(measured) == 4
    assert seen == [(2, 4), (3, 4), (4, 4)]
    assert table.column("cycles") == whole.column("cycles")
    accel.sweep(SMALL, journal=journal, **GRID)
    assert len(measured) == 4


def test_a_wider_grid_measures_only_new_points(tmp_path: Path) -> None:
    accel.sweep(SMALL, journal=tmp_path / "j", vthreads=1)
    seen: list[tuple[int, int]] = []
    accel.sweep(SMALL, journal=tmp_path / "j", progress=lambda *n: seen.append(n), vthreads=[1, 2])
    assert seen == [(1, 2), (2, 2)]


def written(path: Path, **outcomes: Figures) -> bytes:
    """Add outcomes to a journal, and return its content."""
    with Journal(path) as log:
        for name, figures in outcomes.items():
            log.add(name, figures)
    return path.read_bytes()


@pytest.mark.parametrize("cut", [1, 5, 24, 26])
def test_a_cut_off_line_is_dropped_and_reported(cut: int, tmp_path: Path) -> None:
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


def test_the_point_of_a_cut_off_line_is_measured_again(tmp_path: Path) -> None:
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


def test_fresh_removes_all_outcomes(tmp_path: Path) -> None:
    written(tmp_path / "j", a=FIGURES)
    with Journal(tmp_path / "j", fresh=True) as log:
        assert log.known == {}
    assert (tmp_path / "j").read_bytes() == b""


def run_line(**figures: object) -> str:
    """A line without a checksum, as earlier releases wrote them."""
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
        (run_line(cycles=None), "cycles is null; an integer is needed of a run without error"),
        (run_line(cycles=1.5), "cycles is 1.5; an integer is needed of a run without error"),
        (run_line(cycles="9"), f"'cycles' is '9'; {NUMBER}"),
        (run_line(macs=[1]), f"'macs' is [1]; {NUMBER}"),
        (run_line(macs=True), f"'macs' is true; {NUMBER}"),
        (run_line(macs=-1), f"'macs' is -1; {NUMBER}"),
        (run_line(macs=1 << 63), f"'macs' is {1 << 63}; {NUMBER}"),
        (run_line(macs=10**400), f"'macs' is 100000000000000000...0000000000000000000; {NUMBER}"),
        (run_line(utilization=float("nan")), f"'utilization' is nan; {NUMBER}"),
        (run_line(utilization=float("inf")), f"'utilization' is inf; {NUMBER}"),
        (run_line(error=3), f"error is 3; {TEXT}"),
        (run_line(message={}), f"message is {{}}; {TEXT}"),
        (run_line(message="\ud800"), f"message is '\\ud800'; {TEXT}"),
        (
            '{"key": "a", "figures": {"cells_lut4": 1}, "check": null}\n',
            "its checksum is that of other figures",
        ),
        ("not a journal\n", "it is not JSON"),
    ],
    ids=range(26),
)
def test_a_damaged_line_is_reported_and_ignored(line: str, why: str, tmp_path: Path) -> None:
    """The file is left as it is, and later outcomes are added to it."""
    path = tmp_path / "j"
    path.write_text(run_line(), encoding="utf-8")
    content = path.read_bytes() + line.encode("latin-1")
    path.write_bytes(content)
    for _ in range(2):
        with Journal(path) as log:
            assert log.damaged == [(2, why)]
            assert log.known == {"a": FIGURES}
            assert not log.dropped
        assert path.read_bytes() == content
    whole = written(path, b=OTHERS)
    assert whole.startswith(content)
    with Journal(path) as log:
        assert log.known == {"a": FIGURES, "b": OTHERS}
        assert log.damaged == [(2, why)]


@pytest.mark.parametrize("tail", ["not a journal", '{"keys": 3}'])
def test_a_last_line_that_is_none_of_a_journal_stays(tail: str, tmp_path: Path) -> None:
    path = tmp_path / "j"
    content = written(path, a=FIGURES) + tail.encode()
    path.write_bytes(content)
    with Journal(path) as log:
        assert log.damaged == [(2, "it begins otherwise than a line of a journal")]
        log.add("b", OTHERS)
    assert path.read_bytes().startswith(content + b"\n")
    with Journal(path) as log:
        assert log.known == {"a": FIGURES, "b": OTHERS}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("x,y\n1,2\n", "line 1: it is not JSON"),
        ("[]\n{", 'line 1: it must be an object with "key" and "figures"'),
        ("a letter", "line 1: it begins otherwise than a line of a journal"),
        ('{"key": "' + "a" * (1 << 20), "line 1: it is longer than 1,048,576 bytes"),
    ],
)
def test_a_file_without_a_line_of_a_journal_is_refused(content: str, why: str, tmp_path: Path) -> None:
    """It may be any file of the user's, so it is not changed."""
    path = tmp_path / "j"
    path.write_text(content, encoding="utf-8")
    message = f"journal {str(path)!r} is damaged in {why}. No line of it can be used; give another folder, or"
    with pytest.raises(SweepError, match=re.escape(message)):
        Journal(path)
    assert path.read_text(encoding="utf-8") == content


def test_no_damaged_byte_changes_figures(tmp_path: Path) -> None:
    """Each byte of a journal is replaced, removed, and doubled: outcomes are the measured ones, or missing
    and reported."""
    path, measured = tmp_path / "j", {"a": FIGURES | {"cycles": 1234}, "b": OTHERS, "c": {"cells_lut4": 17}}
    whole = written(path, **measured)
    for number, byte in enumerate(whole):
        start, end = whole[:number], whole[number + 1 :]
        for other in {byte ^ 1, byte ^ 16, ord("0"), ord('"'), ord("\n"), 255} - {byte}:
            check_damage(path, start + bytes([other]) + end, measured)
        check_damage(path, start + end, measured)
        check_damage(path, whole[: number + 1] + whole[number:], measured)


def check_damage(path: Path, content: bytes, measured: dict[str, Figures]) -> None:
    path.write_bytes(content)
    with Journal(path) as log:
        assert all(measured[key] == figures for key, figures in log.known.items()), content
        assert log.known == measured or log.damaged or log.dropped, content


def test_lines_of_earlier_releases_have_no_checksum(tmp_path: Path) -> None:
    """They may not follow a line with one: there, a damaged byte has removed the checksum."""
    path = tmp_path / "j"
    path.write_text(run_line(), encoding="utf-8")
    whole = written(path, b=OTHERS)
    assert b"check" in whole.splitlines()[1]
    with Journal(path) as log:
        assert log.known == {"a": FIGURES, "b": OTHERS}
        assert log.damaged == []
    path.write_bytes(whole + run_line(cycles=2).encode())
    with Journal(path) as log:
        assert log.known == {"a": FIGURES, "b": OTHERS}
        assert log.damaged == [(3, "it has no checksum, and an earlier line has one")]


def test_the_point_of_a_damaged_line_is_measured_again(tmp_path: Path) -> None:
    """Once it has been, there are no notes any more."""
    journal, notes = tmp_path / "j", list[str]()
    spec = make_spec({"workload": {"name": "gemm", "M": 16, "N": 16, "K": 16}, "grid": dict(GRID)})
    whole = run_sweep(spec, journal=journal)
    lines = journal.read_bytes().splitlines(keepends=True)
    cycles = f'"cycles": {whole.column("cycles")[1]}'.encode()
    assert cycles in lines[1]
    lines[1] = lines[1].replace(cycles, b'"cycles": 1')
    journal.write_bytes(b"".join(lines))
    seen: list[tuple[int, int]] = []
    table = run_sweep(spec, journal=journal, progress=lambda *n: seen.append(n), note=notes.append)
    assert seen == [(3, 4), (4, 4)]
    assert notes == [
        "line 2 is damaged and ignored: its checksum is that of other figures; its point is measured again"
    ]
    assert table.column("cycles") == whole.column("cycles")
    run_sweep(spec, journal=journal, note=notes.append)
    assert len(notes) == 1
    journal.write_bytes(b"".join(line.replace(b"figures", b"figured") for line in [*lines, lines[0]]))
    run_sweep(spec, journal=journal, note=notes.append)
    assert notes[1:] == [
        *(
            f'line {n} is damaged and ignored: it must be an object with "key" and "figures"; its point is '
            f"measured again"
            for n in (1, 2, 3)
        ),
        "2 more lines are damaged and ignored",
    ]


def test_every_outcome_is_read_back_as_it_was(tmp_path: Path) -> None:
    """Outcomes of a run and of a refused program, integers and floats."""
    table = accel.sweep(SMALL, journal=tmp_path / "j", vthreads=[1, 9999])
    assert table.column("error") == [None, "refused"]
    assert repr(accel.sweep(SMALL, journal=tmp_path / "j", vthreads=[1, 9999]).rows) == repr(table.rows)


def test_figures_of_another_kind_of_task_are_measured_again(tmp_path: Path) -> None:
    path, notes = tmp_path / "j", list[str]()
    spec = make_spec({"workload": {"name": "gemm", "M": 16, "N": 16, "K": 16}, "grid": {"vthreads": 1}})
    whole = run_sweep(spec, journal=path)
    entry = json.loads(path.read_bytes())
    del entry["check"]
    path.write_text(json.dumps(entry | {"figures": {"cells_lut4": 1}}) + "\n", encoding="utf-8")
    table = run_sweep(spec, journal=path, note=notes.append)
    assert notes == [
        f"the figures of {entry['key']} are cells_lut4, which is not a run; it is measured again"
    ]
    assert table.column("cycles") == whole.column("cycles")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX devices and pipes")
def test_devices_and_pipes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "zeros").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    for name in ("zeros", "pipe"):
        for fresh in (False, True):
            with pytest.raises(SweepError, match="is a device or a pipe; a regular file is needed"):
                Journal(tmp_path / name, fresh=fresh)


def test_a_file_that_would_fill_memory_is_refused(tmp_path: Path) -> None:
    """By its size, or by a line without an end."""
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


def test_a_journal_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no" / "j"):
        with pytest.raises(SweepError, match="cannot be used"):
            Journal(path)


def test_a_full_disk_keeps_earlier_outcomes(tmp_path: Path) -> None:
    path = tmp_path / "j"
    first = written(path, a=FIGURES)
    script = (
        "import resource, sys; from pathlib import Path; from accel.sweeps.sweep_journal import Journal\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(first) + 9},) * 2)\n"
        "Journal(Path(sys.argv[1])).add('b', {'cycles': 2})"
    )
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("cannot be written: File too large\n")
    with Journal(path) as log:
        assert log.known == {"a": FIGURES}
        assert log.dropped


def test_one_sweep_at_a_time_uses_a_journal(tmp_path: Path) -> None:
    """The lock dies with the process, however the process ends."""
    path = tmp_path / "j"
    written(path, a=FIGURES)
    with Journal(path) as log, pytest.raises(SweepError, match="is being written by another sweep; wait"):
        accel.sweep(SMALL, journal=path, vthreads=1)
    assert log.known == {"a": FIGURES}
    script = (
        "import sys; from pathlib import Path; from accel.sweeps.sweep_journal import Journal\n"
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
