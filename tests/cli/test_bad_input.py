"""Bad input of every kind gives one line that names the mistake and the valid choices. No file is half
written."""

import errno
import io
import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.base.errors import ProgramError
from accel.cli.npy_files import read_array
from accel.core.config import NAMED
from accel.core.isa import Alu, Finish, Gemm, Instruction, Load, Loops, Memory, Store, Unknown, encode
from accel.image.image import FORMAT_VERSION
from accel.run.program import Program
from tests.cli.conftest import Shell
from tests.programs import archived, gemm_program, handmade, rewritten
from tests.strategies import examples

GEMM = ["compile", "gemm", "--config", "tiny", "-o", "p.accel"]
READERS = [("run",), ("run", "--json"), ("check",), ("check", "--json"), ("show",), ("disasm",)]


# --- workloads and machines ------------------------------------------------------------------------


@pytest.mark.parametrize("size", ["-m", "-n", "-k"])
@pytest.mark.parametrize("value", [0, -1, -(10**30)])
def test_a_size_that_is_not_positive(size: str, value: int, accel: Shell) -> None:
    sizes = {"-m": 1, "-n": 1, "-k": 1} | {size: value}
    arguments = [x for pair in sizes.items() for x in pair]
    name = size[1].upper()
    accel.refused(*GEMM, *arguments, message=f"{name} is {value}; it must be a positive integer")


def test_a_size_that_is_no_integer(accel: Shell) -> None:
    message = (
        "Invalid value for '-m' / '--m': '1e3' is not a valid integer. (see 'accel compile gemm --help')"
    )
    accel.refused(*GEMM, "-m", "1e3", "-n", 1, "-k", 1, message=message)


def test_a_reduction_too_long_for_int32(accel: Shell) -> None:
    message = "C sums 131072 products of int8 values; int32 can hold 131071"
    accel.refused(*GEMM, "-m", 1, "-n", 1, "-k", 131072, message=message)
    accel.refused(*GEMM, "-m", 1, "-n", 1, "-k", 131072, "--json", message=message)


@pytest.mark.parametrize("shift", [-1, 32])
def test_a_shift_out_of_range(shift: int, accel: Shell) -> None:
    message = f"shift is {shift}; it must be in 0..31"
    accel.refused(*GEMM, "-m", 1, "-n", 1, "-k", 1, "--shift", shift, message=message)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["inp_bytes=4"], "inp_bytes is 4 in configuration 'tiny'; two elements of 4 bytes are the least"),
        (["mem_size=8192"], "the program's tensors need 8300 bytes of DRAM; the window has mem_size=8192"),
    ],
)
def test_a_machine_too_small_for_one_tile(settings: list[str], message: str, accel: Shell) -> None:
    options = [x for setting in settings for x in ("--set", setting)]
    accel.refused(*GEMM, "-m", 9, "-n", 9, "-k", 9, "--bias", *options, message=message)


def test_a_machine_that_was_made_too_small(accel: Shell) -> None:
    """The message says which scratchpad is too small, and that the named configuration was changed."""
    sizes = ("--ic", 8, "--oc", 8, "--size", 9, "--kernel", 3)
    changes = ("--set", "wgt_bytes=64")
    message = (
        "not even the smallest tiles of this convolution fit configuration 'tiny with wgt_bytes=64'; they "
        "need 96 bytes of wgt (wgt_bytes is 64)"
    )
    accel.refused("compile", "conv2d", *sizes, "--config", "tiny", *changes, "-o", "p.accel", message=message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--config", "gem8x8"],
            "'gem8x8' is not a configuration; did you mean 'gemm8x8'?; "
            "the path of a TOML or JSON file works too",
        ),
        (
            ["--set", "reed_latency=3"],
            "'reed_latency' is not a configuration field; did you mean 'read_latency'?",
        ),
        (["--set", "batch=3"], "batch is 3 in configuration 'tiny'; it must be a power of two"),
        (["--set", "batch=two"], "batch is 'two'; it must be an integer, as 64, 0x40 or 64KiB"),
    ],
)
def test_a_configuration_that_is_none(options: list[str], message: str, accel: Shell) -> None:
    accel.refused(*GEMM, "-m", 1, "-n", 1, "-k", 1, *options, message=message)


