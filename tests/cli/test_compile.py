import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import accel as package
from accel.base.errors import MachineError
from accel.cli import compile as command
from accel.compiler.codegen.reorder_passes import PASS_NAMES
from accel.compiler.operators.default_schedule import find_candidates
from accel.core.fault_causes import Cause
from accel.image.program_source import Options
from accel.run.program import Program
from accel.run.stage_listing import stage_text
from tests.cli.conftest import Shell
from tests.programs import gemm_program

SMALL = ["compile", "gemm", "-m", 3, "-n", 9, "-k", 5, "--config", "tiny", "-o", "p.accel"]


def test_text(accel: Shell) -> None:
    outcome = accel(*SMALL)
    assert outcome.err == "wrote p.accel\n"
    lines = dict(line.split("  ", 1) for line in outcome.text.splitlines())
    figures = {name: value.strip() for name, value in lines.items()}
    program = Program.load("p.accel")
    assert figures.pop("compiled in").endswith(" s")
    assert figures == {
        "machine": "tiny (1x4x8, 64-bit bus)",
        "instructions": str(len(program.instructions)),
        "carriers": "0",
        "micro-ops": f"{program.run().to_dict()['uops']} executed, {len(program.segments[0][1]) // 4} stored",
        "DRAM": f"{program.size:,} bytes",
        "tokens": "no deadlock, no race: proven",
        "tile": "3 x 8 x 8 (m x n x k)",
        "threads": "2 along n",
        "predicted": "202 cycles, busiest unit load 9%",
    }
    assert program.code == gemm_program().code


def test_json(accel: Shell) -> None:
    outcome = accel(*SMALL, "--json")
    assert outcome.err == ""
    found = outcome.json
    program = Program.load("p.accel")
    plan = found.pop("plan")
    assert (plan["tile_m"], plan["tile_n"], plan["step_k"], plan["threads"]) == (3, 8, 8, 2)
    assert plan["predicted_cycles"] == 202
    assert (*list(found)[:4], "plan", *list(found)[4:]) == command.FIGURES
    assert found == {
        "schema_version": 1,
        "output": "p.accel",
        "config": "tiny",
        "vthreads": 2,
        "instructions": len(program.instructions),
        "carriers": 0,
        "uops": program.run().to_dict()["uops"],
        "stored_uops": len(program.segments[0][1]) // 4,
        "dram_bytes": program.size,
        "mapping": "plain",
        "mappings": None,
        "packed_bytes": program.packed_bytes,
        "packing_factor": program.packing_factor,
        "compile_seconds": found["compile_seconds"],
        "mean": None,
        "differences": None,
        "schedule": None,
        "candidates": None,
        "error": None,
    }
    assert found["compile_seconds"] > 0
    assert program.compile_seconds is None


def test_a_workload_has_one_file(accel: Shell) -> None:
    """Two compilations differ in their seconds, which are printed, and not in the file."""
    for path in ("one.accel", "two.accel"):
        assert "compiled in" in accel(*SMALL, "--explain", "-o", path).text
    assert Path("one.accel").read_bytes() == Path("two.accel").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--transpose-a"], {"transpose_a": True}),
        (["--transpose-b"], {"transpose_b": True}),
        (["--bias"], {"bias": True}),
        (["--relu"], {"relu": True}),
        (["--clip=-3,100"], {"clip": (-3, 100)}),
        (["--residual", "--shift", 3, "--clip", "0,9"], {"residual": True, "shift": 3, "clip": (0, 9)}),
        (["--shift", 0], {"shift": 0}),
        (["--shift", 31, "--bias", "--relu"], {"shift": 31, "bias": True, "relu": True}),
    ],
)
def test_options(arguments: list[object], options: dict[str, object], accel: Shell) -> None:
    accel(*SMALL, *arguments)
    program = Program.load("p.accel")
    assert program.source == gemm_program(**options).source
    assert program.code == gemm_program(**options).code


def test_the_machine_is_gemm8x8_unless_said(accel: Shell) -> None:
    accel("compile", "gemm", "-m", 1, "-n", 1, "-k", 1, "-o", "p.accel")
    assert Program.load("p.accel").config == package.machine("gemm8x8").config


