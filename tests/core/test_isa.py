"""The instruction set: VTA's bits, round trips through bits and text, and refused instructions."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.base.errors import ConfigError, ProgramError
from accel.base.records import replace
from accel.core.config import NAMED, Config
from accel.core.isa import (
    CLASSES,
    VARIANTS,
    Alu,
    AluHigh,
    AluOp,
    Finish,
    Gemm,
    Instruction,
    Load,
    LoadPar,
    LoadRes,
    LoadTab,
    Mac,
    Memory,
    MicroOp,
    Opcode,
    Set,
    SetAcc,
    SetInp,
    SetOut,
    SetSum,
    SetWgt,
    Store,
    StoreAcc,
    StoreAdd,
    StoreMul,
    StoreReq,
    Unit,
    Unknown,
    add_to_field,
    check_encodable,
    class_slots,
    classes_of,
    decode,
    decode_uops,
    encode,
    encode_uops,
    field_specs,
    format_instruction,
    mnemonics,
    parse_instruction,
    routes_of,
    variants_of,
)
from accel.core.isa.instruction_fields import FieldSpec, field, pack_slots
from tests.expect import refused
from tests.own_operations import OWN_NAMES
from tests.strategies import any_instructions, examples, machines

VTA, TINY = NAMED["vta"], NAMED["tiny"]
VTA_INT8 = NAMED["vta-int8"]
THIRD_GENERATION = {"tab_bytes": "2KiB", "res_mul": 1, "wgt_zero": 1}
VTA_NPU = VTA_INT8.override(THIRD_GENERATION)

COMMON = {"opcode": (0, 3), "pop_prev": (3, 1), "pop_next": (4, 1), "push_prev": (5, 1), "push_next": (6, 1)}
TRANSFER = COMMON | {
    "memory": (7, 3),
    "sram_base": (10, 16),
    "dram_base": (26, 32),
    "y_size": (64, 16),
    "x_size": (80, 16),
    "x_stride": (96, 16),
    "y_pad_0": (112, 4),
    "y_pad_1": (116, 4),
    "x_pad_0": (120, 4),
    "x_pad_1": (124, 4),
}
LOOPS = COMMON | {
    "reset": (7, 1),
    "uop_begin": (8, 13),
    "uop_end": (21, 14),
    "iter_out": (35, 14),
    "iter_in": (49, 14),
    "dst_factor_out": (64, 11),
    "dst_factor_in": (75, 11),
    "src_factor_out": (86, 11),
    "src_factor_in": (97, 11),
}
SET = COMMON | {"memory": (7, 3)}
FINISHING = {name: place for name, place in TRANSFER.items() if "pad" not in name}
FINISHING |= {"par": (112, 14), "par_y": (126, 1), "par_x": (127, 1)}
LOOPS_OF_MAC = {"overwrite" if name == "reset" else name: place for name, place in LOOPS.items()}
SET_BYTES = SET | {"zero": (10, 9), "unsigned": (19, 1)}
STOCK = {
    Load: TRANSFER,
    Store: TRANSFER,
    StoreAcc: TRANSFER,
    Finish: COMMON,
    Gemm: LOOPS | {"wgt_factor_out": (108, 10), "wgt_factor_in": (118, 10)},
    Mac: LOOPS_OF_MAC | {"wgt_factor_out": (108, 10), "wgt_factor_in": (118, 10), "depthwise": (63, 1)},
    Set: SET,
    SetInp: SET_BYTES,
    SetAcc: SET | {"unsigned": (10, 1), "taps": (11, 9), "step": (20, 16)},
    LoadPar: TRANSFER,
    LoadRes: TRANSFER,
    StoreReq: FINISHING,
    StoreAdd: FINISHING,
    SetOut: SET
    | {
        "part": (10, 1),
        "zero": (11, 9),
        "low": (20, 9),
        "high": (29, 9),
        "left_zero": (38, 9),
        "right_zero": (47, 9),
        "unsigned": (56, 1),
        "offset": (64, 41),
        "shift": (105, 6),
    },
    SetSum: SET
    | {
        "part": (10, 1),
        "left_multiplier": (11, 31),
        "zero": (42, 9),
        "low": (51, 9),
        "high": (64, 9),
        "right_multiplier": (73, 31),
    },
    AluHigh: LOOPS | {"alu_op": (108, 3), "use_imm": (111, 1), "imm": (112, 16)},
    Alu: LOOPS | {"alu_op": (108, 3), "use_imm": (111, 1), "imm": (112, 16)},
    MicroOp: {"dst": (0, 11), "src": (11, 11), "wgt": (22, 10)},
}
"""Offset and width of each field in the stock configuration, written by hand."""
TABLE, HOLD = {"table": (59, 5)}, {"hold": (58, 1)}
FEATURES = {
    LoadTab: TRANSFER,
    SetWgt: SET_BYTES,
    StoreReq: FINISHING | TABLE,
    StoreAdd: FINISHING | TABLE | HOLD,
    StoreMul: FINISHING | TABLE | HOLD,
    SetOut: STOCK[SetOut] | {"table_unsigned": (57, 1)},
}
"""The same of the classes that the third generation adds or extends."""


# --- bits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", STOCK, ids=lambda cls: cls.__name__)
def test_stock_bit_positions(cls: type[Any]) -> None:
    assert {slot.name: (slot.offset, slot.width) for slot in class_slots(cls, VTA)} == STOCK[cls]
    if cls not in FEATURES:
        assert class_slots(cls, VTA_NPU) == class_slots(cls, VTA_INT8)


@pytest.mark.parametrize("cls", FEATURES, ids=lambda cls: cls.__name__)
def test_bit_positions_of_the_third_generation(cls: type[Any]) -> None:
    assert {slot.name: (slot.offset, slot.width) for slot in class_slots(cls, VTA_NPU)} == FEATURES[cls]


def test_fields_that_a_machine_lacks_must_be_zero() -> None:
    stores = [StoreReq(x_size=1), StoreReq(x_size=1, table=3)]
    lacks = "configuration 'vta-int8' has tab_bytes=0"
    with refused(
        ProgramError,
        f"table of instruction 1 is 3; only machines with tab_bytes above 0 have the field, and {lacks}",
    ):
        encode(stores, VTA_INT8)
    assert decode(encode(stores, VTA_NPU), VTA_NPU) == stores
    with refused(ProgramError, f"table exists on machines with tab_bytes above 0; {lacks}"):
        parse_instruction("STORE.REQ table=3", VTA_INT8)
    with refused(ProgramError, f"'LOAD.TAB' exists on machines with tab_bytes above 0; {lacks}"):
        parse_instruction("LOAD.TAB", VTA_INT8)
    lacks = "configuration 'vta-int8' has res_mul=0, and only machines with res_mul=1 have it"
    with refused(ProgramError, f"instruction 0 is STORE.MUL; {lacks}"):
        encode([StoreMul()], VTA_INT8)


@pytest.mark.parametrize("cls", [*CLASSES.values(), *VARIANTS.values()], ids=lambda cls: cls.__name__)
def test_each_field_lands_in_its_bits(cls: type[Instruction]) -> None:
    machine = VTA_NPU.override({"alu_ops": OWN_NAMES})
    bases = {name: spec.base for name, spec in field_specs(cls).items()}
    for name, (offset, width) in (STOCK | FEATURES)[cls].items():
        if name in ("opcode", "part") or (name == "memory" and cls.MEMORY is not None):
            continue
        always = cls.OPCODE | (0 if cls.MEMORY is None else cls.MEMORY << 7) | (cls.PART or 0) << 10
        values: dict[str, Any] = bases | {"opcode": cls.OPCODE}
        values |= {} if cls.MEMORY is None else {"memory": cls.MEMORY}
        values |= {} if cls.PART is None else {"part": cls.PART}
        signed = name in ("imm", "zero", "low", "high", "left_zero", "right_zero", "offset")
        ones = bases[name] + (1 << width) - 1
        if name == "memory":
            ones = 5 if cls is Set else 1  # other ids may belong to other classes
        values[name] = -1 if signed else ones
        word = int.from_bytes(encode([cls(**values)], machine), "little")
        assert word == always | (-1 if signed else ones - bases[name]) % (1 << width) << offset
        if name != "memory":
            assert decode(word.to_bytes(16, "little"), machine) == [cls(**values)]


def test_numbers_of_opcodes_memories_and_operations() -> None:
    opcodes = {"LOAD": 0, "STORE": 1, "GEMM": 2, "FINISH": 3, "ALU": 4, "MAC": 5, "SET": 6, "ALU_HIGH": 7}
    assert {op.name: op.value for op in Opcode} == opcodes
    memories = {"UOP": 0, "WGT": 1, "INP": 2, "ACC": 3, "OUT": 4, "ACC_8BIT": 5}
    assert {memory.name: memory.value for memory in Memory} == memories
    assert {op.name: op.value for op in AluOp} == {"MIN": 0, "MAX": 1, "ADD": 2, "SHR": 3, "MUL": 4}


def test_instructions_of_post_1_are_refused_with_post_0() -> None:
    """Machines with ``post=0`` refuse it as text and as an instruction, and decode its word as unknown."""
    word = encode([Mac(overwrite=True)], VTA_INT8)
    assert decode(word, VTA_INT8) == [Mac(overwrite=True)]
    assert decode(word, VTA) == [Unknown(opcode=5)]
    assert parse_instruction("UNKNOWN5", VTA) == Unknown(opcode=5)
    lacks = "configuration 'vta' has post=0"
    with refused(ProgramError, f"instruction 1 is MAC; {lacks}, and only machines with post=1 have it"):
        encode([Finish(), Mac()], VTA)
    with refused(ProgramError, f"'mac' exists on machines with post=1; {lacks}"):
        parse_instruction("mac", VTA)
    with pytest.raises(ProgramError, match=r"^'UNKNOWN5' is not a mnemonic"):
        parse_instruction("UNKNOWN5", VTA_INT8)


def test_a_memory_id_may_select_an_instruction_of_post_1() -> None:
    """A machine with ``post=0`` decodes the same word as a plain STORE."""
    store = StoreAcc(sram_base=1, y_size=1, x_size=1)
    word = encode([store], VTA_INT8)
    other = Store(memory=Memory.ACC, sram_base=1, y_size=1, x_size=1)
    assert (decode(word, VTA_INT8), decode(word, VTA)) == ([store], [other])
    assert encode([other], VTA) == word
    assert parse_instruction(format_instruction(store), VTA_INT8) == store
    assert parse_instruction(format_instruction(store), VTA) == other
    assert "STORE.ACC" in mnemonics(VTA_INT8)
    assert "STORE.ACC" not in mnemonics(VTA)
    assert (routes_of(Store, VTA).keys(), routes_of(Store, VTA_INT8).keys()) == ({4}, {3, 4, 6, 7})
    with refused(
        ProgramError,
        "instruction 1 is a Store with the memory id of STORE.ACC; "
        "that is a StoreAcc in configuration 'vta-int8'",
    ):
        encode([Finish(), other], VTA_INT8)
    with refused(
        ProgramError,
        "instruction 0 is a StoreAcc with the memory id of STORE.OUT; "
        "that is a Store in configuration 'vta-int8'",
    ):
        encode([StoreAcc(memory=Memory.OUT)], VTA_INT8)
    lacks = "configuration 'vta' has post=0, and only machines with post=1 have it"
    with refused(ProgramError, f"instruction 0 is STORE.ACC; {lacks}"):
        encode([store], VTA)


def test_two_sets_with_one_memory_id_differ_in_the_next_bit() -> None:
    words = [int.from_bytes(encode([one], VTA_INT8), "little") for one in (SetOut(), SetSum())]
    assert words == [6 | 4 << 7, 6 | 4 << 7 | 1 << 10]
    assert parse_instruction("SET.MEM4", VTA_INT8) == SetOut()
    # where a memory id stands for one class only, the same bit belongs to another field
    assert decode(encode([SetInp(zero=1)], VTA_INT8), VTA_INT8) == [SetInp(zero=1)]
    with refused(
        ProgramError,
        "instruction 0 is a SetSum with the memory id of SET.SUM; "
        "that is a SetOut in configuration 'vta-int8'",
    ):
        encode([SetSum(part=False)], VTA_INT8)


def test_where_loads_and_stores_that_finish_outputs_do_not_exist() -> None:
    for text in ("LOAD.PAR", "LOAD.RES", "STORE.REQ", "STORE.ADD"):
        with refused(
            ProgramError, f"{text!r} exists on machines with post=1; configuration 'vta' has post=0"
        ):
            parse_instruction(text, VTA)
    for one in (LoadPar(x_size=1), StoreAdd(x_size=1)):
        [found] = decode(encode([one], VTA_INT8), VTA)
        assert found.mnemonic == f"{one.OPCODE.name}.MEM{one.memory}"
        assert found.unit is (Unit.COMPUTE if isinstance(one, Load) else Unit.STORE)
        assert one.unit is Unit.STORE


def test_the_reserved_bit_of_a_mac_stands_clear_of_its_fields() -> None:
    word = int.from_bytes(encode([Mac(depthwise=True)], VTA_INT8), "little")
    assert word == encode_number(Mac()) | 1 << 63
    advice = "make a scratchpad or the micro-op memory smaller"
    wide = NAMED["tiny-int8"].override({"acc_bytes": "32KiB"})
    with refused(
        ConfigError,
        "Mac.dst_factor_out has bits 53..63 in configuration 'tiny-int8'; depthwise stands at bit 63: "
        + advice,
    ):
        check_encodable(wide)


def encode_number(instruction: Instruction) -> int:
    return int.from_bytes(encode([instruction], VTA_INT8), "little")


def test_a_word_written_by_hand() -> None:
    load = Load(
        memory=Memory.INP, sram_base=5, dram_base=0x123, y_size=2, x_size=3, x_stride=4, pop_next=True
    )
    low = 0 | 1 << 4 | 2 << 7 | 5 << 10 | 0x123 << 26
    high = 2 | 3 << 16 | 4 << 32
    assert encode([load], VTA) == low.to_bytes(8, "little") + high.to_bytes(8, "little")


def test_factors_are_as_wide_as_their_scratchpads_addresses() -> None:
    tiny = NAMED["tiny"].override({"inp_bytes": 128, "wgt_bytes": 2048})
    widths = {slot.name: slot.width for slot in class_slots(Gemm, tiny)}
    assert [widths[name] for name in ("dst_factor_in", "src_factor_in", "wgt_factor_in")] == [7, 5, 6]
    assert {slot.name: slot.width for slot in class_slots(Alu, tiny)}["src_factor_in"] == 7
    assert [slot.width for slot in class_slots(MicroOp, tiny)] == [7, 7, 6]
    assert [slot.width for slot in class_slots(MicroOp, NAMED["gemm8x8"])] == [9, 10, 10]


def _layout(config: Config, cls: type[Any]) -> Iterator[tuple[str, int, int]]:
    """Pack fields upward from bit 0. A field that would cross bit 64 starts there."""
    position = 0
    for name, spec in field_specs(cls).items():
        if spec.at is not None:
            continue
        width = spec.width_in(config)
        if position < 64 < position + width:
            position = 64
        yield name, position, width
        position += width


@given(machines)
def test_fields_are_packed_upward_and_cross_no_word(config: Config) -> None:
    classes: list[type[Any]] = [*classes_of(config).values(), *variants_of(config).values(), MicroOp]
    for cls in classes:
        slots = [slot for slot in class_slots(cls, config) if slot.spec.at is None]
        assert [(slot.name, slot.offset, slot.width) for slot in slots] == list(_layout(config, cls))
        assert slots[-1].offset + slots[-1].width <= cls.BITS


# --- round trips ---------------------------------------------------------------------------------


@examples(200)
@given(st.data())
def test_instructions_round_trip_through_bits(data: st.DataObject) -> None:
    config = data.draw(machines)
    program = data.draw(st.lists(any_instructions(config), max_size=4))
    assert decode(encode(program, config), config) == program


@examples(200)
@given(st.data())
def test_instructions_round_trip_through_text(data: st.DataObject) -> None:
    config = data.draw(machines)
    instruction = data.draw(any_instructions(config))
    text = format_instruction(instruction)
    assert "\n" not in text
    assert parse_instruction(text, config) == instruction
    assert parse_instruction(text.lower(), config) == instruction


@examples(100)
@given(machines, st.integers(0, (1 << 128) - 1))
def test_unused_bits_are_ignored_and_written_as_zero(config: Config, word: int) -> None:
    [instruction] = decode(word.to_bytes(16, "little"), config)
    used = 0
    for slot in class_slots(type(instruction), config):
        used |= ((1 << slot.width) - 1) << slot.offset
    assert int.from_bytes(encode([instruction], config), "little") == word & used


@examples(100)
@given(st.data())
def test_micro_ops_round_trip(data: st.DataObject) -> None:
    config = data.draw(machines)
    widths = [slot.width for slot in class_slots(MicroOp, config)]
    row = st.tuples(*[st.integers(0, (1 << width) - 1) for width in widths])
    rows = data.draw(st.lists(row, max_size=5))
    words = encode_uops(rows, config)
    assert decode_uops(words, config).tolist() == [list(row) for row in rows]
    assert words.tolist() == [
        dst | src << widths[0] | wgt << (widths[0] + widths[1]) for dst, src, wgt in rows
    ]
    assert decode_uops(words | np.uint32(_unused_bits(widths)), config).tolist() == [
        list(row) for row in rows
    ]


def _unused_bits(widths: list[int]) -> int:
    return (1 << 32) - (1 << sum(widths))


def test_decoded_flags_are_booleans_and_numbers_plain_integers() -> None:
    [alu] = decode(encode([Alu(use_imm=True, imm=-3, pop_prev=True)], VTA), VTA)
    assert isinstance(alu, Alu)
    assert [type(v) for v in (alu.use_imm, alu.pop_prev, alu.reset, alu.imm, alu.opcode)] == [bool] * 3 + [
        int
    ] * 2


def test_narrow_numbers_are_no_flags() -> None:
    config = NAMED["tiny"].override({"uop_bytes": 8})
    (gemm,) = decode(encode([Gemm(uop_begin=1, uop_end=2)], config), config)
    assert isinstance(gemm, Gemm)
    assert type(gemm.uop_begin) is int
    assert format_instruction(gemm).split() == ["GEMM", "uop_begin=1", "uop_end=2"]


def test_unknown_opcodes_decode() -> None:
    [found] = decode(b"\xff" * 16, VTA)
    assert found == Unknown(opcode=7, pop_prev=True, pop_next=True, push_prev=True, push_next=True)
    assert (found.unit, found.mnemonic) == (Unit.FETCH, "UNKNOWN7")


# --- errors --------------------------------------------------------------------------------------


@examples(200)
@given(st.data())
def test_values_beyond_a_field_are_refused(data: st.DataObject) -> None:
    config = data.draw(machines)
    instruction = data.draw(any_instructions(config))
    slot = data.draw(st.sampled_from(class_slots(type(instruction), config)[1:]))
    value: Any = data.draw(st.sampled_from([slot.low - 1, slot.high + 1]))
    wrong = replace(instruction, **{slot.name: value})
    with refused(
        ProgramError,
        f"{type(wrong).__name__}.{slot.name} is {value} (instruction 1); it has {slot.width} bits "
        f"({slot.low}..{slot.high}) in configuration {config.name!r}",
    ):
        encode([instruction, wrong], config)


def test_an_error_text_of_encoding() -> None:
    with refused(
        ProgramError,
        "Gemm.uop_begin is 9000 (instruction 0); it has 13 bits (0..8191) in configuration 'vta'",
    ):
        encode([Gemm(uop_begin=9000)], VTA)
    with refused(
        ProgramError,
        "Alu.imm is 32768 (instruction 0); it has 16 bits (-32768..32767) in configuration 'vta'",
    ):
        encode([Alu(imm=32768)], VTA)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((2048, 0, 0), "MicroOp.dst is 2048; it has 11 bits (0..2047) in configuration 'vta'"),
        ((0, -1, 0), "MicroOp.src is -1; it has 11 bits (0..2047) in configuration 'vta'"),
        ((0, 0, 1024), "MicroOp.wgt is 1024; it has 10 bits (0..1023) in configuration 'vta'"),
    ],
)
def test_micro_ops_beyond_a_field_are_refused(row: tuple[int, int, int], message: str) -> None:
    with refused(ProgramError, message):
        encode_uops([(0, 0, 0), row], VTA)


@examples(100)
@given(machines, st.data())
def test_adding_to_a_field_of_encoded_instructions(config: Config, data: st.DataObject) -> None:
    """Add a step to one field of each instruction of a class, but for those that select the class. All other
    fields stay the same."""
    program = data.draw(st.lists(any_instructions(config), min_size=1, max_size=8))
    cls = type(data.draw(st.sampled_from(program)))
    slots = [s for s in class_slots(cls, config) if s.name not in ("opcode", "memory", "part")]
    slot = data.draw(st.sampled_from(slots))
    rows = [n for n, one in enumerate(program) if type(one) is cls]
    new = data.draw(
        st.lists(st.integers(slot.low, slot.high), min_size=len(rows), max_size=len(rows)), label="new"
    )
    steps = [value - int(getattr(program[n], slot.name)) for n, value in zip(rows, new, strict=True)]
    code = add_to_field(encode(program, config), slot, np.array(rows), np.array(steps))
    changed = [
        replace(one, **{slot.name: new[rows.index(n)]}) if n in rows else one for n, one in enumerate(program)
    ]
    assert code == encode(changed, config)


@pytest.mark.parametrize("step", [-6, (1 << 32) - 5])
def test_a_sum_beyond_its_field_is_refused(step: int) -> None:
    program = [Finish(), Load(dram_base=5)]
    slot = next(s for s in class_slots(Load, VTA) if s.name == "dram_base")
    with refused(
        ProgramError, f"dram_base of instruction 1 becomes {5 + step}; it has 32 bits (0..4294967295)"
    ):
        add_to_field(encode(program, VTA), slot, np.array([1]), np.array([step]))


def test_broken_words_are_refused() -> None:
    with refused(ProgramError, "the instructions are 17 bytes; they must be a multiple of 16"):
        decode(bytes(17), VTA)


@pytest.mark.parametrize("name", NAMED)
def test_named_configurations_are_encodable(name: str) -> None:
    check_encodable(NAMED[name])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"acc_bytes": "256KiB"}, "needs 138 bits for Gemm; there are 128"),
        ({"wgt_bytes": "512KiB"}, "needs 139 bits for Gemm; there are 128"),
        ({"uop_bytes": "64KiB"}, "needs 148 bits for Gemm; there are 128"),
        ({"acc_bytes": "256KiB", "wgt_bytes": "128KiB"}, "needs 144 bits for Alu; there are 128"),
        ({"wgt_bytes": "512KiB", "inp_bytes": "16KiB"}, "needs 33 bits for MicroOp; there are 32"),
    ],
)
def test_configurations_whose_fields_do_not_fit_are_refused(changes: dict[str, str], message: str) -> None:
    advice = ": make a scratchpad or the micro-op memory smaller"
    with refused(ConfigError, f"configuration 'vta' {message}{advice}"):
        check_encodable(VTA.override(changes))


# --- text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("instruction", "text"),
    [
        (
            Load(memory=Memory.INP, dram_base=256, y_size=4, x_size=16, pop_next=True, push_next=True),
            "LOAD.INP      dram_base=256 y_size=4 x_size=16  <compute >compute",
        ),
        (Load(memory=6, x_pad_1=15), "LOAD.MEM6     x_pad_1=15"),
        (Store(pop_prev=True, push_prev=True), "STORE.OUT  <compute >compute"),
        (Store(memory=0), "STORE.UOP"),
        (Gemm(reset=True, uop_end=4, iter_out=0), "GEMM          reset=1 uop_end=4 iter_out=0"),
        (
            Alu(alu_op=AluOp.SHR, use_imm=True, imm=-8, pop_prev=True, push_next=True),
            "ALU.SHR       use_imm=1 imm=-8  <load >store",
        ),
        (Alu(alu_op=6), "ALU.OP6"),
        (Finish(pop_next=True), "FINISH  <store"),
        (
            SetInp(zero=-3, unsigned=True, push_next=True),
            "SET.INP       zero=-3 unsigned=1  >compute",
        ),
        (SetAcc(unsigned=True, pop_prev=True), "SET.ACC       unsigned=1  <load"),
        (SetAcc(taps=3, step=2), "SET.ACC       taps=3 step=2"),
        (Mac(depthwise=True, uop_end=4), "MAC           uop_end=4 depthwise=1"),
        (Set(memory=Memory.WGT), "SET.WGT"),
        (Set(memory=7), "SET.MEM7"),
        (LoadPar(sram_base=3, x_size=2, pop_prev=True), "LOAD.PAR      sram_base=3 x_size=2  <compute"),
        (LoadRes(y_size=1, push_prev=True), "LOAD.RES      y_size=1  >compute"),
        (StoreReq(x_size=2, par=9, par_y=True), "STORE.REQ     x_size=2 par=9 par_y=1"),
        (StoreAdd(par_x=True, pop_prev=True), "STORE.ADD     par_x=1  <compute"),
        (StoreReq(x_size=1, table=2), "STORE.REQ     x_size=1 table=2"),
        (StoreMul(par_x=True, hold=True), "STORE.MUL     par_x=1 hold=1"),
        (LoadTab(sram_base=3, x_size=2), "LOAD.TAB      sram_base=3 x_size=2"),
        (SetWgt(zero=-3), "SET.WGT       zero=-3"),
        (SetOut(low=-128, high=127, shift=41), "SET.OUT       low=-128 high=127 shift=41"),
        (SetSum(left_multiplier=3, zero=-9), "SET.SUM       left_multiplier=3 zero=-9"),
        (Mac(overwrite=True, uop_end=4), "MAC           overwrite=1 uop_end=4"),
        (Load(memory=Memory.WGT, pop_prev=True), "LOAD.WGT  <prev"),
        (Store(push_next=True), "STORE.OUT  >next"),
        (Unknown(opcode=5), "UNKNOWN5"),
    ],
)
def test_text_of_instructions(instruction: Instruction, text: str) -> None:
    assert format_instruction(instruction) == text
    is_extended = type(instruction) in FEATURES
    config = VTA_NPU if is_extended else VTA_INT8 if instruction.REQUIRES else VTA
    assert parse_instruction(text, config) == instruction


def test_text_may_name_the_side_and_use_any_base() -> None:
    expected = Load(memory=Memory.INP, sram_base=16, push_next=True)
    assert parse_instruction("load.inp >next sram_base=0x10", VTA) == expected


TRANSFER_OPERANDS = "dram_base, sram_base, x_pad_0, x_pad_1, x_size, x_stride, y_pad_0, y_pad_1, y_size"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  ", "the line is empty; an instruction starts with its mnemonic"),
        ("LOAD.IMP", "'LOAD.IMP' is not a mnemonic; did you mean 'LOAD.INP'?"),
        ("LOAD", "'LOAD' is not a mnemonic; did you mean 'LOAD.WGT'?"),
        ("GEM", "'GEM' is not a mnemonic; did you mean 'GEMM'?"),
        ("GEMM.ADD", "'GEMM.ADD' is not a mnemonic; did you mean 'GEMM'?"),
        ("ALU.OP8", "'ALU.OP8' is not a mnemonic; valid are " + ", ".join(sorted(mnemonics(VTA)))),
        ("UNKNOWN4", "'UNKNOWN4' is not a mnemonic; valid are " + ", ".join(sorted(mnemonics(VTA)))),
        ("GEMM uop_ed=3", "'uop_ed=3' is not an operand of GEMM; did you mean 'uop_end'?"),
        ("GEMM uop_end", "'uop_end' is not an operand of GEMM; did you mean 'uop_end'?"),
        ("FINISH imm=3", "'imm=3' is not an operand of FINISH; it takes none"),
        ("STORE.OUT iter_in=3", "'iter_in=3' is not an operand of STORE.OUT; valid are " + TRANSFER_OPERANDS),
        ("LOAD.INP memory=3", "'memory=3' is not an operand of LOAD.INP; valid are " + TRANSFER_OPERANDS),
        ("GEMM uop_end=x", "uop_end is 'x'; it must be an integer"),
        ("GEMM reset=2", "reset is 2; it has 1 bits (0..1) in configuration 'vta'"),
        ("ALU.ADD imm=40000", "imm is 40000; it has 16 bits (-32768..32767) in configuration 'vta'"),
        (
            "LOAD.INP <store",
            "'<store' is not a token of LOAD.INP; valid are <compute, <prev, >compute, >prev",
        ),
    ],
)
def test_text_that_is_no_instruction(text: str, message: str) -> None:
    with refused(ProgramError, message):
        parse_instruction(text, VTA)


@pytest.mark.parametrize("mnemonic", mnemonics(VTA_NPU))
def test_every_mnemonic_parses(mnemonic: str) -> None:
    assert parse_instruction(mnemonic, VTA_NPU).mnemonic == mnemonic
    if mnemonic in mnemonics(VTA_INT8):
        assert parse_instruction(mnemonic, VTA_INT8).mnemonic == mnemonic
    if mnemonic in mnemonics(VTA):
        assert parse_instruction(mnemonic, VTA).mnemonic == mnemonic


# --- units ---------------------------------------------------------------------


def test_each_instruction_has_its_unit() -> None:
    loads = {memory: Load(memory=memory).unit for memory in range(8)}
    assert [m for m, unit in loads.items() if unit is Unit.LOAD] == [Memory.WGT, Memory.INP]
    assert [m for m, unit in loads.items() if unit is Unit.COMPUTE] == [0, 3, 4, 5, 6, 7]
    assert {Store(memory=memory).unit for memory in range(8)} == {Unit.STORE}
    assert {cls().unit for cls in (Gemm, Alu, Finish, Mac, Set, SetAcc)} == {Unit.COMPUTE}
    assert SetInp().unit is Unit.LOAD


def test_neighbours_in_the_token_chain() -> None:
    assert [unit.previous for unit in Unit] == [None, None, Unit.LOAD, Unit.COMPUTE]
    assert [unit.next for unit in Unit] == [None, Unit.COMPUTE, Unit.STORE, None]


# --- fields with a place of their own ------------------------------------------------------------


class Marked(Gemm):
    """A GEMM with a flag at bit 63, a number at bits 124 to 127, and a field after all others."""

    flag: bool = field(1, "a flag", default=False, at=63)
    high: int = field(4, "a number", at=124)
    behind: int = field(0, "nothing")


def test_a_field_may_have_a_fixed_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its place does not depend on the widths of the other fields and moves none of them."""
    for config in (TINY, NAMED["gemm8x8"], NAMED["ecp5"]):
        slots = {slot.name: (slot.offset, slot.width) for slot in class_slots(Marked, config)}
        plain = {slot.name: (slot.offset, slot.width) for slot in class_slots(Gemm, config)}
        assert slots["flag"] == (63, 1)
        assert slots["high"] == (124, 4)
        assert {name: place for name, place in slots.items() if name in plain} == plain
        last = plain["wgt_factor_in"]
        assert slots["behind"][0] == last[0] + last[1]
    monkeypatch.setitem(CLASSES, Opcode.GEMM, Marked)
    one = Marked(flag=True, high=9, uop_end=5, iter_in=16383, wgt_factor_in=3)
    word = encode([one], TINY)
    assert int.from_bytes(word, "little") >> 63 & 1 == 1
    assert int.from_bytes(word, "little") >> 124 == 9
    assert decode(word, TINY) == [one]
    assert parse_instruction(format_instruction(one), TINY) == one


