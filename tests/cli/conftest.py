"""Calls of the command line inside the test process. They return the output and the exit code."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from accel.cli import main
from tests.programs import gemm_program


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Output and exit code of one call."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The JSON object on stdout; stdout must hold nothing else."""
        found = json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
        assert isinstance(found, dict)
        assert found["schema_version"] == 1
        return found

    @property
    def text(self) -> str:
        """The text on stdout, which must suit a pipe."""
        assert self.out.endswith("\n")
        assert all(line == line.rstrip() and line.isprintable() for line in self.out.split("\n"))
        return self.out


class Shell:
    """Calls the command line in its own folder."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capture = capture

    def __call__(self, *arguments: object, code: int = 0) -> Outcome:
        """Run ``accel ARGUMENTS...`` and expect an exit code; errors must be one line on stderr."""
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        found = self._capture.readouterr()
        outcome = Outcome(code=int(end.value.code or 0), out=found.out, err=found.err)
        assert outcome.code == code, outcome
        if code == 0:  # stderr may only name the written files
            assert all(line.startswith("wrote ") for line in outcome.err.splitlines())
        return outcome

    def refused(self, *arguments: object, message: str) -> None:
        """Expect bad input: exit code 2, this one line on stderr, empty stdout, and no files written."""
        before = self._content()
        outcome = self(*arguments, code=2)
        assert outcome.err == f"accel: {message}\n"
        assert outcome.out == ""
        assert self._content() == before

    def at_fault(self, *arguments: object, message: str) -> Outcome:
        """Expect a faulty program: exit code 1, and this line on stderr after the names of written files."""
        outcome = self(*arguments, code=1)
        *written, error = outcome.err.splitlines()
        assert error == f"accel: {message}"
        assert all(line.startswith("wrote ") for line in written)
        return outcome

    def _content(self) -> dict[Path, bytes]:
        return {p: p.read_bytes() if p.is_file() else b"" for p in sorted(self.folder.rglob("*"))}


@pytest.fixture
def accel(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The command line, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, capsys)


@pytest.fixture
def saved(accel: Shell) -> Callable[..., Path]:
    """Save the program of a small matrix product in the folder."""

    def save(name: str = "p.accel", **options: Any) -> Path:
        gemm_program(**options).save(accel.folder / name)
        return Path(name)

    return save
