"""The shape of the whole: who may import whom, what is packaged, what an import costs."""

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = [part for part in ("compiler", "sim", "hw") if (ROOT / part).is_dir()]
ABOVE = {
    "te",
    "debug",
    "run",
    "views",
    "sweeps",
    "benchmarks",
    "cli",
    "__main__",
}
"""Modules of accel that sit above compiler and simulator; all others are the machine's definition."""


def module_name(path: Path) -> str:
    """The name a file is imported by."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[0] != "accel":
        parts.insert(0, "accel")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources() -> Iterator[Path]:
    """Every Python file of the package, each once."""
    for folder in ("accel", *PARTS):
        for path in sorted((ROOT / folder).rglob("*.py")):
            inside = path.relative_to(ROOT / folder).parts
            if folder != "accel" or inside[0] not in PARTS:
                yield path


MODULES = {module_name(path): path for path in sources()}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def imported(name: str) -> set[str]:
    """The modules of the package that a module imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports by a relative name"
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found.update(inside & MODULES.keys() or {node.module or ""})
    return {one for one in found if one.partition(".")[0] == "accel"}


def part(name: str) -> str:
    """``compiler``, ``sim`` or ``hw``; ``above`` or ``definition`` for modules of accel itself."""
    second = name.split(".")[1] if "." in name else ""
    if second in PARTS:
        return second
    return "above" if not second or second in ABOVE else "definition"


# --- imports ---------------------------------------------------------------------------------------


def test_every_part_is_seen() -> None:
    assert {part(name) for name in MODULES} == {"definition", "above", *PARTS}
    assert {name.split(".")[1] for name in MODULES if part(name) == "above" and "." in name} == ABOVE
    assert {"accel.core.isa.codec", "accel.compiler.codegen.build", "accel.sim.timing.port"} <= MODULES.keys()


@pytest.mark.parametrize("name", MODULES)
def test_imports_go_one_way(name: str) -> None:
    allowed = {
        "definition": {"definition"},
        "above": {"definition", "above", *PARTS},
    }.get(part(name), {"definition", part(name)})
    assert {one for one in imported(name) if part(one) not in allowed} == set()


def test_imports_are_free_of_cycles() -> None:
    TopologicalSorter({name: imported(name) - {name} for name in MODULES}).prepare()


def test_the_folders_are_not_imported_by_their_bare_names() -> None:
    bare = {"compiler", "sim", "hw"}
    for path in [*MODULES.values(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "docs").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & bare, path


def test_data_is_never_executed() -> None:
    """No module that runs what it reads, no call that runs text."""
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                assert not names & {"pickle", "marshal", "shelve", "dill", "cloudpickle", "runpy"}, name
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec", "compile", "__import__"}, name
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert isinstance(node.value, ast.Constant), name
                assert node.value.value is False, name


# --- packages --------------------------------------------------------------------------------------


def test_every_package_is_listed_and_every_listed_one_exists() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    folders = {module_name(path / "__init__.py") for path in {path.parent for path in MODULES.values()}}
    assert set(tool["packages"]) == folders
    assert folders <= MODULES.keys()
    assert tool["package-dir"] == {"accel": "accel"} | {f"accel.{p}": p for p in PARTS}


def test_a_bare_checkout_can_be_imported() -> None:
    """By relative links; where the file system has none, from an installed package only."""
    for folder in PARTS:
        link = ROOT / "accel" / folder
        if link.is_symlink():
            assert os.readlink(link) == f"../{folder}"


def test_types_are_shipped() -> None:
    assert (ROOT / "accel" / "py.typed").exists()


# --- what an import costs --------------------------------------------------------------------------


def fresh(script: str, environment: dict[str, str] | None = None) -> str:
    """What a script prints in a new interpreter."""
    return subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=ROOT, env=environment
    ).stdout


def test_import_accel_pulls_in_nothing_heavy() -> None:
    loaded = set(fresh("import sys, accel; print(*sys.modules)").split())
    assert "accel.run.program" in loaded
    heavy = {
        "amaranth",
        "click",
        "rich",
        "matplotlib",
        "distributed",
        "pyarrow",
        "accel.cli",
        "accel.hw",
        "accel.image.vectors",
        "unittest",
        "pytest",
    }
    assert loaded & heavy == set()


def test_import_accel_is_quick(tmp_path: Path) -> None:
    """Against numpy's own import in the same minutes, both from byte code: machines differ in speed."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = kept | {"PYTHONPYCACHEPREFIX": str(tmp_path)}

    def cost(module: str) -> float:
        """In CPU seconds."""
        clock = "time.process_time()"
        return float(
            fresh(f"import time; begin = {clock}; import {module}; print({clock} - begin)", environment)
        )

    cost("accel")
    assert any(tmp_path.rglob("program.*.pyc"))
    costs = [(cost("accel"), cost("numpy")) for _ in range(5)]
    assert min(accel for accel, _ in costs) < 6 * min(numpy for _, numpy in costs)


# --- docstrings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODULES)
def test_what_is_public_is_explained(name: str) -> None:
    """Modules, their classes and functions."""
    if MODULES[name].name != "__init__.py":
        assert ast.get_docstring(TREES[name])
    for node in TREES[name].body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{name}.{node.name}"
