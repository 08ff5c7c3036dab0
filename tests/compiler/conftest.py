"""Golden files, which ``pytest tests/compiler --update-golden`` rewrites, and
verification of nests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from accel.compiler.nest import nest_passes

GOLDEN = Path(__file__).parents[1] / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the files of tests/golden anew")


ABOUT_CHOICES = {"mappings", "ops", "plans"}
"""Folders of tests about what the compiler chooses. Verification would take a fifth of their time."""


@pytest.fixture(autouse=True)
def verified(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify the nest of each compiled program after every pass, in all folders with ``--thorough``."""
    if request.config.getoption("--thorough") or request.path.parent.name not in ABOUT_CHOICES:
        monkeypatch.setattr(nest_passes, "VERIFY_AFTER_PASSES", True)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with a golden file, line by line, ignoring whitespace between words."""
    update = request.config.getoption("--update-golden", default=False)

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if update:
            path.write_text(text.rstrip() + "\n", encoding="utf-8")
        assert words(text) == words(path.read_text(encoding="utf-8"))

    return compare


def words(text: str) -> list[list[str]]:
    """The words of each line that is not empty, after its indentation depth."""
    lines = [line for line in text.splitlines() if line.strip()]
    return [[str((len(line) - len(line.lstrip())) // 4), *line.split()] for line in lines]
