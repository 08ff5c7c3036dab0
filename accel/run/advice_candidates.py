"""Fields that may make a run faster, by causes on its critical path."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from accel.base.errors import ConfigError
from accel.core.config import SPECS, Config
from accel.core.isa import Unit
from accel.core.scratchpad_specs import SCRATCHPADS
from accel.run.critical_path import Segment, shares
from accel.run.wait_causes import Wait

_MIN_RELIEVED_SHARE = 0.02
"""Smallest share of the critical path that a field must relieve."""

_MEMORY = frozenset({Wait.READ_LATENCY, Wait.READ_DATA, Wait.OUTSTANDING, Wait.REQUESTS, Wait.ARBITRATION})
_LATENCY = frozenset({Wait.READ_LATENCY, Wait.OUTSTANDING, Wait.IN_FLIGHT, Wait.OVERLAP})
_FETCH = frozenset({Wait.BUFFER, Wait.QUEUE, Wait.ISSUE, *_MEMORY})
_SLOTS = frozenset({Wait.SLOTS, Wait.PIPELINE})
_REUSE = frozenset({*_MEMORY, Wait.OVERLAP, Wait.RAW, Wait.WAR, Wait.STARTUP, Wait.WRITE_BACK, *_SLOTS})
_STORED = frozenset({Wait.OPERAND_IN_USE, Wait.OPERAND_LOADED, Wait.RES_FULL, Wait.RES_LOADED, *_MEMORY})
_WRITES = frozenset({Wait.WRITE_DATA, Wait.WRITE_LATENCY, Wait.OUTSTANDING, Wait.IN_FLIGHT})


_STORE_SCRATCHPADS = [pad.name for pad in SCRATCHPADS.values() if pad.filled_by is Unit.STORE]


class _Lever(Struct, frozen=True):
    waits: frozenset[Wait]
    units: tuple[Unit, ...] = tuple(Unit)
    halved: bool = False


_LEVERS: Mapping[str, _Lever] = {
    "block_in": _Lever(_SLOTS, (Unit.COMPUTE,)),
    "block_out": _Lever(_SLOTS, (Unit.COMPUTE,)),
    "batch": _Lever(_SLOTS, (Unit.COMPUTE,)),
    "uop_bytes": _Lever(_REUSE, (Unit.COMPUTE,)),
    "inp_bytes": _Lever(_REUSE, (Unit.LOAD, Unit.COMPUTE)),
    "wgt_bytes": _Lever(_REUSE, (Unit.LOAD, Unit.COMPUTE)),
    "acc_bytes": _Lever(_REUSE, (Unit.LOAD, Unit.COMPUTE, Unit.STORE)),
    **{f"{pad}_bytes": _Lever(_STORED, (Unit.STORE,)) for pad in _STORE_SCRATCHPADS},
    "bus_bits": _Lever(frozenset({Wait.READ_DATA, Wait.WRITE_DATA})),
    "read_latency": _Lever(frozenset({Wait.READ_LATENCY}), halved=True),
    "write_latency": _Lever(frozenset({Wait.WRITE_LATENCY}), halved=True),
    "outstanding": _Lever(_LATENCY | _WRITES),
    "max_burst_beats": _Lever(frozenset({Wait.REQUESTS, Wait.OUTSTANDING, Wait.READ_LATENCY})),
    "fetch_buffer": _Lever(_FETCH, (Unit.FETCH,)),
    "fetch_chunk": _Lever(_FETCH, (Unit.FETCH,)),
    "load_queue": _Lever(_FETCH, (Unit.FETCH, Unit.LOAD)),
    "compute_queue": _Lever(_FETCH, (Unit.FETCH, Unit.LOAD, Unit.COMPUTE)),
    "store_queue": _Lever(_FETCH, (Unit.FETCH, Unit.STORE)),
    "loads_in_flight": _Lever(_LATENCY, (Unit.LOAD, Unit.STORE)),
    "stores_in_flight": _Lever(_WRITES, (Unit.STORE,)),
    "tree_stages": _Lever(frozenset({Wait.PIPELINE}), (Unit.COMPUTE,), halved=True),
    "post_stages": _Lever(frozenset({Wait.PIPELINE}), (Unit.STORE,), halved=True),
    "mul_slots": _Lever(_SLOTS, (Unit.COMPUTE,), halved=True),
    "post_lanes": _Lever(frozenset({Wait.WRITE_DATA}), (Unit.STORE,)),
    "serial": _Lever(frozenset({Wait.SERIAL}), halved=True),
}
"""Fields to double, or to halve where less is faster. Capacities are also quadrupled."""


def candidates(config: Config, path: Sequence[Segment], *, geometry: bool) -> Iterator[tuple[str, int]]:
    """Yield fields and values: the most relief first, larger steps last."""
    cycles = sum(one.cycles for one in path) or 1
    found = _relievable_cycles(path)
    scored = []
    for rank, (field, lever) in enumerate(_LEVERS.items()):
        if field not in config.fields or (SPECS[field].kind == "geometry" and not geometry):
            continue
        now = int(getattr(config, field))
        now = now or int(getattr(config, _ZERO_STANDS_FOR.get(field, field)))
        values = [now // 2] if lever.halved else [2 * now]
        if field.endswith("_bytes"):
            values.append(4 * now)
        relieved = sum(found.get((unit.label, wait), 0) for unit in lever.units for wait in lever.waits)
        if relieved >= _MIN_RELIEVED_SHARE * cycles:
            scored += [
                (number, -relieved, rank, field, value)
                for number, value in enumerate(values)
                if value != now and _is_possible(config, field, value)
            ]
    for _, _, _, field, value in sorted(scored):
        yield field, value


def _relievable_cycles(path: Sequence[Segment]) -> Counter[tuple[str, Wait]]:
    """Sum cycles by unit and cause. A wait for room or order also counts the segment before it."""
    found: Counter[tuple[str, Wait]] = Counter()
    before = 0
    for one in path:
        found[one.unit, one.cause] += one.cycles + (before if one.cause in _DEFERRED_WAITS else 0)
        before = one.cycles
    return found


_DEFERRED_WAITS = frozenset(
    {Wait.QUEUE, Wait.BUFFER, Wait.SERIAL, Wait.IN_FLIGHT, Wait.OVERLAP, Wait.OUTSTANDING, Wait.WAR}
    | {Wait.OPERAND_IN_USE, Wait.RES_FULL, Wait.EXCLUSIVE}
)
"""Causes that take one cycle after another event. The path continues there."""


def _is_possible(config: Config, field: str, value: int) -> bool:
    try:
        config.override({field: value})
    except ConfigError:
        return False
    return True


_ZERO_STANDS_FOR = {"post_lanes": "lanes"}
"""Fields whose value 0 means another field's value."""


def relief(field: str, value: int, path: Sequence[Segment]) -> str:
    what = f"{field} of {value_text(field, value)}"
    lever = _LEVERS[field]
    units = {unit.label for unit in lever.units}
    relieved = [one for one in shares(path) if one.cause in lever.waits and one.unit in units]
    cycles = sum(one.cycles for one in path)
    most = relieved[0]
    if most.cause in _DEFERRED_WAITS:
        return f"{most.unit} waits {most.segments:,} times on the critical path: {most.cause}; with {what}"
    return f"{most.unit} {most.cause} is {most.cycles / cycles:.0%} of the critical path; with {what}"


def value_text(field: str, value: int) -> str:
    """Return for example ``64KiB``."""
    if SPECS[field].unit == "bytes" and value % 1024 == 0:
        return f"{value // 1024}KiB"
    return str(value)
