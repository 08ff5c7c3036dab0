"""The structure of the project: allowed imports, packaged files, and the cost of an import."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

import accel

ROOT = Path(__file__).parents[1]
PARTS = [part for part in ("compiler", "sim", "hw") if (ROOT / part).is_dir()]
MAY_IMPORT = {
    "base": "",
    "core": "base",
    "graph": "base",
    "rewriting": "base graph",
    "formats": "base graph rewriting",
    "image": "base core",
    "proof": "base core image",
    "compiler.expr": "base core",
    "compiler.target": "base core image compiler.expr",
    "compiler.ops": "base core compiler.expr compiler.target",
    "compiler.schedule": "base core image compiler.expr compiler.target compiler.ops",
    "compiler.nest": "base core image compiler.expr compiler.target compiler.schedule",
    "compiler.codegen": "base core image proof compiler.expr compiler.target compiler.schedule compiler.nest",
    "compiler.plans": "base core compiler.expr compiler.target compiler.ops compiler.schedule",
    "compiler.operators": "base core compiler.ops compiler.schedule compiler.target compiler.codegen "
    "compiler.plans",
    "compiler.mappings": "base core image compiler.expr compiler.target compiler.ops compiler.schedule "
    "compiler.codegen compiler.plans compiler.operators",
    "sim.functional": "base core image",
    "sim.timing": "base core",
    "sim": "base core image sim.functional sim.timing",
    "hw.datapath": "base core",
    "hw.bus": "core hw.datapath",
    "hw.units": "core hw.datapath hw.bus",
    "hw": "core hw.datapath hw.bus hw.units",
    "hw.export": "base core hw.datapath hw",
    "hw.formal": "base core hw.datapath hw.bus hw.units hw",
    "hw.engines": "base core image hw.datapath hw hw.export",
    "hw.board": "base core image hw.datapath hw.bus hw hw.engines",
    "assembly": "base core image proof",
    "energy": "core",
    "area": "core",
    "run": "base core image proof assembly compiler sim hw energy",
    "network": "base core image proof graph rewriting formats compiler run sim hw views energy",
    "deployment": "base core graph image network run",
    "debug": "base core image assembly sim run",
    "views": "base core image assembly run",
    "benchmarks": "base core compiler run energy",
    "studio": "base core image compiler run views network explore",
    "sweeps": "base core compiler hw run",
    "tuning": "base core image compiler run sim sweeps",
    "explore": "area base core image compiler run network views benchmarks sweeps energy hw",
    "cli": "base core rewriting formats image proof assembly compiler hw run debug views benchmarks studio "
    "sweeps explore network deployment energy area tuning",
    "te": "compiler",
    "": "base core image formats proof compiler hw run views sweeps cli te network deployment tuning area",
}
"""The folders that the modules of each folder may import, in addition to their own. Folders inside
``compiler``, ``sim`` and ``hw`` have their own lines. ``""`` stands for the modules in ``accel`` itself."""


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


@cache
def tree(path: Path) -> ast.Module:
    """The parsed source of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported(name: str) -> set[str]:
    """The modules of the package that a module imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(tree(MODULES[name])):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports by a relative name"
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found.update(inside & MODULES.keys() or {node.module or ""})
    return {one for one in found if one.partition(".")[0] == "accel"}


def folder(name: str) -> str:
    """The folder of :data:`MAY_IMPORT` that a module is in."""
    inside = name.removeprefix("accel").lstrip(".")
    return max((one for one in MAY_IMPORT if within(inside, one)), key=len)


def within(inside: str, one: str) -> bool:
    """Whether a dotted place is a folder or in it."""
    return not one or inside == one or inside.startswith(f"{one}.")


@pytest.fixture(scope="module", autouse=True)
def sources_are_parsed_once() -> Iterator[None]:
    yield
    tree.cache_clear()


# --- imports ---------------------------------------------------------------------------------------


def test_every_folder_has_its_line() -> None:
    folders = {name.removeprefix("accel.").rpartition(".")[0] for name in MODULES if name.count(".") > 1}
    lines = [one for one in MAY_IMPORT if one != "te"]
    assert {one for one in lines if one} <= folders
    below = {one for one in folders if "." in one and one.split(".")[0] in PARTS}
    assert below <= set(MAY_IMPORT), "a folder inside compiler, sim or hw has a line of its own"
    assert {one.split(".")[0] for one in folders} == {one.split(".")[0] for one in lines if one}
    assert {
        "accel.core.isa.codec",
        "accel.compiler.codegen.compile_schedule",
        "accel.sim.timing.bus_ports",
    } <= MODULES.keys()


def strangers(name: str) -> set[str]:
    """What a module imports and :data:`MAY_IMPORT` does not allow."""
    mine = folder(name)
    allowed = MAY_IMPORT[mine].split()
    inside = {one.removeprefix("accel").lstrip(".") for one in imported(name)}
    if mine:  # accel itself stands above its folders
        return {one for one in inside if not one or not any(within(one, other) for other in [mine, *allowed])}
    folders = {one: folder(f"accel.{one}") for one in inside}
    return {one for one, found in folders.items() if found and found.split(".")[0] not in allowed}


def test_imports_go_one_way() -> None:
    found = {name: strangers(name) for name in MODULES}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_nothing_is_allowed_that_nobody_does() -> None:
    used: dict[str, set[str]] = {one: set() for one in MAY_IMPORT}
    for name in MODULES:
        used[folder(name)] |= {folder(one) for one in imported(name)}
    for one, allowed in MAY_IMPORT.items():
        idle = {other for other in allowed.split() if not any(within(user, other) for user in used[one])}
        assert idle == set(), f"{one} may import them and does not"


def test_imports_are_free_of_cycles() -> None:
    TopologicalSorter({name: imported(name) - {name} for name in MODULES}).prepare()


def test_folders_are_free_of_cycles() -> None:
    """So that what a line allows goes one way, inside the compiler, too."""
    TopologicalSorter({one: set(allowed.split()) for one, allowed in MAY_IMPORT.items()}).prepare()


def test_the_folders_are_not_imported_by_their_bare_names() -> None:
    bare = {"compiler", "sim", "hw"}
    for path in [*MODULES.values(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "docs").rglob("*.py")]:
        for node in ast.walk(tree(path)):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & bare, path


def test_data_is_never_executed() -> None:
    """No module that runs what it reads, no call that runs text.

    ``forked_tasks`` may, since it reads a pipe that only its own forked processes write.
    """
    for name, path in MODULES.items():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                found = names & {"pickle", "marshal", "shelve", "dill", "cloudpickle", "runpy"}
                assert not found or (name, found) == ("accel.base.forked_tasks", {"pickle"}), name
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                runs_nothing = ast.unparse(node) == "exec('')"  # it resets CPython's state of interrupts
                assert runs_nothing or node.func.id not in {"eval", "exec", "compile", "__import__"}, name
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
    """Return the output of a script in a new interpreter."""
    return subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=ROOT, env=environment
    ).stdout


def test_import_accel_imports_next_to_nothing() -> None:
    """Public names are imported when they are used."""
    loaded = set(fresh("import sys, accel; print(*sys.modules)").split())
    ours = {name for name in loaded if name.partition(".")[0] == "accel"}
    assert ours == {"accel", "accel.base", "accel.base.deprecated_modules", "accel.base.version"}
    assert "numpy" not in loaded


def test_using_accel_pulls_in_nothing_heavy() -> None:
    loaded = set(fresh("import sys; from accel import *; print(*sys.modules)").split())
    assert "accel.run.program" in loaded
    heavy = {
        "amaranth",
        "click",
        "rich",
        "matplotlib",
        "distributed",
        "onnx",
        "onnxruntime",
        "tflite",
        "pyarrow",
        "accel.cli",
        "accel.hw",
        "accel.image.conformance_vectors",
        "unittest",
        "pytest",
    }
    assert loaded & heavy == set()


def test_a_compiled_network_is_read_without_the_compiler() -> None:
    """Only expressions, which the reference in numpy evaluates."""
    loaded = set(fresh("import sys, accel.network.network_cache\nprint(*sys.modules)").split())
    parts = {one.split(".")[2] for one in loaded if one.startswith("accel.compiler.")}
    assert parts == {"expr"}
    assert len([one for one in loaded if within(one, "accel")]) < 220, "it was 330 with the compiler"


def test_running_a_program_compiles_nothing(tmp_path: Path) -> None:
    """Nor does it import what else is not needed and takes long."""
    accel.build(accel.gemm(8, 8, 8), "tiny").save(tmp_path / "gemm.accel")
    command = ["run", str(tmp_path / "gemm.accel"), "--json"]
    script = (
        f"import sys\nfrom accel.cli.app import main\ntry:\n    main({command})\n"
        f"finally:\n    print(*sys.modules)"
    )
    loaded = set(fresh(script).splitlines()[-1].split())
    assert "accel.run.program" in loaded
    for heavy in (
        "accel.compiler.schedule",
        "accel.compiler.ops",
        "accel.hw.engines.engine_driver",
        "numpy.ma",
    ):
        assert heavy not in loaded


def test_replaying_programs_on_the_simulators_imports_no_hardware() -> None:
    loaded = set(fresh("import sys, accel.cli.replay; print(*sys.modules)").split())
    assert not loaded & {"amaranth", "accel.hw.engines.engine_driver"}


def test_what_accel_offers_is_there() -> None:
    """Type checkers see exactly the names of ``__all__``, in the modules that define them."""
    told = {
        alias.asname or alias.name: node.module
        for outer in tree(MODULES["accel"]).body
        if isinstance(outer, ast.If)
        for node in outer.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {*told, "__version__"} == set(accel.__all__)
    assert accel.__all__ == sorted(accel.__all__)
    assert set(accel.__all__) <= set(dir(accel))
    for name, module in told.items():
        found = import_module(f"accel.{name}") if module == "accel" else getattr(import_module(module), name)
        assert getattr(accel, name) is found
    for name in ("benchmarks", "debug", "sweeps", "te", "views"):
        assert fresh(f"import accel; print(accel.{name}.__name__)") == f"accel.{name}\n"
    with pytest.raises(AttributeError, match="module 'accel' has no attribute 'biuld'"):
        accel.biuld  # noqa: B018


def test_using_accel_is_quick(tmp_path: Path) -> None:
    """All of it, against numpy's own import in the same minutes, both from byte code: machines differ in
    speed."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = kept | {"PYTHONPYCACHEPREFIX": str(tmp_path)}

    def cost(statement: str) -> float:
        """In CPU seconds."""
        clock = "time.process_time()"
        return float(fresh(f"import time; begin = {clock}; {statement}; print({clock} - begin)", environment))

    everything = "from accel import *"
    cost(everything)
    assert any(tmp_path.rglob("program.*.pyc"))
    costs = [(cost(everything), cost("import numpy")) for _ in range(3)]
    assert min(accel for accel, _ in costs) < 8 * min(numpy for _, numpy in costs)


