"""Proofs of termination: with every step, less of a transfer or an instruction remains.

The remainder is a number: the remaining rows or loops, followed by the remainder of the current one. It is as
wide as the registers together, so the number of steps is bounded.
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
    """The burst walker and the beat walker over the same sequence of transfers.

    ``start`` begins ``rows``. ``step`` advances by a beat, and by its burst with the burst's last beat. A
    walker's output depends only on its steps, so bursts may be requested ahead of their beats.
    """

    def __init__(self, kinds: list[Kind], config: Config) -> None:
        self._kinds = kinds
        self._config = config
        super().__init__(
            {
                "start": In(1),
                "rows": In(RowsLayout()),
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
    claims.claim("a transfer's bursts and its places are there together", valid == ~idle)
    claims.claim(
        "its last beat is its last burst's", ~step | (inside.signal("beats.last") == (accept & last))
    )
    burst_rows = inside.signal("bursts.rows")
    behind = Mux(inside.signal("bursts.ends"), 0, inside.signal("bursts.left"))
    burst_left = inside.signal("bursts.beats") + behind
    gets_less(claims, "bursts", valid, accept & ~last, Cat(burst_left, burst_rows))
    claims.claim(
        "the last burst ends it", ~claims.before(accept & last) | claims.before(component.start) | ~valid
    )

    come = inside.signal("come")
    kind, lane, row_lane, stride, take, left, x_size, chunk, beat_rows = (
        inside.signal(f"beats.{name}")
        for name in ("kind", "lane", "row_lane", "stride", "take", "left", "x_size", "chunk", "rows")
    )
    walks(claims, config, "bursts.")
    claims.lemma("there is such a memory", ~valid | (kind < len(kinds)))
    claims.lemma(
        "beats of the burst are to come", Mux(valid, come < inside.signal("bursts.beats"), come == 0)
    )
    claims.lemma("as many rows", ~valid | (burst_rows == beat_rows))
    claims.lemma("the last row is known", ~valid | (inside.signal("bursts.last_row") == (burst_rows == 0)))
    claims.lemma("the last row is known", ~valid | (inside.signal("beats.row_last") == (beat_rows == 0)))
    claims.lemma("rows have elements", ~valid | ((left != 0) & (left <= x_size)))
    ends, chunk_last = inside.signal("beats.ends"), inside.signal("beats.chunk_last")
    for number, one in enumerate(kinds):
        here = valid & (kind == number)
        size, lanes = log2(one.element_bytes), one.lanes
        room = lanes - lane
        claims.lemma(f"{number}: places in a beat", ~here | ((lane < lanes) & (row_lane < lanes)))
        claims.lemma(f"{number}: it takes what there is", ~here | (take == Mux(left <= room, left, room)))
        claims.lemma(f"{number}: it ends its row", ~here | (ends == (left <= room)))
        claims.lemma(f"{number}: there is such a chunk", ~here | (chunk < one.chunks))
        claims.lemma(f"{number}: it ends its elements", ~here | (chunk_last == (chunk == one.chunks - 1)))
        claims.lemma(f"{number}: as long rows", ~here | (inside.signal("bursts.row_bytes") == x_size << size))
        next_row, next_stride = (inside.signal(f"bursts.{name}")[:shift] for name in ("next_row", "stride"))
        next_lane = (row_lane + stride)[: log2(lanes)] if lanes > 1 else Const(0, 1)
        own_lane = stride[: log2(lanes)] if lanes > 1 else Const(0, 1)
        claims.lemma(f"{number}: rows are as far apart", ~here | (next_stride == (own_lane << size)[:shift]))
        claims.lemma(
            f"{number}: rows begin in the same place", ~here | (next_row == (next_lane << size)[:shift])
        )
        beats = (
            (left << log2(one.chunks)) - chunk if lanes == 1 else (lane + left + (lanes - 1)) >> log2(lanes)
        )
        claims.lemma(f"{number}: as many beats", ~here | (burst_left == come + beats))
    return claims


def gets_less(claims: Claims, name: str, there: Value, step: Value, left: Value) -> None:
    """Claim that a ``step`` makes ``left`` of something that is ``there`` smaller, and that it stays there
    otherwise."""
    stepped = claims.before(step)
    claims.claim(f"{name}: what is left gets less", ~stepped | (there & (left < claims.before(left))))


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
        claims.lemma(f"{name} is known", ~component.valid | (inside.signal(name) == is_so))
    claims.lemma("there is a word", ~component.valid | (run != 0))
    claims.lemma("there is one between rows", ~component.valid | ~several | ((between != 0) & (gap != 0)))
    claims.lemma("the last run is known", ~component.valid | (final == (~several & (final | (tail == 0)))))
    step = component.step & ~component.last & ~component.flush
    gets_less(claims, "pads", component.valid, step, Cat(run, ~final, Mux(several, between, 0)))
    claims.claim(
        "the last word ends them",
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
    begin, steps, is_mul = (inside.signal(name) for name in ("begin", "steps", "is_mul"))
    phase = component.operation.phase
    claims.lemma("it knows that it is free", component.free == ~issuing)
    claims.lemma("who issues is active", ~issuing | (inside.signal("active") & inside.signal("run")))
    claims.lemma("there is a micro-op", ~issuing | ((begin < end) & (begin <= address) & (address < end)))
    claims.lemma("micro-ops are there", ~issuing | (end <= UOP.depth(config)))
    claims.lemma("the last micro-op is known", ~issuing | (inside.signal("last_uop") == (address + 1 == end)))
    claims.lemma("the only micro-op is known", ~issuing | (inside.signal("one_uop") == (begin + 1 == end)))
    claims.lemma("the last inner turn is known", ~issuing | (inside.signal("last_inner") == (inner == 0)))
    claims.lemma(
        "the only inner turn is known", ~issuing | (inside.signal("one_inner") == (inner_count == 0))
    )
    claims.lemma("the last outer turn is known", ~issuing | (inside.signal("last_outer") == (outer == 0)))
    claims.lemma("inner turns are counted down", ~issuing | (inner <= inner_count))
    claims.lemma("the last slot is known", ~issuing | (steps == (~is_mul | (phase == _MUL_SLOTS - 1))))
    claims.lemma("only MUL takes slots", ~issuing | is_mul | (phase == 0))
    claims.lemma("a slot is one of its micro-op's", ~issuing | (phase < _MUL_SLOTS))
    ends = steps & inside.signal("last_uop") & inside.signal("last_inner") & inside.signal("last_outer")
    claims.lemma("in the last slot it is free", ~issuing | ~ends)
    left = Cat(Mux(is_mul, ~phase, 0), (end - address)[: len(end)], inner, outer)
    goes_on = claims.before(issuing & ~component.flush) & issuing
    claims.claim("what is left gets less in every cycle", ~goes_on | (left < claims.before(left)))
    claims.claim(
        "what has no micro-op takes a slot",
        ~claims.before(component.start & ~loops_run(new)) | component.free,
    )
    return claims


PROOFS = (
    *(
        Proof(
            name=f"ends of {unit.label} {cls.__name__.upper()}s, {name}",
            statement="bursts have as many beats as the transfer needs; each step leaves less",
            build=partial(transfers, NAMED[name], cls, unit),
        )
        for name, cls, unit in each_transfer(("tiny", "tiny-int8"))
    ),
    Proof(name="ends of pads", statement="each word leaves less", build=pads),
    Proof(name="ends of loops", statement="each slot leaves less", build=loops),
)
