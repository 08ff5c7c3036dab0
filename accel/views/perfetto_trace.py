"""A trace for Perfetto and chrome://tracing.

Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

import gzip
import json
from collections.abc import Iterator
from typing import Any

from accel.core.isa import Unit, format_instruction
from accel.core.token_rules import WORKERS
from accel.core.unit_states import State
from accel.run.result import error_dict
from accel.views.activity_records import NO_INSTRUCTION
from accel.views.analyzed_run import AnalyzedRun
from accel.views.run_verdict import stop_reason

Entry = dict[str, Any]

_MACHINE_PROCESS, _COUNTER_PROCESS = 1, 2
_THREADS_PER_UNIT = 100
"""Distance of the units' thread numbers. The first thread of each shows waits."""
_MAX_BANDWIDTH_STEPS = 1000
_MIN_BANDWIDTH_CYCLES = 32


def trace_bytes(run: AnalyzedRun, *, compress: bool = False) -> bytes:
    entries = (json.dumps(entry, separators=(",", ":")) for entry in trace_events(run))
    figures = json.dumps(_about(run))
    text = (
        f'{{"displayTimeUnit":"ms","otherData":{figures},"traceEvents":[\n' + ",\n".join(entries) + "\n]}\n"
    )
    return gzip.compress(text.encode(), 6, mtime=0) if compress else text.encode()


def trace_events(run: AnalyzedRun) -> Iterator[Entry]:
    """Yield the entries of the trace."""
    yield from _tracks(run)
    yield from _slices(run)
    yield from _waits(run)
    yield from _flows(run)
    yield from _queues(run)
    yield from _tokens(run)
    yield from _bandwidth(run)
    if run.result.error is not None:
        yield {
            "ph": "i",
            "name": stop_reason(run),
            "cat": "error",
            "s": "g",
            "pid": _MACHINE_PROCESS,
            "tid": 0,
            "ts": run.activity.cycles,
            "args": error_dict(run.result.error),
        }


def _about(run: AnalyzedRun) -> dict[str, Any]:
    keys = ("backend", "config", "cycles", "utilization", "roofline_fraction", "instructions")
    figures = run.result.to_dict()
    about = {"time": "a microsecond stands for a cycle"} | {key: figures[key] for key in keys}
    return about if run.result.error is None else about | {"error": error_dict(run.result.error)}


def _wait_thread(unit: Unit) -> int:
    return _THREADS_PER_UNIT * (unit + 1)  # Perfetto reserves thread 0


def _slice_thread(unit: Unit, row: int) -> int:
    return _wait_thread(unit) + 1 + row


def _tracks(run: AnalyzedRun) -> Iterator[Entry]:
    yield _metadata("process_name", _MACHINE_PROCESS, 0, name=f"accel {run.result.config}")
    yield _metadata("process_sort_index", _MACHINE_PROCESS, 0, sort_index=1)
    yield _metadata("process_name", _COUNTER_PROCESS, 0, name="queues, tokens, bus")
    yield _metadata("process_sort_index", _COUNTER_PROCESS, 0, sort_index=2)
    for unit in Unit:
        rows = {one.row for one in run.activity.slices if one.unit is unit}
        names = {_wait_thread(unit): f"{unit.label}: waits"}
        names |= {
            _slice_thread(unit, n): f"{unit.label}, in flight {n + 1}" if n else unit.label for n in rows
        }
        for thread, name in names.items():
            yield _metadata("thread_name", _MACHINE_PROCESS, thread, name=name)
            yield _metadata("thread_sort_index", _MACHINE_PROCESS, thread, sort_index=thread)


def _metadata(kind: str, process: int, thread: int, **values: Any) -> Entry:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": values}