# --- docstrings ------------------------------------------------------------------------------------


_TELLING_LINES = 15
"""A class or function that is not for users and has at most this many lines may be explained by its name."""


def for_users() -> set[str]:
    """The names that :data:`accel.__all__` has, and modules, classes and functions on the API pages."""
    pages = (page.read_text() for page in (ROOT / "docs" / "api").glob("*.rst"))
    shown = {name for page in pages for name in re.findall(r"auto(?:class|function|module)::\s+(\S+)", page)}
    return {name.rpartition(".")[2] for name in shown} | shown | set(accel.__all__)


def test_what_is_public_is_explained() -> None:
    """Modules, and classes and functions that users see or that are long.

    Commands are explained by the help texts in ``accel.cli.commands``.
    """
    seen = for_users()
    for name, path in MODULES.items():
        if name.startswith("accel.cli.commands."):
            continue
        has_help = name.replace("accel.cli.", "accel.cli.commands.") in MODULES
        if path.name != "__init__.py" and not has_help:
            assert ast.get_docstring(tree(path)), name
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                is_long = (node.end_lineno or 0) - node.lineno >= _TELLING_LINES
                is_command = name == f"accel.cli.{node.name}"
                if is_command or (not is_long and not {name, node.name} & seen):
                    continue
                assert ast.get_docstring(node), f"{name}.{node.name}"
