import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from accel.assembly import assemble, disassemble
from accel.core.isa import Finish
from accel.image.image import Image
from tests.cli.conftest import Shell
from tests.programs import gemm_program
from tests.vectors import write_vector

TEST = ".config tiny\nFINISH\n.expect done\n.expect dram[64] .int8 0\n"


def content(file: str | Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_listings_assemble_to_the_same_program(accel: Shell, saved: Callable[..., Path]) -> None:
    file = saved(bias=True, shift=2)
    text = accel("disasm", file).text
    assert text == disassemble(gemm_program(bias=True, shift=2))
    Path("again.s").write_text(text)
    accel("asm", "again.s", "-o", "again.accel")
    first, again = (content(name) for name in (file, "again.accel"))
    assert [name for name in first if again.get(name) != first[name]] == ["program.json", "provenance.bin"]
    assert "provenance.bin" not in again
    facts, facts_again = (json.loads(one["program.json"]) for one in (first, again))
    assert [key for key in facts if facts_again.get(key) != facts[key]] == ["provenance"]
    before, after = (accel("run", name, "--json").json for name in (file, "again.accel"))
    assert after["cycles"] == before["cycles"]
    assert after["mismatches"] == 0


def test_micro_ops_on_request(accel: Shell, saved: Callable[..., Path]) -> None:
    file = saved()
    assert accel("disasm", file, "--micro-ops", 3).text == disassemble(gemm_program(), micro_ops=3)
    assert "acc[0] += inp[0] * wgt[0]" in accel("disasm", file, "--micro-ops", 3).text


def test_text(accel: Shell) -> None:
    Path("t.s").write_text(TEST)
    outcome = accel("asm", "t.s", "-o", "t.accel")
    assert outcome.err == "wrote t.accel\n"
    assert outcome.text == (
        "machine       tiny (1x4x8, 64-bit bus)\ninstructions  1\ndata          0 bytes\nexpectations  2\n"
    )
    assert Image.load("t.accel").instructions == [Finish()]


def test_texts_of_other_editors(accel: Shell) -> None:
    """The text has a byte order mark and Windows line ends."""
    Path("t.s").write_bytes(b"\xef\xbb\xbf" + TEST.replace("\n", "\r\n").encode())
    accel("asm", "t.s", "-o", "t.accel")
    assert Image.load("t.accel").instructions == [Finish()]


def test_json(accel: Shell) -> None:
    Path("t.s").write_text(TEST)
    assert accel("asm", "t.s", "-o", "t.accel", "--json").json == {
        "schema_version": 1,
        "config": "tiny",
        "instructions": 1,
        "data_bytes": 0,
        "dram_bytes": 16,
        "test": True,
        "output": "t.accel",
    }


def test_bad_input(accel: Shell) -> None:
    Path("t.s").write_text(".config tiny\nFINISHED\n")
    message = "'t.s', line 2: 'FINISHED' is not a mnemonic; did you mean 'FINISH'?"
    accel.refused("asm", "t.s", "-o", "t.accel", message=message)
    accel.refused("run", "t.s", message=message)
    accel.refused(
        "asm", "t.s", "-o", "no/t.accel", message="'no/t.accel' cannot be written: there is no folder 'no'"
    )
    message = "program 'no.s' cannot be read: No such file or directory"
    accel.refused("asm", "no.s", "-o", "t.accel", message=message)
    accel.refused("disasm", "no.s", message=message)


@pytest.mark.parametrize("command", ["run", "check", "disasm"])
def test_texts_and_vectors_are_programs_too(command: str, accel: Shell) -> None:
    Path("t.s").write_text(TEST)
    write_vector(accel.folder / "vector")
    accel(command, "t.s")
    accel(command, "vector")
    accel("show", "t.s", "--stage", "asm")


def test_a_vector_as_text_is_a_test(accel: Shell) -> None:
    write_vector(accel.folder / "vector")
    Path("v.s").write_text(accel("disasm", "vector").text)
    assert "1 of 1 passed" in accel("replay", "v.s", "--backend", "sim").text
    assert assemble(Path("v.s").read_text()).expected is not None
