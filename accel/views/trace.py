"""A run as a trace in the format of chrome://tracing, which Perfetto opens too.

A microsecond stands for a cycle. Each unit has as many tracks as it has instructions in flight at once, and
one for the reasons why it stands still; tokens are arrows; counters show queues, tokens and the bus.
"""

import gzip
import json
from collections.abc import Iterator
from typing import Any

from accel.core.isa import Unit, format_instruction
from accel.core.token_rules import WORKERS
from accel.run.result import error_dict
from accel.views.scene import Scene
from accel.views.states import NOBODY, State
from accel.views.verdict import stopped

Entry = dict[str, Any]

_MACHINE, _COUNTERS = 1, 2
"""Process numbers: tracks, and counters below them."""
_TRACKS = 100
"""Thread numbers that a unit has for itself; its stalls have the first."""
_BANDWIDTH_STEPS = 1000
"""Steps of the bandwidth counters at most."""
_LEAST_STEP = 32
"""Cycles over which bandwidth is averaged at least."""


def trace_bytes(scene: Scene, *, compress: bool = False) -> bytes:
    """The trace as JSON; compressed with gzip if wanted, which Perfetto reads as well."""
    entries = (json.dumps(entry, separators=(",", ":")) for entry in trace_events(scene))
    figures = json.dumps(_about(scene))
    text = (
        f'{{"displayTimeUnit":"ms","otherData":{figures},"traceEvents":[\n' + ",\n".join(entries) + "\n]}\n"
    )
    return gzip.compress(text.encode(), 6, mtime=0) if compress else text.encode()


def trace_events(scene: Scene) -> Iterator[Entry]:
    """The entries of the trace."""
    yield from _tracks(scene)
    yield from _slices(scene)
    yield from _stalls(scene)
    yield from _flows(scene)
    yield from _queues(scene)
    yield from _tokens(scene)
    yield from _bandwidth(scene)
    if scene.result.error is not None:
        yield {
            "ph": "i",
            "name": stopped(scene),
            "cat": "error",
            "s": "g",
            "pid": _MACHINE,
            "tid": 0,
            "ts": scene.seen.cycles,
            "args": error_dict(scene.result.error),
        }


def _about(scene: Scene) -> dict[str, Any]:
    result = scene.result
    known = ("backend", "config", "cycles", "utilization", "roofline_fraction", "instructions")
    figures = result.to_dict()
    about = {"time": "a microsecond stands for a cycle"} | {key: figures[key] for key in known}
    return about if result.error is None else about | {"error": error_dict(result.error)}


def _waits(unit: Unit) -> int:
    return _TRACKS * (unit + 1)  # thread 0 is the idle one to Perfetto


def _track(unit: Unit, row: int) -> int:
    return _waits(unit) + 1 + row


def _tracks(scene: Scene) -> Iterator[Entry]:
    yield _meta("process_name", _MACHINE, 0, name=f"accel {scene.result.config}")
    yield _meta("process_sort_index", _MACHINE, 0, sort_index=1)
    yield _meta("process_name", _COUNTERS, 0, name="queues, tokens, bus")
    yield _meta("process_sort_index", _COUNTERS, 0, sort_index=2)
    for unit in Unit:
        rows = {one.row for one in scene.seen.slices if one.unit is unit}
        names = {_waits(unit): f"{unit.label}: waits"}
        names |= {_track(unit, n): unit.label if not n else f"{unit.label}, in flight too" for n in rows}
        for thread, name in names.items():
            yield _meta("thread_name", _MACHINE, thread, name=name)
            yield _meta("thread_sort_index", _MACHINE, thread, sort_index=thread)


def _meta(kind: str, process: int, thread: int, **values: Any) -> Entry:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": values}


