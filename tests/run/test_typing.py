"""The public types as an editor and a type checker see them in an installed environment."""

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_overloads, get_type_hints

import accel
from accel.base.run_choices import BACKENDS
from accel.run.program import Program
from accel.run.result import Result, TimedResult
from tests.programs import gemm_program

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


def test_types_of_results(tmp_path: Path) -> None:
    """Pyright finds the types from outside the checkout, in the environment that runs the tests."""
    (tmp_path / "program.py").write_text(USERS_CODE)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict"}))
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert [(one["range"]["start"]["line"], one["message"]) for one in found["generalDiagnostics"]] == []
    assert found["summary"]["filesAnalyzed"] == 1


def test_backends_return_these_types() -> None:
    """Every backend returns the types of the signatures."""
    timed = get_type_hints(get_overloads(Program.run)[0], localns={"Engine": object})
    assert timed["return"] is TimedResult
    assert set(get_args(timed["backend"])) == set(BACKENDS) - {"functional"}
    found = gemm_program().run()
    assert isinstance(found, TimedResult)
    assert type(gemm_program().run(backend="functional")) is Result
    assert accel.Program is Program
