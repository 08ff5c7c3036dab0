"""``accel replay``."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Shell
from tests.vectors import write_vector

KEYS = {"name", "path", "passed", "instructions", "uops", "cycles", "mismatches", "error"}


@pytest.fixture
def vectors(accel: Shell) -> Path:
    """Two vectors that pass and one that does not."""
    write_vector(accel.folder / "set" / "a")
    write_vector(accel.folder / "set" / "deep" / "b")
    expect = {"data": np.zeros(40, np.uint8)}
    write_vector(accel.folder / "bad", expect=expect)
    return Path("set")


@pytest.mark.parametrize("options", [[], ["--backend", "sim"], ["--order", "random", "--seed", 7]])
def test_vectors_that_pass(options: list[object], accel: Shell, vectors: Path) -> None:
    lines = accel("replay", vectors, *options).text.splitlines()
    assert [line.split()[:4] for line in lines[1:3]] == [["a", "pass", "5", "1"], ["b", "pass", "5", "1"]]
    assert (len(lines[1].split()) == 5) is ("sim" in options)
    assert lines[3] == "2 of 2 passed"


def test_a_vector_that_fails(accel: Shell, vectors: Path) -> None:
    outcome = accel("replay", vectors, "bad", code=1)
    assert outcome.err == ""
    lines = outcome.text.splitlines()
    assert lines[3].split()[:2] == ["bad", "FAIL"]
    assert lines[4].startswith("bad: ")
    assert " bytes differ; the first, 0x3000 holds 0x07 instead of 0x00" in lines[4]
    assert lines[5] == "2 of 3 passed"


def test_json(accel: Shell, vectors: Path) -> None:
    good = accel("replay", vectors, "--backend", "sim", "--json").json
    assert {key: value for key, value in good.items() if key != "vectors"} == {
        "schema_version": 1,
        "backend": "sim",
        "passed": 2,
        "failed": 0,
    }
    assert [set(one) for one in good["vectors"]] == [KEYS, KEYS]
    assert good["vectors"][0]["cycles"] > 100
    outcome = accel("replay", "bad", "--json", code=1)
    assert (outcome.err, outcome.json["failed"]) == ("", 1)
    assert outcome.json["vectors"][0]["cycles"] is None


@pytest.mark.parametrize("limit", [["--max-uops", 1], ["--max-cycles", 30, "--backend", "sim"]])
def test_limits(limit: list[object], accel: Shell, vectors: Path) -> None:
    code = 0 if "--max-uops" in limit else 1
    assert accel("replay", "set/a", *limit, code=code).text.endswith(f"{1 - code} of 1 passed\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument 'DIR...'. (see 'accel replay --help')"),
        (["none"], "'none' is no folder; give a vector's folder or one that holds vectors"),
        (["empty"], "'empty' holds no vector; a vector is a folder with insn.bin"),
        (["set", "--backend", "simm"], "the backend is 'simm'; did you mean 'sim'?"),
        (["set", "empty"], "'empty' holds no vector; a vector is a folder with insn.bin"),
        (["bare"], "configuration 'bare/config.json' cannot be read: No such file or directory"),
    ],
)
def test_bad_input(arguments: list[str], message: str, accel: Shell, vectors: Path) -> None:
    (accel.folder / "empty").mkdir()
    write_vector(accel.folder / "bare", config=None)
    accel.refused("replay", *arguments, message=message)


def test_nothing_runs_before_all_is_read(accel: Shell, vectors: Path) -> None:
    write_vector(accel.folder / "damaged", expect=b"")
    message = "vector 'damaged': expect.npz is damaged: File is not a zip file"
    accel.refused("replay", vectors, "damaged", "--json", message=message)