def test_machines_from_files_and_settings(accel: Shell) -> None:
    Path("mine.json").write_text(json.dumps({"batch": 4, "wgt_bytes": "32KiB"}))
    settings = ["--set", "read_latency=7", "--set", "acc_bytes=64KiB", "--set", "batch = 2"]
    accel("compile", "gemm", "-m", 1, "-n", 1, "-k", 1, "--config", "mine.json", "-o", "p.accel", *settings)
    config = Program.load("p.accel").config
    assert (config.name, config.batch, config.read_latency) == (
        "mine with batch=2, acc_bytes=65536, read_latency=7",
        2,
        7,
    )
    assert (config.wgt_bytes, config.acc_bytes) == (32 << 10, 64 << 10)
    Path("vta.json").write_text(json.dumps({"TARGET": "sim", "LOG_ACC_BUFF_SIZE": 15}))
    accel("compile", "gemm", "-m", 1, "-n", 1, "-k", 1, "--config", "vta.json", "-o", "p.accel")
    assert Program.load("p.accel").config == package.Config(name="vta", acc_bytes=1 << 15)


def test_an_old_file_is_replaced_only_by_a_new_one(accel: Shell) -> None:
    accel(*SMALL)
    accel.refused(*SMALL, "--set", "inp_bytes=4", message=TOO_SMALL)
    accel(*SMALL, "--bias")
    assert Program.load("p.accel").code == gemm_program(bias=True).code


TOO_SMALL = "inp_bytes is 4 in configuration 'tiny'; two elements of 4 bytes are the least"


