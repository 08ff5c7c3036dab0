"""What all commands share: help, names, exit codes, and how output leaves the process."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

import accel as package
from accel.cli.app import app
from accel.core.isa import Gemm
from accel.run.program import Program
from tests.cli.conftest import Shell
from tests.programs import handmade

COMMANDS = [(name,) for name in app.commands] + [("compile", "gemm")]
START = [sys.executable, "-m", "accel"]


def process(*arguments: object, **options: Any) -> "subprocess.CompletedProcess[bytes]":
    """A call in a process of its own."""
    return subprocess.run([*START, *map(str, arguments)], check=False, **options)


# --- names and help --------------------------------------------------------------------------------


def test_version(accel: Shell) -> None:
    assert accel("--version").out == f"accel {package.__version__}\n"


@pytest.mark.parametrize("command", [(), ("compile",)])
def test_a_bare_group_shows_its_help(command: tuple[str, ...], accel: Shell) -> None:
    assert accel(*command).text == accel(*command, "--help").text


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(command: tuple[str, ...], accel: Shell) -> None:
    text = accel(*command, "-h").text
    assert f"Usage: accel {' '.join(command)} " in text
    assert "Example:\n    accel " in text


def test_the_list_of_commands_is_not_cut(accel: Shell) -> None:
    assert "..." not in accel("--help").text.split("Commands:")[1]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_option_is_explained(command: tuple[str, ...]) -> None:
    found: click.Command = app
    for name in command:
        assert isinstance(found, click.Group)
        found = found.commands[name]
    for parameter in found.params:
        assert isinstance(parameter, click.Argument) or getattr(parameter, "help", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ru"], "'ru' is no command; did you mean 'run'? (see 'accel --help')"),
        (
            ["x"],
            f"'x' is no command; valid are {', '.join(sorted(app.commands))} (see 'accel --help')",
        ),
        (["compile", "gem"], "'gem' is no command; did you mean 'gemm'? (see 'accel compile --help')"),
        (["show"], "Missing argument 'FILE'. (see 'accel show --help')"),
        (["show", "a", "b"], "Got unexpected extra argument (b) (see 'accel show --help')"),
        (["compile", "gemm"], "Missing option '-m'. (see 'accel compile gemm --help')"),
    ],
)
def test_what_was_meant_is_said(arguments: list[str], message: str, accel: Shell) -> None:
    accel.refused(*arguments, message=message)


def test_the_nearest_option_is_said(accel: Shell) -> None:
    outcome = accel("compile", "gemm", "--transpose_a", code=2)
    assert outcome.err.count("\n") == 1
    assert "No such option" in outcome.err
    assert "--transpose-a" in outcome.err


# --- how a process ends ----------------------------------------------------------------------------


def test_errors_have_their_exit_codes(accel: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a command raises on purpose; a bug still shows as one."""
    command = app.commands["configs"]
    for error, code, line in (
        (package.ConfigError("a\n  b"), 2, "accel: a b\n"),
        (package.RaceError("a"), 1, "accel: a\n"),
        (package.ProgramError("a" * 9000 + "b"), 2, f"accel: {'a' * 1000} ... {'a' * 999}b\n"),
        (KeyboardInterrupt(), 130, ""),
        (click.Abort(), 130, ""),
        (
            FileNotFoundError(2, "No such file or directory", "f"),
            2,
            "accel: 'f' cannot be used: No such file or directory\n",
        ),
        (MemoryError(), 2, "accel: this takes more memory than there is; give something smaller\n"),
        (RecursionError(), 2, "accel: the input is nested too deeply; give something flatter\n"),
    ):

        def fail(*_: object, raised: BaseException = error, **__: object) -> None:
            raise raised

        monkeypatch.setattr(command, "callback", fail)
        outcome = accel("configs", code=code)
        assert (outcome.out, outcome.err) == ("", line)


