"""``accel check``."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from accel.isa import Alu, Gemm, Instruction, Load, Memory, Store, encode
from tests.cli.conftest import Shell
from tests.programs import TINY, gemm_program, handmade

KEYS = [
    *("schema_version", "ok", "instructions", "races", "first_races", "deadlock", "faults", "unknown_uops"),
    *("left_over", "peak"),
]
ROW = {"y_size": 1, "x_size": 1, "x_stride": 1}
RACE = [Load(memory=Memory.INP, **ROW), Load(memory=Memory.UOP, **ROW), Gemm(uop_end=1)]
DEADLOCK = [Gemm(pop_prev=True)]
FAULT = [Load(memory=Memory.INP, sram_base=200, **ROW)]
LEFT_OVER = [Load(memory=Memory.INP, push_next=True, **ROW)]
UNKNOWN = [Gemm(uop_end=1)]


def test_a_right_program(accel: Shell, saved: Callable[..., Path]) -> None:
    lines = accel("check", saved()).text.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        *("instructions", "deadlock", "races", "most tokens at once", "tokens left over")
    ]
    found = accel("check", saved(), "--json").json
    assert list(found) == KEYS
    assert (found["ok"], found["races"], found["deadlock"], found["faults"]) == (True, 0, None, [])
    assert list(found["peak"]) == [
        *("load to compute", "compute to load", "compute to store", "store to compute")
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            RACE,
            "race: instruction 0 writes and instruction 2 reads inp elements 0..0, and no token orders them",
        ),
        (
            DEADLOCK,
            "deadlock: compute waits at instruction 0 for a token from load; "
            "no instruction left in the load unit pushes one",
        ),
        (
            FAULT,
            "instruction 0: LOAD.INP touches inp elements 200..200; the scratchpad has 128",
        ),
        (
            UNKNOWN,
            "instruction 0 runs micro-ops that are not known before the run; nothing can be proven of it",
        ),
    ],
    ids=["race", "deadlock", "fault", "unknown"],
)
def test_programs_at_fault(body: list[Instruction], message: str, accel: Shell) -> None:
    handmade(*body).save("bad.accel")
    outcome = accel.at_fault("check", "bad.accel", message=message)
    assert outcome.text.startswith("instructions ")
    outcome = accel("check", "bad.accel", "--json", code=1)
    assert outcome.err == ""
    assert list(outcome.json) == KEYS
    assert outcome.json["ok"] is False
    assert message.removeprefix("race: ").removeprefix("instruction 0: ").split(" runs ")[0] in (
        *outcome.json["first_races"],
        outcome.json["deadlock"],
        *(fault["message"] for fault in outcome.json["faults"]),
        *(f"instruction {index}" for index in outcome.json["unknown_uops"]),
    )


def test_tokens_left_over_are_told_and_legal(accel: Shell) -> None:
    handmade(*LEFT_OVER).save("left.accel")
    assert "tokens left over     1 load to compute\n" in accel("check", "left.accel").text
    assert accel("check", "left.accel", "--json").json["left_over"]["load to compute"] == 1


def test_timing_matters_to_the_proof(accel: Shell) -> None:
    """A counter that is too narrow for two tokens, queues too short to reach the push."""
    two = [Load(memory=Memory.INP, push_next=True, **ROW)] * 2
    handmade(*two, Alu(pop_prev=True), Alu(pop_prev=True)).save("two.accel")
    accel("check", "two.accel")
    outcome = accel("check", "two.accel", "--set", "token_bits=1", "--json", code=1)
    assert outcome.json["faults"][0]["cause"] == "token-overflow"
    late = [Alu(pop_prev=True), Alu(), Load(memory=Memory.INP, push_next=True, **ROW)]
    handmade(*late).save("late.accel")
    accel("check", "late.accel")
    for options in (["--serial"], ["--set", "compute_queue=1"]):
        outcome = accel("check", "late.accel", *options, "--json", code=1)
        assert outcome.json["deadlock"].startswith("deadlock: compute waits at instruction 0")


def test_a_write_to_the_program_is_a_race(accel: Shell) -> None:
    program = handmade(Store(dram_base=4096 // 8, **ROW))
    program.save("own.accel")
    assert program.code_offset == 4096
    outcome = accel("check", "own.accel", code=1)
    assert "which hold the program" in outcome.err


def test_a_missing_token_of_a_compiled_program_is_found(accel: Shell) -> None:
    """For every push of a program: without it the program deadlocks or races."""
    program = gemm_program(9, 17, 30, bias=True, shift=2)
    pushes = [i for i, x in enumerate(program.instructions) if x.push_next or x.push_prev]
    assert pushes
    for index in pushes:
        changed = list(program.instructions)
        changed[index] = replace(changed[index], push_next=False, push_prev=False)
        replace(program, code=encode(changed, TINY)).save("cut.accel")
        outcome = accel("check", "cut.accel", "--json", code=1)
        assert outcome.json["deadlock"] or outcome.json["races"]
