"""The compute unit. docs/explain/hardware.md lists its pipeline's stages for GEMM, MAC and ALU. Registers are
named after their cycle. It also executes LOADs of micro-ops and accumulators, SET and FINISH."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from msgspec import Struct

from accel.core.config import Config
from accel.core.fault_causes import CAUSE_BITS, INDEX_CAUSES, Cause
from accel.core.instruction_access import COLUMNS
from accel.core.isa import Alu, AluOp, Gemm, Instruction, Load, Mac, Opcode, SetAcc, Store, Unit, loops_of
from accel.core.scratchpad_specs import UOP
from accel.core.timing_rules import compute_depth
from accel.hw.bus.read_port import ReadChannel
from accel.hw.datapath.access_probes import AccessProbes
from accel.hw.datapath.accumulators import Accumulators, MirrorRead
from accel.hw.datapath.alu import Alu as AluLanes
from accel.hw.datapath.alu import control, group_of, product_slots
from accel.hw.datapath.gemm import ACC_BITS, GemmCore, tap_names
from accel.hw.datapath.instruction_checks import first_fault, loops_run
from accel.hw.datapath.loop_sequencer import OperationLayout, Sequencer, at_hand
from accel.hw.datapath.operands import depth, used
from accel.hw.datapath.queue import Queue
from accel.hw.datapath.register_copies import COPIES, copies
from accel.hw.datapath.scratchpads import Scratchpad, access_ports, connect_access
from accel.hw.datapath.transfer_memories import kinds_of
from accel.hw.datapath.word_layouts import INDEX_BITS, sram_bits, uop_view, view
from accel.hw.units.depthwise_taps import DepthwiseTaps
from accel.hw.units.in_flight import RetireLayout
from accel.hw.units.load_executor import LoadExecutor
from accel.hw.units.token_counters import connect_tokens
from accel.hw.units.unit_interfaces import ELSEWHERE, OperandReads, unit_ports


class Compute(wiring.Component):
    """The compute unit, with micro-op scratchpad and accumulators."""

    def __init__(self, config: Config, probes: AccessProbes | None = None) -> None:
        self._config = config
        self._probes = probes
        self._kinds = kinds_of(Load, Unit.COMPUTE, config)
        self._out = kinds_of(Store, Unit.STORE, config)
        super().__init__(
            {
                **unit_ports(config),
                "read": Out(ReadChannel(config)),
                "index_fault": Out(CAUSE_BITS),
                "index_fault_at": Out(INDEX_BITS),
                "moving": Out(1),
                "operands": Out(OperandReads(config)),
                "out": In(MirrorRead(self._out, config)),
            }
            | access_ports(Unit.COMPUTE, config)
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self._config
        m.submodules.sequencer = sequencer = Sequencer(config)
        m.submodules.loader = loader = LoadExecutor(self._kinds, 1, config)
        m.submodules.uops = uops = Scratchpad(UOP, self._kinds, config, probes=self._probes)
        m.submodules.accumulators = accumulators = Accumulators(self._kinds, self._out, config, self._probes)
        m.submodules.flight = flight = Queue(RetireLayout(), compute_depth(config) + 1)
        self._unsigned = Signal(name="acc_unsigned")
        self._taps = DepthwiseTaps(config) if config.depthwise else None
        if accumulators.is_set:
            m.d.comb += accumulators.unsigned.eq(self._unsigned)
        finished = self._pipeline(m, sequencer, uops, accumulators)
        self._start(m, sequencer, loader, flight, finished)
        wiring.connect(m, loader.read, wiring.flipped(self.read))
        connect_tokens(m, self, config)
        wiring.connect(m, wiring.flipped(self.out), accumulators.out)
        for pad in (uops, accumulators):
            kinds = [number for number, kind in enumerate(self._kinds) if kind.route.scratchpad is pad.holds]
            is_data = Cat(loader.data_beat.kind == kind for kind in kinds).any()
            is_pad = Cat(loader.pad_kind == kind for kind in kinds).any()
            m.d.comb += [
                pad.beat_valid.eq(loader.data_valid & is_data),
                pad.beat.eq(loader.data_beat),
                pad.data.eq(loader.data),
            ]
            with m.If(loader.pad_valid & is_pad):
                m.d.comb += [pad.word_valid.eq(1), pad.word_index.eq(loader.pad_index), pad.word.eq(0)]
            connect_access(m, self, pad)
        return m

    def _start(
        self, m: Module, sequencer: Sequencer, loader: LoadExecutor, flight: Queue, finished: Value
    ) -> None:
        """FINISH and SET use neither pipeline nor loader."""
        config = self._config
        issue, entry, retirement = self.issue, self.issue.entry, self.retirement
        common = view(Instruction, config, entry.word)
        alu = view(Alu, config, entry.word)
        loops, is_load, single = Signal(), Signal(), Signal()
        ready, finishing = Signal(), Signal()
        m.d.comb += [
            is_load.eq(common.opcode == Opcode.LOAD),
            loops.eq(reduce(or_, (common.opcode == cls.OPCODE for cls in loops_of(config)))),
            single.eq(~is_load & ~loops),
            ready.eq(
                issue.valid
                & ~loader.retirement.occupied
                & ~finishing
                & Mux(loops, sequencer.free, ~flight.valid)
            ),
            self.lacking.eq(ready & ~self.tokens.there),
        ]
        cause: Value = entry.cause
        if config.post:
            untapped = self._set(m)
            cause = Mux((cause == 0) & untapped, Cause.RESERVED, cause)
        with m.If(ready & self.tokens.there):
            m.d.comb += [self.fault.eq(cause), issue.start.eq(self.control.enable & (cause == 0))]
        m.d.sync += finishing.eq(issue.start & single & ~self.control.flush)
        loads = loader.retirement
        m.d.comb += [
            sequencer.flush.eq(self.control.flush | ~self.control.enable),
            sequencer.start.eq(issue.start & loops),
            sequencer.entry.eq(entry),
            loader.flush.eq(self.control.flush),
            loader.mem_base.eq(self.control.mem_base),
            loader.start.eq(issue.start & is_load),
            loader.entry.eq(entry),
            flight.flush.eq(self.control.flush),
            flight.push.eq(issue.start & ~is_load),
            flight.data.index.eq(entry.index),
            flight.data.push_prev.eq(common.push_prev),
            flight.data.push_next.eq(common.push_next),
            flight.pop.eq(finished | finishing),
            retirement.valid.eq(flight.pop | loads.valid),
            retirement.retired.eq(Mux(loads.occupied, loads.retired, flight.head)),
            retirement.oldest.eq(Mux(loads.occupied, loads.oldest, flight.head.index)),
            retirement.occupied.eq(loads.occupied | flight.valid),
            self.moving.eq(loads.occupied | finishing | (issue.start & ~loops)),
            self.busy.eq(
                (issue.start & loops & loops_run(alu))
                | sequencer.issuing
                | loader.data_valid
                | loader.pad_valid
            ),
        ]

    def _set(self, m: Module) -> Value:
        """Return whether the head is a depthwise MAC without taps from a SET.ACC."""
        issue, flush = self.issue, self.control.flush
        setting = view(SetAcc, self._config, issue.entry.word)
        is_set = setting.opcode == Opcode.SET
        with m.If(issue.start & is_set):
            m.d.sync += self._unsigned.eq(setting.unsigned)
        with m.If(flush):
            m.d.sync += self._unsigned.eq(0)
        if self._taps is None:
            return Const(0, 1)
        mac = view(Mac, self._config, issue.entry.word)
        self._taps.take(m, setting, start=issue.start & is_set, flush=flush)
        return (mac.opcode == Opcode.MAC) & mac.depthwise & (self._taps.taps == 0)

    def _pipeline(
        self, m: Module, sequencer: Sequencer, uops: Scratchpad, accumulators: Accumulators
    ) -> Value:
        config = self._config
        operation, dst, src = self._indices(m, sequencer, uops)

        m.submodules.core = core = GemmCore(config)
        for name in self.operands.signature.members:
            m.d.comb += getattr(core, name).eq(getattr(self.operands, name).element)
        if self._taps is not None:
            m.d.comb += Cat(core.whole).eq(Cat(copies(m, ~operation.depthwise, "whole")))
            m.d.sync += [
                tapped.eq(operation.depthwise & (tap < self._taps.taps))
                for tap, tapped in enumerate(core.tapped)
            ]
        for stage in range(config.tree_stages + 1):
            read, before = (dst, src), operation
            operation = self._delay(m, operation, f"product_{stage}")
            late = [
                Signal(sram_bits(config), name=f"{name}_{stage}", reset_less=True) for name in ("dst", "src")
            ]
            m.d.sync += [late[0].eq(dst), late[1].eq(src)]
            dst, src = late

        m.d.comb += [accumulators.read_0.index.eq(read[0]), accumulators.read_1.index.eq(read[1])]
        if self._probes is not None:
            self._count(m, self._probes, before)

        operating = self._delay(m, operation, "operating")
        writing = self._delay(m, operating, "writing")
        operating_dst, writing_dst = Signal(sram_bits(config)), Signal(sram_bits(config))
        m.submodules.alu = alu = AluLanes(config)
        written = Signal(len(alu.result), reset_less=True)
        earlier = Signal(len(alu.result), reset_less=True)
        m.d.sync += [
            operating_dst.eq(dst),
            writing_dst.eq(operating_dst),
            written.eq(alu.result),
            earlier.eq(written),
        ]
        changing = _Changing(
            latest=operating.run,
            latest_dst=operating_dst,
            written=written,
            before=writing.run,
            before_dst=writing_dst,
            earlier=earlier,
        )
        self._operands(m, (before, operation), accumulators, read, (dst, src), changing, core.sums, alu)
        m.d.comb += [
            accumulators.result_valid.eq(writing.run),
            accumulators.result_index.eq(writing_dst),
            accumulators.result.eq(written),
        ]
        return writing.last

    def _operands(
        self,
        m: Module,
        operations: tuple[data.View, data.View],
        accumulators: Accumulators,
        read: tuple[Value, Value],
        addresses: tuple[Value, Value],
        changing: "_Changing",
        sums: Value,
        alu: AluLanes,
    ) -> None:
        """Select the ALU's operation and operands for the next cycle.

        Results of two of the three preceding micro-ops are forwarded into the operand registers, the most
        recent one after them.

        Args:
            operations: the next micro-op, and the one being read.
            read: dst and src of the next micro-op.
            addresses: dst and src of the current micro-op.
            sums: the GEMM core's sums in the next cycle.
        """
        config = self._config
        lanes = len(sums) // ACC_BITS
        following, operation = operations
        immediate = Signal(signed(ACC_BITS))
        products, overwrite = operation.gemm, Const(0, 1)
        keeps: Sequence[Value] = [Const(1, 1)] * COPIES
        if config.post:
            products, overwrite = operation.gemm | operation.mac, operation.overwrite
            keeps = copies(m, ~following.overwrite, "keeps")
        m.d.comb += immediate.eq(operation.imm)
        adds = copies(m, products, "adds")
        multiplies = product_slots(config) > 1  # only MUL has parts that differ by slot
        phase = operation.phase if multiplies else None
        op = Mux(products, AluOp.ADD, operation.op)
        told = control(m, op, config, reset=operation.reset, phase=phase)
        m.d.comb += Value.cast(alu.control).eq(Cat(copies(m, Value.cast(told), "told")))
        uses_imm = copies(m, following.use_imm, "uses_imm")
        passes = overwrite, operation.use_imm | products
        operands = []
        for number, passed in enumerate(passes):
            is_latest = changing.latest & (changing.latest_dst == addresses[number]) & ~passed
            was_latest = changing.latest & (changing.latest_dst == read[number])
            was_before = changing.before & (changing.before_dst == read[number])
            from_result, from_written, from_earlier = (
                copies(m, value, f"from_{name}_{number}")
                for name, value in (("result", is_latest), ("written", was_latest), ("earlier", was_before))
            )
            held = Signal(len(sums), name=f"operand_{number}", reset_less=True)
            words = (getattr(accumulators, f"read_{number}").element, changing.earlier, changing.written)
            parts = []
            for n in range(lanes):
                group = group_of(n, lanes)
                element, before, latest, total, own = (
                    word.word_select(n, ACC_BITS) for word in (*words, sums, held)
                )
                element = Mux(from_written[group], latest, Mux(from_earlier[group], before, element))
                if number:
                    element = Mux(uses_imm[group], immediate, element)
                    m.d.sync += own.eq(element)
                    own = Mux(adds[group], total, own)
                else:
                    m.d.sync += own.eq(element & keeps[group].replicate(ACC_BITS))
                parts.append(Mux(from_result[group], latest, own))
            operands.append(Cat(parts))
        m.d.comb += [alu.left.eq(operands[0]), alu.right.eq(operands[1])]

    def _indices(self, m: Module, sequencer: Sequencer, uops: Scratchpad) -> tuple[data.View, Value, Value]:
        config = self._config
        m.d.comb += uops.read_0.index.eq(sequencer.address)
        read = self._delay(m, sequencer.operation, "read")
        uop = uop_view(config, uops.read_0.element)
        indices = {}
        for name in COLUMNS:
            offset = getattr(sequencer, name)
            held = Signal(len(offset), name=f"{name}_offset")
            indices[name] = Signal(len(offset), name=name)
            m.d.sync += [held.eq(offset), indices[name].eq(uop[name] + held)]
        highest = dict(indices)
        if self._taps is not None and tap_names(config):
            highest["src"] = self._taps.indices(m, self.operands, sequencer, uop)
        read_index, checked_index = Signal(INDEX_BITS), Signal(INDEX_BITS)
        m.d.sync += [read_index.eq(sequencer.index), checked_index.eq(read_index)]

        checked = self._delay(m, read, "checked")
        chosen = at_hand(checked.gemm, checked.mac if config.post else Const(0, 1), config)
        conditions = {name: used(name, checked, chosen, config) for name in COLUMNS}
        uses = {
            name: Signal(name=f"uses_{name}")
            for name, condition in conditions.items()
            if condition is not None
        }
        m.d.comb += [signal.eq(conditions[name]) for name, signal in uses.items()]
        faults = []
        for name, index in highest.items():
            beyond = index >= depth(name, chosen, config)
            faults.append((uses[name] & beyond if name in uses else beyond, INDEX_CAUSES[name]))
        cause = first_fault(m, faults)
        good = Signal(OperationLayout(config))
        m.d.comb += [
            good.eq(checked),
            *(
                getattr(self.operands, operand.memory.name).index.eq(indices[operand.name])
                for operand in Gemm.OPERANDS
                if operand.memory in ELSEWHERE
            ),
            self.index_fault_at.eq(checked_index),
        ]
        with m.If(checked.run):
            m.d.comb += self.index_fault.eq(cause)
        with m.If(~self.control.enable | (self.index_fault != 0)):
            m.d.comb += [good.run.eq(0), good.last.eq(0)]
        if self._probes is not None:
            inputs = {
                f"{operand.memory.name}_reads": uses[operand.name]
                for operand in Gemm.OPERANDS
                if operand.memory in ELSEWHERE
            }
            products = good.run & ~chosen[Alu]
            amounts = {name: products & is_used for name, is_used in inputs.items()}
            self._probes.drive(m, uop_reads=sequencer.operation.run, **amounts)
        return good, indices["dst"], indices["src"]

    def _count(self, m: Module, probes: AccessProbes, reading: Any) -> None:
        config, run = self._config, reading.run
        mac, depthwise, overwrite = (
            (getattr(reading, name) if name in reading.shape().members else Const(0, 1))
            for name in ("mac", "depthwise", "overwrite")
        )
        alu = run & ~reading.gemm & ~mac
        multiplication = config.operation_codes.get("mul")
        multiplies = Const(0, 1) if multiplication is None else reading.op == multiplication
        zeros = reading.gemm & reading.reset
        tapped = run & mac & depthwise
        probes.drive(
            m,
            gemm=run & reading.gemm & ~reading.reset,
            mac=run & mac & ~depthwise,
            depthwise=tapped,
            depthwise_taps=Const(0, 1) if self._taps is None else Mux(tapped, self._taps.taps, 0),
            alu=alu & ~multiplies,
            alu_mul=alu & multiplies,
            acc_dst_reads=run & ~zeros & ~(mac & overwrite),
            acc_src_reads=alu & ~reading.use_imm,
        )

    def _delay(self, m: Module, operation: Any, name: str) -> Any:
        late = Signal(OperationLayout(self._config), name=name)
        m.d.sync += late.eq(operation)
        with m.If(self.control.flush):
            m.d.sync += [late.run.eq(0), late.last.eq(0)]
        return late


class _Changing(Struct, frozen=True, kw_only=True):
    """Results of the last two micro-ops that are about to be written.

    Attributes:
        latest, latest_dst: whether the micro-op in the operation stage writes, and where. Its result is
            ``written`` in the next cycle and ``earlier`` in the one after.
        before, before_dst: the same for the preceding one, whose result is ``written`` now.
    """

    latest: Value
    latest_dst: Value
    before: Value
    before_dst: Value
    written: Value
    earlier: Value
