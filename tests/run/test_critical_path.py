"""The critical path of runs, and the wait graph, compared with the timing model."""

import collections
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given

import accel
from accel.base.errors import AccelError
from accel.base.records import replace
from accel.core.fault_causes import instruction_faults
from accel.core.isa import Gemm, Load, Memory
from accel.core.token_rules import Counter
from accel.network.digits import digits_network
from accel.run.critical_path import critical_dict, join_paths, longest_path, shares, split_path
from accel.run.result import Totals
from accel.run.run_record import NodeKind, record_of_events, record_of_run
from accel.run.wait_causes import Wait
from accel.run.wait_graph import Delay, Edge, WaitGraph
from accel.sim.timing.bus_ports import ReadPort, Requester
from accel.sim.timing.timed_program import InstructionTiming, TimedProgram
from accel.sim.timing.timing_kernel import TimingKernel
from accel.sim.timing.timing_model import simulate_timing
from accel.sim.timing.timing_run import TimingRun
from tests.programs import gemm_program, handmade
from tests.sim.timing.test_timing_model import Case, cases
from tests.strategies import examples

SIZES = [
    {"size": 10, "x_size": 12, "y_size": 3},
    {"size": 40, "x_size": 2, "y_size": 2},
    {"size": 5, "x_size": 100, "y_size": 2},
]


def graph(case: Case, run: TimingRun, *, by_events: bool = False) -> WaitGraph:
    program, config, arguments = case
    record = record_of_events(run.events(), program) if by_events else record_of_run(run)
    again = TimedProgram(program, config, {}, instruction_faults(program, config))
    timed = again if by_events else run.program
    return WaitGraph(record, timed, config, address=arguments["address"], tokens=arguments["tokens"])


@pytest.mark.parametrize("sizes", SIZES, ids=["mixed", "many instructions", "long rows"])
def test_every_event_happens_at_its_highest_bound(sizes: dict[str, int]) -> None:
    seen = collections.Counter[Wait]()

    @examples(150, least=30)
    @given(cases(**sizes))
    def compare(case: Case) -> None:
        run = simulate_timing(case[0], case[1], **case[2])
        waits = graph(case, run)
        for kind, number in waits.nodes():
            edges = list(waits.edges(kind, number))
            assert max(edge.bound for edge in edges) == waits.cycle(kind, number), (kind, number)
        parts = longest_path(waits, run.cycles)
        assert sum(part.cycles for part in parts) == run.cycles
        assert min((part.cycles for part in parts), default=1) >= 0
        seen.update(part.wait for part in parts)
        assert longest_path(graph(case, run, by_events=True), run.cycles) == parts

    compare()
    assert len(seen) > 12


# --- the effect of relaxing a cause ------------------------------------------------------------------


class Free(NamedTuple):
    """A cause that takes no time: one token, by its counter and receiver, or the latency of one read."""

    counter: Counter | None
    number: int


def end_without(waits: WaitGraph, free: Free) -> int:
    """Return the end of a run by the graph, without a cause."""
    known: dict[tuple[NodeKind, int], int] = {(NodeKind.BEGIN, 0): 0}

    def bound(kind: NodeKind, number: int, edge: Edge) -> int:
        since = known[edge.kind, edge.number]
        if free.counter is None:
            skip = (
                Wait.READ_LATENCY if (edge.kind, edge.number) == (NodeKind.READ_GRANT, free.number) else None
            )
            return since + sum(part.cycles for part in edge.delays if part.wait is not skip)
        pusher = int(waits._dependencies.senders[free.counter][free.number])
        token = kind is NodeKind.START and number == free.number and edge[1:3] == (NodeKind.RETIRE, pusher)
        return (
            -1
            if token and edge.delays[0].wait in (Wait.RAW, Wait.WAR)
            else since + edge.bound - waits.cycle(edge.kind, edge.number)
        )

    waiting = sorted(waits.nodes(), key=lambda node: waits.cycle(*node), reverse=True)
    while waiting:
        kind, number = waiting.pop()
        edges = list(waits.edges(kind, number))
        missing = [edge[1:3] for edge in edges if edge[1:3] not in known]
        if missing:
            waiting += [(kind, number), *missing]
        else:
            known[kind, number] = max(bound(kind, number, edge) for edge in edges)
    return max(cycle for (kind, _), cycle in known.items() if kind is NodeKind.RETIRE) + 1


def simulate_without(case: Case, free: Free, program: TimedProgram) -> TimingRun:
    with pytest.MonkeyPatch.context() as patch:
        if free.counter is None:
            run_bursts = ReadPort._grant_bursts

            def run(self: ReadPort, cycle: int, end: int, requester: Requester) -> int:
                number = len(self._lasts) - self._outstanding
                latency = self._latency
                if number == free.number:
                    self._latency, end = 0, cycle
                elif number < free.number:
                    end = min(end, cycle + free.number - number - 1)
                try:
                    return run_bursts(self, cycle, end, requester)
                finally:
                    self._latency = latency

            patch.setattr(ReadPort, "_grant_bursts", run)
        else:
            popping = [
                n for n, number in enumerate(program.numbers) if free.counter in program.timings[number].pops
            ]
            place = popping.index(free.number)
            tokens_ready = TimingKernel.tokens_ready

            def tokens(self: TimingKernel, timing: InstructionTiming, cycle: int) -> int:
                if free.counter in timing.pops and len(self.counters[free.counter].pops) == place:
                    timing = timing._replace(
                        pops=tuple(one for one in timing.pops if one is not free.counter)
                    )
                return tokens_ready(self, timing, cycle)

            patch.setattr(TimingKernel, "tokens_ready", tokens)
        return simulate_timing(case[0], case[1], **case[2])


