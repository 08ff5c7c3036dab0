"""Memory bits, multipliers and wires of a larger machine."""

from accel.core.config import Config
from accel.core.scratchpad_specs import scratchpads_of

BLOCK_RAM_BITS = 18 * 1024
_ENTRIES = {
    "outstanding": "bursts in flight",
    "loads_in_flight": "LOADs in flight",
    "stores_in_flight": "STOREs in flight",
    "load_queue": "queue entries",
    "compute_queue": "queue entries",
    "store_queue": "queue entries",
    "fetch_buffer": "instructions in the fetch buffer",
}


def price_text(now: Config, then: Config) -> str:
    """Return additional hardware, for example ``+131,072 bits of scratchpad (8 block RAMs), +256
    multipliers``."""
    bits = _scratchpad_bits(then) - _scratchpad_bits(now)
    multipliers = then.macs_per_cycle - now.macs_per_cycle
    wires = then.bus_bits - now.bus_bits
    parts = []
    if bits > 0:
        parts.append(f"+{bits:,} bits of scratchpad ({-(-bits // BLOCK_RAM_BITS)} block RAMs)")
    if multipliers > 0:
        parts.append(f"+{multipliers:,} multipliers")
    if wires > 0:
        parts.append(f"+{wires:,} bits of bus")
    for field, entry in _ENTRIES.items():
        more = int(getattr(then, field)) - int(getattr(now, field))
        if more > 0:
            parts.append(f"+{more} {entry}")
    if then.read_latency < now.read_latency or then.write_latency < now.write_latency:
        parts.append("a faster memory")
    return ", ".join(parts)


def _scratchpad_bits(config: Config) -> int:
    return sum(pad.depth(config) * pad.word_bits(config) for pad in scratchpads_of(config).values())
