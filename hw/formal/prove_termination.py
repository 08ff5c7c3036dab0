"""Proofs of termination: every step leaves less of a transfer or an instruction.

The remainder is a number: the remaining rows or loops, then the current one's remainder. Its width bounds the
number of steps.
"""

from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from accel.core.config import DRAM_ADDRESS_BITS, NAMED, PAGE_BYTES, Config
from accel.core.isa import Gemm, Transfer, Unit
from accel.core.scratchpad_specs import UOP
from accel.hw.datapath.beat_walker import BeatWalker, PlacesLayout
from accel.hw.datapath.burst_walker import BurstWalker, RowsLayout
from accel.hw.datapath.instruction_checks import loops_run
from accel.hw.datapath.loop_sequencer import Sequencer
from accel.hw.datapath.pads import PadWalker
from accel.hw.datapath.transfer_memories import Kind, dram_lane, kinds_of
from accel.hw.datapath.word_layouts import BEATS_BITS, log2, view
from accel.hw.formal.claims import Claims, Proof
from accel.hw.formal.prove_bursts import each_transfer, walks

_MUL_SLOTS = 5


class _Walkers(wiring.Component):
    """A burst walker and a beat walker over the same transfers.

    ``start`` begins ``rows``. ``step`` advances by a beat, and by its burst with the burst's last beat. A
    walker's output depends only on its steps, so bursts may be requested ahead of their beats.
    """

    def __init__(self, kinds: list[Kind], config: Config) -> None:
        self._kinds = kinds
        self._config = config
        super().__init__(
            {
                "start": In(1),
                "rows": In(RowsLayout(config)),
                "mem_base": In(DRAM_ADDRESS_BITS),
                "step": In(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        kinds, rows = self._kinds, self.rows
        m.submodules.bursts = bursts = BurstWalker(kinds, self._config)
        m.submodules.beats = beats = BeatWalker(kinds, self._config)
        come = Signal(BEATS_BITS)
        """Beats of the current burst that have been stepped over."""
        places = Signal(PlacesLayout(self._config))
        m.d.comb += [
            bursts.start.eq(self.start),
            bursts.rows.eq(rows),
            bursts.mem_base.eq(self.mem_base),
            bursts.accept.eq(self.step & (come + 1 == bursts.beats)),
            places.kind.eq(rows.kind),
            places.lane.eq(dram_lane(rows.kind, rows.dram_base, kinds)),
            places.stride.eq(dram_lane(rows.kind, rows.x_stride, kinds)),
            places.x_size.eq(rows.x_size),
            places.y_size.eq(rows.y_size),
            beats.start.eq(self.start),
            beats.places.eq(places),
            beats.step.eq(self.step),
        ]
        with m.If(self.step):
            m.d.sync += come.eq(Mux(bursts.accept, 0, come + 1))
        return m


def transfers(config: Config, cls: type[Transfer], unit: Unit) -> Claims:
    """Claims for the bursts and beats of any transfers."""
    kinds = kinds_of(cls, unit, config)
    component = _Walkers(kinds, config)
    claims = Claims(component)
    inside = claims.inside
    rows, step = component.rows, component.step
    shift = log2(config.bus_bytes)
    claims.assume(component.mem_base[: log2(PAGE_BYTES)] == 0)
    claims.assume((rows.x_size != 0) & (rows.y_size != 0) & (rows.kind < len(kinds)))

    valid, idle = inside.signal("bursts.valid"), inside.signal("beats.idle")
    claims.assume(~component.start | (~valid & idle))
    claims.assume(~step | ~idle)
    accept, last = inside.input("bursts.accept"), inside.signal("bursts.last")
    claims.claim("both walkers are active together", valid == ~idle)
    claims.claim(
        "the last beat ends the last burst", ~step | (inside.signal("beats.last") == (accept & last))
    )
    burst_rows = inside.signal("bursts.rows")
    behind = Mux(inside.signal("bursts.ends"), 0, inside.signal("bursts.left"))
    burst_left = inside.signal("bursts.beats") + behind
    gets_less(claims, "bursts", valid, accept & ~last, Cat(burst_left, burst_rows))
    claims.claim(
        "the walker is free after the last burst",
        ~claims.before(accept & last) | claims.before(component.start) | ~valid,
    )

    come = inside.signal("come")
    kind, lane, row_lane, stride, take, left, x_size, chunk, beat_rows = (
        inside.signal(f"beats.{name}")
        for name in ("kind", "lane", "row_lane", "stride", "take", "left", "x_size", "chunk", "rows")
    )
    walks(claims, config, "bursts.")
    claims.lemma("the memory is valid", ~valid | (kind < len(kinds)))
    claims.lemma(
        "the current burst has beats to come", Mux(valid, come < inside.signal("bursts.beats"), come == 0)
    )
    claims.lemma("both walkers have the same rows left", ~valid | (burst_rows == beat_rows))
    claims.lemma("the last row is marked", ~valid | (inside.signal("bursts.last_row") == (burst_rows == 0)))
    claims.lemma("the last row is marked", ~valid | (inside.signal("beats.row_last") == (beat_rows == 0)))
    claims.lemma("rows have elements", ~valid | ((left != 0) & (left <= x_size)))
    ends, chunk_last = inside.signal("beats.ends"), inside.signal("beats.chunk_last")
    for number, one in enumerate(kinds):
        here = valid & (kind == number)
        size, lanes = log2(one.element_bytes), one.lanes
        room = lanes - lane
        claims.lemma(f"{number}: lanes lie in a beat", ~here | ((lane < lanes) & (row_lane < lanes)))
        claims.lemma(
            f"{number}: a beat takes the elements that fit", ~here | (take == Mux(left <= room, left, room))
        )
        claims.lemma(f"{number}: ends marks the end of a row", ~here | (ends == (left <= room)))
        claims.lemma(f"{number}: the chunk is part of its element", ~here | (chunk < one.chunks))
        claims.lemma(
            f"{number}: chunk_last marks the end of an element",
            ~here | (chunk_last == (chunk == one.chunks - 1)),
        )
        claims.lemma(
            f"{number}: rows have the same length in both walkers",
            ~here | (inside.signal("bursts.row_bytes") == x_size << size),
        )
        next_row, next_stride = (inside.signal(f"bursts.{name}")[:shift] for name in ("next_row", "stride"))
        next_lane = (row_lane + stride)[: log2(lanes)] if lanes > 1 else Const(0, 1)
        own_lane = stride[: log2(lanes)] if lanes > 1 else Const(0, 1)
        claims.lemma(f"{number}: row strides agree", ~here | (next_stride == (own_lane << size)[:shift]))
        claims.lemma(
            f"{number}: the next rows begin in the same lane",
            ~here | (next_row == (next_lane << size)[:shift]),
        )
        beats = (
            (left << log2(one.chunks)) - chunk if lanes == 1 else (lane + left + (lanes - 1)) >> log2(lanes)
        )
        claims.lemma(f"{number}: both walkers have the same beats left", ~here | (burst_left == come + beats))
    return claims


def gets_less(claims: Claims, name: str, there: Value, step: Value, left: Value) -> None:
    """Claim that a ``step`` makes ``left`` of something ``there`` smaller, and that it stays there
    otherwise."""
    stepped = claims.before(step)
    claims.claim(f"{name}: each step leaves less work", ~stepped | (there & (left < claims.before(left))))


def pads() -> Claims:
    """Claims for the pads of LOADs that have some."""
    component = PadWalker(NAMED["tiny"])
    claims = Claims(component)
    inside = claims.inside
    new = component.pads
    claims.assume((new.head != 0) | (new.tail != 0) | ((new.gap != 0) & (new.y_size > 1)))
    claims.assume(~component.start | component.free)
    claims.assume(~component.step | component.valid)
    run, gap, tail, between, final = (
        inside.signal(name) for name in ("run", "gap", "tail", "between", "final")
    )
    several = inside.signal("between_any")
    known = {"one": run == 1, "gap_one": gap == 1, "tail_one": tail == 1, "tail_none": tail == 0}
    for name, is_so in known.items():
        claims.lemma(f"{name} is right", ~component.valid | (inside.signal(name) == is_so))
    claims.lemma("a run of pads has words", ~component.valid | (run != 0))
    claims.lemma("pads between rows have words", ~component.valid | ~several | ((between != 0) & (gap != 0)))
    claims.lemma("final marks the last run", ~component.valid | (final == (~several & (final | (tail == 0)))))
    step = component.step & ~component.last & ~component.flush
    gets_less(claims, "pads", component.valid, step, Cat(run, ~final, Mux(several, between, 0)))
    claims.claim(
        "the pads end with the last word",
        ~claims.before(component.step & component.last) | claims.before(component.start) | ~component.valid,
    )
    return claims


def loops() -> Claims:
    """Claims for the slots of any instruction with micro-ops."""
    config = NAMED["tiny-int8"].override({"mul_slots": _MUL_SLOTS}, kinds=("geometry", "timing"))
    component = Sequencer(config)
    claims = Claims(component)
    inside = claims.inside
    new = view(Gemm, config, component.entry.word)
    claims.assume(~component.start | (component.free & (new.uop_end <= UOP.depth(config))))
    issuing = component.issuing
    address, end, inner, outer, inner_count = (
        inside.signal(name) for name in ("address", "end", "inner", "outer", "inner_count")
    )
    begin, steps, is_long = (inside.signal(name) for name in ("begin", "steps", "is_long"))
    phase = component.operation.phase
    claims.lemma("free is the complement of issuing", component.free == ~issuing)
    claims.lemma(
        "an issuing sequencer is active", ~issuing | (inside.signal("active") & inside.signal("run"))
    )
    claims.lemma(
        "the address is one of the micro-ops",
        ~issuing | ((begin < end) & (begin <= address) & (address < end)),
    )
    claims.lemma("micro-ops lie in their scratchpad", ~issuing | (end <= UOP.depth(config)))
    claims.lemma("last_uop is right", ~issuing | (inside.signal("last_uop") == (address + 1 == end)))
    claims.lemma("one_uop is right", ~issuing | (inside.signal("one_uop") == (begin + 1 == end)))
    claims.lemma("last_inner is right", ~issuing | (inside.signal("last_inner") == (inner == 0)))
    claims.lemma("one_inner is right", ~issuing | (inside.signal("one_inner") == (inner_count == 0)))
    claims.lemma("last_outer is right", ~issuing | (inside.signal("last_outer") == (outer == 0)))
    claims.lemma("inner iterations are counted down", ~issuing | (inner <= inner_count))
    claims.lemma(
        "the last slot of a micro-op is marked", ~issuing | (steps == (~is_long | (phase == _MUL_SLOTS - 1)))
    )
    claims.lemma("only an operation with several slots takes them", ~issuing | is_long | (phase == 0))
    claims.lemma("the phase is a slot of MUL", ~issuing | (phase < _MUL_SLOTS))
    ends = steps & inside.signal("last_uop") & inside.signal("last_inner") & inside.signal("last_outer")
    claims.lemma("the sequencer is free in its last slot", ~issuing | ~ends)
    left = Cat(Mux(is_long, ~phase, 0), (end - address)[: len(end)], inner, outer)
    goes_on = claims.before(issuing & ~component.flush) & issuing
    claims.claim("each cycle leaves less work", ~goes_on | (left < claims.before(left)))
    claims.claim(
        "an instruction without micro-ops takes one slot",
        ~claims.before(component.start & ~loops_run(new)) | component.free,
    )
    return claims


PROOFS = (
    *(
        Proof(
            name=f"ends of {unit.label} {cls.__name__.upper()}s, {name}",
            statement="bursts have the beats that the transfer needs; each step leaves less work",
            build=partial(transfers, NAMED[name], cls, unit),
        )
        for name, cls, unit in each_transfer(("tiny", "tiny-int8", "tiny-npu"))
    ),
    Proof(name="ends of pads", statement="each word leaves less work", build=pads),
    Proof(name="ends of loops", statement="each slot leaves less work", build=loops),
)
