"""The critical path of runs, and the graph that it is found in, against the timing model."""

import collections
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given

import accel
from accel.core.isa import Gemm, Load, Memory
from accel.core.token_rules import Counter
from accel.network.digits import digits_network
from accel.run.critical import critical_dict, cut, joined, shares, walk
from accel.run.result import Totals
from accel.run.waits import Edge, Kind, Part, Wait, Waits, plan_of, record_of, record_of_run
from accel.sim.timing.engine import Engine
from accel.sim.timing.model import TimingRun, simulate_timing
from accel.sim.timing.plan import Plan, Shape
from accel.sim.timing.port import ReadPort, Requester
from tests.programs import gemm_program, handmade
from tests.sim.timing.test_model import Case, cases
from tests.strategies import examples

SIZES = [
    {"size": 10, "x_size": 12, "y_size": 3},
    {"size": 40, "x_size": 2, "y_size": 2},
    {"size": 5, "x_size": 100, "y_size": 2},
]


def graph(case: Case, run: TimingRun, *, by_events: bool = False) -> Waits:
    program, config, arguments = case
    record = record_of(run.events(), program) if by_events else record_of_run(run)
    plan = plan_of(program, config) if by_events else run.plan
    return Waits(record, plan, config, address=arguments["address"], tokens=arguments["tokens"])


@pytest.mark.parametrize("sizes", SIZES, ids=["mixed", "many instructions", "long rows"])
def test_everything_happens_when_the_last_of_what_it_waits_for_allows(sizes: dict[str, int]) -> None:
    seen = collections.Counter[Wait]()

    @examples(150)
    @given(cases(**sizes))
    def compare(case: Case) -> None:
        run = simulate_timing(case[0], case[1], **case[2])
        waits = graph(case, run)
        for kind, number in waits.nodes():
            edges = list(waits.edges(kind, number))
            assert max(edge.bound for edge in edges) == waits.cycle(kind, number), (kind, number)
        parts = walk(waits, run.cycles)
        assert sum(part.cycles for part in parts) == run.cycles
        assert min((part.cycles for part in parts), default=1) >= 0
        seen.update(part.wait for part in parts)
        assert walk(graph(case, run, by_events=True), run.cycles) == parts

    compare()
    assert len(seen) > 15


# --- what relaxing a cause does ----------------------------------------------------------------------


class Free(NamedTuple):
    """What takes no time: one token, by its counter and who pops it, or one read burst's latency."""

    counter: Counter | None
    number: int


def end_without(waits: Waits, free: Free) -> int:
    """When a run ends by the graph."""
    known: dict[tuple[Kind, int], int] = {(Kind.BEGIN, 0): 0}

    def bound(kind: Kind, number: int, edge: Edge) -> int:
        since = known[edge.kind, edge.number]
        if free.counter is None:
            skip = Wait.READ_LATENCY if (edge.kind, edge.number) == (Kind.GRANT, free.number) else None
            return since + sum(part.cycles for part in edge.parts if part.wait is not skip)
        pusher = int(waits._pusher[free.counter][free.number])
        token = kind is Kind.START and number == free.number and edge[1:3] == (Kind.RETIRE, pusher)
        return (
            -1
            if token and edge.parts[0].wait in (Wait.RAW, Wait.WAR)
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
    return max(cycle for (kind, _), cycle in known.items() if kind is Kind.RETIRE) + 1


def simulate_without(case: Case, free: Free, plan: Plan) -> TimingRun:
    """The same by the timing model."""
    with pytest.MonkeyPatch.context() as patch:
        if free.counter is None:
            run_bursts = ReadPort._run

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

            patch.setattr(ReadPort, "_run", run)
        else:
            popping = [n for n, number in enumerate(plan.numbers) if free.counter in plan.shapes[number].pops]
            place = popping.index(free.number)
            with_tokens = Engine.with_tokens

            def tokens(self: Engine, shape: Shape, cycle: int) -> int:
                if free.counter in shape.pops and len(self.counters[free.counter].pops) == place:
                    shape = shape._replace(pops=tuple(one for one in shape.pops if one is not free.counter))
                return with_tokens(self, shape, cycle)

            patch.setattr(Engine, "with_tokens", tokens)
        return simulate_timing(case[0], case[1], **case[2])


def causes(waits: Waits, parts: list[Part]) -> list[Free]:
    """Tokens and latencies on a path."""
    found = set()
    for part in parts:
        if part.wait in (Wait.RAW, Wait.WAR):
            for counter in waits._shapes[part.instruction].pops:
                pusher = int(waits._pusher[counter][part.instruction])
                if pusher >= 0 and waits._retire[pusher] + 1 == waits._start[part.instruction]:
                    found.add(Free(counter, part.instruction))
        elif part.wait is Wait.READ_LATENCY:
            found |= {Free(None, n) for n, one in enumerate(waits._readers) if one == part.instruction}
    return sorted(found, key=str)


def test_without_a_cause_a_run_ends_when_the_graph_says() -> None:
    """As long as the port grants bursts in the same order."""
    tally = collections.Counter[str]()

    @examples(200)
    @given(cases(size=12, x_size=12, y_size=2))
    def compare(case: Case) -> None:
        run = simulate_timing(case[0], case[1], **case[2])
        if run.stop is not None:
            return
        waits = graph(case, run)
        parts = walk(waits, run.cycles)
        if any(part.wait is Wait.PADDING for part in parts) or waits._pad_lasts:
            return
        for free in causes(waits, parts)[:8]:
            ended = simulate_without(case, free, run.plan)
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


def test_of_a_run_without_time_nothing_is_known() -> None:
    program = gemm_program()
    assert program.run(backend="functional").critical_path() is None


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


def test_memory_that_answers_late_stretches_what_waits_for_it() -> None:
    program = gemm_program()
    result = program.run()
    events = [one._replace(cycle=one.cycle + 7 * (one.cycle > 60)) for one in result.events]
    late = replace(result, timing=_Late(cycles=result.cycles + 7, unit_cycles={}, of=events))
    path = late.critical_path()
    assert path is not None
    assert sum(one.cycles for one in path) == late.cycles
    assert max(one.cycles for one in path) >= max(one.cycles for one in result.critical_path() or ())
    assert min(one.cycles for one in path) > 0


@dataclass(frozen=True, kw_only=True)
class _Late(Totals):
    """The events of hardware beside another memory."""

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
    assert len(joined([path, path])) == 2 * len(path)
    assert joined([path, path])[-1].stop == 2 * path[-1].stop
    assert [sum(one.cycles for one in piece) for piece in cut(path, [5, 5, 17])] == [5, 0, 12]
