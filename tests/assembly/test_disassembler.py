"""Programs to text and back, bit for bit."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.assembly import assemble, code_lines, disassemble
from accel.base.records import replace
from accel.core.config import INSTRUCTION_BYTES, NAMED, Config
from accel.core.isa import (
    Alu,
    AluOp,
    Finish,
    Gemm,
    Instruction,
    Load,
    Memory,
    Store,
    Unknown,
    encode,
    encode_uops,
)
from accel.image.image import Image, Region
from accel.image.test_scenario import Contents, Start
from tests.compiler import gemms
from tests.images import images
from tests.programs import gemm_program, handmade
from tests.strategies import any_instructions, examples, machines

TINY = NAMED["tiny"]
ROW = {"y_size": 1, "x_size": 1, "x_stride": 1}


def assert_same(image: Image, text: str) -> None:
    """The text gives the image, except for its provenance."""
    again = assemble(text)
    for name in Image.__dataclass_fields__:
        if name not in ("compile_seconds", "provenance"):
            assert getattr(again, name) == getattr(image, name), name


# --- there and back ----------------------------------------------------------------------------------


@examples(200)
@given(st.data())
def test_all_instructions_come_back(data: st.DataObject) -> None:
    config = data.draw(machines)
    body = data.draw(st.lists(any_instructions(config), max_size=6))
    image = Image(config=config, code=encode(body, config), code_offset=4096)
    assert_same(image, disassemble(image, micro_ops=data.draw(st.integers(0, 2))))


@examples(100)
@given(machines, st.binary(max_size=8 * INSTRUCTION_BYTES))
def test_unused_bits_become_zero(config: Config, raw: bytes) -> None:
    code = raw[: len(raw) // INSTRUCTION_BYTES * INSTRUCTION_BYTES]
    image = Image(config=config, code=code, code_offset=0)
    assert assemble(disassemble(image)).code == encode(image.instructions, config)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": True, "relu": True, "shift": 4},
        {"M": 20, "N": 40, "K": 30, "config": "gemm8x8", "transpose_a": True, "bias": True},
        {"M": 33, "N": 17, "K": 50, "config": "vta", "transpose_b": True, "shift": 3},
    ],
)
def test_compiled_programs_come_back(options: dict[str, Any]) -> None:
    program = gemm_program(**options)
    assert_same(program, disassemble(program, micro_ops=2))


def test_parts_without_a_tensor_have_names() -> None:
    """Micro-ops and intermediate tensors in DRAM get names. A tensor with such a name keeps it."""
    m = accel.machine("gemm8x8")
    program = accel.build(gemms.two_stages(m, 16, 8, 16, 8), m)
    text = disassemble(program)
    assert_same(program, text)
    assert "LOAD.UOP      dram_base=micro_ops " in text
    assert program.references is not None
    (between,) = {part.name for part in program.references.parts} - {
        *(tensor.name for tensor in program.tensors),
        "micro_ops",
        "code",
    }
    for mnemonic in ("LOAD.INP", "STORE.OUT"):
        assert re.search(rf"{mnemonic} .* dram_base={between}[ +]", text)
    tensors = tuple(replace(t, name="micro_ops" if t.name == "B" else t.name) for t in program.tensors)
    renamed = replace(program, tensors=tensors)
    assert_same(renamed, disassemble(renamed))


def test_constants_come_back_and_the_program_runs() -> None:
    weights = np.random.default_rng(0).integers(-128, 128, (5, 9), dtype=np.int8)
    program = accel.build(accel.gemm(3, 9, 5), "tiny", constants={"B": weights})
    text = disassemble(program)
    assert_same(program, text)
    again = accel.Program(**{name: getattr(assemble(text), name) for name in Image.__dataclass_fields__})
    assert again.run().mismatches == 0


@examples(150)
@given(images())
def test_all_else_comes_back(image: Image) -> None:
    assert_same(image, disassemble(image))


# --- what a listing says -------------------------------------------------------------------------------


def listing(*body: Instruction, uops: list[tuple[int, int, int]] | None = None, **parts: Any) -> list[str]:
    """Comments of a program's instructions; its micro-ops are in DRAM at 64 and loaded first."""
    uops = [(0, 0, 0)] if uops is None else uops
    load = Load(memory=Memory.UOP, dram_base=16, y_size=1, x_size=len(uops), x_stride=1)
    segment = (64, encode_uops(uops, TINY).tobytes())
    program = handmade(load, *body, segments=(segment,), **parts)
    return [line.partition("# ")[2] for line in code_lines(program)][1:-1]


