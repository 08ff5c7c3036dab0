"""The entries of a trace are the events of the run."""

import gzip
import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest

from accel.core.events import EventKind
from accel.core.isa import Unit
from accel.core.token_rules import Counter
from accel.views.analyzed_run import AnalyzedRun
from accel.views.perfetto_trace import trace_bytes
from tests.views.runs import EPILOGUES, from_text, look

Entries = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module", params=["decoupled", "serial", "many in flight"])
def case(request: pytest.FixtureRequest) -> tuple[AnalyzedRun, Entries]:
    """A run, and the entries of its trace by phase."""
    options = {
        "decoupled": {},
        "serial": {"timing": (("serial", 1),)},
        "many in flight": {"timing": (("read_latency", 500), ("loads_in_flight", 20))},
    }[request.param]
    analyzed = look(**options)
    return analyzed, by_phase(analyzed)


def by_phase(analyzed: AnalyzedRun) -> Entries:
    found: Entries = defaultdict(list)
    for entry in json.loads(trace_bytes(analyzed))["traceEvents"]:
        found[entry["ph"]].append(entry)
    return found


def tracks(entries: Entries) -> dict[int, str]:
    return {e["tid"]: e["args"]["name"] for e in entries["M"] if e["name"] == "thread_name"}


def stalls(entries: Entries, unit: Unit) -> list[dict[str, Any]]:
    names = tracks(entries)
    return [e for e in entries["X"] if names[e["tid"]] == f"{unit.label}: waits"]


def instructions(entries: Entries) -> dict[int, dict[str, Any]]:
    names = tracks(entries)
    return {e["args"]["instruction"]: e for e in entries["X"] if not names[e["tid"]].endswith(": waits")}


def test_slices_have_the_provenance_of_instructions(case: tuple[AnalyzedRun, Entries]) -> None:
    analyzed, entries = case
    provenance = analyzed.image.provenance
    assert provenance is not None
    for index, entry in instructions(entries).items():
        said = provenance[index]
        assert entry["args"].get("stage", "") == said.stage
        assert entry["args"].get("statement", "") == said.text
    assert {entry["args"].get("stage") for entry in instructions(entries).values()} >= {"AL", "BL", "C"}


def test_every_instruction_is_a_slice(case: tuple[AnalyzedRun, Entries]) -> None:
    analyzed, entries = case
    assert analyzed.result.events is not None
    started = {e.instruction: e.cycle for e in analyzed.result.events if e.kind is EventKind.START}
    retired = {e.instruction: e.cycle for e in analyzed.result.events if e.kind is EventKind.RETIRE}
    found = instructions(entries)
    assert {n: e["ts"] for n, e in found.items()} == started
    assert {n: e["ts"] + e["dur"] - 1 for n, e in found.items()} == retired
    names = tracks(entries)
    for index, entry in found.items():
        instruction = analyzed.instructions[index]
        assert entry["name"].startswith(instruction.mnemonic)
        assert names[entry["tid"]].startswith(instruction.unit.label)


def test_slices_of_a_track_do_not_overlap(case: tuple[AnalyzedRun, Entries]) -> None:
    _, entries = case
    by_track = defaultdict(list)
    for entry in entries["X"]:
        by_track[entry["pid"], entry["tid"]].append((entry["ts"], entry["ts"] + entry["dur"]))
    assert 0 not in {tid for _, tid in by_track}
    for spans in by_track.values():
        assert all(a[1] <= b[0] for a, b in pairwise(sorted(spans)))


def test_stalls_add_up(case: tuple[AnalyzedRun, Entries]) -> None:
    analyzed, entries = case
    assert analyzed.result.stalls is not None
    for unit in Unit:
        sums: dict[str, int] = defaultdict(int)
        for entry in stalls(entries, unit):
            sums[entry["cat"]] += entry["dur"]
        expected = analyzed.result.stalls[unit.label]
        assert (sums["memory"], sums["token"], sums["idle"]) == (
            expected.memory_stall,
            expected.token_stall,
            expected.idle,
        )


