"""``accel debug``, controlled by scripts."""

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from accel.debug import Debugger, Session
from accel.debug.debugger_commands import HELP
from tests.cli.conftest import Shell
from tests.programs import gemm_program

TEXT = """\
.config tiny
.dram
x:      .int8 1 2 3 4
        .align 8
y:      .zero 8
.preset uop[0] .uop 0,0,0
.preset wgt[0] .int8 1*32
.preset acc[0] .int32 0*8

        LOAD.INP  dram_base=x y_size=1 x_size=1   >compute
        GEMM      uop_end=1 iter_in=2             <load >store
        STORE.OUT dram_base=y y_size=1 x_size=1   <compute
        FINISH
"""


@pytest.fixture
def talk(accel: Shell) -> Callable[..., list[str]]:
    """Lines that the debugger prints for some commands."""
    Path("t.s").write_text(TEXT)

    def say(*commands: str, options: tuple[object, ...] = (), code: int = 0) -> list[str]:
        Path("script").write_text("\n".join(commands) + "\n")
        outcome = accel("debug", "t.s", "-x", "script", *options, code=code)
        assert outcome.err == ""
        return outcome.out.splitlines()

    return say


def test_a_session(talk: Callable[..., list[str]]) -> None:
    assert talk(
        "# comments and empty lines are nothing",
        "",
        "where",
        "step",
        "where  # after the LOAD",
        "break write y",
        "c" + "ontinue",
        "print acc[0]",
        "print y",
        "tokens",
        "step",
        "print y",
        "where",
        "continue",
        "continue",
    ) == [
        "cycle -1: 0 of 4 instructions dispatched",
        "load     has no work; 0 is its next instruction",
        "compute  has no work; 1 is its next instruction",
        "store    has no work; 2 is its next instruction",
        "cycle 134  load     0 has retired: LOAD.INP dram_base=x y_size=1 x_size=1 >compute",
        "cycle 134: 4 of 4 instructions dispatched",
        "load     has nothing left to do",
        "compute  has 1 next, with all its tokens: GEMM uop_end=1 iter_in=2 <load >store",
        "store    waits at 2 for a token compute>store; instruction 1 sends it: "
        "STORE.OUT dram_base=y y_size=1 x_size=1 <compute",
        "breakpoint 1 at write dram[0x1008:0x1010]",
        "cycle 144: breakpoint at write dram[0x1008:0x1010]; memory is as before it",
        "cycle 144  store    2 starts: STORE.OUT dram_base=y y_size=1 x_size=1 <compute",
        "acc[0:1]: int32[1x8]",
        "[[20 20 20 20 20 20 20 20]]",
        "dram[0x1008:0x1010]: uint8[8]",
        "[0 0 0 0 0 0 0 0]",
        "load>compute   0",
        "compute>load   0",
        "compute>store  0",
        "store>compute  0",
        "cycle 145  compute  3 has retired: FINISH",
        "dram[0x1008:0x1010]: uint8[8]",
        "[0 0 0 0 0 0 0 0]",
        "cycle 145: 4 of 4 instructions dispatched",
        "load     has nothing left to do",
        "compute  has nothing left to do",
        "store    runs 2: STORE.OUT dram_base=y y_size=1 x_size=1 <compute",
        "cycle 163: the run has ended after 164 cycles",
        "cycle 163: the run has ended after 164 cycles",
    ]


def test_commands_that_advance_print_the_events_of_each_cycle(talk: Callable[..., list[str]]) -> None:
    assert talk("goto 133", "cycle", "cycle 2") == [
        "cycle 133",
        "cycle 134  load     0 has retired: LOAD.INP dram_base=x y_size=1 x_size=1 >compute",
        "cycle 134  load     0 sends a token load>compute",
        "cycle 134",
        "cycle 135  compute  1 leaves the queue",
        "cycle 135  compute  1 takes a token load>compute",
        "cycle 135  compute  1 starts: GEMM uop_end=1 iter_in=2 <load >store",
        "cycle 136",
    ]
    assert talk("cycle 76")[:6] == [
        "cycle 1  fetch    0 is granted a burst of 8",
        "cycle 67  fetch    0 goes to load",
        "cycle 68  load     0 leaves the queue",
        "cycle 68  load     0 starts: LOAD.INP dram_base=x y_size=1 x_size=1 >compute",
        "cycle 69  fetch    1 goes to compute",
        "cycle 69  load     0 is granted a burst of 1",
    ]


