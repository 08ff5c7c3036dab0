from collections.abc import Callable
from pathlib import Path

import pytest

from accel.base.records import replace
from accel.cli.check import REPORT_KEYS
from accel.core.isa import Alu, Gemm, Instruction, Load, Memory, Store, encode
from accel.proof import certificate_checker
from tests.cli.conftest import Shell
from tests.programs import TINY, gemm_program, handmade
from tests.vectors import write_vector

KEYS = ["schema_version", *REPORT_KEYS]
ROW = {"y_size": 1, "x_size": 1, "x_stride": 1}
RACE = [Load(memory=Memory.INP, **ROW), Load(memory=Memory.UOP, **ROW), Gemm(uop_end=1)]
DEADLOCK = [Gemm(pop_prev=True)]
FAULT = [Load(memory=Memory.INP, sram_base=200, **ROW)]
LEFT_OVER = [Load(memory=Memory.INP, push_next=True, **ROW)]
OVERFLOW = [
    *[Load(memory=Memory.INP, push_next=True, **ROW)] * 2,
    *[Alu(pop_prev=True)] * 2,
]
NARROW = ["--set", "token_bits=1"]
UNKNOWN = [Gemm(uop_end=1)]


def test_a_right_program(accel: Shell, saved: Callable[..., Path]) -> None:
    lines = accel("check", saved()).text.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        *("instructions", "deadlock", "races", "most tokens at once", "tokens left over"),
        "reads of unwritten elements",
    ]
    found = accel("check", saved(), "--json").json
    assert list(found) == KEYS
    assert (found["ok"], found["verdict"], found["undetermined"]) == (True, "proven", [])
    assert (found["races"], found["deadlock"], found["faults"]) == (0, None, [])
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
    assert ("races                        unknown; the check ends at a fault\n" in outcome.text) is (
        body is FAULT
    )
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


@pytest.mark.parametrize(
    ("body", "options", "verdict", "unknown"),
    [
        (FAULT, [], "fault", ["races", "deadlock", "left_over", "peak", "unwritten_reads"]),
        (OVERFLOW, NARROW, "fault", ["races", "deadlock", "left_over", "peak", "unwritten_reads"]),
        (UNKNOWN, [], "unknown", ["races", "unwritten_reads"]),
        (RACE, [], "race", []),
        (DEADLOCK, [], "deadlock", []),
    ],
    ids=["fault", "overflow", "unknown", "race", "deadlock"],
)
def test_undetermined_facts_are_reported_as_unknown(
    body: list[Instruction], options: list[str], verdict: str, unknown: list[str], accel: Shell
) -> None:
    """JSON has null, the text says unknown, and the table of several programs has a dash."""
    handmade(*body).save("bad.accel")
    found = accel("check", "bad.accel", *options, "--json", code=1).json
    assert (found["verdict"], found["undetermined"]) == (verdict, unknown)
    nulls = [key for key, value in found.items() if value is None and key != "deadlock"]
    assert nulls == [key for key in unknown if key != "deadlock"]
    assert (found["deadlock"] is None) is (verdict != "deadlock")
    text = accel("check", "bad.accel", *options, code=1).out
    assert text.count("  unknown; ") + text.count("  at least 1\n") == len(unknown)
    line = accel("check", "bad.accel", "bad.accel", *options, code=1).out.splitlines()[1]
    assert line.split()[3:].count("-") == len([key for key in unknown if key not in ("deadlock", "peak")])


def test_races_found_before_an_incomplete_check_stops_are_reported(accel: Shell) -> None:
    """Each race is certain, but there may be more."""
    handmade(*RACE, Gemm(uop_begin=5, uop_end=6)).save("both.accel")
    outcome = accel("check", "both.accel", code=1)
    assert "races                        at least 1\n" in outcome.text
    found = accel("check", "both.accel", "--json", code=1).json
    assert found["races"] is None
    assert len(found["first_races"]) == 1


def test_tokens_left_over_are_reported_and_legal(accel: Shell) -> None:
    handmade(*LEFT_OVER).save("left.accel")
    assert "tokens left over             1 load to compute\n" in accel("check", "left.accel").text
    assert accel("check", "left.accel", "--json").json["left_over"]["load to compute"] == 1


def test_timing_matters_to_the_proof(accel: Shell) -> None:
    """Two examples: a counter too narrow for two tokens, and a queue too short to reach the push."""
    handmade(*OVERFLOW).save("two.accel")
    accel("check", "two.accel")
    outcome = accel("check", "two.accel", *NARROW, "--json", code=1)
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
    """Remove each push of a program in turn: the program then deadlocks or races."""
    program = gemm_program(9, 17, 30, bias=True, shift=2)
    pushes = [i for i, x in enumerate(program.instructions) if x.push_next or x.push_prev]
    assert pushes
    for index in pushes:
        changed = list(program.instructions)
        changed[index] = replace(changed[index], push_next=False, push_prev=False)
        replace(program, code=encode(changed, TINY)).save("cut.accel")
        outcome = accel("check", "cut.accel", "--json", code=1)
        assert outcome.json["deadlock"] or outcome.json["races"]


# --- other compilers' programs -----------------------------------------------------------------------


