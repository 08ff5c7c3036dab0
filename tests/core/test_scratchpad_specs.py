"""Scratchpads, memory ids and operands: each is declared once, and the rest is derived."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import pytest

from accel.base.errors import ProgramError
from accel.base.records import field_names
from accel.core.config import NAMED, SPECS, Config
from accel.core.fault_causes import Cause, dram_element_bytes, dram_span, instruction_fault
from accel.core.instruction_access import AccessSets, Touch
from accel.core.isa import (
    LOOPS,
    TRANSFERS,
    Gemm,
    Load,
    LoadPar,
    LoadRes,
    Memory,
    MicroOp,
    Operand,
    Store,
    StoreAcc,
    StoreAdd,
    StoreReq,
    Unit,
    class_slots,
    encode_uops,
    field_specs,
    format_instruction,
    memory_names,
    parse_instruction,
    routes_of,
    without_tokens,
)
from accel.core.isa.instruction_fields import field
from accel.core.scratchpad_specs import (
    ACC,
    INP,
    PAR,
    RES,
    SCRATCHPADS,
    UOP,
    WGT,
    Route,
    bits_of,
    routes,
    scratchpads_of,
)
from accel.image.dram import Dram
from accel.sim.functional.executor import Executor
from accel.sim.functional.scratchpads import Scratchpads

VTA, TINY = NAMED["vta"], NAMED["tiny"]


# --- scratchpads ---------------------------------------------------------------------------------


def test_stock_scratchpads() -> None:
    """The expected numbers are computed by hand from VTA's geometry."""
    found = {
        name: (pad.shape(VTA), pad.dtype, pad.element_bytes(VTA), pad.depth(VTA), pad.address_bits(VTA))
        for name, pad in scratchpads_of(VTA).items()
    }
    assert found == {
        "uop": ((), "uint32", 4, 8192, 13),
        "inp": ((1, 16), "int8", 16, 2048, 11),
        "wgt": ((16, 16), "int8", 256, 1024, 10),
        "acc": ((1, 16), "int32", 64, 2048, 11),
    }
    filled_by = {name: pad.filled_by for name, pad in scratchpads_of(VTA).items()}
    assert filled_by == {
        "uop": Unit.COMPUTE,
        "inp": Unit.LOAD,
        "wgt": Unit.LOAD,
        "acc": Unit.COMPUTE,
    }


def test_the_store_units_own_scratchpads() -> None:
    """The expected numbers are computed by hand from ``vta-npu``'s geometry."""
    config = NAMED["vta-npu"]
    found = {
        name: (pad.shape(config), pad.dtype, pad.element_bytes(config), pad.depth(config), pad.filled_by)
        for name, pad in scratchpads_of(config).items()
        if name not in scratchpads_of(VTA)
    }
    assert found == {
        "par": ((16, 2), "int32", 128, 128, Unit.STORE),
        "res": ((1, 16), "int8", 16, 1024, Unit.STORE),
        "tab": ((1, 256), "uint8", 256, 8, Unit.STORE),
    }
    assert set(scratchpads_of(NAMED["vta-int8"])) == set(scratchpads_of(config)) - {"tab"}


@pytest.mark.parametrize("name", NAMED)
def test_configurations_have_them_all(name: str) -> None:
    config = NAMED[name]
    for pad in scratchpads_of(config).values():
        assert SPECS[f"{pad}_bytes"].kind == "geometry"
        assert pad.depth(config) * pad.element_bytes(config) == getattr(config, f"{pad}_bytes")
        assert getattr(config, f"{pad}_depth") == pad.depth(config)
    for pad in (UOP, INP, WGT, ACC):
        assert getattr(config, f"{pad}_address_bits") == pad.address_bits(config)
    assert config.out_element_bytes == Store.ROUTES[Memory.OUT].element_bytes(config)