def test_fields_that_run_into_a_fixed_place_are_refused_by_name() -> None:
    advice = "make a scratchpad or the micro-op memory smaller"
    with refused(
        ConfigError,
        f"Marked.wgt_factor_in has bits 118..127 in configuration 'vta'; high stands at bit 124: {advice}",
    ):
        class_slots(Marked, VTA)
    wide = TINY.override({"uop_bytes": "64KiB"})
    assert [s.offset + s.width for s in class_slots(Gemm, wide) if s.name == "iter_in"] == [64 + 14]
    wide = TINY.override({"uop_bytes": "32KiB"})
    assert [s.offset + s.width for s in class_slots(Gemm, wide) if s.name == "iter_in"] == [63]
    class_slots(Marked, wide)


@pytest.mark.parametrize(
    ("widths", "at", "message"),
    [
        ((40, 24), 63, "X.f1 has bits 40..63 in configuration 'vta'; fixed stands at bit 63: "),
        ((40, 23), 62, "X.f1 has bits 40..62 in configuration 'vta'; fixed stands at bit 62: "),
        ((10, 20), 0, "X.f0 has bits 0..9 in configuration 'vta'; fixed stands at bit 0: "),
        ((40, 23), 128, "configuration 'vta' needs 129 bits for X; there are 128: "),
    ],
)
def test_places_that_are_taken(widths: tuple[int, ...], at: int, message: str) -> None:
    specs = [(f"f{n}", FieldSpec(width=width, doc="")) for n, width in enumerate(widths)]
    fixed = FieldSpec(width=1, doc="", at=at)
    advice = "make a scratchpad or the micro-op memory smaller"
    for order in ([*specs, ("fixed", fixed)], [("fixed", fixed), *specs]):
        with refused(ConfigError, message + advice):
            pack_slots("X", order, VTA)