@pytest.mark.parametrize(
    ("instruction", "comment"),
    [
        (Load(memory=Memory.INP, sram_base=4, y_size=2, x_size=3), "inp 4..9"),
        (Load(memory=Memory.WGT, y_size=1, x_size=1, x_pad_1=2), "wgt 0..2, 2 of them zero"),
        (Load(memory=Memory.ACC, y_size=0, x_size=1), "moves nothing"),
        (Load(memory=Memory.ACC), "tokens only"),
        (Load(memory=Memory.ACC_8BIT, **ROW), "acc 0"),
        (Store(sram_base=5, **ROW), "acc 5"),
        (Gemm(uop_end=1), "1 micro-op: acc 1 += inp 2 * wgt 3"),
        (
            Gemm(uop_end=2, iter_in=2, dst_factor_in=4),
            "4 micro-ops: acc 1..6 (4 of them) += inp 2..3 * wgt 3",
        ),
        (Gemm(uop_end=2, reset=True), "2 micro-ops: acc 1..2 = 0"),
        (Gemm(uop_end=0), "no micro-ops"),
        (Gemm(uop_end=3), "3 micro-ops, known only at run time"),
        (Alu(alu_op=AluOp.MAX, uop_end=1), "1 micro-op: acc 1 = max(acc 1, acc 2)"),
        (Alu(alu_op=AluOp.SHR, use_imm=True, imm=-3, uop_end=1), "1 micro-op: acc 1 = acc 1 >> -3"),
        (Alu(alu_op=AluOp.ADD, uop_end=1), "1 micro-op: acc 1 = acc 1 + acc 2"),
        (Alu(alu_op=AluOp.MUL, uop_end=1), "1 micro-op: acc 1 = acc 1 * acc 2"),
        (Alu(alu_op=AluOp.MIN, uop_end=1), "1 micro-op: acc 1 = min(acc 1, acc 2)"),
        (
            Gemm(uop_end=1, iter_in=200, dst_factor_in=1),
            "dst-index: GEMM has dst index 128 in micro-op 127 of its 200; that scratchpad has 128 elements",
        ),
        (
            Load(memory=7, **ROW),
            "memory-id: LOAD.MEM7 has memory id 7; LOAD fills UOP, WGT, INP, ACC or ACC_8BIT",
        ),
        (Unknown(opcode=6), "opcode: the opcode is 6; LOAD 0, STORE 1, GEMM 2, FINISH 3 and ALU 4 exist"),
    ],
)
def test_comments(instruction: Instruction, comment: str) -> None:
    assert listing(instruction, uops=[(1, 2, 3), (2, 3, 3)]) == [comment]


def test_micro_ops_that_a_store_may_have_changed_are_not_known() -> None:
    load = Load(memory=Memory.UOP, dram_base=16, y_size=1, x_size=1)
    gemm = Gemm(uop_end=1, reset=True)
    beside, onto = Store(dram_base=9, **ROW), Store(dram_base=8, **ROW)
    assert listing(beside, load, gemm)[-1] == "1 micro-op: acc 0 = 0"
    assert listing(onto, load, gemm)[-1] == "1 micro-op, known only at run time"
    assert listing(onto, gemm)[-1] == "1 micro-op: acc 0 = 0"


def test_presets_are_known() -> None:
    preset = Contents(scratchpad="uop", element=5, data=encode_uops([(3, 0, 0)], TINY).tobytes())
    gemm = Gemm(uop_begin=5, uop_end=6, reset=True)
    assert listing(gemm, start=Start(contents=(preset,))) == ["1 micro-op: acc 3 = 0"]


