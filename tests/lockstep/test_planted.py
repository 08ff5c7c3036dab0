"""Lockstep detects faults planted into each unit: a late cycle, a wrong token, a wrong bit.

A box around each unit passes its signals through, except those of the selected fault. So one machine holds
all of its faults.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Flow
from amaranth.sim import SimulatorContext

import accel
from accel.base.records import replace
from accel.compiler.operators.default_schedule import default_schedule
from accel.core.config import NAMED, Config
from accel.core.isa import (
    Instruction,
    Load,
    Mac,
    SetAcc,
    SetInp,
    SetOut,
    Store,
    StoreReq,
    Unit,
    class_slots,
)
from accel.core.requantize import MULTIPLIER_BITS
from accel.core.token_rules import Counter, pushes
from accel.hw import core
from accel.hw.bus import read_port
from accel.hw.datapath.requantize_lanes import ParLayout, SettingLayout
from accel.hw.engines.pysim import PysimEngine
from accel.hw.units import requantized_beats, store, store_unit_loads
from accel.run.lockstep import Difference, lockstep
from accel.run.program import Program
from accel.run.replay import load_test
from tests.thorough import first_of_each

Change = Callable[[Module, Value], Value]

SMALL = NAMED["tiny"].override(
    {
        "uop_bytes": 64,
        "inp_bytes": 64,
        "wgt_bytes": 512,
        "acc_bytes": 512,
        "read_latency": 3,
        "write_latency": 2,
    }
)
"""Scratchpads that are quick to fill."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Changed signals of a unit. The program ``found_by`` shows the change in the scopes ``what``."""

    unit: str
    changes: dict[str, Change]
    found_by: str
    what: frozenset[str]


def ports(unit: Any) -> dict[str, tuple[Flow, Value]]:
    """A unit's ports by name. A member of an interface is ``interface.member``."""
    found = unit.signature.flatten(unit)
    return {".".join(path): (member.flow, Value.cast(value)) for path, member, value in found}


class Box(wiring.Component):
    """A unit with faults. The signal ``chosen`` holds the number of the active one."""

    def __init__(self, unit: wiring.Component, faults: dict[int, dict[str, Change]], chosen: Signal) -> None:
        self._unit = unit
        self._faults = faults
        self._chosen = chosen
        super().__init__(dict(unit.signature.members))
        unknown = {name for changes in faults.values() for name in changes} - ports(unit).keys()
        assert not unknown, f"{type(unit).__name__} has no {unknown}"

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.unit = self._unit
        outside = ports(self)
        for name, (flow, inner) in ports(self._unit).items():
            _, outer = outside[name]
            source, target = (outer, inner) if flow is Flow.In else (inner, outer)
            passed: Value = source
            for number, changes in self._faults.items():
                if name in changes:
                    passed = Mux(self._chosen == number, changes[name](m, source), passed)
            m.d.comb += target.eq(passed)
        return m


class FaultyEngine(PysimEngine):
    """A machine with faults.

    Args:
        config: configuration to build.
        faults: faults of its units. ``chosen`` numbers them from 1; 0 stands for none.
    """

    def __init__(self, config: Config, faults: Sequence[Fault]) -> None:
        self.chosen = 0
        self._chosen = Signal(range(len(faults) + 1))
        of_units: dict[str, dict[int, dict[str, Change]]] = {}
        for number, fault in enumerate(faults, 1):
            of_units.setdefault(fault.unit, {})[number] = fault.changes
        with ExitStack() as patched:
            boxes = [patched.enter_context(self._boxed(unit, of_units[unit])) for unit in of_units]
            super().__init__(config)
        assert [len(found) for found in boxes] == [1] * len(of_units)

    @contextmanager
    def _boxed(self, unit: str, faults: dict[int, dict[str, Change]]) -> Iterator[list[Box]]:
        owner = next(
            module for module in (core, store, store_unit_loads, requantized_beats) if hasattr(module, unit)
        )
        original = getattr(owner, unit)
        boxes: list[Box] = []

        def boxed(*arguments: Any, **options: Any) -> Box:
            boxes.append(Box(original(*arguments, **options), faults, self._chosen))
            return boxes[-1]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, unit, boxed)
            yield boxes

    def _drive(self, ctx: SimulatorContext) -> None:
        super()._drive(ctx)
        ctx.set(self._chosen, self.chosen)