@pytest.mark.parametrize(
    "config", [TINY, NAMED["tiny-int8"], NAMED["tiny-npu"]], ids=lambda config: config.name
)
def test_the_simulators_scratchpads_are_the_declared_ones(config: Config) -> None:
    pads = Scratchpads.zeros(config)
    assert field_names(pads) == tuple(SCRATCHPADS)
    assert {pad.name: pad for pad in pads.present} == scratchpads_of(config)
    for name, pad in scratchpads_of(config).items():
        array = pads.of(pad)
        assert array is getattr(pads, name)
        assert array.shape == (pad.depth(config), *pad.shape(config))
        assert array.dtype == np.dtype(pad.held_dtype(config))


def test_a_micro_op_fills_its_element() -> None:
    assert bits_of(UOP.dtype) == MicroOp.BITS


# --- memory ids ----------------------------------------------------------------------------------


def test_memory_ids_of_loads_and_stores() -> None:
    found = {
        (cls.OPCODE.name, memory): (route.scratchpad, route.dtype, route.unit)
        for cls in TRANSFERS
        for memory, route in cls.ROUTES.items()
    }
    assert found == {
        ("LOAD", 0): (UOP, "uint32", Unit.COMPUTE),
        ("LOAD", 1): (WGT, "int8", Unit.LOAD),
        ("LOAD", 2): (INP, "int8", Unit.LOAD),
        ("LOAD", 3): (ACC, "int32", Unit.COMPUTE),
        ("LOAD", 5): (ACC, "int8", Unit.COMPUTE),
        ("STORE", 4): (ACC, "int8", Unit.STORE),
    }
    assert {route.verbatim for memory, route in Load.ROUTES.items() if memory != 5} == {True}
    assert not Load.ROUTES[5].verbatim
    second = routes_of(Store, NAMED["tiny-int8"])
    found_second = {memory: (route.name, route.scratchpad, route.dtype) for memory, route in second.items()}
    assert found_second == {
        3: ("ACC", ACC, "int32"),
        4: ("OUT", ACC, "int8"),
        6: ("REQ", ACC, "int8"),
        7: ("ADD", ACC, "int8"),
    }
    loads = routes_of(Load, NAMED["tiny-int8"])
    assert {
        memory: (loads[memory].scratchpad, loads[memory].unit) for memory in loads.keys() - Load.ROUTES
    } == {
        6: (PAR, Unit.STORE),
        7: (RES, Unit.STORE),
    }
    moved = Store(), StoreAcc(), StoreReq(), StoreAdd(), LoadPar(), LoadRes()
    assert [dram_element_bytes(one, NAMED["tiny-int8"]) for one in moved] == [4, 16, 4, 4, 32, 4]
    assert [m for m, route in Load.ROUTES.items() if route.copies(NAMED["tiny-int8"])] == [0, 1, 3]


class _Other(IntEnum):
    """A memory id of STORE that means something else in LOAD."""

    INT = 2


