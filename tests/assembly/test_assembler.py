"""Texts and their programs, and refused texts."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.assembly import assemble, load_assembly
from accel.base.errors import ProgramError
from accel.core.config import NAMED
from accel.core.fault_causes import Cause
from accel.core.isa import Alu, AluOp, Finish, Gemm, Load, Memory, Store, encode_uops
from accel.image.image import Region
from accel.image.program_source import Options, Source
from accel.image.test_scenario import Contents, Expected, Start
from tests.expect import refused
from tests.strategies import examples

TINY = NAMED["tiny"]
ERRORS = ", ".join(sorted(cause.label for cause in Cause if cause is not Cause.NONE))

WHOLE = """\
# every directive once
.config tiny as "mine" read_latency=3 mem_base=4096
.code 0x3000
.region spare 0x5000 64
.tokens load>compute=1 store>compute=2   # as many
.limit cycles=500 uops=20
.dram 0x1000
uops:   .uop 0,0,0 1,2,3
both: also:
x:      .int8 1 2
        .align 8
        .hex ff
.DRAM                    # the next page
y:      .zero 8
.preset acc[3] .int32 7*8
        .int32 -1*8
.preset uop[1]
        .uop 1,1,1
  0     LOAD.UOP dram_base=uops y_size=1 x_size=2
 17     load.inp  dram_base=spare+1 sram_base=0x2 y_size=1 x_size=1 >compute
here:   GEMM uop_end=1 <load >store
        ALU.ADD use_imm=1 imm=-4 uop_end=1
        STORE.OUT dram_base=y-1 y_size=1 x_size=1 <compute
        FINISH
.expect fault limit at here
.expect tokens load>compute=1
.expect race
.expect dram[y+4] .int8 1 2
.expect acc[3]
        .int32 0*8