def test_listings_and_micro_ops(talk: Callable[..., list[str]]) -> None:
    assert talk("goto 135", "list", "list 2 1", "uops 1", "uops 1 1") == [
        "cycle 135",
        "  0  LOAD.INP dram_base=x y_size=1 x_size=1 >compute",
        "* 1  GEMM uop_end=1 iter_in=2 <load >store",
        "> 2  STORE.OUT dram_base=y y_size=1 x_size=1 <compute",
        "> 3  FINISH",
        "> 2  STORE.OUT dram_base=y y_size=1 x_size=1 <compute",
        "acc[0] += inp[0] * wgt[0]",
        "acc[0] += inp[0] * wgt[0]",
        "acc[0] += inp[0] * wgt[0]",
        "... 1 more",
    ]


def test_every_kind_of_breakpoint(talk: Callable[..., list[str]]) -> None:
    said = talk(
        *("break 1", "break cycle 100", "break token compute>store", "break acc[0]", "break read inp[0:2]"),
        *("breaks", "delete 4", "delete 5", "continue", "continue", "continue", "continue", "continue"),
        *("delete 1", "delete 2", "delete 3", "breaks", "restart", "continue"),
    )
    assert said[5:10] == [
        "1  instruction 1",
        "2  cycle 100",
        "3  token compute>store",
        "4  access acc[0:1]",
        "5  read inp[0:2]",
    ]
    assert [line for line in said[10:] if "breakpoint at" in line] == [
        "cycle 100: breakpoint at cycle 100",
        "cycle 135: breakpoint at instruction 1",
        "cycle 143: breakpoint at token compute>store",
        "cycle 144: breakpoint at token compute>store",
    ]
    assert said[-4:] == [
        "cycle 163: the run has ended after 164 cycles",
        "no breakpoints",
        "at the beginning",
        "cycle 163: the run has ended after 164 cycles",
    ]


def test_functional_runs_count_instructions(talk: Callable[..., list[str]]) -> None:
    options = ("--backend", "functional")
    assert talk("step", "where", "step 2", "print acc[0]", "continue", options=options) == [
        "step 0  load     0 has retired: LOAD.INP dram_base=x y_size=1 x_size=1 >compute",
        "step 0: 1 of 4 instructions dispatched",
        "load     has nothing left to do",
        "compute  has 1 next, with all its tokens: GEMM uop_end=1 iter_in=2 <load >store",
        "store    waits at 2 for a token compute>store; instruction 1 sends it: "
        "STORE.OUT dram_base=y y_size=1 x_size=1 <compute",
        "step 1  compute  1 has retired: GEMM uop_end=1 iter_in=2 <load >store",
        "step 2  store    2 has retired: STORE.OUT dram_base=y y_size=1 x_size=1 <compute",
        "acc[0:1]: int32[1x8]",
        "[[20 20 20 20 20 20 20 20]]",
        "step 3: the run has ended after 4 instructions",
    ]


def test_tensors_by_name(accel: Shell, saved: Callable[..., Path]) -> None:
    file = saved()
    program = gemm_program()
    inputs = program.random_inputs(0)
    Path("script").write_text("continue\nprint C\nprint A\nprint uop[0:1]\n")
    lines = accel("debug", file, "-x", "script").out.splitlines()
    assert lines[1] == "C: int8[3x9]"
    assert lines[2:5] == str(program.run().outputs["C"]).splitlines()
    assert lines[5] == "A: int8[3x5]"
    assert lines[6:9] == str(inputs["A"]).splitlines()
    assert lines[9:] == ["uop[0:1] as dst, src, wgt: int64[1x3]", "[[0 0 0]]"]
    np.save("a.npy", np.full((3, 5), 7, np.int8))
    assert "[[7 7 7 7 7]" in accel("debug", file, "--input", "A=a.npy", "-x", "script").out


