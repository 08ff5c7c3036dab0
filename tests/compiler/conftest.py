"""Golden files: ``pytest tests/compiler --update-golden`` writes them anew. Nests are verified."""

from collections.abc import Callable
from pathlib import Path

import pytest

from accel.compiler.nest import passes

GOLDEN = Path(__file__).parents[1] / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the files of tests/golden anew")


@pytest.fixture(autouse=True)
def verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """The nest of whatever is compiled is verified behind every pass."""
    monkeypatch.setattr(passes, "VERIFIES", True)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with a golden file, line by line but for the whitespace between words."""
    update = request.config.getoption("--update-golden", default=False)

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if update:
            path.write_text(text.rstrip() + "\n", encoding="utf-8")
        assert words(text) == words(path.read_text(encoding="utf-8"))

    return compare


def words(text: str) -> list[list[str]]:
    """The words of each line that is not empty, its depth of indentation first."""
    lines = [line for line in text.splitlines() if line.strip()]
    return [[str((len(line) - len(line.lstrip())) // 4), *line.split()] for line in lines]
