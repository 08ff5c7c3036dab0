"""The beats of STOREs with ``post=1``."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring

from accel.core.scratchpad_specs import PAR, RES, TAB
from accel.core.timing_rules import post_depth
from accel.hw.datapath.beat_walker import BeatWalker
from accel.hw.datapath.requantize_lanes import RequantizeLanes, SlotWalker
from accel.hw.datapath.scratchpads import Scratchpad, connect_access
from accel.hw.units.store_unit_loads import StoreUnitLoads


class RequantizedBeats:
    """Drives the write data of STOREs with ``post=1``, from the accumulators, ``par``, ``res`` and ``tab``.

    Args:
        unit: the store unit, whose ``wdata``, ``wstrb`` and ``wlast`` this drives.
        beats: the walker over each beat's accumulators.
        operands: ``par``, ``table`` and ``hold`` of the STORE whose first beat enters the walker.
        asking: a beat or slot is requested from the accumulators.

    Attributes:
        next: the next requested beat is requantized.
        full: a beat is ready for the bus.
    """

    def __init__(
        self,
        m: Module,
        unit: Any,
        own: StoreUnitLoads,
        beats: BeatWalker,
        *,
        operands: Any,
        asking: Signal,
        last: Signal,
    ) -> None:
        config = unit.config
        m.submodules.walker = walker = SlotWalker(unit.kinds, config)
        m.submodules.lanes = lanes = RequantizeLanes(config)
        m.submodules.par = pars = Scratchpad(PAR, own.kinds, config, paced=True, probes=unit.probes)
        m.submodules.res = res = Scratchpad(
            RES, own.kinds, config, paced=True, circular=True, probes=unit.probes
        )
        m.d.comb += [
            walker.flush.eq(unit.control.flush),
            walker.start.eq(beats.free),
            walker.par.eq(operands.par),
            walker.beat.eq(beats.beat),
            walker.row_last.eq(beats.row_last),
            walker.step.eq(asking),
            beats.step.eq(asking & walker.last),
            unit.out.slot.eq(walker.slot),
            lanes.advance.eq(unit.out.advance),
            lanes.slot.eq(walker.slot),
            lanes.sums.eq(unit.out.sums),
            lanes.par.eq(pars.read_0.element),
            lanes.res.eq(res.read_0.element),
            lanes.setting.eq(own.setting),
        ]
        for number, (pad, index) in enumerate(((pars, walker.par_index), (res, walker.res_index))):
            _fill(m, own, number, pad)
            m.d.comb += [pad.advance.eq(unit.out.advance), pad.read_0.index.eq(index)]
            connect_access(m, unit, pad)
        if config.res_mul:
            m.d.comb += [
                walker.hold.eq(operands.hold),
                walker.store_last.eq(beats.last),
                lanes.multiplies.eq(walker.multiplies),
            ]
        if TAB.exists(config):
            self._look_up(m, unit, own, walker, lanes, operands.table)
        if unit.probes is not None:
            requantizes = asking & walker.finished
            unit.probes.drive(m, par_reads=requantizes, res_reads=requantizes & walker.adds)
            if TAB.exists(config):
                unit.probes.drive(m, tab_reads=requantizes & (walker.slot_table != 0))
        self.next: Signal = walker.finished
        self.full = self._write(m, unit, walker, lanes, asking, last)

    def _look_up(
        self,
        m: Module,
        unit: Any,
        own: StoreUnitLoads,
        walker: SlotWalker,
        lanes: RequantizeLanes,
        table: Value,
    ) -> None:
        config = unit.config
        m.submodules.tab = tab = Scratchpad(
            TAB, own.kinds, config, copies=config.lanes, paced=True, probes=unit.probes
        )
        number = next(n for n, kind in enumerate(own.kinds) if kind.route.scratchpad is TAB)
        _fill(m, own, number, tab)
        m.d.comb += [
            walker.table.eq(table),
            lanes.table.eq(walker.slot_table),
            tab.advance.eq(unit.out.advance),
        ]
        for lane in range(config.lanes):
            wiring.connect(m, getattr(lanes, f"tab_{lane}"), getattr(tab, f"read_{lane}"))
        connect_access(m, unit, tab)

    def _write(
        self, m: Module, unit: Any, walker: SlotWalker, lanes: RequantizeLanes, asking: Signal, last: Signal
    ) -> Value:
        config = unit.config
        read = {
            "valid": asking,
            "last": last,
            "complete": walker.last,
            "finished": walker.finished,
            "adds": walker.adds,
            "number": walker.number,
            "inside": walker.slot.inside,
        }
        held = {name: Signal(len(value), name=f"read_{name}") for name, value in read.items()}
        with m.If(unit.out.advance):
            m.d.sync += [held[name].eq(value) for name, value in read.items()]
            values = (*held.values(), unit.out.data, unit.out.strobe)
            *staged, bytes_, strobe = _staged(m, post_depth(config), values)
            beat = dict(zip(held, staged, strict=True))
            m.d.sync += unit.wlast.eq(beat["last"])
            with m.If(beat["finished"]):
                inside = beat["inside"].replicate(config.lanes)
                m.d.sync += [
                    unit.wdata.word_select(beat["number"], len(lanes.result)).eq(lanes.result),
                    unit.wstrb.word_select(beat["number"], config.lanes).eq(inside),
                ]
            with m.Else():
                m.d.sync += [unit.wdata.eq(bytes_), unit.wstrb.eq(strobe)]
        m.d.comb += lanes.adds.eq(beat["adds"])
        return beat["valid"] & beat["complete"]


def _fill(m: Module, own: StoreUnitLoads, number: int, pad: Scratchpad) -> None:
    loader = own.loader
    assert own.kinds[number].route.scratchpad is pad.holds
    m.d.comb += [
        pad.beat_valid.eq(loader.data_valid & (loader.data_beat.kind == number)),
        pad.beat.eq(loader.data_beat),
        pad.data.eq(loader.data),
    ]


def _staged(m: Module, stages: int, beat: Sequence[Signal]) -> Sequence[Signal]:
    for number in range(stages):
        behind = [
            Signal(len(part), name=f"stage_{number}_{n}", reset_less=n > 0) for n, part in enumerate(beat)
        ]
        m.d.sync += [held.eq(part) for held, part in zip(behind, beat, strict=True)]
        beat = behind
    return beat
