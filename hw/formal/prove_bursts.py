"""Proofs about lengths, pages and rows of bursts."""

from collections.abc import Iterator, Sequence
from functools import partial

from amaranth.hdl import Mux, Signal

from accel.core.config import DRAM_ADDRESS_BITS, NAMED, PAGE_BYTES, Config
from accel.core.isa import Load, Store, Transfer, Unit
from accel.hw.datapath.burst_walker import BurstWalker
from accel.hw.datapath.transfer_memories import kinds_of
from accel.hw.datapath.word_layouts import log2
from accel.hw.formal.claims import Claims, Proof


def walks(claims: Claims, config: Config, path: str = "") -> None:
    """Add lemmas about a ``BurstWalker``. ``path`` ends with a dot."""
    inside = claims.inside
    valid, beats, ends = (inside.signal(f"{path}{name}") for name in ("valid", "beats", "ends"))
    left, to_page, most = (inside.signal(f"{path}{name}") for name in ("left", "to_page", "most"))
    page = PAGE_BYTES // config.bus_bytes
    claims.lemma("free is the complement of valid", inside.signal(f"{path}free") == ~valid)
    claims.lemma(
        "a valid burst has bytes and beats",
        ~valid | ((inside.signal(f"{path}row_bytes") != 0) & (beats != 0)),
    )
    claims.lemma("a burst is at most as long as the longest", ~valid | (beats <= config.max_burst_beats))
    claims.lemma("a burst that does not end its row leaves bytes", ~valid | ends | (left != 0))
    longest = min(config.max_burst_beats, page)
    length = inside.signal(f"{path}row_bytes")
    is_long = length > longest * config.bus_bytes
    claims.lemma("is_long is right", ~valid | (inside.signal(f"{path}is_long") == is_long))
    claims.lemma(
        "the limit of the next burst is right",
        ~valid | ((to_page != 0) & (to_page <= page) & (most == Mux(to_page < longest, to_page, longest))),
    )


def bursts(config: Config, cls: type[Transfer], unit: Unit) -> Claims:
    """Claim properties of the bursts of a unit's transfers."""
    kinds = kinds_of(cls, unit, config)
    component = BurstWalker(kinds, config)
    claims = Claims(component)
    inside = claims.inside
    rows = component.rows
    bus, shift = config.bus_bytes, log2(config.bus_bytes)
    claims.assume(~component.start | ~component.valid)
    claims.assume(~component.start | ((rows.x_size != 0) & (rows.y_size != 0)))
    claims.assume(rows.kind < len(kinds))
    claims.assume(component.mem_base[: log2(PAGE_BYTES)] == 0)
    claims.assume(component.valid | ~component.accept)

    valid, address, beats = component.valid, component.address, component.beats
    in_page = address[: log2(PAGE_BYTES)]
    claims.claim("a burst has at least one beat", ~valid | (beats != 0))
    claims.claim("no burst is too long", ~valid | (beats <= config.max_burst_beats))
    aligned = in_page[shift:] << shift
    claims.claim("no burst crosses a page", ~valid | (aligned + (beats << shift) <= PAGE_BYTES))

    left, length = inside.signal("left"), inside.signal("row_bytes")
    row = inside.signal("next_row") - inside.signal("stride")
    end = Signal(DRAM_ADDRESS_BITS)
    claims.defined(end, ((row + length + bus - 1)[shift:]) << shift)
    remaining = Signal(DRAM_ADDRESS_BITS)
    claims.defined(remaining, (beats + Mux(inside.signal("ends"), 0, left)) << shift)
    start = Signal(DRAM_ADDRESS_BITS)
    claims.defined(start, address[shift:] << shift)
    walks(claims, config)
    page = PAGE_BYTES // bus
    to_page, room = inside.signal("to_page"), page - in_page[shift:]
    claims.lemma("a burst ends with its page at the latest", ~valid | (beats <= room))
    claims.lemma(
        "to_page is the rest of the page",
        ~valid | inside.signal("ends") | (to_page == Mux(room == beats, page, room - beats)),
    )
    claims.claim("a row's bursts end with the row", ~valid | ((start + remaining)[:DRAM_ADDRESS_BITS] == end))
    return claims


def each_transfer(names: Sequence[str]) -> Iterator[tuple[str, type[Transfer], Unit]]:
    """Return the proofs' machine names, and each unit's LOADs or STOREs."""
    every: list[tuple[type[Transfer], Unit]] = [
        *((Load, unit) for unit in (Unit.LOAD, Unit.COMPUTE, Unit.STORE)),
        (Store, Unit.STORE),
    ]
    for name in names:
        for cls, unit in every:
            if kinds_of(cls, unit, NAMED[name]):
                yield name, cls, unit


PROOFS = tuple(
    Proof(
        name=f"bursts of {unit.label} {cls.__name__.upper()}s, {name}",
        statement="1 to max_burst_beats beats, never across 4 KiB, never beyond the end of a row",
        build=partial(bursts, NAMED[name], cls, unit),
    )
    for name, cls, unit in each_transfer(("tiny", "tiny-int8", "tiny-npu", "vta-int8"))
)
