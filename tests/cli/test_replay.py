from pathlib import Path

import numpy as np
import pytest

from accel.run.result import RESULT_KEYS
from tests.cli.conftest import Shell
from tests.programs import gemm_program
from tests.vectors import write_vector

ON_HARDWARE = ("--backend", "rtl", "--engine", "pysim")
KEYS = {"name", "path", "passed", "differences", *RESULT_KEYS}


@pytest.fixture
def vectors(accel: Shell) -> Path:
    """Two vectors that pass and one that fails."""
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


def test_the_hardware_gives_the_same_results(accel: Shell, vectors: Path) -> None:
    """The hardware has the simulator's cycles, figures and differences."""
    sim, rtl = (
        accel("replay", vectors, "bad", "--json", *backend, code=1).json
        for backend in (["--backend", "sim"], ON_HARDWARE)
    )
    assert (rtl["passed"], rtl["failed"], rtl["backend"]) == (2, 1, "rtl")
    for one in (sim, rtl):
        one.pop("backend")
        for program in one["programs"]:
            for key in ("backend", "pack_seconds", "simulate_seconds"):
                program.pop(key)
    assert rtl == sim


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
    assert {key: value for key, value in good.items() if key != "programs"} == {
        "schema_version": 1,
        "backend": "sim",
        "passed": 2,
        "failed": 0,
        "skipped": 0,
    }
    assert [set(one) for one in good["programs"]] == [KEYS, KEYS]
    assert good["programs"][0]["cycles"] > 100
    outcome = accel("replay", "bad", "--json", code=1)
    assert (outcome.err, outcome.json["failed"]) == ("", 1)
    assert outcome.json["programs"][0]["cycles"] is None


@pytest.mark.parametrize("limit", [["--max-uops", 1], ["--max-cycles", 30, "--backend", "sim"]])
def test_limits(limit: list[object], accel: Shell, vectors: Path) -> None:
    code = 0 if "--max-uops" in limit else 1
    assert accel("replay", "set/a", *limit, code=code).text.endswith(f"{1 - code} of 1 passed\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument 'PATH...'. (see 'accel replay --help')"),
        (["none"], "'none' does not exist; give programs, or folders that contain some"),
        (
            ["empty"],
            "'empty' contains no program; programs are .accel files, .s files, and folders with insn.bin",
        ),
        (["set", "--backend", "simm"], "the backend is 'simm'; did you mean 'sim'?"),
        (
            ["set", "--engine", "pysim"],
            "an engine is given with the backend 'functional'; only 'rtl' takes it",
        ),
        (
            ["set", "--backend", "rtl", "--engine", "vcs"],
            "the engine is 'vcs'; valid are cxxrtl, pysim, verilator",
        ),
        (
            ["set", "--backend", "rtl", "--order", "random"],
            "the order is 'random' with the backend 'rtl'; the hardware always runs in its own order",
        ),
        (
            ["set", "empty"],
            "'empty' contains no program; programs are .accel files, .s files, and folders with insn.bin",
        ),
        (
            ["set", "p.accel"],
            "program 'p.accel' has no expected results; .expect gives them in a test",
        ),
        (["bare"], "configuration 'bare/config.json' cannot be read: No such file or directory"),
    ],
)
def test_bad_input(arguments: list[str], message: str, accel: Shell, vectors: Path) -> None:
    (accel.folder / "empty").mkdir()
    write_vector(accel.folder / "bare", config=None)
    gemm_program().save("p.accel")
    accel.refused("replay", *arguments, message=message)


def test_all_files_are_read_before_any_program_runs(accel: Shell, vectors: Path) -> None:
    write_vector(accel.folder / "damaged", expect=b"")
    message = "vector 'damaged': expect.npz: it is no .npz file; numpy.savez writes what is needed"
    accel.refused("replay", vectors, "damaged", "--json", message=message)


def test_programs_without_expectations_are_skipped_in_folders(accel: Shell, vectors: Path) -> None:
    gemm_program().save(accel.folder / "set" / "p.accel")
    assert accel("replay", vectors).text.endswith("2 of 2 passed\n")
    (accel.folder / "other").mkdir()
    gemm_program().save(accel.folder / "other" / "p.accel")
    message = "no program in 'other' has expected results; .expect gives them in a test"
    accel.refused("replay", "other", message=message)


# --- tests in assembly -----------------------------------------------------------------------------

TEXT = """\
.config tiny
.dram
x: .int32 -1 300
.preset uop[0] .uop 2,0,0
LOAD.ACC dram_base=x y_size=1 x_size=1
ALU.ADD use_imm=1 imm=5 uop_end=1
FINISH
"""


def verdicts(accel: Shell, *lines: str, options: tuple[object, ...] = (), code: int = 0) -> list[str]:
    """Lines below the table, for a test with these expectations."""
    Path("t.s").write_text(TEXT + "\n".join(lines) + "\n")
    return accel("replay", "t.s", *options, code=code).text.splitlines()[2:]


