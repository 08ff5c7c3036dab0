"""``accel compile gemm``."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import accel as package
from accel.cli import compile as command
from accel.errors import MachineError
from accel.faults import Cause
from accel.program import Program
from tests.cli.conftest import Shell
from tests.programs import gemm_program

SMALL = ["compile", "gemm", "-m", 3, "-n", 9, "-k", 5, "--config", "tiny", "-o", "p.accel"]


def test_text(accel: Shell) -> None:
    lines = dict(line.split("  ", 1) for line in accel(*SMALL).text.splitlines())
    figures = {name: value.strip() for name, value in lines.items()}
    program = Program.load("p.accel")
    assert figures.pop("compiled in").endswith(" s")
    assert figures == {
        "machine": "tiny (1x4x8, 64-bit bus)",
        "instructions": str(len(program.instructions)),
        "micro-ops": f"{program.run().to_dict()['uops']} executed, {len(program.segments[0][1]) // 4} stored",
        "DRAM": f"{program.size:,} bytes",
        "tokens": "no deadlock, no race: proven",
        "written to": "p.accel",
    }
    assert program.code == gemm_program().code


def test_json(accel: Shell) -> None:
    found = accel(*SMALL, "--json").json
    program = Program.load("p.accel")
    assert tuple(found) == command.FIGURES
    assert found == {
        "schema_version": 1,
        "output": "p.accel",
        "config": "tiny",
        "instructions": len(program.instructions),
        "uops": program.run().to_dict()["uops"],
        "stored_uops": len(program.segments[0][1]) // 4,
        "dram_bytes": program.size,
        "compile_seconds": program.compile_seconds,
        "error": None,
    }


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--transpose-a"], {"transpose_a": True}),
        (["--transpose-b"], {"transpose_b": True}),
        (["--bias"], {"bias": True}),
        (["--relu"], {"relu": True}),
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
    assert (config.name, config.batch, config.read_latency) == ("mine", 2, 7)
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
    def fail(*_: object) -> None:
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


def test_what_is_compiled_runs(accel: Shell, saved: Callable[..., Path]) -> None:
    accel("compile", "gemm", "-m", 17, "-n", 20, "-k", 33, "--bias", "--shift", 4, "-o", "q.accel")
    assert accel("run", "q.accel", "--json").json["mismatches"] == 0
    assert accel("check", "q.accel", "--json").json["ok"] is True