def test_an_interrupted_run_writes_nothing(
    accel: Shell, saved: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Program, "run", interrupted)
    outcome = accel("run", saved(), "--output", "C=c.npy", code=130)
    assert (outcome.out, outcome.err) == ("", "")
    assert not Path("c.npy").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_ends_with_130() -> None:
    with subprocess.Popen(
        [*START, "demo", "--size", "4096"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()  # it is at work
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=120) == 130
        assert running.stderr.read() == b""


# --- streams ---------------------------------------------------------------------------------------


def test_a_reader_may_leave(accel: Shell) -> None:
    """As ``head -1`` does, before a listing longer than a pipe holds."""
    handmade(*[Gemm()] * 20_000).save("long.accel")
    with subprocess.Popen(
        [*START, "disasm", "long.accel"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline() == b".config tiny\n"
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(timeout=120) == 0


def test_a_fault_is_told_though_the_reader_has_left(accel: Shell) -> None:
    handmade(Gemm(), finish=False).save("bad.accel")
    reader, writer = os.pipe()
    os.close(reader)
    ended = process("check", "bad.accel", stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (
        1,
        b"accel: instruction 0: the last instruction is GEMM; it must be FINISH\n",
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["configs"], ["configs", "--json"], ["--help"], ["--version"]])
def test_a_full_disk_is_one_line(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        ended = process(*arguments, stdout=full, stderr=subprocess.PIPE)
    assert ended.returncode == 2
    assert ended.stderr == b"accel: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["configs", "--json"], ["run", "--help"]])
def test_a_disk_that_fills_on_the_way_is_one_line(
    arguments: list[str], unbuffered: str, tmp_path: Path
) -> None:
    """It takes a part of what is written, and only then no more."""
    resource = pytest.importorskip("resource")
    with (tmp_path / "out").open("wb") as file:
        ended = process(
            *arguments,
            stdout=file,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        )
    assert (tmp_path / "out").stat().st_size == 1000
    assert ended.returncode == 2
    assert ended.stderr == b"accel: standard output cannot be written: File too large\n"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX shell")
def test_closed_streams_are_no_crash(accel: Shell) -> None:
    def shell(line: str) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(["sh", "-c", f'"$@" {line}', "sh", *START], capture_output=True, check=False)

    ended = shell("configs >&-")
    assert (ended.returncode, ended.stderr) == (0, b"")
    ended = shell("configs no-such-one 2>&-")
    assert (ended.returncode, ended.stdout) == (2, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX file names")
def test_any_file_name_can_be_shown(accel: Shell) -> None:
    name = os.fsdecode(b"\xff.accel")
    arguments = ("compile", "gemm", "-m", 1, "-n", 1, "-k", 1, "--config", "tiny", "-o", name)
    environment = os.environ | {"LC_ALL": "C.UTF-8"}
    ended = process(*arguments, env=environment, capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout.endswith(rb"\udcff.accel" + b"\n")
    assert Path(name).exists()


def test_a_pipe_gets_no_colours(accel: Shell, saved: Callable[..., Path]) -> None:
    """Not even where the environment asks for them."""
    plain = os.environ | {"FORCE_COLOR": "", "COLUMNS": "40"}
    forced = os.environ | {"FORCE_COLOR": "1", "TTY_COMPATIBLE": "1", "COLUMNS": "200"}
    for arguments in (["check", saved()], ["replay", "nowhere"]):
        a = process(*arguments, env=plain, capture_output=True)
        b = process(*arguments, env=forced, capture_output=True)
        assert (a.returncode, a.stdout, a.stderr) == (b.returncode, b.stdout, b.stderr)
        assert b"\x1b" not in a.stdout + a.stderr


def test_a_terminal_gets_the_same_words(accel: Shell, saved: Callable[..., Path]) -> None:
    pty = pytest.importorskip("pty")
    file = saved()
    expected = accel("check", file).text.split()
    leader, follower = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "200"}
    ended = process("check", file, stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    text = b""
    while chunk := _rest(leader):
        text += chunk
    os.close(leader)
    assert ended.returncode == 0
    assert b"\x1b[" in text
    plain = click.unstyle(text.decode())
    assert [word for word in plain.split() if word in expected] == expected


def _rest(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # nobody writes any more
        return b""