def test_reads_of_unwritten_data_are_reported_and_legal(accel: Shell) -> None:
    """Such programs rely on the scratchpad contents of an earlier run."""
    load = Load(memory=Memory.UOP, **ROW)
    handmade(load, Gemm(uop_end=1), Store(**ROW)).save("old.accel")
    words = [
        "instruction 1 reads acc elements 0..0, which nothing has written",
        "instruction 1 reads inp elements 0..0, which nothing has written",
        "instruction 1 reads wgt elements 0..0, which nothing has written",
    ]
    text = accel("check", "old.accel", "--set", "serial=1", code=1).text
    assert "reads of unwritten elements  3\n" in text
    assert [line.split("  ")[-1].strip() for line in text.splitlines()[-3:]] == words
    found = accel("check", "old.accel", "--json", code=1).json
    assert (found["unwritten_reads"], found["first_unwritten_reads"]) == (3, words)


def test_compiled_programs_read_no_unwritten_data(accel: Shell, saved: Callable[..., Path]) -> None:
    for options in ({}, {"bias": True, "shift": 2}, {"M": 20, "N": 30, "K": 40, "config": "vta"}):
        assert accel("check", saved(**options), "--json").json["unwritten_reads"] == 0


def test_several_programs_in_a_table(accel: Shell) -> None:
    for name, body in {"left": LEFT_OVER, "race": RACE, "stuck": DEADLOCK, "what": UNKNOWN}.items():
        handmade(*body).save(accel.folder / f"{name}.accel")
    Path("t.s").write_text(".config tiny\nLOAD.INP sram_base=128 y_size=1 x_size=1\nFINISH\n")
    write_vector(accel.folder / "v")
    lines = accel("check", ".", code=1).text.splitlines()
    assert [line.split() for line in lines[1:7]] == [
        ["left", "proven", "2", "0", "1", "0"],
        ["race", "race", "4", "1", "0", "2"],
        ["stuck", "deadlock", "2", "0", "0", "0"],
        ["t", "fault", "2", "-", "-", "-"],
        ["v", "proven", "5", "0", "0", "0"],
        ["what", "unknown", "2", "-", "0", "-"],
    ]
    assert lines[7:] == [
        "left: tokens left over: 1 load to compute",
        "race: race: instruction 0 writes and instruction 2 reads inp elements 0..0, "
        "and no token orders them",
        "race: instruction 2 reads acc elements 0..0, which nothing has written (1 more)",
        "stuck: deadlock: compute waits at instruction 0 for a token from load; "
        "no instruction left in the load unit pushes one",
        "t: instruction 0: LOAD.INP touches inp elements 128..128; the scratchpad has 128",
        "what: instruction 0 runs micro-ops that are not known before the run; nothing can be proven of it",
        "what: instruction 0 reads uop elements 0..0, which nothing has written",
        "2 of 6 proven",
    ]
    outcome = accel("check", "left.accel", "v", "--json").json
    assert (outcome["ok"], [one["name"] for one in outcome["programs"]]) == (True, ["left", "v"])
    assert list(outcome["programs"][0]) == ["name", "path", *KEYS[1:]]
    outcome = accel("check", ".", "--json", code=1).json
    assert [one["ok"] for one in outcome["programs"]] == [True, False, False, False, True, False]


def test_bad_input(accel: Shell) -> None:
    message = "program 'no' cannot be read: No such file or directory"
    accel.refused("check", "no", message=message)
    accel.refused("check", message="Missing argument 'PATH...'. (see 'accel check --help')")
    message = "'.' contains no program; programs are .accel files, .s files, and folders with insn.bin"
    accel.refused("check", ".", message=message)


def test_an_unreadable_file_does_not_stop_the_check_of_others(
    accel: Shell, saved: Callable[..., Path]
) -> None:
    right = saved()
    Path("folder").mkdir()
    right.rename("folder/right.accel")
    Path("folder/wrong.accel").write_bytes(b"text")
    shown = accel("check", "folder", code=2)
    assert "unreadable" in shown.text
    assert shown.text.endswith("1 of 2 proven\n")
    message = "program 'folder/wrong.accel' is not a program file; 'accel compile' writes such files"
    assert shown.err == f"accel: {message}\n"
    found = accel("check", "folder", "--json", code=2)
    assert [program["ok"] for program in found.json["programs"]] == [True, False]
    assert found.json["programs"][1]["error"] == message
    assert found.err == f"accel: {message}\n"
    Path("folder/worse.accel").write_bytes(b"text")
    again = message.replace("wrong", "worse") + " (1 more cannot be read)"
    assert accel("check", "folder", code=2).err == f"accel: {again}\n"


def test_a_certificate(accel: Shell, saved: Callable[..., Path], tmp_path: Path) -> None:
    program, proof = saved(), tmp_path / "proof.json"
    accel("check", program, "--certificate", proof)
    assert certificate_checker.main([str(proof), str(program)]) == 0
    bad, none = tmp_path / "bad.accel", tmp_path / "none.json"
    handmade(*RACE).save(bad)
    accel("check", bad, "--certificate", none, code=1)
    assert not none.exists()
    error = accel("check", program, bad, "--certificate", none, code=2).err
    assert "--certificate is of one program" in error
    assert "overwrite" in accel("check", program, "--certificate", program, code=2).err