@pytest.mark.parametrize("backend", ["functional", "sim"])
def test_expectations_that_are_met(backend: str, accel: Shell) -> None:
    expected = [
        ".expect done",
        ".expect acc[0] .int32 -1 300 0*6",
        ".expect dram[x+4] .int8 44 1",
        ".expect tokens",
    ]
    assert verdicts(accel, *expected, options=("--backend", backend)) == ["1 of 1 passed"]


@pytest.mark.parametrize("backend", ["functional", "sim"])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            ".expect acc[0] .int32 -1 299 0*6",
            "1 elements of acc differ; the first, acc[0] holds [[-1, 300, 0, 0, 0, 0, 0, 0]] "
            "instead of [[-1, 299, 0, 0, 0, 0, 0, 0]]",
        ),
        (".expect dram[x] .int8 -1*5", "1 bytes differ; the first, 0x1004 holds 0x2c instead of 0xff"),
        (".expect fault deadlock", "the run ends without an error; deadlock is expected"),
        (".expect fault alu-op at 1", "the run ends without an error; alu-op at instruction 1 is expected"),
        (
            ".expect tokens load>compute=2",
            "tokens left: 0 load to compute, 0 compute to load, 0 compute to store, 0 store to compute",
        ),
        (".expect race", "a race is expected; the token check finds none"),
    ],
)
def test_expectations_that_are_not_met(line: str, message: str, backend: str, accel: Shell) -> None:
    found = verdicts(accel, line, options=("--backend", backend), code=1)
    assert found == [f"t: {message}", "0 of 1 passed"]
    outcome = accel("replay", "t.s", "--json", code=1).json
    assert outcome["programs"][0]["differences"] == [message]
    assert outcome["programs"][0]["error"] == {
        "cause": "mismatch",
        "instruction": None,
        "cycle": None,
        "message": message,
    }


def test_expectations_on_the_hardware(accel: Shell) -> None:
    """The hardware's scratchpads and token counters are compared too."""
    lines = [".expect acc[0] .int32 -1 299 0*6", ".expect uop[0] .uop 2,0,0"]
    found = verdicts(accel, *lines, ".expect tokens load>compute=2", options=ON_HARDWARE, code=1)
    assert found == [
        "t: 1 elements of acc differ; the first, acc[0] holds [[-1, 300, 0, 0, 0, 0, 0, 0]] "
        "instead of [[-1, 299, 0, 0, 0, 0, 0, 0]]",
        "t: tokens left: 0 load to compute, 0 compute to load, 0 compute to store, 0 store to compute",
        "0 of 1 passed",
    ]


def test_errors_with_another_cause_or_instruction_fail(accel: Shell) -> None:
    bad = TEXT.replace("uop_end=1", "uop_end=1 iter_in=127 dst_factor_in=1")
    lines = {
        ".expect fault dst-index at 1": None,
        ".expect fault dst-index": None,
        ".expect fault dst-index at 2": "dst-index at instruction 2 is expected",
        ".expect fault src-index at 1": "src-index at instruction 1 is expected",
        ".expect done": "",
    }
    for line, message in lines.items():
        Path("t.s").write_text(bad + line + "\n")
        found = accel("replay", "t.s", code=int(message is not None)).text.splitlines()
        assert found[-1] == f"{int(message is None)} of 1 passed"
        if message is not None:
            assert found[-2].startswith("t: instruction 1: ALU.ADD has dst index 128")
            assert found[-2].endswith(message)


def test_limits_of_cycles_need_cycles(accel: Shell) -> None:
    """A backend without cycle counts skips such a test instead of reporting a pass."""
    lines = [".limit cycles=20", ".expect fault limit"]
    assert verdicts(accel, *lines) == ["0 of 0 passed, 1 skipped: this backend knows no cycles"]
    assert verdicts(accel, *lines, options=("--backend", "sim")) == ["1 of 1 passed"]
    assert verdicts(accel, ".limit uops=1 cycles=900", ".expect done") == ["1 of 1 passed"]


@pytest.mark.parametrize("backend", ["functional", "sim"])
def test_limits_of_micro_ops(backend: str, accel: Shell) -> None:
    text = TEXT.replace("uop_end=1", "uop_end=1 iter_in=2")
    Path("t.s").write_text(text + ".limit uops=1\n.expect fault limit at 1\n")
    assert accel("replay", "t.s", "--backend", backend).text.endswith("1 of 1 passed\n")


def test_several_processes_say_the_same(accel: Shell, vectors: Path) -> None:
    one, two = (accel("replay", vectors, "bad", "--jobs", n, "--json", code=1).json for n in (1, 2))
    for found in (one, two):
        for program in found["programs"]:
            assert program.pop("pack_seconds") >= 0
            assert program.pop("simulate_seconds") >= 0
    assert one == two
