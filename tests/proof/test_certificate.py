"""Certificates: their checker accepts what the token check proves, refuses the rest, and finds damage."""

import ast
import copy
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.base.errors import RaceError
from accel.base.records import replace
from accel.core.isa import encode
from accel.proof import certificate_checker
from accel.proof.certificate import certificate, claims, write_certificate
from accel.proof.certificate_checker import Refused, digest, main, verify
from accel.run.program import Program
from tests.lockstep.cases import Case, cases
from tests.strategies import examples

PLAIN = accel.build(accel.gemm(24, 20, 40, bias=True, relu=True, shift=2), "tiny")
RESIDUAL = accel.build(
    accel.gemm(
        9,
        10,
        11,
        quantized=accel.Quantized(
            scale=0.01, residual=accel.QuantizedResidual(scale=0.5, result_scale=0.7, sum_scale=0.9)
        ),
    ),
    "tiny-int8",
)
PROGRAMS = {"plain": PLAIN, "residual": RESIDUAL}


def manifest(program: Program) -> Any:
    return program.contents()[0]


def accepted(program: Program, claim: dict[str, Any]) -> bool:
    try:
        return verify(claim, program.code, manifest(program)) == len(program.instructions)
    except Refused:
        return False


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_proven_program_has_a_certificate(name: str) -> None:
    assert accepted(PROGRAMS[name], certificate(PROGRAMS[name]))


@examples(150)
@given(cases())
def test_the_checker_accepts_what_is_proven_and_nothing_else(case: Case) -> None:
    report = case.program.check()
    if report.verdict in ("fault", "unknown"):
        return
    assert accepted(case.program, claims(case.program)) == report.ok, report.summary


def without_flag(program: Program, index: int, flag: str) -> Program:
    body = list(program.instructions)
    body[index] = replace(body[index], **{flag: False})
    return replace(program, code=encode(body, program.config), references=None, provenance=None)


def test_every_token_of_a_program_is_missed() -> None:
    """Without any one flag, checker and token check agree."""
    for index, instruction in enumerate(PLAIN.instructions[:60]):
        for flag in ("pop_prev", "pop_next", "push_prev", "push_next"):
            if getattr(instruction, flag):
                changed = without_flag(PLAIN, index, flag)
                report = changed.check()
                if report.verdict in ("proven", "race", "deadlock"):
                    assert accepted(changed, claims(changed)) == report.ok, (index, flag)


def test_what_is_not_proven_gets_no_certificate() -> None:
    for index, instruction in enumerate(PLAIN.instructions):
        if instruction.pop_prev:
            changed = without_flag(PLAIN, index, "pop_prev")
            if changed.check().verdict == "race":
                with pytest.raises(RaceError):
                    certificate(changed)
                return
    raise AssertionError("no token of the program prevents a race")


