"""Proof that LOADs write only inside their scratchpad range."""

from functools import partial

from amaranth.hdl import Mux, Signal

from accel.core.config import NAMED, Config
from accel.core.isa import Load, Unit
from accel.hw.datapath.beat_walker import BeatWalker
from accel.hw.datapath.transfer_memories import kinds_of
from accel.hw.formal.claims import Claims, Proof

_SIZE_BITS = 7


def beats(config: Config, unit: Unit) -> Claims:
    """Claims for LOADs that end inside a scratchpad of 64 elements."""
    kinds = kinds_of(Load, unit, config)
    component = BeatWalker(kinds, config)
    claims = Claims(component)
    inside = claims.inside
    new = component.places
    most = 1 << (_SIZE_BITS - 1)
    for size in (new.x_size, new.y_size, new.gap, new.sram):
        claims.assume(~component.start | (size <= most))
    claims.assume(~component.start | ((new.x_size != 0) & (new.y_size != 0) & (new.kind < len(kinds))))
    claims.assume(~component.start | component.idle | (component.step & component.last))
    claims.assume(~component.step | ~component.idle)
    for number, kind in enumerate(kinds):
        claims.assume(~component.start | (new.kind != number) | (new.lane < kind.lanes))
    rows_behind = Signal(2 * _SIZE_BITS + 2)
    claims.defined(
        rows_behind,
        (new.y_size - 1)[:_SIZE_BITS] * (new.x_size[:_SIZE_BITS] + new.gap[:_SIZE_BITS]),
    )
    ends = new.sram + new.x_size + rows_behind
    claims.assume(~component.start | (ends <= most))

    rows, left, gap, x_size, index = (
        inside.signal(name) for name in ("rows", "left", "gap", "x_size", "index")
    )
    active = ~component.idle
    pitch = x_size[:_SIZE_BITS] + gap[:_SIZE_BITS]
    behind = Signal(2 * _SIZE_BITS + 2)
    claims.defined(behind, rows[:_SIZE_BITS] * pitch)
    kind = inside.signal("kind")
    claims.lemma("the memory is valid", ~active | (kind < len(kinds)))
    for number, one in enumerate(kinds):
        here = active & (kind == number)
        for lane in ("lane", "row_lane"):
            claims.lemma(f"{lane} lies in a beat", ~here | (inside.signal(lane) < one.lanes))
    chunk = inside.signal("chunk")
    for number, one in enumerate(kinds):
        here = active & (kind == number)
        room = one.lanes - inside.signal("lane")
        claims.lemma(
            f"{number}: a beat takes the elements that fit",
            ~here | (inside.signal("take") == Mux(left <= room, left, room)),
        )
        claims.lemma(
            f"{number}: ends marks the end of a row", ~here | (inside.signal("ends") == (left <= room))
        )
        claims.lemma(
            f"{number}: chunk_last marks the end of an element",
            ~here | (inside.signal("chunk_last") == (chunk == one.chunks - 1)),
        )
        claims.lemma(f"{number}: the chunk is part of its element", ~here | (chunk < one.chunks))
    claims.lemma("the last row is marked", ~active | (inside.signal("row_last") == (rows == 0)))
    claims.lemma(
        "sizes fit",
        ~active
        | ((rows < most) & (gap <= most) & (x_size <= most) & (left <= x_size) & (left != 0) & (x_size != 0)),
    )
    claims.lemma("the remaining elements fit", ~active | (index + left + behind <= most))
    claims.claim(
        "every beat lies in the range of its LOAD",
        ~active | (component.beat.index + component.beat.take <= most),
    )
    claims.claim("every beat has at least one element", ~active | (component.beat.take != 0))
    return claims


PROOFS = tuple(
    Proof(
        name=f"places of {unit.label} LOADs, {name}",
        statement="a LOAD that ends inside its scratchpad writes nowhere else",
        build=partial(beats, NAMED[name], unit),
    )
    for name in ("tiny", "tiny-int8", "tiny-npu")
    for unit in (Unit.LOAD, Unit.COMPUTE, Unit.STORE)
    if kinds_of(Load, unit, NAMED[name])
)
