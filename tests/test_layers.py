"""Imports go one way: compiler, sim and hw know the machine's definition in accel, never one another."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = {"compiler", "sim", "hw"}
DEFINITION = {"access", "config", "dram", "errors", "events", "faults", "isa", "order", "timing", "tokens"}
"""Modules of accel that the parts may import, and that import nothing else of accel themselves."""


def imported(path: Path) -> Iterator[str]:
    """Names of the modules of accel that a file imports, without ``accel.``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "accel":
            names = [node.module] if node.module != "accel" else [f"accel.{a.name}" for a in node.names]
            yield from (name.removeprefix("accel.") for name in names)
        elif isinstance(node, ast.Import):
            yield from (a.name.removeprefix("accel.") for a in node.names if a.name.startswith("accel."))


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


@pytest.mark.parametrize("name", sorted(DEFINITION))
def test_the_definition_knows_only_itself(name: str) -> None:
    path = ROOT / "accel" / name
    for file in files(path) if path.is_dir() else [path.with_suffix(".py")]:
        assert {module.split(".")[0] for module in imported(file)} <= DEFINITION, file


@pytest.mark.parametrize("part", sorted(PARTS))
def test_parts_do_not_know_one_another(part: str) -> None:
    for file in files(ROOT / part):
        assert not {module.split(".")[0] for module in imported(file)} & (PARTS - {part}), file
