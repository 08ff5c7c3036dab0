from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Shell


@pytest.fixture
def runs(accel: Shell, saved: Callable[..., Path], tmp_path: Path) -> list[Path]:
    """Two saved runs of one program. The second has slower memory."""
    program = saved()
    paths = [tmp_path / "a.accelrun", tmp_path / "b.accelrun"]
    for path, latency in zip(paths, (2, 80), strict=True):
        done = accel("run", program, "--set", f"read_latency={latency}", "--save", path)
        assert f"wrote {path}" in done.err
    return paths


def test_text(accel: Shell, runs: list[Path], tmp_path: Path) -> None:
    page = tmp_path / "d.html"
    found = accel("diff", *runs, "--html", page)
    assert "read_latency 2 and 80" in found.text
    assert "what explains the difference" in found.text
    assert "compute  B  " in found.text
    assert found.err.endswith(f"wrote {page}\n")
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_json(accel: Shell, runs: list[Path]) -> None:
    found = accel("diff", *runs, "--json").json
    keys = ["a", "b", "same_program", "fields", "figures", "units", "causes", "explaining", "traffic"]
    assert list(found) == ["schema_version", *keys, "layers", "programs"]
    assert found["layers"] == found["programs"] == []
    assert found["a"]["overrides"] == {"read_latency": "2"}
    more = found["b"]["cycles"] - found["a"]["cycles"]
    assert sum(one["difference"] for one in found["causes"]) == more


def test_programs_are_run(accel: Shell, runs: list[Path], saved: Callable[..., Path]) -> None:
    found = accel("diff", saved(), runs[0], "--set", "read_latency=2", "--json").json
    assert found["figures"]["cycles"]["a"] == found["figures"]["cycles"]["b"]
    assert found["same_program"]


def test_invalid_calls_are_refused(accel: Shell, runs: list[Path], saved: Callable[..., Path]) -> None:
    both = "--set is given, and A and B are saved runs; it is for programs, which are run"
    accel.refused("diff", *runs, "--set", "read_latency=2", message=both)
    page = "the comparison is to be written to 'd.txt'; the name must end in .html"
    accel.refused("diff", *runs, "--html", "d.txt", message=page)
    missing = "run 'none.accelrun' cannot be read: No such file or directory"
    accel.refused("diff", runs[0], "none.accelrun", message=missing)
    name = "the run is to be saved to 'x.json'; the name must end in .accelrun"
    accel.refused("run", saved(), "--save", "x.json", message=name)
    untimed = "--save is given with the backend 'functional', which has no time; sim and rtl do"
    accel.refused("run", saved(), "--save", "x.accelrun", "--backend", "functional", message=untimed)
