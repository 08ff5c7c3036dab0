"""``accel run``: figures, inputs and outputs, options."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel.base.records import replace
from accel.core.isa import Gemm, Instruction, Load, Memory
from accel.run.program import Program
from accel.run.result import RESULT_KEYS
from accel.run.run_headline import headline
from tests.cli.conftest import Shell
from tests.programs import gemm_program, handmade

ROW = {"y_size": 1, "x_size": 1, "x_stride": 1}
TIMES = ("compile_seconds", "pack_seconds", "simulate_seconds")


def figures(accel: Shell, *arguments: object, code: int = 0) -> dict[str, Any]:
    """The JSON object without the values that differ from run to run."""
    found = accel("run", *arguments, "--json", code=code).json
    ran = () if code and found["mismatches"] is None else ("headline", "critical_path")
    assert tuple(found) == (*RESULT_KEYS, *ran)
    return {key: value for key, value in found.items() if key not in (*TIMES, "headline", "critical_path")}


def test_text(accel: Shell, saved: Callable[..., Path]) -> None:
    file = saved()
    said, empty, *table = accel("run", file).text.splitlines()
    lines = [line.split("  ") for line in table]
    found = {line[0]: line[-1].strip() for line in lines}
    result = gemm_program().run()
    expected = headline(result)
    assert expected is not None
    assert (said, empty) == (expected.text, "")
    assert list(found)[:18] == [
        *("machine", "cycles", "utilization", "roofline", "slots", "bound by", "instructions", "micro-ops"),
        *("bytes moved", "compared to numpy", "tokens", "packing, simulation", "where the cycles went"),
        *("unit", "fetch", "load", "compute", "store"),
    ]
    assert found["machine"] == "tiny (1x4x8, 64-bit bus)"
    assert found["cycles"] == str(result.cycles)
    assert found["bound by"] == expected.bound
    assert found["bytes moved"] == ", ".join(f"{k} {n}" for k, n in result.bytes_by_kind.items() if n)
    assert found["compared to numpy"] == "all equal"
    assert found["tokens"] == "no deadlock, no race: proven"
    place = next(n for n, line in enumerate(lines) if line[0] == "unit")
    for line in lines[place + 1 : place + 5]:
        shares = [float(word.strip().rstrip("%")) for word in line[1:] if word]
        assert len(shares) == 4
        assert sum(shares) == pytest.approx(100, abs=0.25)


def test_json_is_the_result(accel: Shell, saved: Callable[..., Path]) -> None:
    expected = json.loads(json.dumps(gemm_program(shift=1).run(seed=5).to_dict()))
    assert figures(accel, saved(shift=1), "--seed", 5) == {
        key: value for key, value in expected.items() if key not in TIMES
    }


def test_functional_runs_have_no_cycles(accel: Shell, saved: Callable[..., Path]) -> None:
    file = saved()
    found = figures(accel, file, "--backend", "functional", "--order", "random")
    assert found["backend"] == "functional"
    assert found["mismatches"] == 0
    assert {key for key, value in found.items() if value is None} == {
        *("cycles", "utilization", "roofline_fraction", "bound_by", "stalls", "error"),
        *("slot_utilization", "slot_roofline_fraction"),
    }
    lines = accel("run", file, "--backend", "functional").text.splitlines()
    assert not any(line.startswith(("cycles", "unit", "utilization")) for line in lines)


def test_timing_is_set_for_the_run(accel: Shell, saved: Callable[..., Path]) -> None:
    file = saved()
    usual = figures(accel, file)["cycles"]
    assert figures(accel, file, "--serial")["cycles"] > usual
    assert (
        figures(accel, file, "--set", "serial=true")["cycles"] == figures(accel, file, "--serial")["cycles"]
    )
    assert figures(accel, file, "--set", "read_latency=164")["cycles"] > usual + 100
    assert figures(accel, file, "--set", "mem_base=0x1000")["cycles"] == usual
    assert figures(accel, file)["cycles"] == usual


def test_inputs_and_outputs_are_files(accel: Shell, saved: Callable[..., Path]) -> None:
    a, b = (
        np.random.default_rng(n).integers(-128, 128, shape, np.int8)
        for n, shape in enumerate(((3, 5), (5, 9)))
    )
    np.save("a.npy", np.asfortranarray(a))
    np.save("b=.npy", b)
    arguments = ["--input", "A=a.npy", "--input", "B=b=.npy", "--output", "C=c.npy"]
    assert figures(accel, saved(shift=4), *arguments)["mismatches"] == 0
    expected = (a.astype(int) @ b.astype(int) >> 4).clip(-128, 127)
    np.testing.assert_array_equal(np.load("c.npy"), expected)
    assert np.load("c.npy").dtype == np.int8


def test_seeds_choose_the_inputs_that_are_not_given(accel: Shell, saved: Callable[..., Path]) -> None:
    file = saved()
    np.save("a.npy", gemm_program().random_inputs(3)["A"])
    for name, seed in (("c3", 3), ("again", 3), ("c4", 4)):
        accel("run", file, "--seed", seed, "--output", f"C={name}.npy")
    accel("run", file, "--seed", 3, "--input", "A=a.npy", "--output", "C=given.npy")
    c3, again, c4, given = (np.load(f"{name}.npy") for name in ("c3", "again", "c4", "given"))
    np.testing.assert_array_equal(c3, again)
    np.testing.assert_array_equal(c3, given)
    assert (c3 != c4).any()


@pytest.fixture
def wrong(accel: Shell) -> Path:
    """A program that shifts by 3 although its expression shifts by 4."""
    program = replace(gemm_program(20, 20, 20, shift=3), source=gemm_program(20, 20, 20, shift=4).source)
    program.save("wrong.accel")
    return Path("wrong.accel")


def test_a_mismatch_is_found(accel: Shell, wrong: Path) -> None:
    mismatches = Program.load(wrong).run().mismatches
    assert mismatches
    message = f"{mismatches} of 400 output elements differ from the numpy reference"
    outcome = accel.at_fault("run", wrong, "--output", "C=c.npy", message=message)
    assert f"compared to numpy    {mismatches} MISMATCHES\n" in outcome.text
    assert np.load("c.npy").shape == (20, 20)
    found = figures(accel, wrong, code=1)
    assert found["mismatches"] == mismatches
    assert found["error"] == {"cause": "mismatch", "instruction": None, "cycle": None, "message": message}
    assert found["cycles"] > 0


def test_no_check(accel: Shell, wrong: Path) -> None:
    assert figures(accel, wrong, "--no-check")["mismatches"] is None
    text = accel("run", wrong, "--no-check").text
    assert "compared to numpy" not in text
    assert "tokens" not in text


@pytest.mark.parametrize(
    ("body", "options", "found"),
    [
        (
            [Load(memory=Memory.INP, **ROW), Load(memory=Memory.UOP, **ROW), Gemm(uop_end=1)],
            [],
            "race: instruction 0 writes and instruction 2 reads inp elements 0..0, and no token orders them",
        ),
        (
            [
                Load(memory=Memory.INP, push_next=True, **ROW),
                *[Gemm()] * 3,
                Load(memory=Memory.INP, push_next=True, **ROW),
                *[Gemm(pop_prev=True)] * 2,
            ],
            ["--set", "token_bits=1"],
            "fault: instruction 4: up to 2 tokens from load to compute may be waiting at once; "
            "a counter of token_bits=1 holds 1",
        ),
        (
            [Gemm(uop_end=1)],
            ["--backend", "functional"],
            "unknown: instruction 0 runs micro-ops that are not known before the run; "
            "nothing can be proven of it",
        ),
    ],
    ids=["race", "overflow", "unknown"],
)
def test_possible_hazards_are_reported(
    body: list[Instruction], options: list[str], found: str, accel: Shell
) -> None:
    """`run` reports these even if the hazard did not occur in the run."""
    handmade(*body).save("p.accel")
    assert f"tokens               {found}\n" in accel("run", "p.accel", *options).text


@pytest.mark.parametrize(
    ("arguments", "cause", "message"),
    [
        (
            ["--max-cycles", 100],
            "limit",
            "instruction {} (cycle 100): the run takes more than 100 cycles (max_cycles)",
        ),
        (
            ["--max-uops", 2],
            "limit",
            "instruction {}: GEMM runs 3 micro-ops after 0 before it; at most 2 are allowed (max_uops)",
        ),
    ],
)
def test_limits(
    arguments: list[object], cause: str, message: str, accel: Shell, saved: Callable[..., Path]
) -> None:
    file = saved()
    found = figures(accel, file, *arguments, "--output", "C=c.npy", code=1)
    error = found.pop("error")
    assert error["cause"] == cause
    assert error["message"] == message.format(error["instruction"])
    assert {key: value for key, value in found.items() if value is not None} == {
        "schema_version": 1,
        "backend": "sim",
        "config": "tiny",
        "instructions": len(gemm_program().instructions),
    }
    outcome = accel.at_fault("run", file, *arguments, "--output", "C=c.npy", message=error["message"])
    assert outcome.out == ""
    assert not Path("c.npy").exists()


def test_a_deadlock_is_reported_immediately(accel: Shell) -> None:
    handmade(Gemm(pop_prev=True)).save("dead.accel")
    message = (
        "deadlock: compute waits at instruction 0 for a token from load; "
        "no instruction left in the load unit pushes one"
    )
    outcome = accel("run", "dead.accel", code=1)
    assert outcome.err.startswith(f"accel: {message}")
    error = figures(accel, "dead.accel", code=1)["error"]
    assert (error["cause"], error["instruction"]) == ("deadlock", 0)
    assert accel("run", "dead.accel", "--backend", "functional", code=1).err == f"accel: {message}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--backend", "verilog"], "the backend is 'verilog'; valid are functional, rtl, sim"),
        (["--backend", "rtl", "--engine", "vcs"], "the engine is 'vcs'; valid are cxxrtl, pysim, verilator"),
        (
            ["--backend", "rtl", "--engine", "pysim", "--wave", "x.fst"],
            "the wave file is 'x.fst'; the engine pysim writes .vcd files",
        ),
        (["--seed", -1], "Invalid value for '--seed': -1 is not in the range x>=0. (see 'accel run --help')"),
        (
            ["--max-uops", 0],
            "Invalid value for '--max-uops': 0 is not in the range x>=1. (see 'accel run --help')",
        ),
        (
            ["--order", "any"],
            "Invalid value for '--order': 'any' is not one of 'program', 'random'. (see 'accel run --help')",
        ),
        (
            ["--set", "batch=2"],
            "'batch' is a geometry field, bound when the program was compiled; "
            "only timing fields can be set here",
        ),
        (["--set", "token_bits=17"], "token_bits is 17 in configuration 'tiny'; it must be in 1..16 bits"),
        (["--set", "mem_base=1"], "mem_base is 1; it must be a multiple of 4096"),
        (["--input", "A"], "--input is given 'A'; it takes NAME=FILE.npy, as A=a.npy"),
        (["--input", "=a.npy"], "--input is given '=a.npy'; it takes NAME=FILE.npy, as A=a.npy"),
        (["--output", "C="], "--output is given 'C='; it takes NAME=FILE.npy, as A=a.npy"),
        (
            ["--input", "A=a.npy", "--input", "A=b.npy"],
            "--input is given A twice, as 'a.npy' and as 'b.npy'",
        ),
        (
            ["--output", "C=c.npy", "--output", "C=d.npy"],
            "--output is given C twice, as 'c.npy' and as 'd.npy'",
        ),
        (
            ["--set", "read_latency=5", "--set", " read_latency=6"],
            "--set is given read_latency twice, as '5' and as '6'",
        ),
        (["--serial", "--set", "serial=0"], "--serial and --set serial=0 are given; one of them is enough"),
        (
            ["--output", "C=keep.py"],
            "output C is to be written to 'keep.py'; the name must end in .npy",
        ),
        (["--output", "A=a.npy"], "'A' is not an output of the program; valid are C"),
    ],
)
def test_bad_options(arguments: list[object], message: str, accel: Shell, saved: Callable[..., Path]) -> None:
    accel.refused("run", saved(), *arguments, message=message)


def test_the_names_of_wave_files_are_printed(accel: Shell, saved: Callable[..., Path]) -> None:
    run = ("run", saved(), "--backend", "rtl", "--engine", "pysim", "--wave", "w.vcd")
    assert accel(*run).err == "wrote w.vcd\nwrote w.gtkw\n"
    own = Path("w.gtkw").read_text(encoding="utf-8") + "[color] 1\n"
    Path("w.gtkw").write_text(own, encoding="utf-8")
    stopped = accel(*run, "--max-cycles", "20", code=1)
    assert stopped.err.startswith("wrote w.vcd\naccel: ")
    assert Path("w.gtkw").read_text(encoding="utf-8") == own


def test_the_names_of_pictures_of_a_failed_run_are_printed(accel: Shell, saved: Callable[..., Path]) -> None:
    file = saved()
    stopped = accel("run", file, "--max-cycles", "20", "--trace", "t.json", code=1)
    assert Path("t.json").exists()
    assert stopped.err.startswith("wrote t.json\naccel: ")
    assert accel("run", file, "--max-cycles", "20", "--trace", "t.json", "--json", code=1).err == ""


def test_advice(accel: Shell, saved: Callable[..., Path]) -> None:
    file = saved()
    text = accel("run", file, "--advise", "--set", "read_latency=200", "--report", "r.html").text
    assert "what would help" in text
    assert "read_latency=100  " in text
    found = accel("run", file, "--advise", "--set", "read_latency=200", "--json").json["advice"]
    best = found["advice"][0]
    page = Path("r.html").read_text()
    assert "What would help" in page
    assert f"{best['cycles']:,}" in page
    message = "--advise is given with the backend 'functional', which has no time; sim and rtl do"
    accel.refused("run", file, "--advise", "--backend", "functional", message=message)