def _slices(scene: Scene) -> Iterator[Entry]:
    for one in scene.seen.slices:
        instruction, work = scene.instructions[one.instruction], scene.work[one.instruction]
        provenance = scene.image.provenance
        origin = None if provenance is None else provenance[one.instruction]
        details = {
            "instruction": one.instruction,
            "text": " ".join(format_instruction(instruction).split()),
            "target": ", ".join(map(str, work.target)),
            "sources": ", ".join(map(str, work.sources)),
            "stage": "" if origin is None else origin.stage,
            "statement": "" if origin is None else origin.text,
            "queued": one.queued,
            "data": [one.begin, one.end] if one.begin < one.end else None,
        }
        yield {
            "ph": "X",
            "name": scene.names[one.instruction],
            "cat": instruction.mnemonic,
            "pid": _MACHINE,
            "tid": _track(one.unit, one.row),
            "ts": one.start,
            "dur": one.stop - one.start,
            "args": {key: value for key, value in details.items() if value not in ("", None)},
        }


def _stalls(scene: Scene) -> Iterator[Entry]:
    for unit in Unit:
        for span in scene.seen.spans[unit]:
            if span.state is State.BUSY:
                continue
            details: dict[str, Any] = {"state": span.state.label}
            if span.instruction != NOBODY:
                details |= {"instruction": span.instruction, "of": scene.names[span.instruction]}
            if span.other != NOBODY:
                details |= {"waits for instruction": span.other, "which is": scene.names[span.other]}
            yield {
                "ph": "X",
                "name": span.reason.label,
                "cat": span.state.name.lower(),
                "pid": _MACHINE,
                "tid": _waits(unit),
                "ts": span.start,
                "dur": span.stop - span.start,
                "args": details,
            }


def _flows(scene: Scene) -> Iterator[Entry]:
    tracks = {one.instruction: _track(one.unit, one.row) for one in scene.seen.slices}
    for number, flow in enumerate(scene.seen.flows):
        name = f"{flow.counter.kind} {flow.counter.label}"
        common = {"name": name, "cat": "token", "id": number, "pid": _MACHINE}
        yield common | {"ph": "s", "tid": tracks[flow.source], "ts": flow.pushed}
        yield common | {"ph": "f", "bp": "e", "tid": tracks[flow.target], "ts": flow.popped}


def _counter(name: str, cycle: int, **values: float) -> Entry:
    return {"ph": "C", "name": name, "cat": "level", "pid": _COUNTERS, "tid": 0, "ts": cycle, "args": values}


def _queues(scene: Scene) -> Iterator[Entry]:
    for unit in WORKERS:
        name = f"{unit.label} queue"
        yield _counter(name, 0, instructions=0)
        for cycle, level in scene.seen.queues[unit]:
            yield _counter(name, cycle, instructions=level)


def _tokens(scene: Scene) -> Iterator[Entry]:
    for counter, changes in scene.seen.tokens.items():
        for cycle, level in changes:
            yield _counter(f"{counter.kind} tokens {counter.label}", cycle, tokens=level)


def _bandwidth(scene: Scene) -> Iterator[Entry]:
    step = bandwidth_step(scene.seen.cycles)
    bus = scene.result.config.bus_bytes
    readers = tuple(unit for unit in Unit if unit is not Unit.STORE or scene.result.config.post)
    for name, writes, units in (("read bus", False, readers), ("write bus", True, (Unit.STORE,))):
        levels = {unit: scene.seen.beats_by(step, unit, writes=writes) for unit in units}
        previous: dict[str, float] | None = None
        for number in range(len(levels[units[0]])):
            length = min(step, scene.seen.cycles - number * step)
            values = {u.label: round(levels[u][number] * bus / length, 3) for u in units}
            if values != previous:
                yield _counter(f"{name}, bytes/cycle", number * step, **values)
            previous = values
        yield _counter(
            f"{name}, bytes/cycle", scene.seen.cycles, **dict.fromkeys((u.label for u in units), 0)
        )


def bandwidth_step(cycles: int) -> int:
    """Cycles over which bandwidth is averaged: a power of two."""
    return max(_LEAST_STEP, 1 << max(0, -(-cycles // _BANDWIDTH_STEPS) - 1).bit_length())
