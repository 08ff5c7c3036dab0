"""``accel lockstep``."""

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