def test_an_id_may_differ_between_loads_and_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here id 2 is INP in LOAD and 32-bit accumulators in STORE."""
    whole = Route(memory=_Other.INT, scratchpad=ACC, dtype="int32", unit=Unit.STORE)
    table: Mapping[int, Route] = MappingProxyType({**Store.ROUTES, **routes(whole)})
    monkeypatch.setattr(Store, "ROUTES", table)
    load = Load(memory=2, sram_base=3, x_size=2, y_size=1)
    store = Store(memory=2, sram_base=3, dram_base=4, x_size=2, y_size=1)
    assert [load.mnemonic, store.mnemonic] == ["LOAD.INP", "STORE.INT"]
    assert parse_instruction(format_instruction(store), TINY) == store
    assert (memory_names(Load)[2], memory_names(Store)[2]) == ("INP", "INT")
    assert [dram_element_bytes(one, TINY) for one in (load, store)] == [4, 32]
    assert dram_span(store, TINY) == (4 * 32, 6 * 32)
    assert [instruction_fault(one, TINY) for one in (load, store)] == [None, None]
    sets = AccessSets(TINY)
    assert sets.transfer(load) == (Touch("inp", True, slice(3, 5)),)
    assert sets.transfer(store) == (Touch("acc", False, slice(3, 5)),)

    pads, dram = Scratchpads.random(TINY, 1), Dram.of(TINY)
    assert Executor(TINY, dram, pads).execute(store) is None
    assert dram.read(4 * 32, 64).tobytes() == pads.acc[3:5].tobytes()
    fault = instruction_fault(Store(memory=Memory.ACC, x_size=1), TINY)
    assert fault is not None
    assert fault.message == "STORE.ACC has memory id 3; STORE writes INT or OUT"


@pytest.mark.parametrize("instruction", [Load(memory=Memory.OUT, x_size=1), Store(memory=6, x_size=1)])
def test_undefined_memory_ids(instruction: Load | Store) -> None:
    fault = instruction_fault(instruction, TINY)
    assert fault is not None
    assert fault.cause is Cause.MEMORY_ID
    with pytest.raises(ProgramError) as caught:
        dram_element_bytes(instruction, TINY)
    assert str(caught.value) == fault.message
    start, stop = dram_span(instruction, TINY)
    assert start == stop
    assert AccessSets(TINY).transfer(instruction) == ()


# --- operands ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMED)
def test_operands_have_their_fields(name: str) -> None:
    config = NAMED[name]
    uop = {slot.name: slot.width for slot in class_slots(MicroOp, config)}
    for cls in LOOPS:
        slots = {slot.name: slot for slot in class_slots(cls, config)}
        for operand in cls.OPERANDS:
            bits = operand.memory.address_bits(config)
            assert [slots[factor].width for factor in operand.factors] == [bits, bits]
            assert uop[operand.name] >= bits
            assert operand.unless is None or slots[operand.unless].width == 1
        named = {field for field in slots if "_factor_" in field}
        assert named == {factor for operand in cls.OPERANDS for factor in operand.factors}
    for operand_name, width in uop.items():
        users = [o for cls in LOOPS for o in cls.OPERANDS if o.name == operand_name]
        assert width == max(operand.memory.address_bits(config) for operand in users)


def test_operands_that_are_read_and_written() -> None:
    cases = {
        "gemm": (Gemm(), ["acc", "inp", "wgt"]),
        "reset": (Gemm(reset=True), []),
    }
    for instruction, wanted in cases.values():
        read = [o.memory.name for o in instruction.OPERANDS if o.read_by(instruction)]
        assert read == wanted
        assert [o.name for o in instruction.OPERANDS if o.writes] == ["dst"]
        assert instruction.OPERANDS[0].used_by(instruction)


def test_micro_op_fields_say_what_they_index() -> None:
    docs = {name: spec.doc for name, spec in field_specs(MicroOp).items()}
    assert docs == {
        "dst": "acc element",
        "src": "inp element (GEMM, MAC) or acc element (ALU)",
        "wgt": "wgt element (GEMM, MAC)",
    }


class _Overwriting(Gemm):
    """A GEMM with one more field. It changes no index, but it decides whether accumulators are read."""

    OPERANDS: ClassVar[tuple[Operand, ...]] = (
        Operand(name="dst", memory=ACC, writes=True, unless="overwrite"),
        Operand(name="src", memory=INP),
        Operand(name="wgt", memory=WGT),
    )
    overwrite: bool = field(1, "whether accumulators are overwritten", default=False, at=127)


def test_instructions_that_differ_in_any_field_have_their_own_accesses() -> None:
    """Instructions that differ only in their tokens share a cache entry."""
    words = encode_uops([(3, 1, 2)], TINY)
    adding, overwriting = _Overwriting(uop_end=1), _Overwriting(uop_end=1, overwrite=True)
    sets = AccessSets(TINY)
    touched = [{(t.memory, t.write) for t in sets.loops(one, words).touches} for one in (adding, overwriting)]
    assert touched[0] - touched[1] == {("acc", False)}
    assert without_tokens(adding) is adding
    assert (
        without_tokens(_Overwriting(uop_end=1, overwrite=True, push_next=True, pop_prev=True)) == overwriting
    )

    executor = Executor(TINY, Dram.of(TINY), Scratchpads.zeros(TINY))
    executor.pads.uop[:1] = words
    analyses = [
        executor._analysis(one) for one in (adding, overwriting, _Overwriting(uop_end=1, pop_next=True))
    ]
    assert analyses[0] is not analyses[1]
    assert analyses[0] is analyses[2]
