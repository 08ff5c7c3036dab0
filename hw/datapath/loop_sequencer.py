"""The hardware loops of GEMM, MAC and ALU."""

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.instruction_access import COLUMNS
from accel.core.isa import Alu, Gemm, Mac
from accel.core.isa.field_widths import ALU_OP_BITS, IMMEDIATE_BITS, LOOP_BITS
from accel.core.isa.operands import factor_fields
from accel.hw.datapath.instruction_checks import is_alu, loops_run, operation_number
from accel.hw.datapath.operands import Chosen, factor
from accel.hw.datapath.word_layouts import INDEX_BITS, EntryLayout, sram_bits, view


def most_slots(config: Config) -> int:
    return max((one.slots(config) for one in config.operations.values()), default=1)


class OperationLayout(data.StructLayout):
    """A micro-op's fields in the pipeline."""

    def __init__(self, config: Config) -> None:
        mac = {"mac": 1, "overwrite": 1} if config.post else {}
        mac |= {"depthwise": 1} if config.depthwise else {}
        slots = most_slots(config)
        phase = {"phase": (slots - 1).bit_length()} if slots > 1 else {}
        super().__init__(
            {
                "run": 1,  # 0: the slot of an instruction without micro-ops
                "last": 1,  # the slot retires its instruction
                "gemm": 1,
                "reset": 1,
                "use_imm": 1,
                "op": max(ALU_OP_BITS, max(config.operations).bit_length()),
                "imm": signed(IMMEDIATE_BITS),
                **mac,
                **phase,  # slot of the micro-op
            }
        )


def at_hand(is_gemm: Value, is_mac: Value, config: Config) -> Chosen:
    if not config.post:
        return {Gemm: is_gemm, Alu: ~is_gemm}
    return {Gemm: is_gemm, Mac: is_mac, Alu: ~(is_gemm | is_mac)}