def late(m: Module, value: Value) -> Value:
    """Delay by a cycle."""
    before = Signal.like(value)
    m.d.sync += before.eq(value)
    return before


def flipped(*bits: int) -> Change:

    def change(m: Module, value: Value) -> Value:
        return value ^ Const(sum(1 << bit for bit in bits), len(value))

    return change


def without(bit: int) -> Change:
    """Clear a bit."""

    def change(m: Module, value: Value) -> Value:
        return Cat(value[:bit], Const(0, 1), value[bit + 1 :])

    return change


def field_bit(cls: type[Any], name: str) -> int:
    return next(slot.offset for slot in class_slots(cls, SMALL) if slot.name == name)


def only_stores(bit: int) -> Change:
    """Invert a bit of an instruction if it is a STORE."""

    def change(m: Module, value: Value) -> Value:
        is_store = value[:3] == int(Store.OPCODE)
        return value ^ (is_store << bit)

    return change


def only(cls: type[Instruction], bit: int) -> Change:
    """Clear a bit of an instruction if it is of a class."""

    def change(m: Module, value: Value) -> Value:
        kept = value[bit] & (value[:3] != int(cls.OPCODE))
        return Cat(value[:bit], kept, value[bit + 1 :])

    return change


def always(bit: int) -> Change:
    """Set all bits to zero or to one."""

    def change(m: Module, value: Value) -> Value:
        return Const(-bit, len(value))

    return change


def as_load(m: Module, value: Value) -> Value:
    """Replace a SET by a LOAD that moves nothing."""
    return Cat(Mux(value[:3] == int(SetInp.OPCODE), int(Load.OPCODE), value[:3]), value[3:])


PUSH_PREV, PUSH_NEXT = range(2)
FAULTS: dict[tuple[str, str], dict[str, Change]] = {
    ("Fetch", "latency"): {"read.beat_valid": late, "read.beat_data": late},
    ("Fetch", "token"): {"fetched.word": without(field_bit(Instruction, "push_next"))},
    ("Fetch", "data"): {"fetched.word": only_stores(field_bit(Store, "sram_base"))},
    ("Load", "latency"): {"read.beat_valid": late, "read.beat_data": late},
    ("Load", "token"): {"tokens.pushes": without(PUSH_NEXT)},
    ("Load", "data"): {"read.beat_data": flipped(3)},
    ("Compute", "latency"): {"read.beat_valid": late, "read.beat_data": late},
    ("Compute", "token"): {"tokens.pushes": without(PUSH_PREV)},
    ("Compute", "data"): {"out.data": flipped(0)},
    ("Store", "latency"): {"bvalid": late},
    ("Store", "token"): {"tokens.pushes": without(PUSH_PREV)},
    ("Store", "data"): {"wdata": flipped(63)},
}
WHERE = {"latency": {"events"}, "token": {"events"}, "data": {"memory", "events"}}
"""The scopes in which each kind of fault shows."""


INT8 = NAMED["tiny-int8"]
MAC, SET_INP, SET_ACC, SET_OUT, STORE_REQ = (
    {slot.name: slot.offset for slot in class_slots(cls, INT8)}
    for cls in (Mac, SetInp, SetAcc, SetOut, StoreReq)
)


def bit_of(layout: data.Layout, *path: str) -> int:
    """The lowest bit of a field in a layout."""
    offset = 0
    for name in path:
        offset += layout[name].offset
        shape = layout[name].shape
        if isinstance(shape, data.Layout):
            layout = shape
    return offset


