"""Initial state and expectations of test programs, in program files."""

import json
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.assembly import assemble, disassemble
from accel.base.errors import AccelError, ProgramError
from accel.core.config import NAMED
from accel.image.image import Image
from accel.image.test_scenario import Contents
from accel.run.program import Program, as_program
from accel.run.replay import replay
from accel.sim.functional.scratchpads import Scratchpads
from tests.expect import refused
from tests.image.test_image import odd_values, places
from tests.images import images
from tests.programs import rewritten
from tests.strategies import examples

TEXT = """\
.config tiny
.dram
x: .int8 1 2 3 4
.preset acc[3] .int32 7*8
.preset uop[0] .uop 3,0,0
.tokens load>compute=1
.limit cycles=900 uops=7
LOAD.INP dram_base=x y_size=1 x_size=1
GEMM reset=1 uop_end=1 <load >store
FINISH
.expect tokens compute>store=1
.expect acc[3] .int32 0*8
.expect dram[x] .int8 1 2 3 4
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "p.accel"
    assemble(TEXT).save(path)
    return path


@examples(60)
@given(image=images())
def test_files_hold_all(image: Image, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "scenario.accel"
    image.save(path)
    assert Image.load(path) == image


def test_a_test_runs_from_its_file(file: Path) -> None:
    program = Program.load(file)
    for backend in ("functional", "sim"):
        assert replay(program, backend=backend).passed
    assert program.check().ok
    left = program.execute(program.dram(), Scratchpads.zeros(program.config)).tokens
    assert left == (0, 0, 1, 0)


def test_an_old_file_starts_from_nothing(file: Path) -> None:
    rewritten(file, file, lambda m: [m.pop(key) for key in ("start", "expected", "regions")] and None)
    program = Image.load(file)
    assert (program.regions, program.expected) == ((), None)
    assert program.start.contents == ()


def put(*keys: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    """Replace one value of a manifest."""

    def change(manifest: Any) -> None:
        for key in keys[:-1]:
            manifest = manifest[key]
        manifest[keys[-1]] = value

    return change


DAMAGED = {
    "region's name": (
        put("regions", 0, "name", value="a b"),
        "the name of a region is 'a b'; it must be an identifier",
    ),
    "region's size": (
        put("regions", 0, "bytes", value=-1),
        "region 'x' has -1 bytes in its manifest; it cannot have less than none",
    ),
    "region's place": (
        put("regions", 0, "offset", value=-1),
        "offset is -1 in its manifest; it must not be negative",
    ),
    "start": (put("start", value=[]), "start is [] in its manifest; it must be an object"),
    "tokens": (put("start", "tokens", value=[0, 0]), "the tokens are [0, 0]; four numbers are needed"),
    "kind of tokens": (
        put("start", "tokens", value=[0, 0, True, 0]),
        "the tokens are [0, 0, True, 0]; four numbers are needed",
    ),
    "too many tokens": (
        put("start", "tokens", value=[0, 0, 256, 0]),
        "the tokens at the start are [0, 0, 256, 0]; a counter holds 0..255",
    ),
    "limit": (put("start", "max_cycles", value=0), "max_cycles is 0; it must be positive"),
    "kind of limit": (put("start", "max_uops", value="7"), "max_uops is '7'; it must be an integer"),
    "contents": (put("start", "contents", value=None), "contents is null; it must be a list"),
    "scratchpad": (
        put("start", "contents", 0, "scratchpad", value="out"),
        "'out' is not a scratchpad; valid are acc, inp, uop, wgt",
    ),
    "element": (
        put("start", "contents", 0, "element", value=128),
        "acc elements 128..128 are given; the scratchpad has 128",
    ),
    "half an element": (
        put("start", "contents", 0, "data", value="AAAA"),
        "3 bytes are given for acc; its elements have 32 each",
    ),
    "data": (put("start", "contents", 0, "data", value="A"), "data is not base64 text: "),
    "cause": (
        put("expected", "cause", value="dead-lock"),
        "'dead-lock' is not a cause of an error; did you mean 'deadlock'?",
    ),
    "instruction": (
        put("expected", "instruction", value=3),
        "an error is expected at instruction 3; the program has 3",
    ),
    "memory": (
        put("expected", "memory", 0, "offset", value=(1 << 28) - 3),
        "DRAM bytes 0xffffffd..0x10000000 are expected; the window has 0x10000000",
    ),
    "expected contents": (
        put("expected", "contents", 0, "element", value=-1),
        "acc elements -1..-1 are given; the scratchpad has 128",
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_what_does_not_hold_together_is_refused(case: str, file: Path) -> None:
    change, message = DAMAGED[case]
    rewritten(file, file, change)
    with pytest.raises(ProgramError) as caught:
        Image.load(file)
    assert str(caught.value).startswith(f"program {str(file)!r}: {message}")


@examples(300)
@given(data=st.data())
def test_no_manifest_does_worse_than_an_error(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged_scenario.accel"
    assemble(TEXT).save(path)
    with zipfile.ZipFile(path) as archive:
        changed = json.loads(archive.read("program.json"))
    valid = [place for place in places(changed) if place[:1] in (("start",), ("expected",), ("regions",))]
    place = data.draw(st.sampled_from(valid))
    put(*place, value=data.draw(odd_values))(changed)
    rewritten(path, path, lambda _: changed)
    try:
        program = Program.load(path)
    except ProgramError:
        return
    assert as_program(assemble(disassemble(program))) == program
    for use in (Program.check, Program.run, replay):
        with suppress(AccelError):
            use(program)


def test_contents_know_their_machine() -> None:
    Contents(scratchpad="inp", element=127, data=bytes(4)).check(NAMED["tiny"])
    with refused(ProgramError, "inp elements 127..128 are given; the scratchpad has 128"):
        Contents(scratchpad="inp", element=127, data=bytes(8)).check(NAMED["tiny"])