def _slices(run: AnalyzedRun) -> Iterator[Entry]:
    provenance = run.image.provenance
    for one in run.activity.slices:
        instruction, operands = run.instructions[one.instruction], run.operands[one.instruction]
        origin = None if provenance is None else provenance[one.instruction]
        details = {
            "instruction": one.instruction,
            "text": " ".join(format_instruction(instruction).split()),
            "target": ", ".join(map(str, operands.target)),
            "sources": ", ".join(map(str, operands.sources)),
            "stage": "" if origin is None else origin.stage,
            "statement": "" if origin is None else origin.text,
            "queued": one.dispatched,
            "data": [one.work_start, one.work_stop] if one.work_start < one.work_stop else None,
        }
        yield {
            "ph": "X",
            "name": run.names[one.instruction],
            "cat": instruction.mnemonic,
            "pid": _MACHINE_PROCESS,
            "tid": _slice_thread(one.unit, one.row),
            "ts": one.start,
            "dur": one.stop - one.start,
            "args": {key: value for key, value in details.items() if value not in ("", None)},
        }


def _waits(run: AnalyzedRun) -> Iterator[Entry]:
    for unit in Unit:
        for span in run.activity.spans[unit]:
            if span.state is State.BUSY:
                continue
            details: dict[str, Any] = {"state": span.state.label}
            if span.instruction != NO_INSTRUCTION:
                details |= {"instruction": span.instruction, "of": run.names[span.instruction]}
            if span.awaited != NO_INSTRUCTION:
                details |= {"waits for instruction": span.awaited, "which is": run.names[span.awaited]}
            yield {
                "ph": "X",
                "name": span.reason.label,
                "cat": span.state.name.lower(),
                "pid": _MACHINE_PROCESS,
                "tid": _wait_thread(unit),
                "ts": span.start,
                "dur": span.stop - span.start,
                "args": details,
            }


def _flows(run: AnalyzedRun) -> Iterator[Entry]:
    threads = {one.instruction: _slice_thread(one.unit, one.row) for one in run.activity.slices}
    for number, flow in enumerate(run.activity.flows):
        name = f"{flow.counter.kind} {flow.counter.label}"
        common = {"name": name, "cat": "token", "id": number, "pid": _MACHINE_PROCESS}
        yield common | {"ph": "s", "tid": threads[flow.source], "ts": flow.pushed}
        yield common | {"ph": "f", "bp": "e", "tid": threads[flow.target], "ts": flow.popped}


def _counter(name: str, cycle: int, **values: float) -> Entry:
    common = {"ph": "C", "name": name, "cat": "level", "pid": _COUNTER_PROCESS, "tid": 0}
    return common | {"ts": cycle, "args": values}


def _queues(run: AnalyzedRun) -> Iterator[Entry]:
    for unit in WORKERS:
        name = f"{unit.label} queue"
        yield _counter(name, 0, instructions=0)
        for cycle, level in run.activity.queue_levels[unit]:
            yield _counter(name, cycle, instructions=level)


def _tokens(run: AnalyzedRun) -> Iterator[Entry]:
    for counter, changes in run.activity.token_levels.items():
        for cycle, level in changes:
            yield _counter(f"{counter.kind} tokens {counter.label}", cycle, tokens=level)


def _bandwidth(run: AnalyzedRun) -> Iterator[Entry]:
    cycles = run.activity.cycles
    step = bandwidth_step(cycles)
    bus_bytes = run.result.config.bus_bytes
    readers = tuple(unit for unit in Unit if unit is not Unit.STORE or run.result.config.post)
    for name, is_write, units in (("read bus", False, readers), ("write bus", True, (Unit.STORE,))):
        beats = {unit: run.activity.beats_per_step(step, unit, is_write=is_write) for unit in units}
        previous: dict[str, float] | None = None
        for number in range(len(beats[units[0]])):
            length = min(step, cycles - number * step)
            values = {unit.label: round(beats[unit][number] * bus_bytes / length, 3) for unit in units}
            if values != previous:
                yield _counter(f"{name}, bytes/cycle", number * step, **values)
            previous = values
        yield _counter(f"{name}, bytes/cycle", cycles, **dict.fromkeys((unit.label for unit in units), 0))


def bandwidth_step(cycles: int) -> int:
    """Return a power of two."""
    return max(_MIN_BANDWIDTH_CYCLES, 1 << max(0, -(-cycles // _MAX_BANDWIDTH_STEPS) - 1).bit_length())