"""


def test_every_directive() -> None:
    image = assemble(WHOLE)
    assert (image.config.name, image.config.read_latency, image.config.mem_base) == ("mine", 3, 4096)
    assert image.config.with_geometry_of(TINY) == image.config
    row = {"y_size": 1, "x_size": 1}
    assert image.instructions == [
        Load(memory=Memory.UOP, dram_base=0x1000 // 4, y_size=1, x_size=2),
        Load(memory=Memory.INP, dram_base=0x5000 // 4 + 1, sram_base=2, push_next=True, **row),
        Gemm(uop_end=1, pop_prev=True, push_next=True),
        Alu(alu_op=AluOp.ADD, use_imm=True, imm=-4, uop_end=1),
        Store(dram_base=0x2000 // 8 - 1, pop_prev=True, **row),
        Finish(),
    ]
    assert image.code_offset == 0x3000
    uops = encode_uops([(0, 0, 0), (1, 2, 3)], TINY).tobytes()
    assert image.segments == ((0x1000, uops + bytes([1, 2, 0, 0, 0, 0, 0, 0, 255])), (0x2000, bytes(8)))
    named = {r.name: (r.offset, r.nbytes) for r in image.regions}
    assert named == {
        "spare": (0x5000, 64),
        "uops": (0x1000, 8),
        "both": (0x1008, 9),
        "also": (0x1008, 9),
        "x": (0x1008, 9),
        "y": (0x2000, 8),
    }
    one = (1).to_bytes(4, "little")
    assert image.start == Start(
        contents=(
            Contents(scratchpad="acc", element=3, data=(b"\x07\0\0\0" * 8) + b"\xff" * 32),
            Contents(scratchpad="uop", element=1, data=encode_uops([(1, 1, 1)], TINY).tobytes()),
        ),
        tokens=(1, 0, 0, 2),
        max_cycles=500,
        max_uops=20,
    )
    assert len(one) == 4
    assert image.expected == Expected(
        cause=Cause.LIMIT,
        instruction=2,
        memory=((0x2004, b"\x01\x02"),),
        contents=(Contents(scratchpad="acc", element=3, data=bytes(32)),),
        tokens=(1, 0, 0, 0),
        racy=True,
    )


def test_a_text_without_expectations_is_no_test() -> None:
    assert assemble(".config vta\nFINISH").expected is None
    assert assemble(".config vta\nFINISH\n.expect done").expected == Expected()


def test_instructions_lie_behind_all_that_is_used() -> None:
    base = ".config tiny\n{}\nFINISH"
    assert assemble(base.format("")).code_offset == 0
    assert assemble(base.format(".dram\n.zero 5000")).code_offset == 0
    for used in (
        ".dram 0 .int8 1",
        ".region r 10 1",
        ".expect dram[0] .int8 1",
        "LOAD.INP y_size=1 x_size=1",
        "STORE.OUT y_size=1 x_size=1",
    ):
        assert assemble(base.format(used)).code_offset == 4096
    assert assemble(base.format(".dram 0 .int8 1\n.dram 8192 .int8 1\n.region r 4090 7")).code_offset == 12288


def test_blocks_without_an_offset_go_to_the_next_page() -> None:
    text = ".config tiny\n.dram .int8 1\n.dram 0x10000 .int8 2\n.dram\n.zero 4097\n.dram .int8 3\nFINISH"
    assert [offset for offset, _ in assemble(text).segments] == [4096, 0x10000, 0x11000, 0x13000]


def test_labels_without_data_between_them_are_the_same_place() -> None:
    image = assemble(".config tiny\n.dram 8\na: .int8 1\nb:\nc: .zero 0\nd: .int8 1 2\nFINISH")
    assert image.regions == (
        Region(name="a", offset=8, nbytes=1),
        Region(name="b", offset=9, nbytes=2),
        Region(name="c", offset=9, nbytes=2),
        Region(name="d", offset=9, nbytes=2),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: .config must come first: the machine decides how everything is encoded"),
        ("\nFINISH", "line 2: .config must come first: the machine decides how everything is encoded"),
        (
            ".config vat",
            "line 1: .config has 'vat'; it takes one of vta, gemm8x8, tiny, ecp5, vta-int8, "
            "gemm8x8-int8, tiny-int8, ecp5-int8, vta-npu, gemm8x8-npu, tiny-npu, ecp5-npu, "
            "then any number of FIELD=VALUE",
        ),
        (
            ".config vta read_latency",
            "line 1: .config has 'vta read_latency'; it takes one of vta, gemm8x8, tiny, ecp5, vta-int8, "
            "gemm8x8-int8, tiny-int8, ecp5-int8, vta-npu, gemm8x8-npu, tiny-npu, ecp5-npu, "
            "then any number of FIELD=VALUE",
        ),
        (".config vta batch=3", "line 1: batch is 3 in configuration 'vta'; it must be a power of two"),
        (".config vta bach=3", "line 1: 'bach' is not a configuration field; did you mean 'batch'?"),
        (".config vta\n.config vta", "line 2: .config stands twice"),
        (
            ".config vta uop_bytes=64KiB",
            "line 1: configuration 'vta' needs 148 bits for Gemm; there are 128: "
            "make a scratchpad or the micro-op memory smaller",
        ),
        (".config vta\n.drma 0", "line 2: '.drma' is not a directive; did you mean '.dram'?"),
        (".config vta\nLOAD.IMP", "line 2: 'LOAD.IMP' is not a mnemonic; did you mean 'LOAD.INP'?"),
        (".config vta\nGEMM uop_end=1 uop_end=2", "line 2: uop_end stands twice"),
        (
            ".config vta\nLOAD.INP dram_base=x",
            "line 2: 'x' is not a place in DRAM; nothing in DRAM has a name",
        ),
        (
            ".config vta\nLOAD.INP dram_base=xx\n.region x 0 4",
            "line 2: 'xx' is not a place in DRAM; did you mean 'x'?",
        ),
        (
            ".config vta\n.region x 8 4\nLOAD.INP dram_base=x",
            "line 3: 'x' is at byte 0x8; elements have 16 bytes here",
        ),
        (
            ".config vta\n.region x 0 4\nLOAD.OUT dram_base=x",
            "line 3: LOAD.OUT has memory id 4; LOAD fills UOP, WGT, INP, ACC or ACC_8BIT",
        ),
        (
            ".config vta\n.region x 0 4\nLOAD.INP dram_base=x+y",
            "line 3: dram_base is '+y'; it must be an integer",
        ),
        (
            ".config vta\n.region x 0 4\nLOAD.INP dram_base=x-1",
            "line 3: dram_base is -1; it has 32 bits (0..4294967295) in configuration 'vta'",
        ),
        (
            ".config vta\n.int8 1",
            "line 2: .int8 stands nowhere; .dram, .preset or .expect says where data goes",
        ),
        (".config vta\n.dram 0\na: .int8 1\na: .int8 1", "line 4: 'a' is defined twice"),
        (".config vta\n.dram 0\na: a: .int8 1", "line 3: 'a' is defined twice"),
        (".config vta\n.dram 0\na: .int8 1\n.region a 0 1", "line 4: 'a' is defined twice"),
        (".config vta\n.region a 0 1\na: FINISH", "line 3: 'a' is defined twice"),
        (".config vta\nFINISH\na:", "line 3: label 'a' stands at nothing"),
        (
            ".config vta\n.preset acc[0]\na: .int32 1",
            "line 3: label 'a' stands at data that is not in DRAM before the run",
        ),
        (".config vta\n.dram x", "line 2: 'x' stands where an offset in DRAM is needed"),
        (".config vta\n.dram -4 .int8 1", "line 2: data is at -4; offsets are not negative"),
        (
            ".config vta\n.dram 0 FINISH",
            "line 2: 'FINISH' stands where a data statement could, as .int8 1 2 3",
        ),
        (
            ".config vta\n.dram 8 .int8 1 2\n.dram 9 .int8 1",
            "line 3: data at 0x9 overlaps that of line 2, which ends at 0xa",
        ),
        (".config vta\n.align 4", "line 2: .align has '4'; it takes 1..4096 bytes, within data"),
        (".config vta\n.dram\n.align 0", "line 3: .align has '0'; it takes 1..4096 bytes, within data"),
        (".config vta\n.code 0\n.code 16", "line 3: .code stands twice"),
        (
            ".config vta\n.code here",
            "line 2: 'here' stands where the offset of the first instruction is needed",
        ),
        (".config vta\n.preset ac[0] .int32 1", "line 2: 'ac' is not a memory; did you mean 'acc'?"),
        (
            ".config vta\n.preset dram[0] .int8 1",
            "line 2: 'dram' is not a memory; valid are acc, inp, uop, wgt",
        ),
        (".config vta\n.preset acc 0", "line 2: 'acc 0' stands where a place is needed, as acc[0]"),
        (
            ".config vta\n.preset acc[0] .int32 1",
            "line 2: 4 bytes are given for acc; its elements have 64 each",
        ),
        (
            ".config vta\n.preset acc[2048] .int32 1*16",
            "line 2: acc elements 2048..2048 are given; the scratchpad has 2048",
        ),
        (
            ".config vta\n.preset acc[-1] .int32 1*16",
            "line 2: acc elements -1..-1 are given; the scratchpad has 2048",
        ),
        (".config vta\n.preset acc[0]", "line 2: no data follows; an element of acc has 64 bytes"),
        (".config vta\n.preset acc[x] .int32 1*16", "line 2: 'x' stands where an element's index is needed"),
        (
            ".config vta\n.tokens load>store=1",
            "line 2: 'load>store=1' is not a number of tokens; did you mean 'load>compute'?",
        ),
        (".config vta\n.limit cycle=1", "line 2: 'cycle=1' is not a limit; it takes cycles=N or uops=N"),
        (".config vta\n.limit cycles=0", "line 2: cycles is 0; it must be positive"),
        (
            ".config vta\n.expect fault dst-idx at 1",
            "line 2: 'dst-idx' is not a cause of an error; did you mean 'dst-index'?",
        ),
        (
            ".config vta\nFINISH\n.expect fault deadlock at x",
            "line 3: 'x' stands where an instruction is needed",
        ),
        (".config vta\n.expect done\n.expect done", "line 3: what a run ends with is expected twice"),
        (
            ".config vta\n.expect fault none",
            f"line 2: 'none' is not a cause of an error; valid are {ERRORS}",
        ),
        (
            ".config vta\n.expect fault foo",
            f"line 2: 'foo' is not a cause of an error; valid are {ERRORS}",
        ),
        (
            ".config vta\n.expect fault",
            "line 2: 'fault' is not an end of a run; done, and fault CAUSE at INSTRUCTION are",
        ),
        (
            ".config vta\n.expect dram[x] .int8 1\nFINISH",
            "line 2: 'x' is not a place in DRAM; nothing in DRAM has a name",
        ),
        (".config vta\n.region x 0", "line 2: .region takes a name, an offset, and a number of bytes"),
        (".config vta\n.region x -1 2", "line 2: region 'x' is 2 bytes at -1; neither may be negative"),
        (
            ".config vta\n.tensor A input",
            "line 2: .tensor takes a name, a role, a dtype, an offset, and a layout as JSON",
        ),
        (".config vta\n.tensor A input int8 0 3", "line 2: the layout of a tensor must be a JSON object"),
        (
            ".config vta\n.tensor A inout int8 0 {}",
            "line 2: the role of tensor 'A' is 'inout'; it must be input, output or constant",
        ),
        (".config vta\n.source 3", "line 2: .source takes a JSON object"),
        (".config vta\n.source {", "line 2: this is not JSON: "),
    ],
)
def test_texts_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        assemble(text, "t.s")
    assert str(caught.value).startswith(f"t.s, {message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            ".code 4096\n.dram .int8 1",
            "t.s: its data at 0x1000 overlaps its instructions at 0x1000",
        ),
        (".code 8", "t.s: its instructions are not aligned to 16 bytes"),
        (
            ".tokens load>compute=256",
            "t.s: the tokens at the start are [256, 0, 0, 0]; a counter holds 0..255",
        ),
        (
            ".expect fault opcode at 1",
            "t.s: an error is expected at instruction 1; the program has 1",
        ),
        (
            ".code 0\n.expect dram[0xfffffff] .int8 1 2",
            "t.s: DRAM bytes 0xfffffff..0x10000000 are expected; the window has 0x10000000",
        ),
        (
            ".region r 0 0x20000000\n.code 0",
            "t.s: it occupies 536870912 bytes of DRAM; its window has 268435456",
        ),
        (".region r 0 0x10000000", "t.s leaves no room for its instructions in the DRAM window"),
    ],
)
def test_wholes_that_do_not_hold_together(text: str, message: str) -> None:
    with refused(ProgramError, message):
        assemble(f".config vta\n{text}\nFINISH", "t.s")


def test_comments_end_lines_but_not_quoted_text() -> None:
    image = assemble('.config tiny as "a # b" # c\nFINISH # d\n.source {"options": {"x": "#\\"#"}} # "e"')
    assert image.config.name == "a # b"
    assert image.source == Source(options=Options(parameters={"x": '#"#'}))


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "p.s"
    path.write_bytes(b".config tiny\r\nFINISH\r\n")
    assert load_assembly(path).instructions == [Finish()]
    path.write_bytes(b"\xff\xfe")
    with refused(ProgramError, f"program {str(path)!r} is not text: it is not UTF-8"):
        load_assembly(path)
    path.write_text(".config tiny\nGEM")
    with refused(ProgramError, f"{str(path)!r}, line 2: 'GEM' is not a mnemonic; did you mean 'GEMM'?"):
        load_assembly(path)
    with refused(
        ProgramError, f"program {str(tmp_path / 'no.s')!r} cannot be read: No such file or directory"
    ):
        load_assembly(tmp_path / "no.s")


words = st.sampled_from(
    [word for line in WHOLE.splitlines() for word in line.split()] + ["#", '"', ":", "[", "-1", "9" * 30]
)


@examples(300)
@given(st.lists(st.lists(words, max_size=4).map(" ".join), max_size=8), st.data())
def test_any_text_is_a_program_or_an_error(lines: list[str], data: st.DataObject) -> None:
    """Made of the language's words, and from the right text by changing some lines."""
    right = WHOLE.splitlines()
    for line in lines:
        right[data.draw(st.integers(3, len(right) - 1))] = line
    for text in ("\n".join([".config tiny", *lines]), "\n".join(right)):
        with contextlib.suppress(ProgramError):
            assemble(text)
