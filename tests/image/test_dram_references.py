"""References in program files: there and back, damaged, and not there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel.base.errors import ProgramError
from accel.base.records import replace
from accel.image.dram_references import NO_PART, Part, References, numbers_from_bytes, numbers_to_bytes
from accel.image.linker import parts
from accel.run.program import Program
from tests.expect import refused
from tests.programs import TINY, gemm_program, handmade, rewritten


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "program.accel"
    gemm_program(bias=True).save(path)
    return path


def test_they_come_back(file: Path) -> None:
    program = gemm_program(bias=True)
    again = Program.load(file)
    assert program.references is not None
    assert again.references == program.references
    assert again.references is not None
    assert [part.name for part in again.references.parts] == [part.name for part in program.references.parts]


def test_equal_references() -> None:
    one = References(parts=(Part(offset=0, nbytes=8),), of=np.array([0, NO_PART], dtype=np.int32))
    assert one == replace(one, parts=(Part(offset=0, nbytes=8, name="A"),))
    assert one != replace(one, parts=(Part(offset=0, nbytes=9),))
    assert one != replace(one, of=np.array([0, 0], dtype=np.int32))
    assert one != 3


def test_numbers_take_two_bytes_each() -> None:
    numbers = np.array([NO_PART, 0, 65533], dtype=np.int32)
    assert numbers_to_bytes(numbers) == b"\0\0\1\0\xfe\xff"
    np.testing.assert_array_equal(numbers_from_bytes(numbers_to_bytes(numbers)), numbers)
    with refused(ProgramError, "a table has 65536 records; a program file holds 65535"):
        numbers_to_bytes(np.array([65535], dtype=np.int32))


def test_a_file_without_them_can_be_placed_by_its_addresses(file: Path, tmp_path: Path) -> None:
    """As other releases and other compilers write."""

    def without(manifest: dict[str, Any]) -> None:
        del manifest["references"]

    program = Program.load(rewritten(file, tmp_path / "old.accel", without))
    assert program.references is None
    tensors = {(t.offset, t.nbytes) for t in program.tensors}
    assert tensors <= {(part.offset, part.nbytes) for part in parts(program)}


def test_a_program_without_them_is_written_as_ever(tmp_path: Path) -> None:
    path = tmp_path / "hand.accel"
    handmade().save(path)
    assert b"references" not in path.read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda parts: parts.clear(), r"instruction 0 has record \d of its references; there are 0"),
        (lambda parts: parts[0].pop("name"), "its manifest has damaged references"),
        (lambda parts: parts.append(7), "its manifest has damaged references"),
        (lambda parts: parts[0].update(name=3), "its manifest has damaged references"),
        (lambda parts: parts[0].update(offset=1.5), "its manifest has damaged references"),
        (lambda parts: parts[0].update(bytes=True), "its manifest has damaged references"),
        (
            lambda parts: parts[0].update(offset=-1),
            r"its part '\w+' is \d+ bytes at -0x1; the DRAM window has \d+",
        ),
        (
            lambda parts: parts[0].update(bytes=TINY.mem_size),
            rf"its part '\w+' is {TINY.mem_size} bytes at 0x1000; the DRAM window has {TINY.mem_size}",
        ),
        (
            lambda parts: parts[0].update(name="a b"),
            r"the name of a part is 'a b'; it is made of letters, digits, '_', '\.' and '-'",
        ),
    ],
)
def test_damage(change: Callable[[Any], object], message: str, file: Path, tmp_path: Path) -> None:
    def damaged(manifest: dict[str, Any]) -> None:
        change(manifest["references"])

    with pytest.raises(ProgramError, match=rf"damaged.accel': {message}$"):
        Program.load(rewritten(file, tmp_path / "damaged.accel", damaged))


def test_references_of_another_program() -> None:
    program = gemm_program()
    assert program.references is not None
    short = replace(program.references, of=program.references.of[:-1])
    count = len(program.instructions)
    with refused(ProgramError, f"its references are those of {count - 1} instructions; it has {count}"):
        short.check(count, TINY.mem_size)
