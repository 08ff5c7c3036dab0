"""LOADs and SETs of the store unit with ``post=1``."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring

from accel.core.config import Config
from accel.core.fault_causes import Cause
from accel.core.isa import (
    Load,
    Opcode,
    OwnMemory,
    SetOut,
    SetSum,
    StoreAdd,
    StoreOperand,
    StoreReq,
    Unit,
    store_operands_of,
)
from accel.core.scratchpad_specs import TAB
from accel.hw.datapath.instruction_checks import (
    is_finished,
    operand_end,
    operand_first,
    takes_residuals,
    uses_operand,
)
from accel.hw.datapath.queue import RegisteredHeadQueue
from accel.hw.datapath.requantize_lanes import SettingLayout
from accel.hw.datapath.res_occupancy import ResOccupancy
from accel.hw.datapath.transfer_memories import kinds_of
from accel.hw.datapath.word_layouts import view
from accel.hw.units.in_flight import InFlight, RangeLayout, RetireLayout
from accel.hw.units.load_executor import LoadExecutor


class KnownLayout(data.StructLayout):
    """Facts about an instruction. ``good``: it is free of faults. ``holds``: a STORE takes one element of RES
    for all of its elements."""

    def __init__(self, config: Config) -> None:
        touches = (_touches(operand) for operand in store_operands_of(config))
        names = ("is_load", "is_set", "is_store", "of_res", "finished", "adds", *touches, "good")
        super().__init__(dict.fromkeys((*names, *(("holds",) if config.res_mul else ())), 1))


def _touches(operand: StoreOperand) -> str:
    return f"touches_{operand.scratchpad}"


def operand_suffixes(config: Config) -> dict[str, StoreOperand]:
    """Return STOREs' operands by their signals' suffix. The first has none."""
    operands = store_operands_of(config)
    return {f"_{one.scratchpad}" if number else "": one for number, one in enumerate(operands)}


class _OrderLayout(data.StructLayout):
    def __init__(self) -> None:
        super().__init__({"is_store": 1, "retiring": RetireLayout()})


class StoreUnitLoads:
    """Executes LOADs of ``par`` and ``res`` and SETs, keeps the store unit's instructions in order, and
    checks the head.

    Args:
        unit: the store unit, whose read channel and retirement this drives.
        can_store: a STORE could start, apart from tokens and LOADs.

    Attributes:
        good: the head has no fault of its own.
        can_start: a head without fault can start, apart from tokens.
        can_fail: the head's fault can be reported, apart from tokens.
    """

    def __init__(self, m: Module, unit: Any, flight: InFlight, can_store: Value) -> None:
        self._unit = unit
        config = unit.config
        self.kinds = kinds_of(Load, Unit.STORE, config)
        self._operands = operand_suffixes(config)
        self.loader = LoadExecutor(
            self.kinds, config.loads_in_flight, config, shared=True, memories=list(self._operands)
        )
        m.submodules.loader = self.loader
        m.submodules.residuals = residuals = ResOccupancy(config)
        known = Signal(KnownLayout(config))
        """Facts about the head, decoded as it enters the queue's head."""
        with m.If(unit.issue.taking):
            m.d.sync += known.eq(self._known(m))
        faulty = Signal()
        self.faulty = faulty
        self.good: Value = known.good
        self.is_store: Value = known.is_store
        self.faults: Sequence[tuple[Value, Cause]] = [
            (residuals.full, Cause.RESIDUAL_FULL),
            (residuals.empty, Cause.RESIDUAL_EMPTY),
        ]
        self._ranges(m, flight, residuals, known)
        waits = (known.is_load & (self.loader.conflict | flight.conflict)) | (
            known.finished & self.loader.unwritten
        )
        waits = waits | ~(residuals.room & residuals.there)
        free = self._in_order(m, flight, known, can_store)
        self.can_start = free & (known.is_set | ~waits)
        self.can_fail = free & (known.is_set | faulty | ~waits)
        self.setting = self._set(m, known.is_set)

    def _known(self, m: Module) -> data.View:
        following, config = self._unit.issue.following, self._unit.config
        load, store = (view(cls, config, following.word) for cls in (Load, StoreReq))
        known = Signal(KnownLayout(config), name="following_known")
        is_load, is_set = load.opcode == Opcode.LOAD, load.opcode == Opcode.SET
        is_store = ~is_load & ~is_set
        finished = is_store & is_finished(store.memory, config)
        touches = [
            (operand, is_load & (load.memory == memory), uses_operand(finished, store, operand))
            for operand in self._operands.values()
            for memory in [self._memory_of(operand)]
        ]
        m.d.comb += [
            known.is_load.eq(is_load),
            known.is_set.eq(is_set),
            known.is_store.eq(is_store),
            known.of_res.eq(is_load & (load.memory == OwnMemory.RES)),
            known.finished.eq(finished),
            known.adds.eq(is_store & takes_residuals(store.memory, config)),
            *(
                getattr(known, _touches(operand)).eq((fills | used) & following.moves.data)
                for operand, fills, used in touches
            ),
            known.good.eq(following.cause == 0),
        ]
        if config.res_mul:
            m.d.comb += known.holds.eq(self._holds(following.word))
        return known

    def _memory_of(self, operand: StoreOperand) -> int:
        return next(kind.memory for kind in self.kinds if kind.route.scratchpad is operand.scratchpad)

    def _holds(self, word: Value) -> Value:
        store = view(StoreAdd, self._unit.config, word)
        takes = (store.opcode == Opcode.STORE) & takes_residuals(store.memory, self._unit.config)
        return takes & store.hold

    def _residuals(self, known: Any) -> tuple[Value, Value]:
        """Return the elements of RES that the head and the following instruction load or take."""
        head, following = self._unit.issue.entry, self._unit.issue.following
        if not self._unit.config.res_mul:
            return head.box.elements, following.box.elements
        return (
            Mux(known.holds, head.moves.data, head.box.elements),
            Mux(self._holds(following.word), following.moves.data, following.box.elements),
        )

    def _ranges(self, m: Module, flight: InFlight, residuals: ResOccupancy, known: Any) -> None:
        unit, loader = self._unit, self.loader
        issue, config = unit.issue, unit.config
        load = view(Load, config, issue.entry.word)
        elements, next_elements = self._residuals(known)
        res_kind = next(number for number, kind in enumerate(self.kinds) if kind.memory == OwnMemory.RES)
        ranges = {suffix: self._range(m, known, suffix) for suffix in self._operands}
        for part, name in ((flight, "following"), (loader, "following_range")):
            m.d.comb += [
                *(getattr(part, f"range{suffix}").eq(touched) for suffix, (touched, _) in ranges.items()),
                part.taking.eq(issue.taking),
                *(getattr(part, f"{name}{suffix}").eq(then) for suffix, (_, then) in ranges.items()),
            ]
        m.d.comb += [
            loader.sram.eq(Mux(known.of_res, residuals.begin, load.sram_base)),
            residuals.flush.eq(unit.control.flush),
            residuals.valid.eq(issue.valid),
            residuals.elements.eq(elements),
            residuals.following.eq(next_elements),
            residuals.is_load.eq(known.of_res),
            residuals.is_store.eq(known.is_store),
            residuals.is_add.eq(known.adds),
            residuals.start.eq(issue.start),
            residuals.written.eq(loader.written & (loader.data_beat.kind == res_kind)),
            residuals.retire.eq(flight.retirement.valid),
        ]

    def _range(self, m: Module, known: Any, suffix: str) -> tuple[Signal, Signal]:
        issue, config = self._unit.issue, self._unit.config
        touched, following = Signal(RangeLayout(config)), Signal(RangeLayout(config))
        comes = view(Load, config, issue.following.word)
        m.d.comb += [
            *self._ends(following, issue.following, comes.opcode == Opcode.LOAD, suffix),
            touched.any.eq(getattr(known, _touches(self._operands[suffix]))),
            *self._ends(touched, issue.entry, known.is_load, suffix),
        ]
        return touched, following

    def _ends(self, found: Any, entry: Any, is_load: Value, suffix: str) -> list[Any]:
        """Assign a range. A queue entry has the end of the first operand's range. Others follow from the
        word."""
        config, operand = self._unit.config, self._operands[suffix]
        load, store = view(Load, config, entry.word), view(StoreReq, config, entry.word)
        begin, end = Mux(is_load, load.sram_base, operand_first(store, operand)), entry.box.end
        if suffix:
            bits = operand.scratchpad.address_bits(config) + 1
            begin, end = begin[:bits], Mux(is_load, end, operand_end(store, operand))[:bits]
        return [found.begin.eq(begin), found.end.eq(end)]

    def _in_order(self, m: Module, flight: InFlight, known: Any, can_store: Value) -> Value:
        """Retire in program order. Return whether the head may start, apart from conflicts."""
        unit, loader, config = self._unit, self.loader, self._unit.config
        issue, control = unit.issue, unit.control
        in_flight = config.loads_in_flight + config.stores_in_flight
        m.submodules.order = order = RegisteredHeadQueue(_OrderLayout(), in_flight)
        under_way = Signal()
        loads, stores, both = loader.retirement, flight.retirement, unit.retirement
        m.d.comb += [
            loader.flush.eq(control.flush),
            loader.mem_base.eq(control.mem_base),
            loader.entry.eq(issue.entry),
            loader.start.eq(issue.start & ~known.is_store),
            order.flush.eq(control.flush),
            order.push.eq(issue.start),
            order.data.is_store.eq(known.is_store),
            order.data.retiring.eq(flight.retiring),
            order.pop.eq(both.valid),
            loader.hold.eq(order.head.is_store),
            flight.hold.eq(~order.head.is_store),
            both.valid.eq(loads.valid | stores.valid),
            both.retired.eq(order.head.retiring),
            both.oldest.eq(order.head.retiring.index),
            both.occupied.eq(order.valid),
        ]
        wiring.connect(m, loader.read, wiring.flipped(unit.read))
        m.d.sync += under_way.eq(issue.start & known.is_set & ~control.flush)
        can_load = ~loader.read.valid & loader.room
        return ~under_way & Mux(known.is_set, ~order.valid, Mux(known.is_load, can_load, can_store))

    def _set(self, m: Module, is_set: Value) -> data.View:
        issue = self._unit.issue
        out, total = (view(cls, self._unit.config, issue.entry.word) for cls in (SetOut, SetSum))
        setting = Signal(SettingLayout(self._unit.config))
        addition = setting.addition
        taken = issue.start & is_set
        with m.If(taken & (out.part == SetOut.PART)):
            m.d.sync += [
                *(getattr(setting.range, name).eq(getattr(out, name)) for name in ("zero", "low", "high")),
                *(
                    getattr(addition, name).eq(getattr(out, name))
                    for name in ("left_zero", "right_zero", "offset", "shift")
                ),
                setting.unsigned.eq(out.unsigned),
                *([setting.table_unsigned.eq(out.table_unsigned)] if TAB.exists(self._unit.config) else []),
            ]
        with m.If(taken & (out.part == SetSum.PART)):
            m.d.sync += [
                *(getattr(addition.range, name).eq(getattr(total, name)) for name in ("zero", "low", "high")),
                addition.left_multiplier.eq(total.left_multiplier),
                addition.right_multiplier.eq(total.right_multiplier),
            ]
        with m.If(self._unit.control.flush):
            m.d.sync += Value.cast(setting).eq(0)
        return setting
