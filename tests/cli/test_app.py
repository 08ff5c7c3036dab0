"""Properties of all commands: help, names, exit codes, and how output reaches stdout."""

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
from accel.network.digits import MODEL
from accel.run.program import Program
from tests.cli.conftest import Shell
from tests.programs import handmade

COMMANDS = [(name,) for name in app.commands] + [("compile", "gemm")]
START = [sys.executable, "-m", "accel"]


def process(*arguments: object, **options: Any) -> "subprocess.CompletedProcess[bytes]":
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


def test_the_list_of_commands_has_their_summaries(accel: Shell) -> None:
    """All commands, in one order, although the list imports none of them."""
    lines = accel("--help").text.split("Commands:\n")[1].splitlines()
    helps = {name: command.get_short_help_str(limit=1000) for name, command in app.commands.items()}
    assert lines == [f"  {name:<11}  {text}" for name, text in sorted(helps.items())]
    assert list(app.commands) == sorted(app.commands)


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
        (["ru"], "'ru' is not a command; did you mean 'run'? (see 'accel --help')"),
        (
            ["x"],
            f"'x' is not a command; valid are {', '.join(sorted(app.commands))} (see 'accel --help')",
        ),
        (["compile", "gem"], "'gem' is not a command; did you mean 'gemm'? (see 'accel compile --help')"),
        (["show"], "Missing argument 'FILE'. (see 'accel show --help')"),
        (["show", "a", "b"], "Got unexpected extra argument (b) (see 'accel show --help')"),
        (["compile", "gemm"], "Missing option '-m'. (see 'accel compile gemm --help')"),
    ],
)
def test_misspelled_names_get_a_suggestion(arguments: list[str], message: str, accel: Shell) -> None:
    accel.refused(*arguments, message=message)


def test_the_nearest_option_is_said(accel: Shell) -> None:
    outcome = accel("compile", "gemm", "--transpose_a", code=2)
    assert outcome.err.count("\n") == 1
    assert "No such option" in outcome.err
    assert "--transpose-a" in outcome.err


def test_options_of_all_commands_come_first(accel: Shell) -> None:
    accel.refused(
        *("compile", "gemm", "-m", 8, "--no-cache"),
        message="--no-cache comes before the command: accel --no-cache compile ...",
    )


# --- imports ---------------------------------------------------------------------------------------


def loaded(*arguments: str) -> set[str]:
    """Modules that a call has imported when it ends."""
    script = (
        "import atexit, sys\n"
        f"sys.argv = {['accel', *arguments]!r}\n"
        "from accel.__main__ import main\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_imports_no_command(arguments: list[str]) -> None:
    found = loaded(*arguments)
    assert "accel.cli.app" in found
    assert (
        found
        & {"msgspec", "numpy", "rich", "amaranth", "accel.cli.shared_options", "accel.core", "accel.run"}
        == set()
    )
    assert {one for one in found if one.startswith("accel.cli.")} == {
        f"accel.cli.{name}" for name in ("app", "command_groups", "completion", "stdout")
    }


def test_a_command_imports_no_other() -> None:
    found = loaded("registers")
    assert "accel.cli.registers" in found
    assert found & {f"accel.cli.{name}" for name in app.commands} == {
        "accel.cli.registers",
        "accel.cli.completion",
    }
    assert found & {"rich", "amaranth", "accel.cli.shared_options"} == set()


@pytest.mark.parametrize("command", [["run"], ["compile", "onnx"], ["lockstep"], ["verify"], ["quantize"]])
def test_help_of_a_command_imports_nothing_that_a_run_needs(command: list[str]) -> None:
    """So that it takes a quarter of a second, as completion does."""
    found = loaded(*command, "--help")
    assert f"accel.cli.commands.{'_'.join(command)}" in found
    slow = {"rich", "amaranth", "accel.run.program", "accel.sim.simulator", "accel.graph.graph"}
    assert found & {*slow, "accel.cli.shared_options", f"accel.cli.{command[0]}"} == set()


def test_a_compilation_in_a_pipe_imports_no_more_than_it_needs(tmp_path: Path) -> None:
    found = loaded("compile", "onnx", str(MODEL), "-o", str(tmp_path / "digits.accel"))
    assert "accel.network.network_build" in found
    assert found & {"rich", "numpy.ma", "numpy.random", "concurrent.futures", "logging"} == set()


# --- how a process ends ----------------------------------------------------------------------------


def test_errors_have_their_exit_codes(accel: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """This covers every error that a command raises on purpose; a bug still shows a traceback."""
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
        [*START, "demo", "--verbose"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()  # the process is running now
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=120) == 130
        assert running.stderr.read() == b""


INTERRUPTED = """
import os, signal, sys
from importlib.abc import MetaPathFinder

class Interrupt(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):
                pass

sys.meta_path.insert(0, Interrupt())
sys.argv = ["accel", "run", {file!r}]
from accel.__main__ import main
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize(
    "module", ["accel.cli.app", "click", "accel.cli.run", "numpy", "msgspec", "accel.run.program"]
)
def test_ctrl_c_while_modules_are_imported_ends_with_130(
    module: str, accel: Shell, saved: Callable[..., Path]
) -> None:
    script = INTERRUPTED.format(module=module, file=str(saved()))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_when_all_is_said_ends_with_130() -> None:
    script = (
        "import atexit, os, signal, sys\n"
        "from accel.__main__ import main\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['accel', '--version']\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"")
    assert done.stdout == f"accel {package.__version__}\n".encode()


def test_an_interrupt_inside_exec_ends_with_130(tmp_path: Path) -> None:
    """After ``python -m``, CPython would kill the process by the signal, although it catches
    the exception."""
    script = (
        "import sys\n"
        "from accel.cli import app\n"
        "app.main = lambda: exec('raise KeyboardInterrupt')\n"
        "from accel.__main__ import main\n"
        "main()"
    )
    (tmp_path / "interrupted.py").write_text(script)
    command = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_interrupts_that_are_ignored_stay_so() -> None:
    """A shell ignores SIGINT for processes in the background."""
    script = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from accel.__main__ import main\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['accel', '--version']\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    os.kill(os.getpid(), signal.SIGINT)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


# --- streams ---------------------------------------------------------------------------------------


def test_a_reader_may_close_the_pipe(accel: Shell) -> None:
    """``head -1`` does so. The listing is longer than a pipe's buffer."""
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


def test_a_fault_is_reported_after_the_reader_has_closed_the_pipe(accel: Shell) -> None:
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
def test_a_disk_that_fills_during_output_gives_one_line(
    arguments: list[str], unbuffered: str, tmp_path: Path
) -> None:
    """The file accepts the first 1000 bytes and refuses the rest."""
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
    assert (ended.returncode, ended.stderr) == (0, rb"wrote \udcff.accel" + b"\n")
    assert Path(name).exists()


def test_a_pipe_gets_no_colours(accel: Shell, saved: Callable[..., Path]) -> None:
    """This also holds if the environment forces colours."""
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
    except OSError:  # the reader has closed the pipe
        return b""