class Sequencer(wiring.Component):
    """Presents one micro-op's address and index offsets per cycle.

    An operation with several slots keeps its offsets for one cycle per slot, and runs in the last. An
    instruction that begins with ``start`` presents its first micro-op in the next cycle. ``free``, a
    register, shows that the next may start. While it is set, ``entry`` is loaded in every cycle, because
    ``start`` is known late. ``issuing`` is its complement.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        index = index_bits(config)
        super().__init__(
            {
                "flush": In(1),
                "start": In(1),
                "entry": In(EntryLayout(config)),
                "free": Out(1, init=1),
                "issuing": Out(1),
                "address": Out(config.uop_address_bits),
                "operation": Out(OperationLayout(config)),
                "index": Out(INDEX_BITS),
                **{name: Out(index) for name in COLUMNS},
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self._config
        gemm = view(Gemm, config, self.entry.word)
        alu = view(Alu, config, self.entry.word)
        mac = view(Mac, config, self.entry.word) if config.post else None
        is_gemm, is_mac = gemm.opcode == Gemm.OPCODE, gemm.opcode == Mac.OPCODE
        active = Signal()
        run = Signal()
        begin = Signal(config.uop_address_bits)
        end = Signal(config.uop_address_bits + 1)
        outer = Signal(LOOP_BITS)
        inner = Signal(LOOP_BITS)
        inner_count = Signal(LOOP_BITS)
        held = Signal(OperationLayout(config))
        last_uop = Signal()
        last_inner = Signal()
        last_outer = Signal()
        one_uop = Signal()
        one_inner = Signal()
        is_long, steps, next_steps = self._steps(m, held, alu)
        m.d.comb += [
            self.operation.eq(held),
            self.operation.run.eq(active & run & steps),
            self.operation.last.eq(active & self.free),
        ]
        with m.If(steps):
            with m.If(last_uop):
                m.d.sync += [self.address.eq(begin), inner.eq(inner - 1)]
                with m.If(last_inner):
                    m.d.sync += [inner.eq(inner_count), outer.eq(outer - 1)]
            with m.Else():
                m.d.sync += self.address.eq(self.address + 1)

        # The next cycle's slot is the last, for the current instruction or the entry.
        next_uop, next_inner, next_outer = Signal(), Signal(), Signal()
        new_uop, new_inner, new_outer, new_run = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            next_uop.eq(Mux(steps, Mux(last_uop, one_uop, self.address + 2 == end), last_uop)),
            next_inner.eq(Mux(steps & last_uop, Mux(last_inner, one_inner, inner == 1), last_inner)),
            next_outer.eq(Mux(steps & last_uop & last_inner, outer == 1, last_outer)),
            new_uop.eq(gemm.uop_begin + 1 == gemm.uop_end),
            new_inner.eq(gemm.iter_in == 1),
            new_outer.eq(gemm.iter_out == 1),
            new_run.eq(loops_run(gemm)),
        ]
        one_slot = new_uop & new_inner & new_outer
        if is_long is not None:
            one_slot = one_slot & ~is_long
        next_free = Mux(
            self.free, ~self.start | ~new_run | one_slot, next_steps & next_uop & next_inner & next_outer
        )
        m.d.sync += [
            last_uop.eq(next_uop),
            last_inner.eq(next_inner),
            last_outer.eq(next_outer),
            self.free.eq(next_free),
            self.issuing.eq(~next_free),
        ]

        views = {Gemm: gemm, Mac: mac, Alu: alu}
        chosen = at_hand(is_gemm, is_mac, config)
        self._walk(m, views, chosen, last_inner, steps & last_uop)
        with m.If(~self.issuing):
            m.d.sync += [
                active.eq(self.start),
                run.eq(new_run),
                begin.eq(gemm.uop_begin),
                end.eq(gemm.uop_end),
                self.address.eq(gemm.uop_begin),
                outer.eq(gemm.iter_out - 1),
                inner.eq(gemm.iter_in - 1),
                inner_count.eq(gemm.iter_in - 1),
                Cat(last_uop, one_uop).eq(new_uop.replicate(2)),
                Cat(last_inner, one_inner).eq(new_inner.replicate(2)),
                last_outer.eq(new_outer),
                held.gemm.eq(is_gemm),
                held.reset.eq(is_gemm & gemm.reset),
                held.use_imm.eq(chosen[Alu] & alu.use_imm),
                held.op.eq(Mux(chosen[Alu], operation_number(alu, config), 0)),
                held.imm.eq(alu.imm),
                self.index.eq(self.entry.index),
            ]
            if mac is not None:
                m.d.sync += [held.mac.eq(is_mac), held.overwrite.eq(is_mac & mac.overwrite)]
            if mac is not None and config.depthwise:
                m.d.sync += held.depthwise.eq(is_mac & mac.depthwise)
        with m.If(self.flush):
            m.d.sync += [active.eq(0), self.free.eq(1), self.issuing.eq(0)]
        return m

    def _walk(self, m: Module, views: Any, chosen: Any, last_inner: Value, steps: Value) -> None:
        for name in COLUMNS:
            per_outer, per_inner = (factor(one, views, chosen, self._config) for one in factor_fields(name))
            offset = getattr(self, name)
            row = Signal(len(offset), name=f"{name}_row")
            factor_out = Signal(len(per_outer), name=f"{name}_factor_out")
            factor_in = Signal(len(per_inner), name=f"{name}_factor_in")
            with m.If(steps):
                m.d.sync += offset.eq(offset + factor_in)
                with m.If(last_inner):
                    m.d.sync += [offset.eq(row + factor_out), row.eq(row + factor_out)]
            with m.If(~self.issuing):
                m.d.sync += [
                    offset.eq(0),
                    row.eq(0),
                    factor_out.eq(per_outer),
                    factor_in.eq(per_inner),
                ]

    def _steps(self, m: Module, held: Any, alu: Any) -> tuple[Value | None, Value, Value]:
        """Return whether the entry's micro-ops take several slots (None: never on this machine), and whether
        this slot and the instruction's next one are a micro-op's last."""
        number = operation_number(alu, self._config)
        slots = {code: one.slots(self._config) for code, one in self._config.operations.items()}
        by_slots = {
            count: reduce(or_, (number == int(code) for code, own in slots.items() if own == count))
            for count in sorted({*slots.values()} - {1})
        }
        if not by_slots:
            return None, Const(1), Const(1)
        steps = Signal()
        following = Signal()
        is_long = is_alu(alu, self._config) & reduce(or_, by_slots.values())
        last_but_one: Value = Const(max(by_slots) - 2)
        if len(by_slots) > 1:
            last_but_one = Signal(range(max(by_slots) - 1))
            with m.If(~self.issuing):
                for count, chosen in by_slots.items():
                    with m.If(chosen):
                        m.d.sync += last_but_one.eq(count - 2)
        held_long = Signal(name="is_long")
        m.d.comb += following.eq(~held_long | (held.phase == last_but_one))
        m.d.sync += [steps.eq(following), held.phase.eq(Mux(steps, 0, held.phase + 1))]
        with m.If(~self.issuing):
            m.d.sync += [steps.eq(~is_long), held_long.eq(is_long), held.phase.eq(0)]
        return is_long, steps, following


def index_bits(config: Config) -> int:
    """Return the width of an index with all loop offsets, also beyond the scratchpad."""
    return sram_bits(config) + LOOP_BITS + 1
