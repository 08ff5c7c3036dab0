"""Commands and code in the documents work as printed."""

import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from accel.assembly import assemble
from accel.core.config import load_config
from accel.explore import load_exploration
from accel.run.program import as_program
from accel.run.replay import replay
from accel.sweeps.sweep_spec import make_spec
from tests.test_architecture import MAY_IMPORT
from tests.tools import needs

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(language: str, *, joined: bool = False) -> list[Any]:
    """The fenced blocks of a language in all documents; joined, those of a document are one."""
    found: list[Any] = []
    for path in DOCUMENTS:
        code = re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(encoding="utf-8"), re.M | re.S)
        code = ["".join(code)] if joined and code else code
        found += [pytest.param(text, id=f"{path.name}-{n}") for n, text in enumerate(code)]
    return found


def run(*command: str, folder: Path, path: str = "") -> str:
    """Return the output of a command. It must succeed, and write only the names of its files to stderr."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PATH": path + os.pathsep + os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert all(line.startswith("wrote ") for line in done.stderr.splitlines()), done.stderr
    return done.stdout


_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S)
_MARK = "--- next block ---"


_INTERPRETER = """
import json, os, sys, traceback
import numpy
from accel import *
for line in sys.stdin:
    request = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(request["folder"])
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT), number)
        code = 0
        try:
            exec(compile(request["script"], "<document>", "exec"), {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Runs each script in a process of its own, and imports the package once for all of them."""


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Callable[[str, Path], str]]:
    """A function that runs a script in a folder, where every warning is an error, and returns its output."""
    one_thread = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")  # the process forks
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", _INTERPRETER],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | one_thread,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout

        def outputs(script: str, folder: Path) -> str:
            files = {name: folder.parent / f"{folder.name}.{name}" for name in ("stdout", "stderr")}
            request = {"script": script, "folder": str(folder)} | {n: str(path) for n, path in files.items()}
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            code = process.stdout.readline()
            errors = files["stderr"].read_text(encoding="utf-8")
            assert code == "0\n", errors
            assert all(line.startswith("wrote ") for line in errors.splitlines()), errors
            return files["stdout"].read_text(encoding="utf-8")

        yield outputs
        process.stdin.close()


_WITH_CODE = [path for path in DOCUMENTS if _BLOCK.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("path", _WITH_CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_python(path: Path, tmp_path: Path, interpreter: Callable[[str, Path], str]) -> None:
    """Run a document in one process. A text block right after a code block is the output of the code."""
    found = _BLOCK.findall(path.read_text(encoding="utf-8"))
    script = f"print({_MARK!r})\n".join(code for code, _ in found)
    outputs = interpreter(script, tmp_path).split(_MARK + "\n")
    assert any(outputs)
    for (code, expected), printed in zip(found, outputs, strict=True):
        if expected:
            pattern = re.escape(expected.rstrip("\n")).replace(re.escape("..."), ".*")
            assert re.fullmatch(pattern, printed.rstrip("\n")), f"after\n{code}\nthis is printed:\n{printed}"


_LINKED = ["accel", "docs"]
"""Files of the checkout that commands read."""


_EXPERIMENT = re.compile(r"^accel sweep docs/experiments/\w+\.toml\n", re.M)
"""Experiments that tests/sweeps/test_experiments.py also measures. Only the first one of a document runs."""


_AGAIN = (
    "compare-two-machines.md",
    "digits.md",
    "hardware.md",
    "how-schedules-are-chosen.md",
    "latency-hiding.md",
    "look-into-a-run.md",
    "run-an-onnx-network.md",
    "tune-by-hand.md",
    "waves.md",
    "why-is-my-layer-slow.md",
)
"""Pages whose commands do what the README's do: with another file of waves, and with more programs."""


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(*one.values, id=one.id, marks=pytest.mark.thorough if one.id.startswith(_AGAIN) else ())
        for one in blocks("sh", joined=True)
    ],
)
def test_commands(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for again in _EXPERIMENT.findall(code)[1:]:
        code = code.replace(again, "", 1)
    if re.search(r"accel lockstep|--backend rtl", code):
        needs("verilator")
    command = tmp_path / "bin" / "accel"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m accel "$@"\n')
    command.chmod(0o755)
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in _LINKED:
        (checkout / name).symlink_to(ROOT / name)
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    assert run("sh", "-e", "-c", code, folder=checkout, path=str(command.parent))
    if "mktemp" in code:
        assert sorted(path.name for path in checkout.iterdir()) == _LINKED, "what it writes goes elsewhere"


@pytest.mark.parametrize("code", blocks("asm"))
@pytest.mark.parametrize("backend", ["functional", "sim"])
def test_programs(code: str, backend: str) -> None:
    done = replay(as_program(assemble(code)), backend=backend)
    assert done.differences == ()
    assert done.passed


@pytest.mark.parametrize("code", blocks("toml"))
def test_sweeps_and_configurations(code: str, tmp_path: Path) -> None:
    if "objectives" in code:
        file = tmp_path / "space.toml"
        file.write_text(code, encoding="utf-8")
        assert load_exploration(file).workloads
    elif "[[workload]]" in code:
        assert make_spec(tomllib.loads(code)).points
    else:
        file = tmp_path / "machine.toml"
        file.write_text(code, encoding="utf-8")
        assert load_config(file).to_dict().items() >= {"name": tomllib.loads(code)["name"]}.items()


def test_every_block_is_run() -> None:
    for path in DOCUMENTS:
        fences = re.findall(r"^```(\w*)$", path.read_text(encoding="utf-8"), re.M)
        assert set(fences[::2]) <= {"sh", "python", "asm", "toml", "text", "c"}, path
    assert len(blocks("sh")) >= 1
    assert len(blocks("c")) == 1, (
        "tests/deployment/test_driver.py compiles that of docs/how-to/deploy-to-firmware.md only"
    )


def test_what_make_is_told_to_do_exists() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    told = [re.findall(r"make ([\w-]+)", path.read_text(encoding="utf-8")) for path in DOCUMENTS[:2]]
    assert {name for names in told for name in names} - {"sure"} <= set(targets)
    assert {"demo", "test"} <= set(told[0])


def test_links_lead_somewhere() -> None:
    """Links to GitHub's own pages, such as a workflow's badge, are relative to the repository's address."""
    for path in DOCUMENTS:
        for target in re.findall(
            r"\]\((?!https?:|\.\./\.\./actions/)([^)#]+)", path.read_text(encoding="utf-8")
        ):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_every_page_is_in_the_table_of_contents() -> None:
    """That of the whole, or that of the folder's first page."""
    docs = ROOT / "docs"
    listed = {"index"}
    for path in docs.rglob("index.md"):
        for toctree in re.findall(
            r"^:::\{toctree\}\n(.*?)^:::$", path.read_text(encoding="utf-8"), re.M | re.S
        ):
            names = [line for line in toctree.splitlines() if line and not line.startswith(":")]
            listed |= {os.path.relpath(path.parent / name, docs) for name in names}
    pages = {str(path.relative_to(docs).with_suffix("")) for path in docs.rglob("*.md")}
    assert pages <= listed


def test_the_layers_are_drawn_as_they_are() -> None:
    """The page lists every folder, and its drawing has none above one that may import it."""
    page = (ROOT / "docs" / "explain" / "code-layout.md").read_text(encoding="utf-8")
    listed = [
        name.removeprefix("accel/").replace("/", ".")
        for name in re.findall(r"^\| `(\w+/\w+)` \|", page, re.M)
    ]
    assert sorted(listed) == sorted(MAY_IMPORT.keys() - {"", "te", "sim", "hw"})
    drawing = page[page.index("| import accel") :].partition("```")[0]
    floors: dict[str, int] = {}
    columns: list[str] = []
    for floor, line in enumerate(drawing.splitlines()):
        cells = line.strip().strip("|").split("|")
        if len(cells) > 1 and all(re.match(" \\w", cell) for cell in cells):
            columns = [cell.strip() for cell in cells]
        for column, cell in zip(columns if len(cells) > 1 else [""], cells, strict=True):
            inner = f"{column}." if cell.startswith("   ") else ""
            floors |= {inner + name: floor for name in re.findall(r"[\w.]+", cell)}
    assert {name for name in MAY_IMPORT if name and name not in floors} == set()
    top = {"sim": "sim.simulator.py", "hw": "hw.core.py"}
    for name, allowed in MAY_IMPORT.items():
        for below in allowed.split() if name else ():
            inside = below == name.partition(".")[0]
            assert floors[top[below] if inside else below] > floors[top.get(name, name)], (name, below)


def test_public_names_are_on_a_page_and_pages_name_what_is_there() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "api").glob("*.rst"))
    shown = re.findall(r"^\.\. auto\w+:: (.*)$", pages, re.M)
    assert len(shown) == len(set(shown))
    for module in ("accel", "accel.te", "accel.views"):
        public = {f"{module}.{name}" for name in importlib.import_module(module).__all__}
        assert public - {"accel.te", "accel.__version__"} <= set(shown)
    for name in shown:
        is_top = name.count(".") == 1  # old modules have the names of some functions
        pkgutil.resolve_name(name.replace(".", ":") if is_top else name)


def test_files_that_are_named_exist() -> None:
    """Paths in the repository, and in a table's first column those of the folder that its page is about."""
    named = re.compile(r"`((?:accel|compiler|sim|hw|tests|docs|bench|examples|\.ci|\.github)/[\w./*-]*)`")
    for path in DOCUMENTS:
        for name in named.findall(path.read_text(encoding="utf-8")):
            assert list(ROOT.glob(name.rstrip("/"))), f"{path.name}: {name}"
    hardware = (ROOT / "docs" / "explain" / "hardware.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`[\w/]+\.py`(?:, )?)+) \|", hardware, re.M)
    listed = [name for row in rows for name in re.findall(r"`(.*?)`", row)]
    there = {str(path.relative_to(ROOT / "hw")) for path in (ROOT / "hw").rglob("*.py")}
    assert listed
    assert set(listed) <= there


def test_folders_of_the_map_exist() -> None:
    for name in re.findall(r"`(\w+)/`", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert (ROOT / name).is_dir(), name