EXPONENT = 32 + MULTIPLIER_BITS
SECOND_FAULTS: dict[str, tuple[str, str, dict[str, Change], str]] = {
    "a MAC that never overwrites": (
        "mac_in_order",
        "Compute",
        {"issue.entry": only(Mac, MAC["overwrite"])},
        "scratchpads",
    ),
    "a zero point that is off by one": (
        "set_inp_zero",
        "Load",
        {"issue.entry": only(SetInp, SET_INP["zero"])},
        "scratchpads",
    ),
    "a zero point without its sign": (
        "set_inp_zero",
        "Dispatch",
        {"fetched.word": only(SetInp, SET_INP["zero"] + 8)},
        "events",
    ),
    "bytes of inp that are always int8": (
        "set_products",
        "Load",
        {"issue.entry": only(SetInp, SET_INP["unsigned"])},
        "scratchpads",
    ),
    "bytes of acc that are always int8": (
        "set_acc_unsigned",
        "Compute",
        {"issue.entry": only(SetAcc, SET_ACC["unsigned"])},
        "scratchpads",
    ),
    "a ninth bit of inp that is lost": (
        "set_products",
        "Compute",
        {"operands.inp.element": without(8)},
        "scratchpads",
    ),
    "a zero point that is not looked at": (
        "fault_zero_point_int8",
        "Dispatch",
        {"fetched.word": only(SetInp, SET_INP["zero"] + 7)},
        "events",
    ),
    "a SET that does not wait": ("set_waits", "Load", {"issue.entry": as_load}, "events"),
    "whole accumulators as low bytes": (
        "store_acc_and_out",
        "Store",
        {"out.beat": without(0)},
        "memory",
    ),
    "a STORE that has its accumulators a cycle late": (
        "store_acc_and_out",
        "Store",
        {"out.data": late, "out.strobe": late},
        "memory",
    ),
    "a depthwise MAC that is none": (
        "mac_depthwise",
        "Compute",
        {"issue.entry": only(Mac, MAC["depthwise"])},
        "scratchpads",
    ),
    "a tap from another bank": (
        "mac_depthwise",
        "Compute",
        {"operands.tap_1.index": flipped(0)},
        "scratchpads",
    ),
    "a tap from another place in its bank": (
        "mac_depthwise_steps",
        "Load",
        {"operands.tap_2.index": flipped(2)},
        "scratchpads",
    ),
    "taps in each other's place": (
        "mac_depthwise",
        "Compute",
        {"operands.tap_1.element": late},
        "scratchpads",
    ),
    "a tap too few": (
        "mac_depthwise",
        "Compute",
        {"issue.entry": only(SetAcc, SET_ACC["taps"])},
        "scratchpads",
    ),
    "a step that is not looked at": (
        "mac_depthwise_steps",
        "Dispatch",
        {"fetched.word": only(SetAcc, SET_ACC["step"] + 1)},
        "events",
    ),
    "a LOAD of par a cycle late": (
        "load_par_waits",
        "Store",
        {"read.beat_valid": late, "read.beat_data": late},
        "events",
    ),
    "a SET.OUT without its zero point": (
        "store_requantize_unsigned",
        "Store",
        {"issue.entry": only(SetOut, SET_OUT["zero"] + 7)},
        "memory",
    ),
    "a STORE.REQ with another element of par": (
        "store_requantize_par",
        "Store",
        {"issue.entry": only(Store, STORE_REQ["par"])},
        "memory",
    ),
    "both flags of par that are not looked at": (
        "fault_reserved_par_flags",
        "Dispatch",
        {"fetched.word": only(Store, STORE_REQ["par_x"])},
        "events",
    ),
    "sums that come a slot late": ("store_requantize", "RequantizeLanes", {"sums": late}, "memory"),
    "an exponent that is off by one": (
        "store_requantize",
        "RequantizeLanes",
        {"par": flipped(EXPONENT)},
        "memory",
    ),
    "a bias that is off by one": ("store_requantize", "RequantizeLanes", {"par": flipped(0)}, "memory"),
    "a residual that is off by one": ("store_add", "RequantizeLanes", {"res": flipped(0)}, "memory"),
    "residuals that are always int8": (
        "store_add_unsigned",
        "RequantizeLanes",
        {"setting": without(bit_of(SettingLayout(INT8), "unsigned"))},
        "memory",
    ),
    "an addition without its offset": (
        "store_add",
        "RequantizeLanes",
        {"setting": without(bit_of(SettingLayout(INT8), "addition", "offset"))},
        "memory",
    ),
    "a residual that is not added": ("store_add", "RequantizeLanes", {"adds": always(0)}, "memory"),
    "a result of the slot before": ("store_requantize", "RequantizeLanes", {"result": late}, "memory"),
    "rows that do not go on in par": (
        "store_requantize_par",
        "SlotWalker",
        {"row_last": always(0)},
        "memory",
    ),
    "elements that do not go on in par": (
        "store_requantize_par",
        "SlotWalker",
        {"par": without(bit_of(ParLayout(), "par_x"))},
        "memory",
    ),
    "a product that is a sum": ("store_mul", "RequantizeLanes", {"multiplies": always(0)}, "memory"),
    "a STORE that does not hold its residual": (
        "store_mul_hold",
        "SlotWalker",
        {"hold": always(0)},
        "memory",
    ),
    "a residual that the next STORE gets, too": (
        "store_mul_hold",
        "SlotWalker",
        {"store_last": always(0)},
        "memory",
    ),
    "residuals out of order": ("store_add_in_order", "SlotWalker", {"res_index": flipped(0)}, "memory"),
    "beats of one slot": ("store_requantize", "SlotWalker", {"last": always(1)}, "rules"),
    "lanes that write beside an element": (
        "store_requantize",
        "SlotWalker",
        {"slot": always(1)},
        "memory",
    ),
    "a LOAD of res that needs no room": (
        "store_add_waits_for_room",
        "ResOccupancy",
        {"room": always(1)},
        "events",
    ),
    "a STORE.ADD that does not wait": (
        "store_add_waits_for_room",
        "ResOccupancy",
        {"there": always(1)},
        "events",
    ),
    "a res that is never too full": (
        "fault_residual_full",
        "ResOccupancy",
        {"full": always(0), "room": always(1)},
        "events",
    ),
    "a res that is never too empty": (
        "fault_residual_empty",
        "ResOccupancy",
        {"empty": always(0), "there": always(1)},
        "events",
    ),
    "residuals that all go to one place": (
        "store_add_in_order",
        "ResOccupancy",
        {"begin": always(0)},
        "memory",
    ),
    "a STORE that does not wait for par": (
        "load_par_waits",
        "LoadExecutor",
        {"unwritten": always(0)},
        "events",
    ),
    "a LOAD of par that does not wait for a LOAD": (
        "load_par_over_load",
        "LoadExecutor",
        {"conflict": always(0)},
        "events",
    ),
    "a LOAD of par that does not wait for a STORE": (
        "load_par_waits",
        "InFlight",
        {"conflict": always(0)},
        "events",
    ),
    "a LOAD that does not retire in order": (
        "load_par_beside_store",
        "LoadExecutor",
        {"hold": late},
        "events",
    ),
}
"""Faults of features with ``post=1``: the directed program that detects it, the unit, its changed signals,
and the scope in which it shows."""
THIRD_FAULTS: dict[str, tuple[str, str, dict[str, Change], str]] = {
    "a table of the cycle before": ("store_table", "RequantizeLanes", {"table": late}, "memory"),
    "a word beside that of the value": (
        "store_table",
        "RequantizeLanes",
        {"tab_0.index": flipped(0)},
        "memory",
    ),
    "entries that are always int8": (
        "store_mul_table",
        "RequantizeLanes",
        {"setting": without(bit_of(SettingLayout(NAMED["tiny-npu"]), "table_unsigned"))},
        "memory",
    ),
    "a table that is chosen one cycle late": ("store_table", "SlotWalker", {"slot_table": late}, "memory"),
    "a STORE that does not wait for tab": (
        "load_tab_waits",
        "LoadExecutor",
        {"range_tab": always(0)},
        "events",
    ),
    "a LOAD of tab that does not wait for a STORE": (
        "load_tab_waits",
        "InFlight",
        {"range_tab": always(0)},
        "events",
    ),
    "a product that is a sum": ("store_mul", "RequantizeLanes", {"multiplies": always(0)}, "memory"),
    "a residual that is not held": ("store_mul_hold", "SlotWalker", {"hold": always(0)}, "memory"),
}
"""The same for faults of features of the third generation."""
LITTLE = ("store_", "load_par", "load_tab", "set_acc", "fault_")
"""Prefixes of programs that detect their faults in small scratchpads, too."""
FEW = {"uop_bytes": 16, "inp_bytes": 16, "wgt_bytes": 64, "acc_bytes": 512}
"""For those programs, scratchpads that are quick to fill."""