# --- schedules -------------------------------------------------------------------------------------

SIZES = ["-m", 40, "-n", 48, "-k", 56]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--vthreads", 0], "the number of virtual threads is 0; it must be a positive integer"),
        (["--vthreads", -4], "the number of virtual threads is -4; it must be a positive integer"),
        (["--vthreads", 129], "129 virtual threads do not fit configuration 'tiny'; at most 40 do"),
        (
            ["--vthreads", "two"],
            "Invalid value for '--vthreads': 'two' is not a valid integer. (see 'accel compile gemm --help')",
        ),
        (
            ["--explain", "--schedule", "s.toml"],
            "--explain shows the choice of a schedule; with --schedule there is no choice. "
            "(see 'accel compile gemm --help')",
        ),
        (
            ["--measure", 4, "--schedule", "s.toml"],
            "--measure compares schedules; with --schedule there is one. (see 'accel compile gemm --help')",
        ),
        (
            ["--measure", 0],
            "Invalid value for '--measure': 0 is not in the range x>=1. (see 'accel compile gemm --help')",
        ),
        (
            ["--save-schedule", "there/s.toml"],
            "'there/s.toml' cannot be written: there is no folder 'there'",
        ),
    ],
)
def test_threads_and_schedules(options: list[object], message: str, accel: Shell) -> None:
    accel.refused(*GEMM, *SIZES, *options, message=message)


def test_the_output_has_a_default_name(accel: Shell) -> None:
    assert "wrote gemm.accel" in accel(*GEMM[:-2], *SIZES).err
    assert (accel.folder / "gemm.accel").exists()
    (accel.folder / "gemm.accel").unlink()
    assert "wrote" not in accel(*GEMM[:-2], *SIZES, "--explain").err
    assert not (accel.folder / "gemm.accel").exists()


def test_too_many_threads_for_the_tiles_of_a_schedule(accel: Shell) -> None:
    tile = ["--tile", "m=11,n=48,k=12"]  # inp_buffer holds 3 of the 5 steps
    accel(*GEMM, *SIZES, *tile, "--vthreads", 2, "--save-schedule", "s.toml")
    accel(*GEMM, *SIZES, "--schedule", "s.toml", "--vthreads", 2)
    outcome = accel(*GEMM, *SIZES, "--schedule", "s.toml", "--vthreads", 4, code=2)
    found = re.fullmatch(
        r"accel: 4 virtual threads do not fit \w+_buffer of configuration 'tiny' with these tiles; "
        r"at most (\d+) do\n",
        outcome.err,
    )
    assert found is not None
    most = int(found[1])
    accel(*GEMM, *SIZES, "--schedule", "s.toml", "--vthreads", most)
    accel(*GEMM, *SIZES, "--schedule", "s.toml", "--vthreads", most + 1, code=2)