def _leaves(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(data, dict | list):
        items = data.items() if isinstance(data, dict) else enumerate(data)
        return [leaf for key, value in items for leaf in _leaves(value, (*path, key))]
    return [path]


def _place(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        data = data[key]
    return data


CLAIM = certificate(RESIDUAL)
LEAVES = _leaves(CLAIM)
JUNK = (None, -1, 1 << 70, 0.5, "x", [], {}, True)


@examples(200)
@given(path=st.sampled_from(LEAVES), value=st.sampled_from(JUNK), resealed=st.booleans())
def test_damage_is_refused_or_says_the_same(path: tuple[Any, ...], value: Any, resealed: bool) -> None:
    """A change with the old digest is refused. With a new digest, a change of a derived entry is refused,
    and the checker always ends with a verdict."""
    damaged = copy.deepcopy(CLAIM)
    if json.dumps(_place(damaged, path)[path[-1]]) == json.dumps(value):
        return
    _place(damaged, path)[path[-1]] = value
    if resealed:
        damaged["digest"] = digest(damaged)
    found = accepted(RESIDUAL, damaged)
    if not resealed or path[0] in ("clocks", "matches", "program", "span", "tokens", "format", "version"):
        same = isinstance(value, bool) and _place(CLAIM, path)[path[-1]] == value
        assert not found or (resealed and same)


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("clock", lambda c: c["clocks"][-1].__setitem__(0, c["clocks"][-1][0] + 1)),
        ("another push", lambda c: c["matches"][0].reverse()),
        ("more pops", lambda c: c["matches"][0].append(0)),
        ("one of all instructions", lambda c: c.update(order=[0] * len(c["clocks"]))),
        ("another program", lambda c: c.update(program="0" * 64)),
        ("head of a queue", lambda c: c.update(order=[*range(len(c["clocks"]))][::-1])),
        ("overflow", lambda c: c.update(token_limit=0)),
        ("other tokens", lambda c: c.update(tokens=[1, 0, 0, 0])),
        ("lies elsewhere", lambda c: c["span"].__setitem__(0, 0)),
        ("malformed: 'order' is missing", lambda c: c.pop("order")),
        ("malformed: something in it", lambda c: c.update(queues=3)),
        ("as many", lambda c: c["clocks"].pop()),
    ],
)
def test_what_is_said_of_damage(what: str, change: Callable[[dict[str, Any]], object]) -> None:
    damaged = certificate(PLAIN)
    change(damaged)
    damaged["digest"] = digest(damaged)
    with pytest.raises(Refused, match=what):
        verify(damaged, PLAIN.code, manifest(PLAIN))


def test_a_program_of_which_a_store_writes_over_the_code_is_refused() -> None:
    damaged = certificate(PLAIN)
    stores = [
        entry for entry in damaged["accesses"] for memory, writes, *_ in entry if memory == "dram" and writes
    ]
    stores[0][-1][2] = damaged["span"][0]
    damaged["digest"] = digest(damaged)
    with pytest.raises(Refused, match="writes over the program"):
        verify(damaged, PLAIN.code, manifest(PLAIN))


def test_the_checker_as_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, proof = tmp_path / "p.accel", tmp_path / "p.json"
    PLAIN.save(program)
    write_certificate(proof, certificate(PLAIN))
    assert main([str(proof), str(program)]) == 0
    assert "instructions: no deadlock, no race: proven" in capsys.readouterr().out
    proof.write_bytes(proof.read_bytes().replace(b'"serial":false', b'"serial":true'))
    assert main([str(proof), str(program)]) == 1
    assert capsys.readouterr().err == "refused: its digest is not that of its content\n"
    for content in (b"", b"{", b"[" * 100_000, b"\xff"):
        proof.write_bytes(content)
        assert main([str(proof), str(program)]) == 2
        assert capsys.readouterr().err == f"cannot be read: {str(proof)!r} is not a JSON file\n"
    for content in (b"{}", b"[]", b"3", b"null", b'{"format": "accel-certificate", "version": 2}'):
        proof.write_bytes(content)
        assert main([str(proof), str(program)]) == 2
        message = f"{str(proof)!r} is not a certificate of version 1; 'accel check' writes those"
        assert capsys.readouterr().err == f"cannot be read: {message}\n"
    assert main([str(program)]) == 2


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04"])
def test_what_is_no_program_cannot_be_read(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, proof = tmp_path / "p.accel", tmp_path / "p.json"
    write_certificate(proof, certificate(PLAIN))
    program.write_bytes(content)
    assert main([str(proof), str(program)]) == 2
    assert (
        capsys.readouterr().err == f"cannot be read: {str(program)!r} is not a program file, or is damaged\n"
    )
    program.unlink()
    with zipfile.ZipFile(program, "w") as archive:
        archive.writestr("program.json", "[]")
    assert main([str(proof), str(program)]) == 2
    capsys.readouterr()
    program.unlink()
    assert main([str(proof), str(program)]) == 2
    assert capsys.readouterr().err == f"cannot be read: {str(program)!r}: No such file or directory\n"


def test_the_checker_stands_alone() -> None:
    source = Path(certificate_checker.__file__).read_text()
    names = {
        alias.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert names <= sys.stdlib_module_names