def test_a_token_stall_ends_when_the_token_is_pushed(case: tuple[AnalyzedRun, Entries]) -> None:
    analyzed, entries = case
    found = instructions(entries)
    checked = 0
    for unit in (Unit.LOAD, Unit.COMPUTE, Unit.STORE):
        for entry in stalls(entries, unit):
            if "waits for instruction" in entry["args"]:
                pusher, waiter = (
                    found[entry["args"][key]] for key in ("waits for instruction", "instruction")
                )
                assert entry["ts"] + entry["dur"] == pusher["ts"] + pusher["dur"] == waiter["ts"]
                checked += 1
    assert bool(checked) != bool(analyzed.result.config.serial)


def test_tokens_are_arrows_from_slice_to_slice(case: tuple[AnalyzedRun, Entries]) -> None:
    analyzed, entries = case
    assert analyzed.result.events is not None
    popped = [e for e in analyzed.result.events if e.kind is EventKind.TOKEN_POP]
    ends = {entry["id"]: entry for entry in entries["f"]}
    assert len(entries["s"]) == len(ends) == len(popped) > 0
    slices = {(e["tid"], e["ts"]): e for e in instructions(entries).values()}
    last = {(e["tid"], e["ts"] + e["dur"] - 1) for e in instructions(entries).values()}
    counters = {f"{c.kind} {c.label}": c for c in Counter}
    for start in entries["s"]:
        end = ends[start["id"]]
        assert start["ts"] < end["ts"]
        assert (start["tid"], start["ts"]) in last
        target = slices[end["tid"], end["ts"]]
        assert (start["name"], start["cat"]) == (end["name"], end["cat"])
        assert analyzed.instructions[target["args"]["instruction"]].unit is counters[start["name"]].target


def test_counters_return_to_zero(case: tuple[AnalyzedRun, Entries]) -> None:
    analyzed, entries = case
    last = {e["name"]: e["args"] for e in entries["C"]}
    assert len(last) == 3 + 4 + 2
    assert {n for args in last.values() for n in args.values()} == {0}
    assert all(a["ts"] <= b["ts"] for a, b in pairwise(entries["C"]) if a["name"] == b["name"])
    levels = [e["args"]["instructions"] for e in entries["C"] if e["name"] == "load queue"]
    assert max(levels) <= analyzed.result.config.load_queue


def test_bandwidth_adds_up_to_the_moved_bytes(case: tuple[AnalyzedRun, Entries]) -> None:
    analyzed, entries = case
    assert analyzed.result.events is not None
    for name, units in (("read", (Unit.FETCH, Unit.LOAD, Unit.COMPUTE)), ("write", (Unit.STORE,))):
        changes = [e for e in entries["C"] if e["name"].startswith(name)]
        moved = sum((b["ts"] - a["ts"]) * sum(a["args"].values()) for a, b in pairwise(changes))
        beats = sum(
            e.value for e in analyzed.result.events if e.kind is EventKind.BURST_LAST and e.unit in units
        )
        assert moved == pytest.approx(beats * analyzed.result.config.bus_bytes, rel=1e-3)


def test_bandwidth_of_a_store_unit_that_reads() -> None:
    """The store unit's reads are separate from its writes, and a beat of two cycles counts once."""
    analyzed = from_text(EPILOGUES)
    entries = by_phase(analyzed)
    size = analyzed.result.config.bus_bytes
    found = {}
    for name in ("read", "write"):
        changes = [e for e in entries["C"] if e["name"].startswith(name)]
        found[name] = sum((b["ts"] - a["ts"]) * a["args"]["store"] for a, b in pairwise(changes)) / size
    assert found["read"] == pytest.approx((3 * 32 + 24 * 4) / size, rel=1e-3)
    assert found["write"] == pytest.approx(28 * 4 / size, rel=1e-3)


def test_a_compressed_trace_is_the_same() -> None:
    assert gzip.decompress(trace_bytes(look(), compress=True)) == trace_bytes(look())