SCHEDULES: dict[str, tuple[str, str]] = {
    "empty.json": ("", "schedule 'empty.json' is not JSON: Expecting value: line 1 column 1 (char 0)"),
    "list.json": (
        "[]",
        "schedule 'list.json': it is not a schedule file; its format must be 'accel-schedule'",
    ),
    "package.json": (
        '{"name": "x", "version": "1.0"}',
        "schedule 'package.json': it is not a schedule file; its format must be 'accel-schedule'",
    ),
    "nan.json": (
        "NaN",
        "schedule 'nan.json': it is not a schedule file; its format must be 'accel-schedule'",
    ),
    "cut.toml": ("[[steps", "schedule 'cut.toml' is not TOML: Expected ']]' at the end of an array"),
    "newer.json": (
        '{"format": "accel-schedule", "version": 2, "steps": []}',
        "schedule 'newer.json': its format version is 2; this release reads up to 1, "
        "so a newer release of accel is needed",
    ),
    "version.toml": (
        'format = "accel-schedule"\nversion = "1"',
        "schedule 'version.toml': its version is '1'; it must be a positive integer",
    ),
    "key.toml": (
        'format = "accel-schedule"\nversion = 1\nstep = []',
        "schedule 'key.toml': it has 'step'; did you mean 'steps'?",
    ),
    "steps.json": (
        '{"format": "accel-schedule", "version": 1, "steps": [7]}',
        "schedule 'steps.json': its steps are not a list of tables",
    ),
    "operator.json": (
        '{"format": "accel-schedule", "version": 1, "steps": [{"op": "splitt"}]}',
        "schedule step 0 (splitt): 'splitt' is not an operator; did you mean 'split'?",
    ),
    "missing.json": (
        '{"format": "accel-schedule", "version": 1, "steps": [{"op": "unroll", "stage": "C"}]}',
        "schedule step 0 (unroll): it has no 'axis'",
    ),
    "misspelt.toml": (
        'format = "accel-schedule"\nversion = 1\n[[steps]]\nop = "unroll"\nstage = "C"\naxis = "y"\naxes = 3',
        "schedule step 0 (unroll): it has 'axes'; did you mean 'axis'?",
    ),
    "stage.json": (
        '{"format": "accel-schedule", "version": 1, "steps": [{"op": "unroll", "stage": "D", "axis": "y"}]}',
        "schedule step 0 (unroll): 'D' is not a stage of this schedule; valid are C",
    ),
    "axis.json": (
        '{"format": "accel-schedule", "version": 1, "steps": [{"op": "unroll", "stage": "C", "axis": [1]}]}',
        "schedule step 0 (unroll): [1] is not an axis; give a loop of C or its name",
    ),
    "none.json": (
        '{"format": "accel-schedule", "version": 1}',
        "C in DRAM is neither tensorized nor a plain copy; tensorize it, or compute it in acc_buffer ",
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_file_that_is_no_schedule(name: str, accel: Shell) -> None:
    text, message = SCHEDULES[name]
    Path(name).write_text(text)
    outcome = accel(*GEMM, *SIZES, "--schedule", name, code=2)
    assert outcome.out == ""
    assert outcome.err.startswith(f"accel: {message}")
    assert outcome.err.count("\n") == 1


def test_schedules_that_cannot_be_read(accel: Shell) -> None:
    message = "schedule 's.toml' cannot be read: No such file or directory"
    accel.refused(*GEMM, *SIZES, "--schedule", "s.toml", message=message)
    Path("s.toml").write_bytes(b"\xff\xfe\0")
    accel.refused(*GEMM, *SIZES, "--schedule", "s.toml", message="schedule 's.toml' is not a text file")
    Path("deep.json").write_text("[" * 100_000)
    message = "schedule 'deep.json' is not JSON: maximum recursion depth exceeded"
    assert accel(*GEMM, *SIZES, "--schedule", "deep.json", code=2).err.startswith(f"accel: {message}")
    Path("s").mkdir()
    accel.refused(*GEMM, *SIZES, "--schedule", "s", message="schedule 's' cannot be read: Is a directory")


# --- program files ---------------------------------------------------------------------------------


def truncated(path: Path) -> str:
    path.write_bytes(path.read_bytes()[:-30])
    return (
        "program 'p.accel' is damaged: it does not end as it must: it is cut short, or something follows it"
    )


def flipped(path: Path) -> str:
    raw = bytearray(path.read_bytes())
    raw[200] ^= 4
    path.write_bytes(raw)
    return "program 'p.accel' is damaged: "


def newer(path: Path) -> str:
    rewritten(path, path, lambda manifest: manifest.update(version=7))
    return (
        f"program 'p.accel': its format version is 7; this release reads up to {FORMAT_VERSION}, "
        "so a newer release of accel is needed"
    )


def foreign(path: Path) -> str:
    archived(path, [("model.onnx", b"")])
    return "program 'p.accel': it has no program.json; it is not a program file"


def picture(path: Path) -> str:
    path.write_bytes(b"\x89PNG\r\n\x1a\n")
    return "program 'p.accel' is not a program file; 'accel compile' writes such files"


def empty(path: Path) -> str:
    path.write_bytes(b"")
    return "program 'p.accel' is not a program file; 'accel compile' writes such files"


def missing(path: Path) -> str:
    path.unlink()
    return "program 'p.accel' cannot be read: No such file or directory"


def folder(path: Path) -> str:
    path.unlink()
    path.mkdir()
    return "program 'p.accel' cannot be read: Is a directory"


@pytest.mark.parametrize(
    ("command", "damage"),
    [
        pytest.param(command, damage, id=f"{' '.join(command)}-{damage.__name__}")
        for command in READERS
        for damage in (truncated, flipped, newer, foreign, picture, empty, missing, folder)
        if (command[0], damage) != ("check", folder)  # ``check`` accepts folders
    ],
)
def test_a_file_that_is_no_program(
    command: tuple[str, ...],
    damage: Callable[[Path], str],
    accel: Shell,
    saved: Callable[..., Path],
) -> None:
    message = damage(saved())
    outcome = accel(command[0], "p.accel", *command[1:], code=2)
    assert outcome.out == ""
    assert outcome.err.startswith(f"accel: {message}")
    assert outcome.err.count("\n") == 1


# --- programs that are at fault --------------------------------------------------------------------

ROW = {"y_size": 1, "x_size": 1, "x_stride": 1}
HUGE = {"uop_end": 8192, "iter_out": (1 << 14) - 1, "iter_in": (1 << 14) - 1}
FAULTS: dict[str, tuple[list[Instruction], str, str]] = {
    "unknown opcode": (
        [Unknown(opcode=6), Finish()],
        "opcode",
        "the opcode is 6; LOAD 0, STORE 1, GEMM 2, FINISH 3 and ALU 4 exist",
    ),
    "unknown memory id": (
        [Load(memory=7, **ROW), Finish()],
        "memory-id",
        "LOAD.MEM7 has memory id 7; LOAD fills UOP, WGT, INP, ACC or ACC_8BIT",
    ),
    "store from elsewhere": (
        [Store(memory=Memory.ACC, **ROW), Finish()],
        "memory-id",
        "STORE.ACC has memory id 3; STORE writes OUT",
    ),
    "unknown ALU operation": (
        [Alu(alu_op=7, uop_end=1), Finish()],
        "alu-op",
        "the ALU operation is 7; MIN 0, MAX 1, ADD 2, SHR 3, MUL 4 exist",
    ),
    "scratchpad range": (
        [Load(memory=Memory.INP, y_size=1, x_size=129, x_stride=1), Finish()],
        "sram-range",
        "LOAD.INP touches inp elements 0..128; the scratchpad has 128",
    ),
    "DRAM range": (
        [Load(memory=Memory.WGT, dram_base=1 << 23, **ROW), Finish()],
        "dram-range",
        "LOAD.WGT touches DRAM bytes 0x10000000..0x1000001f; the window is 0x0..0xfffffff",
    ),
    "missing FINISH": ([Gemm()], "no-finish", "the last instruction is GEMM; it must be FINISH"),
    "early FINISH": (
        [Finish(), Finish()],
        "early-finish",
        "FINISH is instruction 0 of 2; it must be the last",
    ),
    "empty": ([], "no-finish", "the program is empty; it must end with FINISH"),
    "missing neighbour": (
        [Load(memory=Memory.INP, pop_prev=True, **ROW), Finish()],
        "neighbour",
        "LOAD.INP has a token flag toward the previous unit; the load unit has none",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
@pytest.mark.parametrize("backend", ["sim", "functional"])
def test_a_program_at_fault(case: str, backend: str, accel: Shell) -> None:
    body, cause, message = FAULTS[case]
    handmade(*body, finish=False).save("bad.accel")
    outcome = accel("run", "bad.accel", "--backend", backend, code=1)
    assert outcome.out == ""
    assert outcome.err.startswith("accel: instruction 0")
    assert outcome.err.endswith(f": {message}\n")
    error = accel("run", "bad.accel", "--backend", backend, "--json", code=1).json["error"]
    assert (error["cause"], error["instruction"]) == (cause, 0)
    assert (error["cycle"] is None) is (backend == "functional")
    accel.at_fault("check", "bad.accel", message=f"instruction 0: {message}")
    faults = accel("check", "bad.accel", "--json", code=1).json["faults"]
    assert faults[0] == {"instruction": 0, "cause": cause, "message": message}
    assert accel("disasm", "bad.accel").out.count(f"# {cause}: {message}\n") == min(1, len(body))


@pytest.mark.parametrize(
    "loop",
    [Gemm(**HUGE), Gemm(reset=True, **HUGE), Alu(use_imm=True, imm=1, **HUGE)],
    ids=["GEMM", "GEMM reset", "ALU"],
)
def test_a_loop_of_10_to_the_12_micro_ops(loop: Loops, accel: Shell) -> None:
    """`run` refuses it immediately, since the count is known before the start. `check` and `disasm` accept
    it."""
    uops = Load(memory=Memory.UOP, y_size=1, x_size=8192, x_stride=8192)
    handmade(uops, loop, config=NAMED["vta"]).save("huge.accel")
    assert loop.uop_count > 2 * 10**12
    for arguments in ([], ["--backend", "functional"], ["--order", "random"]):
        outcome = accel("run", "huge.accel", *arguments, code=1)
        assert outcome.out == ""
        assert outcome.err == (
            f"accel: instruction 1: {loop.mnemonic} runs {loop.uop_count} micro-ops after 0 before it; "
            f"at most 10000000000 are allowed (max_uops)\n"
        )
    assert accel("run", "huge.accel", "--json", code=1).json["error"]["cause"] == "limit"
    accel("check", "huge.accel")
    assert "iter_out=16383" in accel("disasm", "huge.accel").text


# --- paths -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("no/c.npy", "there is no folder 'no'"),
        ("folder.npy", "it is a folder"),
        ("file/c.npy", "there is no folder 'file'"),
        ("c" * 300 + ".npy", os.strerror(errno.ENAMETOOLONG)),
    ],
)
def test_an_output_path_that_cannot_be_written(
    path: str, reason: str, accel: Shell, saved: Callable[..., Path]
) -> None:
    file = saved()
    Path("file").touch()
    Path("folder.npy").mkdir()
    message = f"{path!r} cannot be written: {reason}"
    for as_json in ([], ["--json"]):
        accel.refused("run", file, "--output", f"C={path}", *as_json, message=message)
        accel.refused(*GEMM[:4], "-m", 1, "-n", 1, "-k", 1, "-o", path, *as_json, message=message)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(accel: Shell, saved: Callable[..., Path]) -> None:
    message = "'/dev/full' cannot be written: No space left on device"
    accel.refused("run", saved(), "--output", "C=/dev/full", message=message)
    accel.refused(*GEMM[:4], "-m", 1, "-n", 1, "-k", 1, "-o", "/dev/full", message=message)


def test_a_bad_path_is_found_before_the_run(
    accel: Shell, saved: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Program, "run", lambda *_, **__: pytest.fail("it ran"))
    message = "'no/c.npy' cannot be written: there is no folder 'no'"
    accel.refused("run", saved(), "--output", "C=no/c.npy", message=message)


# --- arrays ----------------------------------------------------------------------------------------


class Malicious:
    """Unpickling this object ends the process."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os._exit, (3,)


def npy(array: np.ndarray[Any, Any]) -> bytes:
    raw = io.BytesIO()
    np.save(raw, array)
    return raw.getvalue()


def npz() -> bytes:
    raw = io.BytesIO()
    np.savez(raw, A=np.zeros((3, 5), np.int8))
    return raw.getvalue()


def claiming(shape: tuple[int, ...], descr: str = "|i1") -> bytes:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": shape})
    return header.getvalue()


GOOD = npy(np.ones((3, 5), np.int8))
ARRAYS: dict[str, tuple[bytes, str]] = {
    "dtype": (npy(np.zeros((3, 5))), "A has dtype float64; it must be int8"),
    "unsigned": (npy(np.zeros((3, 5), np.uint8)), "A has dtype uint8; it must be int8"),
    "shape": (npy(np.zeros((5, 3), np.int8)), "A has shape [5, 3]; it must be [3, 5]"),
    "scalar": (npy(np.zeros((), np.int8)), "A has shape []; it must be [3, 5]"),
    "text": (b"1 2 3", "input A from 'a.npy' is no .npy file; it must be one array, as numpy.save writes it"),
    "empty": (b"", "input A from 'a.npy' is no .npy file; it must be one array, as numpy.save writes it"),
    "pickle": (
        pickle.dumps(Malicious()),
        "input A from 'a.npy' is no .npy file; it must be one array, as numpy.save writes it",
    ),
    "archive": (
        npz(),
        "input A from 'a.npy' is an archive of arrays; it must be one array, as numpy.save writes it",
    ),
    "objects": (
        npy(np.array([Malicious()], dtype=object)),
        "input A from 'a.npy' holds Python objects; an array of numbers is needed",
    ),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_an_array_that_does_not_fit(case: str, accel: Shell, saved: Callable[..., Path]) -> None:
    content, message = ARRAYS[case]
    file = saved()
    Path("a.npy").write_bytes(content)
    accel.refused("run", file, "--input", "A=a.npy", "--output", "C=c.npy", message=message)


def test_an_array_that_is_not_there(accel: Shell, saved: Callable[..., Path]) -> None:
    file = saved()
    message = "input A from 'a.npy' cannot be read: No such file or directory"
    accel.refused("run", file, "--input", "A=a.npy", message=message)
    message = "input A from '.' cannot be read: Is a directory"
    accel.refused("run", file, "--input", "A=.", message=message)
    np.save("q.npy", np.zeros(3))
    message = "'Q' is not an input of the program; valid are A, B"
    accel.refused("run", file, "--input", "Q=q.npy", message=message)


SCALES: dict[str, tuple[bytes, str]] = {
    "text": (b"1 2 3", "scale from 's.npy' is no .npy file; it must be one array, as numpy.save writes it"),
    "shape": (
        npy(np.ones((8, 1))),
        "the scale is an array of shape (8, 1); it must be a number, or one for each channel",
    ),
    "sign": (npy(np.array([1.0, -1.0])), "the scale is -1.0 for channel 1; it must be a positive float32"),
    "count": (npy(np.ones(7)), "there are 7 scales; the layer has 8 output channels"),
}


@pytest.mark.parametrize("case", SCALES)
def test_scales_that_do_not_fit(case: str, accel: Shell) -> None:
    content, message = SCALES[case]
    Path("s.npy").write_bytes(content)
    gemm = ("compile", "gemm", "-m", "8", "-n", "8", "-k", "8", "--config", "tiny-int8", "-o", "c.accel")
    accel.refused(*gemm, "--scale", "s.npy", message=message)
    accel.refused(
        *gemm, "--scale", "no.npy", message="scale from 'no.npy' cannot be read: No such file or directory"
    )


DAMAGED = {
    "data cut": GOOD[:-1],
    "version cut": GOOD[:9],
    "header cut": GOOD[:40],
    "endless": claiming((1 << 60,)),
    "huge elements": claiming((3, 5), "|V9999999999"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_array(case: str, accel: Shell, saved: Callable[..., Path]) -> None:
    file = saved()
    Path("a.npy").write_bytes(DAMAGED[case])
    outcome = accel("run", file, "--input", "A=a.npy", code=2)
    assert outcome.out == ""
    assert outcome.err.startswith("accel: input A from 'a.npy' is damaged: ")
    assert outcome.err.count("\n") == 1


@given(
    changes=st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(1, 255)), max_size=3),
    cut=st.none() | st.integers(0, len(GOOD)),
)
@examples(300)
def test_damage_to_an_array_gives_another_or_an_error(
    changes: list[tuple[int, int]], cut: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.npy"
    raw = bytearray(GOOD)
    for at, difference in changes:
        raw[at] ^= difference
    path.unlink(missing_ok=True)
    path.write_bytes(raw[:cut])
    try:
        array = read_array("A", str(path))
    except ProgramError:
        return
    assert array.size <= 64


def test_no_named_machine_is_too_small_for_a_matrix_product() -> None:
    for name in NAMED:
        assert gemm_program(config=name, bias=True, relu=True, shift=1).run().mismatches == 0


def test_unused_instruction_bits_are_no_fault(accel: Shell) -> None:
    """Programs of other compilers leave arbitrary bits in FINISH."""
    program = handmade()
    code = encode([Finish()], program.config)[:8] + b"\xff" * 8
    Program(config=program.config, code=code, code_offset=4096).save("garbage.accel")
    accel("run", "garbage.accel")