def test_fixed_places_neither_meet_nor_cross_a_boundary() -> None:
    crossing = [("wide", FieldSpec(width=4, doc="", at=62))]
    with refused(
        ConfigError, "X.wide has bits 62..65 in configuration 'vta'; no field crosses a multiple of 64"
    ):
        pack_slots("X", crossing, VTA)
    meeting = [("one", FieldSpec(width=4, doc="", at=8)), ("two", FieldSpec(width=1, doc="", at=11))]
    with pytest.raises(ConfigError, match=r"X\.two has bits 11\.\.11 .*; one stands at bit 8"):
        pack_slots("X", meeting, VTA)
    beside = [("one", FieldSpec(width=4, doc="", at=8)), ("two", FieldSpec(width=1, doc="", at=12))]
    assert [slot.offset for slot in pack_slots("X", beside, VTA)] == [8, 12]


# --- copies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", sorted({*CLASSES.values(), *VARIANTS.values()}, key=lambda one: one.__name__))
def test_dataclasses_copy_instructions(cls: type[Instruction]) -> None:
    one = cls(push_next=True)
    copy = dataclasses.replace(one, pop_prev=True)
    assert copy == cls(push_next=True, pop_prev=True)
    assert type(copy) is cls
    assert {declared.name for declared in dataclasses.fields(one)} == set(field_specs(cls))


def test_a_field_that_a_class_lacks_cannot_be_given() -> None:
    assert "x_pad_0" not in field_specs(StoreAdd)
    with pytest.raises(TypeError, match="StoreAdd has no x_pad_0"):
        StoreAdd(x_pad_0=1)
