"""Shell completion: the scripts and the proposals."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from accel.cli.completion import SHELLS, VARIABLE
from tests.cli.conftest import Shell


@pytest.mark.parametrize("shell", SHELLS)
def test_there_is_a_script_for_each_shell(shell: str, accel: Shell) -> None:
    if shell == "bash" and shutil.which("bash") is None:
        pytest.skip("bash is asked for its version")
    assert f"{VARIABLE}={shell}_complete" in accel("completion", shell).text


def test_the_shell_in_use_is_the_default(accel: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    assert accel("completion").out == accel("completion", "zsh").out


def test_other_shells_are_refused(accel: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    accel.refused("completion", "fis", message="the shell is 'fis'; did you mean 'fish'?")
    monkeypatch.delenv("SHELL", raising=False)
    accel.refused("completion", message="the shell is ''; valid are bash, fish, zsh")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("accel sw", ["plain,sweep"]),
        ("accel compile ge", ["plain,gemm"]),
        ("accel compile gemm --config ec", ["plain,ecp5", "plain,ecp5-int8", "plain,ecp5-npu"]),
        ("accel compile gemm --config mine.j", ["file,mine.j"]),
        ("accel compile gemm --set inp", ["plain,inp_bytes=", "plain,inp_banks="]),
        ("accel run p.accel --set inp", []),
        ("accel run p.accel --backend f", ["plain,functional"]),
        ("accel show p.accel --stage t", ["plain,tensorized", "plain,threads"]),
        ("accel sweep --executor ", ["plain,processes", "plain,dask"]),
        ("accel explore s.toml --sampler n", ["plain,nsga2"]),
        ("accel sweep --vary run.read", ["plain,run.read_latency="]),
        ("accel sweep --par", ["plain,--parquet"]),
        ("accel nothing --x", []),
    ],
)
def test_proposals(typed: str, offered: list[str], accel: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split(" ")) - 1))
    assert accel().out.split() == offered


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is missing")
def test_bash_completes(tmp_path: Path) -> None:
    """Load the script in bash and call its completion function."""
    command = tmp_path / "accel"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m accel "$@"\n')
    command.chmod(0o755)
    script = f"""
    PATH={tmp_path}:$PATH
    eval "$(accel completion bash)"
    COMP_WORDS=(accel compile gemm --config vt) COMP_CWORD=4
    _accel_completion accel
    echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "vta"
