"""The errors of a cycle by priority: by unit, then by age, and deadlock last.

Errors count only while ``RunControl.going`` is set. Conditions here omit it, which would close a
combinational loop through all units.
"""

from amaranth.hdl import Cat, Mux, Value

from accel.core.config import Config
from accel.core.fault_causes import Cause
from accel.core.isa import Unit
from accel.hw.core_parts import Parts
from accel.hw.units.token_counters import token_counters

Error = tuple[Value, Value | Cause, Value]
"""Condition, cause, and index of the instruction."""
Event = tuple[Value, Cause]


def events_of(parts: Parts) -> list[Event]:
    """Return the events that end a whole run, by priority, without the cycle limit."""
    return [
        (parts.control.stop, Cause.STOPPED),
        (parts.watch.late, Cause.TIMEOUT),
        (parts.port.stray | parts.store.stray, Cause.BUS),
    ]


def errors_of(parts: Parts, config: Config) -> list[Error]:
    """Return the errors of instructions by priority."""
    fetch, port, compute = parts.fetch, parts.port, parts.compute
    bad_read, bad_write = port.bad, parts.store.bad
    errors: list[Error] = [
        (fetch.fault != 0, fetch.fault, fetch.next),
        (bad_read & (port.burst.unit == Unit.FETCH), Cause.BUS, port.burst.index),
    ]
    for unit, part in parts.units.items():
        _, pushes = token_counters(unit)
        overflow = Cat(parts.tokens.overflow[c] for c in pushes if c is not None).any()
        errors.append((overflow, Cause.TOKEN_OVERFLOW, part.retirement.retired.index))
        read = bad_read & (port.burst.unit == unit)
        if unit is Unit.STORE:
            if config.post:  # the earlier instruction's error counts
                first = ~bad_write | (port.burst.index < part.response)
                errors.append((read & first, Cause.BUS, port.burst.index))
            errors.append((bad_write, Cause.BUS, part.response))
        else:
            errors.append((read, Cause.BUS, port.burst.index))
        if unit is Unit.COMPUTE:
            errors.append((compute.index_fault != 0, compute.index_fault, compute.index_fault_at))
        errors.append((part.fault != 0, part.fault, part.issue.entry.index))
    deadlock = _deadlock(parts)
    *first, last = parts.units.values()
    for part in first:
        errors.append((deadlock & part.lacking, Cause.DEADLOCK, part.issue.entry.index))
    errors.append((deadlock, Cause.DEADLOCK, last.issue.entry.index))
    return errors


def _deadlock(parts: Parts) -> Value:
    """Nothing is in flight, fetch and bus are idle, and each unit's head lacks a token."""
    fetch, port = parts.fetch, parts.port
    at_work = (
        parts.occupied.any()
        | (port.busy | fetch.read.valid | parts.store.writing)
        | (fetch.able | fetch.more & fetch.waiting)
        | parts.dispatch.busy
    )
    return ~at_work & parts.waiting.any() & (parts.lacking == parts.waiting)


def places_of(parts: Parts) -> list[tuple[Value, Value]]:
    """Return each place of the oldest instruction in progress: whether it has one, and its index."""
    fetch, dispatch = parts.fetch, parts.dispatch
    places: list[tuple[Value, Value]] = [
        (fetch.more | dispatch.busy, Mux(dispatch.busy, dispatch.oldest, fetch.next))
    ]
    for part in parts.units.values():
        places += [
            (part.issue.valid, part.issue.entry.index),
            (part.retirement.occupied, part.retirement.oldest),
        ]
    return places