@cache
def program() -> Program:
    workload, machine = accel.gemm(3, 8, 24, shift=3), accel.machine(SMALL)
    two_tiles = default_schedule(workload, machine, 1, {"tile_m": 2})
    return accel.build(workload, machine, steps=two_tiles.steps)


COMPILED = "a matrix product"


@cache
def finder(name: str) -> Program:
    """The compiled program, or one of ``tests/programs``, with small scratchpads if they suffice."""
    if name == COMPILED:
        return program()
    found = load_test(Path(__file__).parents[1] / "programs" / f"{name}.s")
    return replace(found, config=found.config.override(FEW)) if name.startswith(LITTLE) else found


PLANTED = {
    f"{unit} {kind}": Fault(unit=unit, changes=changes, found_by=COMPILED, what=frozenset(WHERE[kind]))
    for (unit, kind), changes in FAULTS.items()
} | {
    name: Fault(unit=unit, changes=changes, found_by=found_by, what=frozenset({what}))
    for name, (found_by, unit, changes, what) in (SECOND_FAULTS | THIRD_FAULTS).items()
}


FOUND_BY = {fault.found_by: name for name, fault in reversed(PLANTED.items())}


def what_it_is_about(fault: str) -> object:
    """The fault itself if all generations have it, otherwise its unit, of the third generation first."""
    planted = PLANTED[fault]
    return fault if planted.found_by == COMPILED else planted.unit


