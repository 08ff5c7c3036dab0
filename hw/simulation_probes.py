"""Simulation ports: events, token counters, scratchpads and access counts."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.scratchpad_specs import scratchpads_of
from accel.core.token_rules import WORKERS, Counter
from accel.hw.core_parts import Parts
from accel.hw.datapath.access_probes import COUNT_BITS, AccessCounters, select_bits
from accel.hw.datapath.scratchpads import as_held, as_read, words_of
from accel.hw.datapath.word_layouts import BEATS_BITS, INDEX_BITS, UNIT_BITS, bits_for_depth
from accel.hw.units.run_control import MAX_CYCLES_BITS, RunControl


def observation_ports(config: Config) -> dict[str, Any]:
    """``pre_*`` writes an element. ``peek_*`` requests one between runs. ``peek_*_data`` shows it one cycle
    later, in software's layout. ``access_count`` is number ``access_select`` of ``access_names``, since the
    start of the run."""
    ports: dict[str, Any] = {
        "running": Out(1),
        "cycle": Out(MAX_CYCLES_BITS),
        "halted": Out(1),
        "ev_push": Out(1),
        "ev_push_unit": Out(UNIT_BITS),
        "ev_push_index": Out(INDEX_BITS),
    }
    for unit in WORKERS:
        ports |= {
            f"ev_{unit.label}_start": Out(1),
            f"ev_{unit.label}_start_index": Out(INDEX_BITS),
            f"ev_{unit.label}_start_pops": Out(2),
            f"ev_{unit.label}_retire": Out(1),
            f"ev_{unit.label}_retire_index": Out(INDEX_BITS),
            f"ev_{unit.label}_retire_pushes": Out(2),
        }
    for name in ("read_grant", "read_last", "write_grant", "write_last"):
        ports[f"ev_{name}"] = Out(1)
        if name.startswith("read"):
            ports[f"ev_{name}_unit"] = Out(UNIT_BITS)
        ports[f"ev_{name}_index"] = Out(INDEX_BITS)
        ports[f"ev_{name}_beats"] = Out(BEATS_BITS)
    for name, pad in scratchpads_of(config).items():
        depth, size = words_of(pad, config)
        address, word = bits_for_depth(depth), size * 8
        ports |= {
            f"pre_{name}_en": In(1),
            f"pre_{name}_addr": In(address),
            f"pre_{name}_data": In(word),
            f"peek_{name}_en": In(1),
            f"peek_{name}_addr": In(address),
            f"peek_{name}_data": Out(word),
        }
    for counter in Counter:
        ports[f"tokens_{counter.value}"] = Out(config.token_bits)
    ports |= {"access_select": In(select_bits(config)), "access_count": Out(COUNT_BITS)}
    return ports


def observe(m: Module, core: Any, parts: Parts, ending: RunControl) -> None:
    """Drive the event ports, connect the scratchpad ports, and count accesses."""
    m.d.comb += [getattr(core, name).eq(getattr(ending, name)) for name in ("running", "cycle", "halted")]
    fetch, port, store = parts.fetch, parts.port, parts.store
    m.d.comb += [
        core.ev_push.eq(fetch.fetched.push),
        core.ev_push_unit.eq(fetch.fetched.unit),
        core.ev_push_index.eq(fetch.fetched.index),
        core.ev_read_grant.eq(port.grant),
        core.ev_read_grant_unit.eq(port.granted.unit),
        core.ev_read_grant_index.eq(port.granted.index),
        core.ev_read_grant_beats.eq(port.granted.beats),
        core.ev_read_last.eq(port.last),
        core.ev_read_last_unit.eq(port.burst.unit),
        core.ev_read_last_index.eq(port.burst.index),
        core.ev_read_last_beats.eq(port.burst.beats),
        core.ev_write_grant.eq(store.grant),
        core.ev_write_grant_index.eq(store.granted.index),
        core.ev_write_grant_beats.eq(store.granted.beats),
        core.ev_write_last.eq(store.last),
        core.ev_write_last_index.eq(store.burst.index),
        core.ev_write_last_beats.eq(store.burst.beats),
    ]
    for unit, part in parts.units.items():
        values = {
            "start": part.issue.start,
            "start_index": part.issue.entry.index,
            "start_pops": part.tokens.pops,
            "retire": part.retirement.valid,
            "retire_index": part.retirement.retired.index,
            "retire_pushes": part.tokens.pushes,
        }
        for name, value in values.items():
            m.d.comb += getattr(core, f"ev_{unit.label}_{name}").eq(value)
    for memory, pad in scratchpads_of(core.config).items():
        access = getattr(parts.units[pad.filled_by], f"{memory}_access")
        m.d.comb += [
            access.preload.eq(getattr(core, f"pre_{memory}_en")),
            access.preload_index.eq(getattr(core, f"pre_{memory}_addr")),
            access.preload_word.eq(as_held(getattr(core, f"pre_{memory}_data"), pad, core.config)),
            access.peek.eq(getattr(core, f"peek_{memory}_en")),
            access.peek_index.eq(getattr(core, f"peek_{memory}_addr")),
            getattr(core, f"peek_{memory}_data").eq(as_read(access.element, pad, core.config)),
        ]
    for counter in Counter:
        count = getattr(parts.tokens, f"count_{counter.value}")
        m.d.comb += getattr(core, f"tokens_{counter.value}").eq(count)
    assert parts.probes is not None
    parts.probes.drive(m, read_bursts=port.grant)
    m.submodules.accesses = accesses = AccessCounters(parts.probes, core.config)
    m.d.comb += [
        accesses.clear.eq(parts.control.start),
        accesses.counted.eq(ending.running & ~ending.halted),
        accesses.select.eq(core.access_select),
        core.access_count.eq(accesses.count),
    ]