def test_an_error_of_the_program_is_reported_when_it_stops(talk: Callable[..., list[str]]) -> None:
    Path("t.s").write_text(TEXT.replace("uop_end=1 iter_in=2", "uop_end=1 iter_in=3 wgt_factor_in=64"))
    said = talk("continue", "where", "step", code=1)
    message = (
        "instruction 1 (cycle 140): GEMM has wgt index 128 in micro-op 2 of its 3; that scratchpad has 128"
    )
    assert said[0] == f"cycle 140: {message} elements"
    assert said[1] == "cycle 140: 4 of 4 instructions dispatched, the run is over"
    assert said[-1] == said[0]
    Path("t.s").write_text(TEXT.replace(">compute", ""))
    said = talk("continue", "where", code=1)
    found = re.fullmatch(r"cycle (\d+): deadlock: compute waits at instruction 1 .+ \(cycle (\d+)\)", said[0])
    assert found is not None
    assert found[1] == found[2]
    assert "compute  waits at 1 for a token load>compute; nobody will send it: " in said[3]


def test_only_a_script_that_reached_the_fault_exits_with_1(
    talk: Callable[..., list[str]], accel: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds even if the script has stepped back since. In a terminal, the exit code is 0."""
    Path("t.s").write_text(TEXT.replace(">compute", ""))
    for options in ((), ("--backend", "functional")):
        talk("step", "where", options=options)
        talk("continue", "restart", "quit", options=options, code=1)
    commands = io.StringIO("continue\n")
    monkeypatch.setattr(sys, "stdin", commands)
    assert accel("debug", "t.s", code=1).err == ""
    monkeypatch.setattr(sys, "stdin", typing(monkeypatch, "continue"))
    assert "deadlock" in accel("debug", "t.s").out


@pytest.mark.parametrize(("backend", "moment"), [("sim", "before"), ("functional", "after")])
def test_a_breakpoint_at_an_access_says_whether_memory_has_changed(
    backend: str, moment: str, talk: Callable[..., list[str]]
) -> None:
    commands = ("break write acc[0]", "print acc[0]", "continue", "print acc[0]", "continue", "print acc[0]")
    said = talk(*commands, options=("--backend", backend))
    assert said[3].endswith(f"breakpoint at write acc[0:1]; memory is as {moment} it")
    first, then, last = said[2], said[6], said[-1]
    assert (first == then, then == last) == (moment == "before", moment == "after")
    assert first != last


def typing(monkeypatch: pytest.MonkeyPatch, *lines: str) -> io.StringIO:
    """A terminal in which a user types these lines and then ends the input."""
    typed = iter(lines)

    def answer(prompt: str) -> str:
        assert prompt == "(accel) "
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("builtins.input", answer)
    return terminal


def test_commands_may_be_shortened(talk: Callable[..., list[str]]) -> None:
    assert talk("w", "t")[4:] == talk("where", "tokens")[4:]
    assert talk("help") == HELP.splitlines()
    assert talk("quit", "nonsense") == []
    commands = {line.split(" ")[0] for line in HELP.splitlines() if line[:1].islower()}
    assert commands | {"help"} == set(Session(Debugger(gemm_program())).commands)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("stepp", "'stepp' is not a command; did you mean 'step'?"),
        ("b 1", "'b' is ambiguous; it may be break or breaks"),
        ("step x", "step takes a positive number; 'x' is given"),
        ("step 0", "step takes a positive number; '0' is given"),
        ("cycle -1", "cycle takes a positive number; '-1' is given"),
        ("goto", "goto takes a cycle; '' is given"),
        ("goto x", "goto takes a cycle; 'x' is given"),
        ("where now", "where takes no argument; 'now' is given"),
        ("break", "break takes an instruction's number, cycle N, token load>compute, or a location"),
        ("break 4", "instruction 4 does not exist; the program has 4"),
        (
            "break token load",
            "'load' is not a token; load>compute, compute>load, compute>store, store>compute are",
        ),
        (
            "break cycle x",
            "'cycle x' is not a location; write acc[3], acc[3:8], dram[0x1000:0x1040] or a name",
        ),
        ("break write", "'' is not a location; write acc[3], acc[3:8], dram[0x1000:0x1040] or a name"),
        ("delete 1", "breakpoint 1 does not exist; 'breaks' lists those that do"),
        ("uops 0", "instruction 0 is LOAD.INP; GEMM and ALU have micro-ops"),
        ("uops", "uops takes an instruction's number and optionally a count"),
        ("uops 9", "instruction 9 does not exist; the program has 4"),
        ("list x", "list takes an instruction's number; 'x' is given"),
        ("list 1 2 3", "list takes an instruction's number and a count"),
        (
            "print",
            "print takes a location, for example acc[0:4], dram[0x1000:0x1040] or the name of a tensor",
        ),
        ("print z", "'z' is not a location; valid are acc, dram, inp, uop, wgt, x, y"),
    ],
)
def test_commands_that_are_refused(command: str, message: str, accel: Shell) -> None:
    Path("t.s").write_text(TEXT)
    Path("script").write_text(f"# two lines\n{command}\n")
    outcome = accel("debug", "t.s", "-x", "script", code=2)
    assert outcome.err == f"accel: 'script', line 2: {message}\n"
    assert outcome.out == ""


def test_cycles_are_not_known_to_functional_runs(accel: Shell) -> None:
    Path("t.s").write_text(TEXT)
    Path("script").write_text("break cycle 3\n")
    message = "'script', line 1: functional execution has no cycles; 'goto N' runs N instructions"
    accel.refused("debug", "t.s", "-x", "script", "--backend", "functional", message=message)


def test_commands_from_standard_input(accel: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("t.s").write_text(TEXT)
    monkeypatch.setattr(sys, "stdin", io.StringIO("continue\nquit\nnonsense\n"))
    assert accel("debug", "t.s").out == "cycle 163: the run has ended after 164 cycles\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO("tokens\nnonsense\n"))
    outcome = accel("debug", "t.s", code=2)
    assert outcome.err.startswith(
        "accel: the commands, line 2: 'nonsense' is not a command; valid are break, "
    )


def test_standard_input_that_is_closed_or_no_text(accel: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("t.s").write_text(TEXT)
    monkeypatch.setattr(sys, "stdin", None)
    assert accel("debug", "t.s").out == ""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n\xff\n"), encoding="utf-8"))
    assert accel("debug", "t.s", code=2).err.startswith(
        r"accel: the commands, line 2: '\\xff' is not a command; "
    )


def test_a_terminal_session_continues_after_a_mistake(accel: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of input ends the session."""
    Path("t.s").write_text(TEXT)
    monkeypatch.setattr(sys, "stdin", typing(monkeypatch, "nonsense", "continue"))
    first, second, last = accel("debug", "t.s").out.split("\n", 2)
    assert first.startswith("'nonsense' is not a command; ")
    assert second == "cycle 163: the run has ended after 164 cycles"
    assert last == "\n"


def test_bad_input(accel: Shell) -> None:
    Path("t.s").write_text(TEXT)
    message = "commands 'none' cannot be read: No such file or directory"
    accel.refused("debug", "t.s", "-x", "none", message=message)
    Path("binary").write_bytes(b"\xff")
    message = "commands 'binary' are not text: they are not UTF-8"
    accel.refused("debug", "t.s", "-x", "binary", message=message)
    accel.refused(
        "debug", "t.s", "--backend", "rtl9", message="the backend is 'rtl9'; valid are functional, sim"
    )
    accel.refused("debug", "none.s", message="program 'none.s' cannot be read: No such file or directory")
