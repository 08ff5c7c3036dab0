import threading
from typing import Any

import numpy as np
import pytest

from accel.graph.graph import Graph
from accel.graph.graph_evaluation import evaluate
from accel.network import host_regions
from accel.network.chained_program import Chain
from accel.network.host_regions import HostRegion
from accel.network.network import Network
from accel.network.network_program import NetworkProgram
from accel.run.session import Session
from tests.network.networks import MACHINE, Small
from tests.network.test_partition import on_host


def two_programs() -> Graph:
    """Of the host's nodes after the first program, ``late`` and ``later`` are not for the second one."""
    small = Small((1, 16, 6, 6))
    small.conv("x", "a", 16, pad=1)
    small.conv(on_host(small, "a", "soon"), "b", 16, pad=1)
    on_host(small, on_host(small, "a", "late"), "later")
    on_host(small, "b", "last")
    return small.graph("later", "last")


def regions(program: NetworkProgram) -> list[tuple[str, ...]]:
    found = []
    for step in program._regions:
        names = tuple(part.fused.output for part in step.parts)
        kind = "machine" if isinstance(step, Chain) else "beside" if step.is_concurrent else "host"
        found.append((kind, *names))
    return found


@pytest.fixture
def program() -> NetworkProgram:
    return Network(graph=two_programs()).build(MACHINE)


def test_nodes_that_the_next_program_does_not_need_are_a_region(program: NetworkProgram) -> None:
    assert regions(program) == [
        ("machine", "a"),
        ("host", "soon"),
        ("beside", "late", "later"),
        ("machine", "b"),
        ("host", "last"),
    ]


def test_connected_nodes_stay_in_one_region() -> None:
    small = Small((1, 16, 6, 6))
    small.conv("x", "a", 16, pad=1)
    small.conv(on_host(small, "a", "soon"), "b", 16, pad=1)
    on_host(small, "soon", "late")
    program = Network(graph=small.graph("late", "b")).build(MACHINE)
    assert regions(program) == [("machine", "a"), ("host", "soon", "late"), ("machine", "b")]


def test_it_runs_while_the_machine_does(program: NetworkProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    """The region waits until the second program runs, and the program waits for the region."""
    machine_runs, region_runs = threading.Event(), threading.Event()
    compute = HostRegion.run

    def run_region(region: HostRegion, array: Any) -> Any:
        if region.is_concurrent:
            assert threading.current_thread() is not threading.main_thread()
            assert machine_runs.wait(20)
            region_runs.set()
        return compute(region, array)

    def progress(name: str) -> None:
        if name == "b":
            machine_runs.set()
            assert region_runs.wait(20)

    monkeypatch.setattr(HostRegion, "run", run_region)
    inputs = program.random_inputs()
    result = program.run(inputs, progress=progress)
    result.raise_if_wrong()
    wanted = evaluate(program.graph, inputs)
    for name, array in result.outputs.items():
        np.testing.assert_array_equal(array, wanted[name])


def test_its_error_comes_before_that_of_the_program(
    program: NetworkProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate = host_regions.evaluate_node

    def fail(graph: Graph, node: Any, operands: Any) -> Any:
        if node.output == "later":
            raise ZeroDivisionError("of the host")
        return evaluate(graph, node, operands)

    monkeypatch.setattr(host_regions, "evaluate_node", fail)
    with pytest.raises(ZeroDivisionError, match="of the host"):
        program.run()
    calls: list[str] = []

    def stop(session: Any, one: Any, *arguments: Any, **options: Any) -> Any:
        calls.append("program")
        if len(calls) == 2:
            raise RuntimeError("of the machine")
        return run(session, one, *arguments, **options)

    run = Session.run
    monkeypatch.setattr(Session, "run", stop)
    with pytest.raises(ZeroDivisionError, match="of the host"):
        program.run()
    assert len(calls) == 2
