import pytest

from accel.base import forked_tasks
from accel.base.errors import ShapeError
from accel.compiler.plans.planner import known_plans
from accel.graph.graph import Graph
from accel.network.network import Network
from accel.network.network_file import network_bytes
from tests.network.moving_networks import moving_network
from tests.network.networks import MACHINE, divided_network, residual_network


@pytest.mark.parametrize(
    "graph",
    [residual_network(), divided_network(), moving_network(1, 12)],
    ids=("residual", "divided", "moving"),
)
def test_processes_compile_the_same_network(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if no result arrives."""
    monkeypatch.setattr(forked_tasks, "_WORTH_SECONDS", 0.0)
    built = []
    for jobs in (1, 2, 3):
        known_plans().clear()
        built.append(network_bytes(Network(graph=graph).build(MACHINE, jobs=jobs)))
    assert built[0] == built[1] == built[2]
    monkeypatch.setattr(forked_tasks, "_run", lambda task, numbers: {})
    known_plans().clear()
    assert network_bytes(Network(graph=graph).build(MACHINE, jobs=2)) == built[0]


def test_jobs_are_checked() -> None:
    with pytest.raises(ShapeError, match="jobs is 0; it must be a positive integer"):
        Network(graph=residual_network()).build(MACHINE, jobs=0)