def on_the_same_machine(config: Config) -> list[str]:
    """The faults whose programs run on the machine of this configuration."""
    return [name for name, fault in PLANTED.items() if finder(fault.found_by).config.hardware == config]


@cache
def machine(config: Config) -> FaultyEngine:
    return FaultyEngine(config, [PLANTED[name] for name in on_the_same_machine(config)])


def difference(by: Program, fault: str | None = None) -> Difference | None:
    """The first difference with a fault, or with boxes but no fault."""
    config = by.config.hardware
    engine = machine(config)
    engine.chosen = 0 if fault is None else 1 + on_the_same_machine(config).index(fault)
    engine.reset()
    return lockstep(by, engine).difference


@pytest.mark.xdist_group("planted")
@pytest.mark.parametrize("found_by", first_of_each(FOUND_BY, lambda name: finder(name).config.post > 0))
def test_boxes_alone_change_nothing(found_by: str) -> None:
    assert difference(finder(found_by)) is None


@pytest.mark.xdist_group("planted")
@pytest.mark.parametrize(
    "fault", first_of_each(sorted(PLANTED, key=SECOND_FAULTS.__contains__), what_it_is_about)
)
def test_a_planted_fault_is_found(fault: str) -> None:
    found = difference(finder(PLANTED[fault].found_by), fault)
    assert found is not None
    assert found.what in PLANTED[fault].what
    assert found.message


def test_another_priority_of_the_store_unit_at_the_read_port_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by = load_test(Path(__file__).parents[1] / "programs" / "order_of_reads.s")
    by = replace(by, config=by.config.override(FEW | {"inp_bytes": 64}))
    right = read_port.readers_of(by.config)
    place = right.index(Unit.STORE)
    for first in (place - 1, place):
        wrong = list(right)
        wrong[first : first + 2] = reversed(wrong[first : first + 2])
        monkeypatch.setattr(read_port, "readers_of", lambda config, wrong=tuple(wrong): wrong)
        with PysimEngine(by.config.hardware) as engine:
            found = lockstep(by, engine).difference
        assert found is not None
        assert found.what == "events"


def test_every_unit_has_a_fault_of_every_kind() -> None:
    assert set(FAULTS) == {
        (unit.name.capitalize(), kind) for unit in Unit for kind in ("latency", "token", "data")
    }


def test_the_program_has_tokens_of_every_kind() -> None:
    instructions = program().instructions
    assert {counter for one in instructions for counter in pushes(one)} == set(Counter)