@pytest.mark.parametrize("as_json", [False, True])
def test_a_program_that_fails_its_check_is_not_written(
    as_json: bool, accel: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MachineError("instruction 3: a counter overflows", cause=Cause.TOKEN_OVERFLOW, index=3)

    monkeypatch.setattr(command, "build", fail)
    if not as_json:
        assert accel.at_fault(*SMALL, message="instruction 3: a counter overflows").out == ""
    else:
        outcome = accel(*SMALL, "--json", code=1)
        assert tuple(outcome.json) == command.FIGURES
        assert {key: value for key, value in outcome.json.items() if value is not None} == {
            "schema_version": 1,
            "config": "tiny",
            "error": {
                "cause": "token-overflow",
                "instruction": 3,
                "cycle": None,
                "message": "instruction 3: a counter overflows",
            },
        }
        assert outcome.err == ""
    assert not list(accel.folder.iterdir())


def test_compiled_programs_run(accel: Shell, saved: Callable[..., Path]) -> None:
    accel("compile", "gemm", "-m", 17, "-n", 20, "-k", 33, "--bias", "--shift", 4, "-o", "q.accel")
    assert accel("run", "q.accel", "--json").json["mismatches"] == 0
    assert accel("check", "q.accel", "--json").json["ok"] is True


# --- schedules -------------------------------------------------------------------------------------

LARGER = ["compile", "gemm", "-m", 40, "-n", 48, "-k", 56, "--shift", 6, "--config", "tiny"]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_virtual_threads(threads: int, accel: Shell) -> None:
    accel(*LARGER, "--vthreads", threads, "-o", "p.accel")
    program = Program.load("p.accel")
    scheduled, lowered = stage_text(program, "scheduled"), stage_text(program, "threads")
    if threads == 1:
        assert "vthread" not in scheduled
    else:
        assert re.search(rf"in vthread\(.*\b{threads}\b.*\):", scheduled)
        assert f"inp_buffer AL[{threads}][" in lowered
    assert "vthread" not in lowered
    assert accel("run", "p.accel", "--json").json["mismatches"] == 0


def test_explain(accel: Shell) -> None:
    found = accel(*LARGER, "--explain", "--json").json
    compared = found["candidates"]
    assert {plan["threads"] for plan in compared} >= {1, 2, 3, 4}
    workload, config = package.gemm(40, 48, 56, shift=6), package.machine("tiny").config
    assert len(compared) == len(find_candidates(workload, config))
    cycles = [plan["predicted_cycles"] for plan in compared]
    assert cycles[0] < min(cycles) * 1.01
    chosen = compared[0]
    assert chosen["tile_m"] * chosen["tile_n"] <= config.acc_depth * config.block_out
    least = chosen["read_bytes"]
    assert least >= 40 * 56 + 56 * 48
    assert all(0 < busy < 1 for busy in chosen["predicted_busy"].values())
    text = accel(*LARGER, "--explain").text
    row = next(line for line in text.splitlines() if line.startswith("chosen")).split()
    tile = ["chosen", str(chosen["tile_m"]), "x", str(chosen["tile_n"]), str(chosen["step_k"])]
    assert row[:6] == [*tile, str(chosen["threads"])]
    assert f"{chosen['predicted_cycles']:,}" in row
    assert f"instructions  {found['instructions']}" in text
    assert not list(accel.folder.iterdir())


def test_measure(accel: Shell) -> None:
    found = accel(*LARGER, "--measure", 4, "--explain", "--json").json
    cycles = [one["simulated_cycles"] for one in found["candidates"]]
    assert None not in cycles[:4]
    assert set(cycles[4:]) == {None}
    assert found["plan"] == found["candidates"][0]
    told = accel(*LARGER, "--measure", 4, "-o", "measured.accel").text
    assert f"simulated     {cycles[0]:,} cycles\n" in told
    assert Program.load("measured.accel").run().cycles == cycles[0]
    assert "simulated" in accel(*LARGER, "--measure", 4, "--explain").text.splitlines()[0]
    assert "simulated" not in accel(*LARGER, "--explain").text


def test_a_reorder_pass_that_is_turned_off(accel: Shell) -> None:
    """``--explain`` reports the effect of each pass, and the program records which passes were off."""
    off = ("--without", "split-last-steps", "--without", "interleave-epilogues", "--measure", 2)
    lines = accel(*LARGER, *off, "--explain").text.splitlines()
    effects = dict(line.split(maxsplit=1) for line in lines if line.startswith(PASS_NAMES))
    assert effects["interleave-epilogues"] == effects["split-last-steps"] == "off"
    assert effects["prefetch-residuals"] == "needs post=1"
    assert effects["write-padding-once"].startswith("ran: ")
    accel(*LARGER, *off, "-o", "p.accel")
    assert Program.load("p.accel").passes_off == ("interleave-epilogues", "split-last-steps")
    shown = accel("show", "p.accel", "--stage", "passes").text.splitlines()
    assert [line.split() for line in shown[:1]] == [["interleave-epilogues", "off"]]


def test_an_unknown_reorder_pass(accel: Shell) -> None:
    message = "the reorder pass is 'split-last-step'; did you mean 'split-last-steps'?"
    accel.refused(*LARGER, "--without", "split-last-step", "-o", "p.accel", message=message)


def test_explain_with_a_number_of_threads(accel: Shell) -> None:
    found = accel(*LARGER, "--explain", "--vthreads", 3, "--json").json["candidates"]
    assert {plan["threads"] for plan in found} == {3}


@pytest.mark.parametrize("name", ["s.toml", "s.json"])
def test_a_schedule_goes_out_and_comes_back(name: str, accel: Shell) -> None:
    found = accel(*LARGER, "--save-schedule", name, "-o", "p.accel", "--json").json
    assert (found["schedule"], found["output"]) == (name, "p.accel")
    accel(*LARGER, "--schedule", name, "-o", "q.accel")
    first, second = Program.load("p.accel"), Program.load("q.accel")
    assert (first.code, first.segments, first.source) == (second.code, second.segments, second.source)


def test_one_schedule_with_any_number_of_threads(accel: Shell) -> None:
    """One schedule file compiles for a serial machine and for one, two and four threads. More overlap never
    takes more cycles."""
    steps = [*LARGER[:10], "--config", "gemm8x8", "--vthreads", 4]
    accel(*steps, "--save-schedule", "s.toml")
    assert not Path("p.accel").exists()
    cycles = []
    for threads in (1, 2, 4):
        text = accel(*steps[:-1], threads, "--schedule", "s.toml", "-o", "p.accel").text
        assert "no deadlock, no race: proven" in text
        if threads == 1:
            cycles.append(accel("run", "p.accel", "--serial", "--json").json["cycles"])
        found = accel("run", "p.accel", "--json").json
        assert found["mismatches"] == 0
        cycles.append(found["cycles"])
    assert cycles[0] > cycles[1] > cycles[2]


def test_a_schedule_serves_other_sizes(accel: Shell) -> None:
    accel(*LARGER, "--save-schedule", "s.json")
    other = ["compile", "gemm", "-m", 23, "-n", 70, "-k", 9, "--shift", 6, "--config", "tiny"]
    accel(*other, "--schedule", "s.json", "-o", "p.accel")
    assert accel("run", "p.accel", "--json").json["mismatches"] == 0


# --- convolutions and dense layers -----------------------------------------------------------------

CONV = ["compile", "conv2d", "--ic", 5, "--oc", 9, "--size", "6x7", "--kernel", 3, "-o", "p.accel"]
DENSE = ["compile", "dense", "--ic", 20, "--oc", 9, "-o", "p.accel"]


@pytest.mark.parametrize(
    ("arguments", "workload"),
    [
        (CONV, package.conv2d(1, 5, 6, 7, 9, 3)),
        ([*CONV, "-n", 2, "--padding", "1"], package.conv2d(2, 5, 6, 7, 9, 3, padding=1)),
        (
            [*CONV, "--kernel", "3x2", "--stride", "2x1", "--padding", "1,2", "--relu"],
            package.conv2d(1, 5, 6, 7, 9, (3, 2), stride=(2, 1), padding=(1, 2), relu=True),
        ),
        (
            [*CONV, "--dilation", "2x1", "--padding", "2,1"],
            package.conv2d(1, 5, 6, 7, 9, 3, padding=(2, 1), dilation=(2, 1)),
        ),
        (
            [*CONV, "--padding", "1, 0,2,3", "--bias", "--shift", 4, "--clip=-3,100"],
            package.conv2d(1, 5, 6, 7, 9, 3, padding=(1, 0, 2, 3), bias=True, shift=4, clip=(-3, 100)),
        ),
        (
            [*CONV, "--ic", 6, "--groups", 3],
            package.conv2d(1, 6, 6, 7, 9, 3, groups=3),
        ),
        (
            [*CONV, "--bias", "--residual", "--relu", "--shift", 4],
            package.conv2d(1, 5, 6, 7, 9, 3, bias=True, residual=True, relu=True, shift=4),
        ),
        ([*DENSE, "--residual"], package.dense(1, 20, 9, residual=True)),
        (
            [
                *CONV[:1],
                "conv2d-transpose",
                *CONV[2:],
                "--stride",
                "2x1",
                "--output-padding",
                "1x0",
                "--relu",
            ],
            package.conv2d_transpose(1, 5, 6, 7, 9, 3, stride=(2, 1), output_padding=(1, 0), relu=True),
        ),
        (
            [*CONV[:1], "conv2d-transpose", *CONV[2:], "--padding", "1,0", "--bias", "--shift", 4],
            package.conv2d_transpose(1, 5, 6, 7, 9, 3, padding=(1, 0), bias=True, shift=4),
        ),
        (DENSE, package.dense(1, 20, 9)),
        (
            [*DENSE, "--batch", 3, "--bias", "--relu", "--shift", 5, "--clip", "0,9"],
            package.dense(3, 20, 9, bias=True, relu=True, shift=5, clip=(0, 9)),
        ),
    ],
)
def test_layers(arguments: list[object], workload: package.Workload, accel: Shell) -> None:
    accel(*arguments)
    program = Program.load("p.accel")
    assert program.config == package.machine("vta").config
    assert program.source is not None
    made = Options(workload=workload.name, parameters=workload.parameters, fold=True)
    assert program.source.options == made
    assert program.code == package.build(workload, "vta").code
    assert accel("run", "p.accel", "--json").json["mismatches"] == 0


def test_explain_shows_the_alternatives(accel: Shell) -> None:
    found = accel(*CONV, "--explain", "--json", "--config", "tiny", "--mapping", "plain").json
    workload, config = package.conv2d(1, 5, 6, 7, 9, 3), package.machine("tiny").config
    wanted = find_candidates(workload, config)
    assert [c["predicted_cycles"] for c in found["candidates"]] == [
        round(c.prediction.cycles) for c in wanted
    ]
    plan = wanted[0].plan
    first = found["candidates"][0]
    assert (first["tile_oc"], first["tile_h"], first["tile_w"], first["step_ic"], first["step_kh"]) == (
        plan.channels * 8,
        plan.rows,
        plan.columns,
        plan.depth * 4,
        plan.kernel_rows,
    )
    text = accel(*CONV, "--explain", "--config", "tiny", "--mapping", "plain").text
    assert f"{first['tile_oc']} x {first['tile_h']} x {first['tile_w']}" in text.splitlines()[1]


def test_a_layers_schedule_can_be_saved_and_given_back(accel: Shell) -> None:
    accel(*CONV, "--padding", 1, "--bias", "--shift", 3, "--save-schedule", "s.toml")
    code = Program.load("p.accel").code
    accel(*CONV, "--padding", 1, "--bias", "--shift", 3, "--schedule", "s.toml")
    assert Program.load("p.accel").code == code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--size", "6x"], "Invalid value for '--size': '6x' is not of the form H[xW]"),
        (["--size", "6x7x8"], "Invalid value for '--size': '6x7x8' is not of the form H[xW]"),
        (["--kernel", "a"], "Invalid value for '--kernel': 'a' is not of the form KH[xKW]"),
        (
            ["--padding", "1,2,3"],
            "Invalid value for '--padding': '1,2,3' is not of the form P | Y,X | TOP,LEFT,BOTTOM,RIGHT",
        ),
        (["--clip", "3"], "Invalid value for '--clip': '3' is not of the form LOW,HIGH"),
    ],
)
def test_bad_numbers(arguments: list[object], message: str, accel: Shell) -> None:
    accel.refused(*CONV, *arguments, message=f"{message} (see 'accel compile conv2d --help')")
    assert not Path("p.accel").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kernel", "9"], "the kernel is 9 high; the input with its padding is 6"),
        (["--stride", "0"], "stride is 0; it must be a positive integer or two of them"),
        (["--clip", "5,-5"], "clip is (5, -5); it must be two ascending integers in -128..127"),
        (["--shift", "40"], "shift is 40; it must be in 0..31"),
        (["--groups", "2"], "IC is 5; 2 groups do not divide it"),
        (["--oc", "0"], "OC is 0; it must be a positive integer"),
    ],
)
def test_bad_layers(arguments: list[object], message: str, accel: Shell) -> None:
    accel.refused(*CONV, *arguments, message=message)


