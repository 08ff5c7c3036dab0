"""Provenance in program files: there and back, damaged, and not there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel.base.errors import ProgramError
from accel.base.records import replace
from accel.image.linker import linked, parts
from accel.image.provenance import Provenance, Statement, read_statement
from accel.run.program import Program
from tests.expect import refused
from tests.programs import gemm_program, handmade, rewritten


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "program.accel"
    gemm_program(bias=True).save(path)
    return path


def test_it_comes_back(file: Path) -> None:
    program = gemm_program(bias=True)
    assert program.provenance is not None
    assert len(program.provenance) == len(program.instructions)
    assert Program.load(file).provenance == program.provenance


def test_it_survives_another_timing_and_another_place() -> None:
    program = gemm_program(bias=True)
    assert program.with_timing(program.config.override({"serial": 1})).provenance == program.provenance
    moved = linked(program, {part: part.offset + (1 << 16) for part in parts(program)})
    assert moved.provenance == program.provenance


def test_equal_provenance() -> None:
    one = Provenance(statements=(Statement(kind="finish"),), of=np.array([0], dtype=np.int32))
    assert one == replace(one, of=np.array([0], dtype=np.int32))
    assert one != replace(one, of=np.array([0, 0], dtype=np.int32))
    assert one != replace(one, statements=(Statement(kind="tokens"),))
    assert one != 3


@pytest.mark.parametrize(
    "statement",
    [
        Statement(kind="finish"),
        Statement(kind="load", text="a", stage="AL", step=0, tensor="A"),
        Statement(kind="intrinsic", text="b", stage="S", step=3, tensor="C", reads=("A", "B"), loops=("x",)),
    ],
)
def test_statements_as_data(statement: Statement) -> None:
    assert read_statement(statement.to_dict()) == statement


def test_a_file_without_it(file: Path, tmp_path: Path) -> None:
    """As other releases and other compilers write."""

    def without(manifest: dict[str, Any]) -> None:
        del manifest["provenance"]

    program = Program.load(rewritten(file, tmp_path / "old.accel", without))
    assert program.provenance is None
    assert program.run().mismatches == 0


def test_a_program_without_it_is_written_as_ever(tmp_path: Path) -> None:
    path = tmp_path / "hand.accel"
    handmade().save(path)
    assert b"provenance" not in path.read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: found.clear(), r"instruction 0 has record 0 of its provenance; there are 0"),
        (lambda found: found[0].pop("kind"), "its manifest has damaged provenance"),
        (lambda found: found[0].update(kind="magic"), "its manifest has damaged provenance"),
        (lambda found: found[0].update(kind=[]), "its manifest has damaged provenance"),
        (lambda found: found[0].update(step=-1), "its manifest has damaged provenance"),
        (lambda found: found[0].update(step=True), "its manifest has damaged provenance"),
        (lambda found: found[0].update(text=7), "its manifest has damaged provenance"),
        (lambda found: found[0].update(reads="AB"), "its manifest has damaged provenance"),
        (lambda found: found[0].update(loops=[1]), "its manifest has damaged provenance"),
        (lambda found: found.append(None), "its manifest has damaged provenance"),
    ],
)
def test_damage(change: Callable[[Any], object], message: str, file: Path, tmp_path: Path) -> None:
    def damaged(manifest: dict[str, Any]) -> None:
        change(manifest["provenance"])

    with pytest.raises(ProgramError, match=rf"damaged.accel': {message}$"):
        Program.load(rewritten(file, tmp_path / "damaged.accel", damaged))


def test_an_instruction_without_a_statement() -> None:
    found = Provenance(statements=(Statement(kind="finish"),), of=np.array([0, -1], dtype=np.int32))
    with refused(ProgramError, "instruction 1 has record -1 of its provenance; there are 1"):
        found.check(2)
    with refused(ProgramError, "its provenance is that of 2 instructions; it has 3"):
        found.check(3)
