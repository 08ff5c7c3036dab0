from collections.abc import Callable
from pathlib import Path

import accel as library
from tests.cli.conftest import Shell
from tests.tools import needs


def test_several_programs_in_several_processes(accel: Shell, tmp_path: Path) -> None:
    needs("verilator")
    for size in (3, 5):
        library.build(library.gemm(size, size, size), library.machine("tiny")).save(
            tmp_path / f"{size}.accel"
        )
    found = accel("lockstep", tmp_path / "3.accel", tmp_path / "5.accel", "--jobs", "2", "--json").json
    assert (found["passed"], found["failed"]) == (2, 0)
    assert [one["name"] for one in found["programs"]] == ["3", "5"]
    cycles = [one["cycles"] for one in found["programs"]]
    assert cycles == sorted(set(cycles))


def test_hostile_memory_has_no_cycles_to_compare(accel: Shell, saved: Callable[..., Path]) -> None:
    needs("verilator")
    path = saved()
    [told] = accel("lockstep", path, "--hostile", "--json").json["programs"]
    assert (told["equal"], told["scope"], told["events"]) == (True, "the end and what it leaves", None)
    text = accel("lockstep", path, "--hostile").text
    assert "equal, the end and what it leaves" in text
    assert text.endswith("1 of 1 equal, no cycles compared\n")
    assert accel("lockstep", path).text.endswith(f"1 of 1 equal, {told['cycles']:,} cycles compared\n")