def test_micro_ops_on_request() -> None:
    segment = (64, encode_uops([(0, 0, 0), (1, 0, 5)], TINY).tobytes())
    program = handmade(
        Load(memory=Memory.UOP, dram_base=16, y_size=1, x_size=2, x_stride=1),
        Gemm(uop_end=2, iter_out=2, iter_in=2, dst_factor_out=10, src_factor_in=3, wgt_factor_in=1),
        Gemm(uop_end=1, reset=True),
        Alu(alu_op=AluOp.ADD, uop_begin=1, uop_end=2, iter_in=2, src_factor_in=2),
        Alu(alu_op=AluOp.SHR, uop_begin=1, uop_end=2, use_imm=True, imm=3),
        segments=(segment,),
    )
    steps = [line.split("# ")[1] for line in code_lines(program, micro_ops=5) if line.startswith("     ")]
    assert steps == [
        "acc[0] += inp[0] * wgt[0]",
        "acc[1] += inp[0] * wgt[5]",
        "acc[0] += inp[3] * wgt[1]",
        "acc[1] += inp[3] * wgt[6]",
        "acc[10] += inp[0] * wgt[0]",
        "... 3 more",
        "acc[0] = 0",
        "acc[1] = acc[1] + acc[0]",
        "acc[1] = acc[1] + acc[2]",
        "acc[1] = acc[1] >> 3",
    ]


def test_places_go_by_the_names_of_tensors() -> None:
    program = gemm_program(bias=True)
    lines = list(code_lines(program))
    for name in ("A", "B", "C", "bias"):
        assert any(f"dram_base={name}" in line for line in lines)
    regions = (Region(name="r", offset=64, nbytes=9), Region(name="odd", offset=96 + 1, nbytes=64))
    body = [Load(memory=Memory.INP, dram_base=base, **ROW) for base in (15, 16, 18, 19, 24, 28)]
    found = [line.split()[2] for line in code_lines(handmade(*body, regions=regions)) if "LOAD" in line]
    assert found == [f"dram_base={base}" for base in ("15", "r", "r+2", "19", "24", "28")]


def test_a_tensor_in_two_places_has_two_names() -> None:
    program = gemm_program()
    twice = replace(program, tensors=(*program.tensors, replace(program.tensors[0], offset=1 << 20)))
    load = Load(memory=Memory.INP, dram_base=(1 << 20) // 4 + 1, **ROW)
    twice = replace(twice, code=encode([load, Finish()], TINY), source=None, references=None)
    text = disassemble(twice)
    assert f"dram_base={program.tensors[0].name}.2+1" in text
    assert_same(twice, text)


def test_data_is_written_as_what_it_is() -> None:
    uops = encode_uops([(1, 2, 3)] * 9, TINY).tobytes()
    load = Load(memory=Memory.UOP, dram_base=17, y_size=1, x_size=8)
    program = handmade(load, segments=((64, uops + bytes(100) + b"\x07"), (512, b"\xff" * 4)))
    text = disassemble(program)
    assert text.split("\n\n")[-1] == (
        ".dram 0x40\n"
        f"    .hex {uops[:4].hex()}\n"
        f"    .uop {' '.join(['1,2,3'] * 8)}\n"
        "    .zero 96\n"
        "    .hex 0000000007\n"
        ".dram 0x200\n"
        "    .hex ffffffff\n"
    )


def test_micro_ops_with_unused_bits_stay_as_they_are() -> None:
    load = Load(memory=Memory.UOP, dram_base=16, y_size=1, x_size=1)
    program = handmade(load, segments=((64, b"\xff" * 4),))
    assert "    .hex ffffffff\n" in disassemble(program)
    assert_same(program, disassemble(program))


def test_long_zeros_are_read_back() -> None:
    program = handmade(segments=((1 << 20, bytes((1 << 24) + 100)),))
    assert disassemble(program).count(".zero") == 2
    assert_same(program, disassemble(program))


def test_listings_say_what_the_store_unit_moves_besides_accumulators() -> None:
    text = """
        .config tiny-int8
        LOAD.PAR y_size=1 x_size=2
        LOAD.RES y_size=2 x_size=5
        STORE.REQ sram_base=3 y_size=1 x_size=4 par=1
        STORE.ADD y_size=1 x_size=2 par_x=1
        LOAD.RES y_size=1 x_size=9
        FINISH
        """
    lines = disassemble(assemble(text)).splitlines()
    assert [line.partition("# ")[2] for line in lines if "# " in line] == [
        "par 0..1",
        "10 into res",
        "acc 3..6, par 1",
        "acc 0..1, par 0..1, 2 out of res",
        "residual-full: LOAD.RES loads 9 elements; res holds 8 of at most 16",
    ]
