"""What type checkers say of code that uses the API: a run with cycles has cycles."""

import subprocess
import sys
from pathlib import Path
from typing import get_args, get_overloads, get_type_hints

import accel
from accel.run.backends.choose import BACKENDS
from accel.run.program import Program
from accel.run.result import Result, TimedResult
from tests.programs import gemm_program

ROOT = Path(__file__).parents[2]
USERS_CODE = """
from typing import assert_type
import accel
from accel.core.events import UnitCycles
from accel.run.result import Result, TimedResult

program = accel.Program.load("gemm.accel")
assert_type(program.run(), TimedResult)
assert_type(program.run().cycles, int)
assert_type(program.run().stalls, dict[str, UnitCycles])
assert_type(program.run(read_latency=100, backend="rtl", record=True).cycles, int)
assert_type(program.run(backend="functional"), Result)
assert_type(program.run(backend="functional").cycles, int | None)
print(f"{program.run().cycles:,} cycles")


def any_backend(backend: str) -> int | None:
    return program.run(backend=backend).cycles
"""


def test_what_a_type_checker_knows() -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "-c", USERS_CODE]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (found.stdout, found.stderr) == ("Success: no issues found in 1 source file\n", "")


def test_it_is_true() -> None:
    """Every backend returns what the signatures say."""
    timed = get_type_hints(get_overloads(Program.run)[0], localns={"Engine": object})
    assert timed["return"] is TimedResult
    assert set(get_args(timed["backend"])) == set(BACKENDS) - {"functional"}
    found = gemm_program().run()
    assert isinstance(found, TimedResult)
    assert type(gemm_program().run(backend="functional")) is Result
    assert accel.Program is Program