# --- pooling -----------------------------------------------------------------------------------------

POOL = ["compile", "pool", "-c", 20, "--size", "6x7", "-o", "p.accel", "--kind"]


@pytest.mark.parametrize(
    ("arguments", "workload"),
    [
        ([*POOL, "max", "--kernel", 2], package.max_pool2d(1, 20, 6, 7, 2)),
        (
            [*POOL, "max", "-n", 2, "--kernel", "3x2", "--stride", "2x1", "--padding", "1,0"],
            package.max_pool2d(2, 20, 6, 7, (3, 2), stride=(2, 1), padding=(1, 0)),
        ),
        (
            [*POOL, "average", "--kernel", 3, "--stride", 1, "--padding", 1],
            package.avg_pool2d(1, 20, 6, 7, 3, stride=1, padding=1),
        ),
        (
            [*POOL, "average", "--kernel", 2, "--dilation", 2, "--padding", "0,1,0,0", "--count-padding"],
            package.avg_pool2d(1, 20, 6, 7, 2, dilation=2, padding=(0, 1, 0, 0), count_padding=True),
        ),
        ([*POOL, "global"], package.global_avg_pool2d(1, 20, 6, 7)),
    ],
)
def test_pooling(arguments: list[object], workload: package.Workload, accel: Shell) -> None:
    accel(*arguments)
    program = Program.load("p.accel")
    assert program.source is not None
    made = Options(workload=workload.name, parameters=workload.parameters, fold=True)
    assert program.source.options == made
    assert program.code == package.build(workload, "vta").code
    assert accel("run", "p.accel", "--json").json["mismatches"] == 0
    assert len(accel(*arguments, "--explain").text.splitlines()) > 2


def test_how_means_are_taken_is_said(accel: Shell) -> None:
    lines = accel(*POOL, "average", "--kernel", 3, "--stride", 3, "--padding", 1).text.splitlines()
    assert lines[0].split(None, 1) == [
        "mean",
        "(sum * 7281) >> 16 of 9, (sum * 10922) >> 16 of 6, (sum * 16384) >> 16 of 4",
    ]
    found = accel(*POOL, "global", "--json").json["mean"]
    assert found == {"offset": 0, "factors": {"42": 12483}, "shift": 19}
    assert accel(*POOL, "max", "--kernel", 2, "--json").json["mean"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["max"], "Missing option '--kernel'."),
        (["global", "--kernel", 2], "--kernel is given; --kind global takes none."),
        (
            ["global", "--count-padding"],
            "--count-padding is given; --kind global takes none.",
        ),
        (
            ["max", "--kernel", 2, "--count-padding"],
            "--count-padding is given; --kind max takes none.",
        ),
    ],
)
def test_bad_pooling(arguments: list[object], message: str, accel: Shell) -> None:
    accel.refused(*POOL, *arguments, message=f"{message} (see 'accel compile pool --help')")
    assert not Path("p.accel").exists()