def causes(waits: WaitGraph, parts: list[Delay]) -> list[Free]:
    """Return the tokens and latencies on a path."""
    found = set()
    for part in parts:
        if part.wait in (Wait.RAW, Wait.WAR):
            for counter in waits._timings[part.instruction].pops:
                pusher = int(waits._dependencies.senders[counter][part.instruction])
                if pusher >= 0 and waits.cycle(NodeKind.RETIRE, pusher) + 1 == waits.cycle(
                    NodeKind.START, part.instruction
                ):
                    found.add(Free(counter, part.instruction))
        elif part.wait is Wait.READ_LATENCY:
            found |= {
                Free(None, n) for n, one in enumerate(waits._reads.instructions) if one == part.instruction
            }
    return sorted(found, key=str)


def test_without_a_cause_a_run_ends_when_the_graph_says() -> None:
    """This holds as long as the port grants bursts in the same order."""
    tally = collections.Counter[str]()

    @examples(200, least=40)
    @given(cases(size=12, x_size=12, y_size=2))
    def compare(case: Case) -> None:
        run = simulate_timing(case[0], case[1], **case[2])
        if run.stop is not None:
            return
        waits = graph(case, run)
        parts = longest_path(waits, run.cycles)
        if any(part.wait is Wait.PADDING for part in parts) or waits.pads.last_cycles:
            return
        for free in causes(waits, parts)[:8]:
            ended = simulate_without(case, free, run.program)
            order = [record_of_run(one)[3:5] for one in (run, ended)]
            if not all(np.array_equal(a, b) for a, b in zip(*order, strict=True)):
                tally["another order"] += 1
                continue
            assert ended.cycles == end_without(waits, free)
            if free.counter is None:
                assert run.cycles - case[1].read_latency <= ended.cycles <= run.cycles
            tally["sooner" if ended.cycles < run.cycles else "no sooner"] += 1

    compare()
    assert tally["sooner"] > tally["another order"], tally


# --- results -----------------------------------------------------------------------------------------


def test_a_result_says_why_it_took_its_cycles() -> None:
    result = accel.build(accel.gemm(24, 16, 160, shift=1), "tiny").run()
    path = result.critical_path()
    assert path is not None
    assert path is result.critical_path()
    assert [one.start for one in path] == [0, *(one.stop for one in path[:-1])]
    assert path[-1].stop == result.cycles
    assert {(one.unit, one.tensor) for one in path} >= {("load", "A"), ("load", "B"), ("store", "C")}
    assert (path[0].unit, path[0].cause, path[0].instruction) == ("fetch", Wait.STARTUP, None)
    assert (path[-1].unit, path[-1].cause, path[-1].tensor) == ("store", Wait.WRITE_LATENCY, "C")
    found = critical_dict(path, 2)
    assert found["cycles"] == result.cycles == sum(one["cycles"] for one in found["causes"])
    assert [one["cycles"] for one in found["segments"]] == sorted((o.cycles for o in path), reverse=True)[:2]
    assert len(critical_dict(path)["segments"]) == len(path)
    assert [one.to_dict() for one in shares(path)] == found["causes"]


def test_a_run_without_time_has_no_path() -> None:
    program = gemm_program()
    result = program.run(backend="functional")
    assert result.known_path is None
    with pytest.raises(AccelError, match=r"'functional' does not simulate time.*use 'sim' or 'rtl'"):
        result.critical_path()


def test_a_run_that_ends_early_has_a_path_up_to_the_error() -> None:
    program = handmade(Load(memory=Memory.INP, x_size=1, x_stride=1, y_size=1), Gemm(pop_prev=True))
    with pytest.raises(accel.DeadlockError) as caught:
        program.run()
    result = caught.value.result
    assert isinstance(result, accel.Result)
    path = result.critical_path()
    assert path is not None
    assert sum(one.cycles for one in path) == result.cycles
    assert path[-1].cause is Wait.STOPPED


def test_late_memory_prolongs_the_segments_that_wait_for_it() -> None:
    program = gemm_program()
    result = program.run()
    events = [one._replace(cycle=one.cycle + 7 * (one.cycle > 60)) for one in result.events]
    late = replace(result, timing=_Late(cycles=result.cycles + 7, unit_cycles={}, of=events))
    path = late.critical_path()
    assert path is not None
    assert sum(one.cycles for one in path) == late.cycles
    assert max(one.cycles for one in path) >= max(one.cycles for one in result.critical_path())
    assert min(one.cycles for one in path) > 0


class _Late(Totals, frozen=True, kw_only=True):
    """The events of hardware whose memory is late."""

    of: list[Any]

    def events(self) -> Any:
        return self.of


def test_the_layers_of_a_network_divide_its_path() -> None:
    result = digits_network().build("tiny-int8").run(record=True)
    path = result.critical_path()
    assert path is not None
    assert sum(one.cycles for one in path) == result.cycles
    for layer in result.layers:
        assert sum(one.cycles for one in layer.causes) == (layer.cycles or 0)
    assert len(join_paths([path, path])) == 2 * len(path)
    assert join_paths([path, path])[-1].stop == 2 * path[-1].stop
    assert [sum(one.cycles for one in piece) for piece in split_path(path, [5, 5, 17])] == [5, 0, 12]
