"""Fault causes that an instruction shows by itself, their messages, and the order of the checks."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.base.records import replace
from accel.core.config import NAMED, PAGE_BYTES
from accel.core.fault_causes import (
    Cause,
    acc_settings,
    fetch_fault,
    instruction_fault,
    instruction_faults,
    scratchpad,
    scratchpad_depth,
    taps_fault,
)
from accel.core.instruction_access import index_fault
from accel.core.isa import (
    Alu,
    Finish,
    Gemm,
    Instruction,
    Load,
    LoadPar,
    LoadRes,
    Mac,
    Memory,
    Set,
    SetAcc,
    SetInp,
    SetOut,
    SetSum,
    SetWgt,
    Store,
    StoreAdd,
    StoreReq,
    Unknown,
    decode_uops,
    encode_uops,
)
from accel.image.dram import Dram
from accel.sim.functional.scratchpads import Scratchpads
from tests.reference import Reference
from tests.strategies import any_instructions, examples, small_machines

TINY = NAMED["tiny"].override({"mem_base": PAGE_BYTES, "mem_size": 1 << 16})
TINY_INT8 = NAMED["tiny-int8"].override({"mem_base": PAGE_BYTES, "mem_size": 1 << 16})


def test_causes_are_numbered_as_in_the_cause_register() -> None:
    names = (
        "none opcode early-finish no-finish neighbour memory-id store-pad alu-op sram-range dram-range "
        "uop-range dst-index src-index wgt-index token-overflow bus limit deadlock reserved "
        "zero-point residual-full residual-empty stopped timeout"
    )
    assert [cause.label for cause in Cause] == names.split()
    assert [cause.value for cause in Cause] == list(range(24))


@pytest.mark.parametrize(
    ("instruction", "index", "cause", "message"),
    [
        (
            Unknown(opcode=5),
            1,
            Cause.OPCODE,
            "the opcode is 5; LOAD 0, STORE 1, GEMM 2, FINISH 3 and ALU 4 exist",
        ),
        (Finish(), 1, Cause.EARLY_FINISH, "FINISH is instruction 1 of 3; it must be the last"),
        (Store(), 2, Cause.NO_FINISH, "the last instruction is STORE.OUT; it must be FINISH"),
        (
            Unknown(opcode=5),
            2,
            Cause.OPCODE,
            "the opcode is 5; LOAD 0, STORE 1, GEMM 2, FINISH 3 and ALU 4 exist",
        ),
    ],
)
def test_faults_that_fetch_detects(instruction: Instruction, index: int, cause: Cause, message: str) -> None:
    fault = fetch_fault(instruction, index, 3, TINY)
    assert fault is not None
    assert (fault.cause, fault.message) == (cause, message)


def test_instructions_that_fetch_accepts() -> None:
    assert fetch_fault(Finish(), 2, 3, TINY) is None
    assert fetch_fault(Gemm(), 1, 3, TINY) is None
    assert fetch_fault(Load(memory=7, x_size=1), 0, 3, TINY) is None


def test_faults_that_fetch_detects_depend_on_the_machine() -> None:
    fault = fetch_fault(Unknown(opcode=7), 0, 3, NAMED["tiny-int8"])
    assert fault is not None
    assert fault.message == "the opcode is 7; LOAD 0, STORE 1, GEMM 2, FINISH 3, ALU 4, MAC 5 and SET 6 exist"


FAULTS = [
    (
        Mac(depthwise=True),
        Cause.RESERVED,
        "a MAC is depthwise; block_in is 4 and block_out 8, and they must be equal",
    ),
    (
        SetAcc(taps=2, step=1),
        Cause.RESERVED,
        "taps is 2 with step=1; with inp_banks=1 and block_in=4 it must be at most 1",
    ),
    (
        SetInp(zero=128),
        Cause.ZERO_POINT,
        "the zero point is 128; a byte read as int8 is in -128..127",
    ),
    (
        SetInp(zero=-1, unsigned=True),
        Cause.ZERO_POINT,
        "the zero point is -1; a byte read as uint8 is in 0..255",
    ),
    (Set(memory=6), Cause.MEMORY_ID, "SET.MEM6 has memory id 6; SET knows INP, ACC and OUT"),
    (
        SetInp(zero=128, pop_prev=True),
        Cause.NEIGHBOUR,
        "SET.INP has a token flag toward the previous unit; the load unit has none",
    ),
    (
        Mac(uop_begin=255, uop_end=257),
        Cause.UOP_RANGE,
        "MAC runs micro-ops 255..256; the micro-op memory has 256",
    ),
    (
        Load(memory=Memory.INP, pop_prev=True),
        Cause.NEIGHBOUR,
        "LOAD.INP has a token flag toward the previous unit; the load unit has none",
    ),
    (
        Load(memory=Memory.WGT, push_prev=True),
        Cause.NEIGHBOUR,
        "LOAD.WGT has a token flag toward the previous unit; the load unit has none",
    ),
    (
        Store(pop_next=True),
        Cause.NEIGHBOUR,
        "STORE.OUT has a token flag toward the next unit; the store unit has none",
    ),
    (
        Store(push_next=True),
        Cause.NEIGHBOUR,
        "STORE.OUT has a token flag toward the next unit; the store unit has none",
    ),
    (
        Load(memory=Memory.OUT, x_size=1),
        Cause.MEMORY_ID,
        "LOAD.OUT has memory id 4; LOAD fills UOP, WGT, INP, ACC or ACC_8BIT",
    ),
    (
        Load(memory=6, x_size=1),
        Cause.MEMORY_ID,
        "LOAD.MEM6 has memory id 6; LOAD fills UOP, WGT, INP, ACC or ACC_8BIT",
    ),
    (
        Store(memory=Memory.ACC, x_size=1),
        Cause.MEMORY_ID,
        "STORE.ACC has memory id 3; STORE writes OUT",
    ),
    (Store(x_size=1, y_pad_1=1), Cause.STORE_PAD, "STORE.OUT has pads; only LOAD can pad"),
    (Store(x_size=1, x_pad_0=1), Cause.STORE_PAD, "STORE.OUT has pads; only LOAD can pad"),
    (
        Load(memory=Memory.INP, sram_base=120, x_size=2, y_size=2, x_pad_1=1, y_pad_0=1),
        Cause.SRAM_RANGE,
        "LOAD.INP touches inp elements 120..128; the scratchpad has 128",
    ),
    (
        Load(memory=Memory.UOP, sram_base=256, x_size=1, y_size=1),
        Cause.SRAM_RANGE,
        "LOAD.UOP touches uop elements 256..256; the scratchpad has 256",
    ),
    (
        Store(sram_base=127, x_size=2, y_size=1),
        Cause.SRAM_RANGE,
        "STORE.OUT touches acc elements 127..128; the scratchpad has 128",
    ),
    (
        Load(memory=Memory.WGT, sram_base=200, x_size=3),
        Cause.SRAM_RANGE,
        "LOAD.WGT touches wgt elements 200..200; the scratchpad has 128",
    ),
    (
        Load(memory=Memory.ACC, dram_base=2047, x_size=2, y_size=1),
        Cause.DRAM_RANGE,
        "LOAD.ACC touches DRAM bytes 0x10fe0..0x1101f; the window is 0x1000..0x10fff",
    ),
    (
        Store(dram_base=8190, x_size=1, y_size=3, x_stride=1),
        Cause.DRAM_RANGE,
        "STORE.OUT touches DRAM bytes 0x10ff0..0x11007; the window is 0x1000..0x10fff",
    ),
    (
        Alu(alu_op=5),
        Cause.ALU_OP,
        "the ALU operation is 5; MIN 0, MAX 1, ADD 2, SHR 3, MUL 4 exist",
    ),
    (
        Gemm(uop_begin=255, uop_end=257),
        Cause.UOP_RANGE,
        "GEMM runs micro-ops 255..256; the micro-op memory has 256",
    ),
    (
        Alu(alu_op=2, uop_end=511),
        Cause.UOP_RANGE,
        "ALU.ADD runs micro-ops 0..510; the micro-op memory has 256",
    ),
]


@pytest.mark.parametrize(("instruction", "cause", "message"), FAULTS)
def test_faults_that_a_unit_detects(instruction: Instruction, cause: Cause, message: str) -> None:
    fault = instruction_fault(instruction, TINY)
    assert fault is not None
    assert (fault.cause, fault.message) == (cause, message)


@pytest.mark.parametrize(
    "instruction",
    [
        Load(memory=Memory.INP, sram_base=126, x_size=2, y_size=1),
        Load(memory=Memory.ACC, dram_base=2047, x_size=1, y_size=1),
        Store(dram_base=8189, x_size=1, y_size=3, x_stride=1),
        Load(memory=7, sram_base=999, dram_base=1 << 31, y_size=9, y_pad_0=9),
        Store(memory=0, y_pad_0=1, x_pad_1=1, sram_base=9999),
        Load(memory=Memory.ACC, sram_base=128, dram_base=1 << 31, x_size=9),
        Gemm(uop_begin=255, uop_end=256),
        Gemm(uop_end=511, iter_in=0),
        Alu(uop_begin=255, uop_end=3),
        Gemm(pop_prev=True, pop_next=True, push_prev=True, push_next=True),
        Finish(pop_prev=True, push_next=True),
        Load(memory=Memory.UOP, pop_prev=True, push_next=True),
    ],
)
def test_instructions_that_a_unit_accepts(instruction: Instruction) -> None:
    assert instruction_fault(instruction, TINY) is None


PADS: dict[str, Any] = {"x_size": 1, "y_size": 1, "x_pad_1": 1}
FINISHING = [
    (
        LoadPar(**PADS),
        Cause.STORE_PAD,
        "LOAD.PAR has pads; only LOAD of UOP, WGT, INP, ACC or ACC_8BIT can pad",
    ),
    (
        LoadRes(**PADS),
        Cause.STORE_PAD,
        "LOAD.RES has pads; only LOAD of UOP, WGT, INP, ACC or ACC_8BIT can pad",
    ),
    (
        LoadRes(x_size=1, sram_base=1),
        Cause.RESERVED,
        "the sram_base of LOAD.RES is 1; it must be zero",
    ),
    (
        StoreReq(x_size=1, par_y=True, par_x=True),
        Cause.RESERVED,
        "STORE.REQ has both par_y and par_x; the element of par follows one of them",
    ),
    (SetOut(shift=42), Cause.RESERVED, "the shift is 42; 41 is the most"),
    (
        LoadPar(sram_base=15, x_size=2, y_size=1),
        Cause.SRAM_RANGE,
        "LOAD.PAR touches par elements 15..16; the scratchpad has 16",
    ),
    (
        StoreReq(sram_base=127, x_size=2, y_size=1, par=16),
        Cause.SRAM_RANGE,
        "STORE.REQ touches acc elements 127..128; the scratchpad has 128",
    ),
    (
        StoreReq(x_size=9, y_size=1, par=16),
        Cause.SRAM_RANGE,
        "STORE.REQ touches par elements 16..16; the scratchpad has 16",
    ),
    (
        StoreAdd(x_size=1, y_size=3, par=14, par_y=True),
        Cause.SRAM_RANGE,
        "STORE.ADD touches par elements 14..16; the scratchpad has 16",
    ),
    (
        StoreReq(x_size=5, y_size=3, par=12, par_x=True),
        Cause.SRAM_RANGE,
        "STORE.REQ touches par elements 12..16; the scratchpad has 16",
    ),
    (
        LoadPar(pop_next=True),
        Cause.NEIGHBOUR,
        "LOAD.PAR has a token flag toward the next unit; the store unit has none",
    ),
    (
        SetSum(push_next=True),
        Cause.NEIGHBOUR,
        "SET.SUM has a token flag toward the next unit; the store unit has none",
    ),
    (
        StoreAdd(x_size=1, y_size=1, dram_base=1 << 14),
        Cause.DRAM_RANGE,
        "STORE.ADD touches DRAM bytes 0x11000..0x11003; the window is 0x1000..0x10fff",
    ),
]


@pytest.mark.parametrize(("instruction", "cause", "message"), FINISHING)
def test_faults_that_the_store_unit_detects_with_post_1(
    instruction: Instruction, cause: Cause, message: str
) -> None:
    fault = instruction_fault(instruction, TINY_INT8)
    assert fault is not None
    assert (fault.cause, fault.message) == (cause, message)


@pytest.mark.parametrize(
    ("instruction", "cause", "message"),
    [
        (
            SetWgt(zero=-129),
            Cause.ZERO_POINT,
            "the zero point is -129; a byte read as int8 is in -128..127",
        ),
        (
            SetWgt(zero=256, push_prev=True),
            Cause.NEIGHBOUR,
            "SET.WGT has a token flag toward the previous unit; the load unit has none",
        ),
        (Set(memory=6), Cause.MEMORY_ID, "SET.MEM6 has memory id 6; SET knows INP, WGT, ACC and OUT"),
    ],
)
def test_faults_of_set_with_wgt_zero(instruction: Instruction, cause: Cause, message: str) -> None:
    fault = instruction_fault(instruction, TINY_INT8.override({"wgt_zero": 1}))
    assert fault is not None
    assert (fault.cause, fault.message) == (cause, message)


@pytest.mark.parametrize(
    "instruction",
    [
        LoadRes(sram_base=1, x_pad_0=1),
        StoreReq(par_y=True, par_x=True, par=9999),
        StoreReq(x_size=5, par=15),
        StoreReq(x_size=5, y_size=9, par=15),
        StoreReq(x_size=99, y_size=1, par=15, par_y=True),
        StoreReq(x_size=1, y_size=99, par=15, par_x=True),
        StoreReq(x_size=2, y_size=16, par_y=True),
        StoreReq(x_size=16, y_size=2, par_x=True),
        LoadPar(sram_base=14, x_size=2, y_size=1, pop_prev=True, push_prev=True),
        SetOut(shift=41),
    ],
)
def test_instructions_that_the_store_unit_accepts(instruction: Instruction) -> None:
    assert instruction_fault(instruction, TINY_INT8) is None


def test_taps_have_a_bank_each_whatever_the_step() -> None:
    """Compare with the columns of each tap, for all steps and bank counts. A wgt element has four columns."""
    for banks in (1, 2, 4, 8):
        config = replace(TINY_INT8, inp_banks=banks)
        for step in (*range(17), 65535):
            for taps in range(12):
                fits = len({tap * step % banks for tap in range(taps)}) == taps <= 4
                assert (instruction_fault(SetAcc(taps=taps, step=step), config) is None) == fits


def test_depthwise_macs_have_the_taps_of_the_set_before() -> None:
    macs = [Mac(depthwise=True), Mac()]
    program = [*macs, SetAcc(taps=2, step=1), *macs, SetInp(), Gemm(), *macs, SetAcc(unsigned=True), *macs]
    found = [n for n, fault in enumerate(instruction_faults(program, TINY_INT8)) if fault is not None]
    assert found == [0, 10]
    assert [one.taps for one in acc_settings(program)] == [0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 0, 0]
    fault = instruction_faults(program, TINY_INT8)[0]
    assert fault == taps_fault(program[0], SetAcc())
    assert fault is not None
    assert fault.message == "a depthwise MAC has no taps; a SET.ACC before it must say how many"


def test_residuals_are_counted_in_program_order() -> None:
    """res has 16 elements. A faulty instruction moves nothing, and STORE.REQ and empty transfers do not
    count."""
    row: dict[str, Any] = {"y_size": 1, "x_stride": 1}
    program = [
        StoreAdd(x_size=1, **row),
        LoadRes(x_size=9, **row),
        LoadRes(x_size=8, **row),
        LoadRes(x_size=7, **row),
        StoreReq(x_size=5, **row),
        StoreAdd(x_size=16, y_size=0),
        StoreAdd(x_size=17, **row),
        StoreAdd(x_size=2, y_size=8),
        LoadRes(x_size=17, **row),
        LoadRes(x_size=16, **row),
        LoadRes(x_size=16, y_size=0),
    ]
    found = {n: fault for n, fault in enumerate(instruction_faults(program, TINY_INT8)) if fault is not None}
    assert {n: (fault.cause, fault.message) for n, fault in found.items()} == {
        0: (Cause.RESIDUAL_EMPTY, "STORE.ADD takes 1 element of res, which holds 0"),
        2: (Cause.RESIDUAL_FULL, "LOAD.RES loads 8 elements; res holds 9 of at most 16"),
        6: (Cause.RESIDUAL_EMPTY, "STORE.ADD takes 17 elements of res, which holds 16"),
        8: (Cause.RESIDUAL_FULL, "LOAD.RES loads 17 elements; res holds 0 of at most 16"),
    }


def test_the_order_of_fault_checks() -> None:
    """The order is: neighbour, memory id, pads, scratchpad, DRAM. Then: ALU operation, micro-ops."""
    wrong: dict[str, Any] = {"x_size": 9, "y_size": 99, "dram_base": 1 << 31, "sram_base": 9999}
    found = [
        instruction_fault(instruction, TINY)
        for instruction in (
            Store(memory=1, push_next=True, y_pad_0=1, **wrong),
            Store(memory=1, y_pad_0=1, **wrong),
            Store(y_pad_0=1, **wrong),
            Store(**wrong),
            Store(**wrong | {"sram_base": 0, "y_size": 9}),
            Alu(alu_op=7, uop_end=511),
        )
    ]
    causes = ["neighbour", "memory-id", "store-pad", "sram-range", "dram-range", "alu-op"]
    assert [fault.cause.label for fault in found if fault is not None] == causes


@examples(300)
@given(st.data())
def test_any_instruction_is_at_fault_when_the_scalar_interpreter_says_so(data: st.DataObject) -> None:
    config = data.draw(small_machines).override({"mem_size": 1 << 16})
    instruction = data.draw(any_instructions(config))
    if isinstance(instruction, Unknown):
        return
    expected = Reference(config, Scratchpads.zeros(config), Dram.of(config)).fault(instruction)
    [fault] = instruction_faults([instruction], config)
    assert (None if fault is None else fault.cause.label) == expected


@pytest.mark.parametrize(
    ("instruction", "cause", "position", "message"),
    [
        (
            Gemm(uop_end=2, iter_out=3, dst_factor_out=62),
            Cause.DST_INDEX,
            5,
            "GEMM has dst index 128 in micro-op 5 of its 6; that scratchpad has 128 elements",
        ),
        (
            Gemm(uop_end=2, iter_in=9, src_factor_in=127),
            Cause.SRC_INDEX,
            2,
            "GEMM has src index 128 in micro-op 2 of its 18; that scratchpad has 128 elements",
        ),
        (
            Gemm(uop_end=2, iter_out=3, iter_in=2, wgt_factor_out=125, wgt_factor_in=1),
            Cause.WGT_INDEX,
            6,
            "GEMM has wgt index 128 in micro-op 6 of its 12; that scratchpad has 128 elements",
        ),
        (
            Alu(uop_end=2, iter_in=9, src_factor_in=127, alu_op=1),
            Cause.SRC_INDEX,
            2,
            "ALU.MAX has src index 128 in micro-op 2 of its 18; that scratchpad has 128 elements",
        ),
    ],
)
def test_indices_out_of_range(instruction: Gemm | Alu, cause: Cause, position: int, message: str) -> None:
    uops = decode_uops(encode_uops([(0, 1, 2), (4, 0, 0)], TINY), TINY)
    found = index_fault(instruction, uops, TINY)
    assert found is not None
    assert (found[0], found[1].cause, found[1].message) == (position, cause, message)


def test_indices_that_are_not_used_are_not_checked() -> None:
    uops = decode_uops(encode_uops([(0, 1, 2)], TINY), TINY)
    far: dict[str, Any] = {"src_factor_in": 127, "iter_in": 9, "uop_end": 1}
    assert index_fault(Alu(use_imm=True, **far), uops, TINY) is None
    assert index_fault(Gemm(reset=True, wgt_factor_in=127, **far), uops, TINY) is None


def test_memory_ids_alone_are_understood_for_a_release() -> None:
    config = NAMED["tiny"]
    for memory, name in zip(Memory, ["uop", "wgt", "inp", "acc", "acc", "acc"], strict=False):
        with pytest.warns(DeprecationWarning, match="scratchpad goes with the next release"):
            assert scratchpad(memory) == name
        with pytest.warns(DeprecationWarning, match="scratchpad_depth goes with the next release"):
            assert scratchpad_depth(memory, config) == getattr(config, f"{name}_depth")
