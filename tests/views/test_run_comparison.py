"""Saved runs, and comparisons of two of them."""

import json
import re
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import accel
from accel.base.errors import AccelError, ProgramError
from accel.views import Comparison, SavedRun, run_comparison
from accel.views.run_changes import PathCause
from accel.views.saved_run import VERSION
from tests.programs import gemm_program, rewritten


@cache
def saved(**timing: int) -> SavedRun:
    program = accel.build(accel.gemm(24, 16, 160, shift=1), "tiny")
    result = program.with_timing(program.config.override(timing)).run(seed=3)
    overrides = {name: str(value) for name, value in timing.items()}
    return SavedRun.of(result, name="one", seed=3, overrides=overrides)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    saved().save(tmp_path / "one.accelrun")
    return tmp_path / "one.accelrun"


def test_a_loaded_run_equals_the_saved_one(file: Path) -> None:
    run, loaded = saved(), SavedRun.load(file)
    for name in ("name", "program", "config", "overrides", "seed", "critical", "traffic", "cycles"):
        assert getattr(loaded, name) == getattr(run, name)
    assert loaded.figures == json.loads(json.dumps(run.figures))
    assert (loaded.states == run.states).all()
    assert set(loaded.states.sum(axis=2).ravel().tolist()) <= {999, 1000, 1001}
    other = file.with_name("two.accelrun")
    loaded.save(other)
    assert other.read_bytes() == file.read_bytes()


def change(**entries: Any) -> Any:
    return lambda manifest: {**manifest, **entries}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (change(format="accel-program"), "it is not the file of a run"),
        (
            change(version=VERSION + 1),
            f"its format version is {VERSION + 1}; this release reads up to {VERSION}",
        ),
        (change(version="1"), "version is '1' in its manifest"),
        (change(figures={}), "its manifest has no 'stalls'"),
        (change(config={"read_latency": 0}), "read_latency"),
        (change(segments=-1), "segments is -1"),
        (change(segments=1 << 40), "segments is"),
        (change(segments=1), "critical.bin"),
        (change(parts=481), "parts is 481"),
        (change(units=[]), "damaged"),
        (change(tensors=[]), "its critical path is damaged"),
        (change(causes=["magic"]), "damaged"),
        (change(causes=[1]), "causes in its manifest must be a list of texts"),
        (change(traffic=[{}]), "its manifest has no 'name'"),
        (change(overrides={"a": 1}), "a is 1 in its manifest"),
        (lambda data: data["figures"].update(cycles=7), "the fetch unit's cycles"),
        (lambda data: data["figures"].update(bound_by=[1]), "bound_by is [1] in its figures"),
    ],
)
def test_damage_is_reported_in_one_line(file: Path, tmp_path: Path, changed: Any, message: str) -> None:
    with pytest.raises(ProgramError, match=r"run '.*bad\.accelrun'") as error:
        SavedRun.load(rewritten(file, tmp_path / "bad.accelrun", changed))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_other_files_are_refused(file: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.accelrun").write_bytes(file.read_bytes()[:-50])
    (tmp_path / "text.accelrun").write_text("a text")
    for name, message in (
        ("cut.accelrun", "is damaged: it does not end as it must"),
        ("text.accelrun", "is not a saved run; 'accel run --save' writes such files"),
        ("none.accelrun", "cannot be read"),
    ):
        with pytest.raises(ProgramError, match=message):
            SavedRun.load(tmp_path / name)
    with pytest.raises(AccelError, match=r"must end in \.accelrun"):
        saved().save(tmp_path / "x.json")
    with pytest.raises(AccelError, match=r"before its first cycle"):
        SavedRun.of(gemm_program().run(backend="functional"))
    with zipfile.ZipFile(file) as archive:
        assert archive.namelist() == ["program.json", "critical.bin", "states.bin"]


def test_a_run_compared_with_itself() -> None:
    found = Comparison(saved(), saved())
    assert found.same_program
    assert found.fields == {}
    assert found.explaining == []
    assert "equally fast" in found.html()
    assert "The critical paths have the same causes" in found.html()


def test_differences_sum_up_to_the_difference_in_cycles() -> None:
    a, b = saved(), saved(read_latency=90)
    found = Comparison(a, b)
    more = b.cycles - a.cycles
    assert more > 0
    assert found.same_program
    assert found.fields == {"read_latency": (a.config.read_latency, 90)}
    for changes in (found.causes, found.reasons):
        assert sum(one.difference for one in changes) == more
        assert [abs(one.difference) for one in changes] == sorted(
            (abs(one.difference) for one in changes), reverse=True
        )
    for number in range(4):
        assert sum(one.difference for one in found.units[4 * number : 4 * number + 4]) == more
    assert found.explaining[0].key.cause == "read latency"
    data = found.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["figures"]["cycles"] == {"a": a.cycles, "b": b.cycles}
    longest = data["explaining"][0]["segments"]["b"][0]
    assert longest["cause"] == "read latency"
    assert {one["name"] for one in data["traffic"]} >= {"A", "B", "C", "instructions"}


def test_a_comparison_shows_itself_in_one_line() -> None:
    found = repr(Comparison(saved(), saved(read_latency=200)))
    assert len(found) <= 200
    assert found.startswith("Comparison(")
    assert "cycles; B takes " in found
    assert found.endswith("read_latency 64 and 200)")


def test_the_page_loads_nothing(tmp_path: Path) -> None:
    found = Comparison(saved(), saved(read_latency=90))
    page = found.html()
    assert re.findall(r"https?://(?!www\.w3\.org)|<script", page) == []
    assert "style=" not in page.partition("</style>")[2]
    found.save(tmp_path / "d.html")
    with pytest.raises(AccelError, match=r"must end in \.html"):
        found.save(tmp_path / "d.txt")


def test_timelines_share_a_scale() -> None:
    a, b = saved(), saved(read_latency=90)
    lines = list(Comparison(a, b).timelines(112, ascii_only=True))
    assert len(lines) == 8
    lengths = [len(line) - 12 for line in lines]
    assert lengths[1::2] == [100] * 4
    assert lengths[0] == pytest.approx(100 * a.cycles / b.cycles, abs=1)


def test_the_old_name_of_causes_still_works() -> None:
    with pytest.warns(
        DeprecationWarning, match=r"run_comparison\.Why is now accel\.views\.run_comparison\.Path"
    ):
        assert run_comparison.Why is PathCause
