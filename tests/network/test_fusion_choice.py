from pathlib import Path

import numpy as np
import pytest

from accel.base.records import replace
from accel.core.config import load_config
from accel.network import fusion_choice, predicted_cost
from accel.network.cost import Cost
from accel.network.fusion_candidates import fusion_groups
from accel.network.fusion_choice import FusionChooser
from accel.network.fusion_report import total_savings
from accel.network.network import Network
from accel.network.network_file import load_network, save_network
from accel.network.network_text import choices_text
from tests.network.networks import MACHINE, Small, residual_network

CONFIG = load_config(MACHINE)


def test_the_alternative_with_the_fewest_predicted_cycles_is_chosen() -> None:
    program = Network(graph=residual_network()).build(MACHINE)
    by_name = {choice.name: choice for choice in program.choices}
    choice = by_name["b"]
    assert choice.alternatives[0].stages == ("Conv + Add + Clip",)
    cycles = [one.cost.cycles for one in choice.alternatives if one.cost is not None]
    assert cycles == sorted(cycles)
    apart = next(one for one in choice.alternatives if one.is_unfused)
    assert apart.stages == ("Conv", "Add", "Clip")
    assert apart.cost is not None
    assert choice.saved.cycles == apart.cost.cycles - cycles[0] > 0
    assert choice.saved.nbytes > 0
    assert "(chosen)" in choices_text(program)


def test_a_free_host_executes_all_nodes_without_macs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicted_cost, "HOST_SWITCH_CYCLES", 0)
    monkeypatch.setattr(predicted_cost, "HOST_CYCLES_PER_BYTE", 0)
    graph = residual_network()
    program = Network(graph=graph).build(MACHINE)
    places = {part.fused.main.operator.kind: (part.where, part.reason) for part in program.parts}
    assert places["GlobalAveragePool"] == ("host", "the host is predicted to take fewer cycles")
    assert places["Conv"] == ("machine", "")
    assert program.run().mismatches == {}


def test_a_layer_that_does_not_compile_is_replaced() -> None:
    graph = residual_network()
    chooser = FusionChooser(graph, CONFIG, approximate=False)
    (group,) = (
        one for one in fusion_groups(graph) if any(stage.combination for stage in one.alternatives[0])
    )
    before, _ = chooser.choose(group)
    assert [option.fused.operators() for option in before] == ["Conv + Add + Clip"]
    chooser.refuse(before[0], "no tiles")
    after, choice = chooser.choose(group)
    assert [option.fused.operators() for option in after] == ["Conv + Add", "Clip"]
    assert choice.alternatives[-1].refused == "no tiles"
    chooser.refuse(after[0], "no tiles, either")
    last, _ = chooser.choose(group)
    assert [(option.where, option.reason) for option in last] == [
        ("machine", ""),
        ("machine", ""),
        ("machine", ""),
    ]
    chooser.refuse(last[1], "no tiles")
    host, _ = chooser.choose(group)
    assert [(option.where, option.reason) for option in host][1] == ("host", "no tiles")


def test_the_convolution_with_the_cheaper_sum_fuses_it() -> None:
    small = Small((1, 32, 8, 8))
    small.conv("x", "a", 32, 1)
    small.conv("x", "b", 32, 3, pad=1)
    small.add("a", "b", "c")
    graph = small.graph("c")
    (choice,) = Network(graph=graph).build(MACHINE).choices
    assert {one.stages for one in choice.alternatives} >= {
        ("Conv", "Conv + Add"),
        ("Conv", "Conv", "Add on the host"),
    }
    assert sum(one.stages == ("Conv", "Conv + Add") for one in choice.alternatives) == 2


def _joined_network() -> Network:
    """Return a network with two pairs of convolutions whose results are added."""
    small = Small((1, 32, 12, 12))
    small.conv("x", "a", 32, 3, pad=1)
    small.conv("a", "b", 32, 1)
    small.conv("x", "c", 32, 1)
    small.add("b", "c", "d")
    small.conv("d", "e", 48, 3, stride=2, pad=1)
    small.conv("d", "f", 48, 1, stride=2)
    small.add("e", "f", "g")
    return Network(graph=small.graph("g"))


@pytest.mark.parametrize("network", [Network(graph=residual_network()), _joined_network()])
def test_plans_are_searched_only_for_alternatives_that_may_be_the_best(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = network.build(MACHINE)
    searched: list[object] = []

    def cost_by_plans(*arguments: object) -> Cost:
        searched.append(arguments)
        predicted, least = (
            find(*arguments)  # type: ignore[arg-type]
            for find in (predicted_cost.machine_cost, predicted_cost.least_machine_cost)
        )
        return replace(predicted, cycles=max(predicted.cycles, least.cycles))

    monkeypatch.setattr(fusion_choice, "least_machine_cost", cost_by_plans)
    of_all = network.build(MACHINE)
    assert searched
    assert [part.fused.operators() for part in program.parts] == [
        part.fused.operators() for part in of_all.parts
    ]
    bounds = 0
    for choice, exact in zip(program.choices, of_all.choices, strict=True):
        costs = sorted((one.stages, one.cost.cycles) for one in exact.alternatives if one.cost is not None)
        some = sorted((one.stages, one.cost.cycles) for one in choice.alternatives if one.cost is not None)
        assert all(bound <= cycles for (_, bound), (_, cycles) in zip(some, costs, strict=True))
        assert choice.alternatives[0].cost == exact.alternatives[0].cost
        assert choice.saved.cycles <= exact.saved.cycles
        bounds += sum(one.cost is not None and one.cost.is_bound for one in choice.alternatives)
    assert bounds
    assert "at least" in choices_text(program)
    assert "at least" not in choices_text(of_all)


def test_networks_without_fusion_take_more_cycles() -> None:
    graph = residual_network()
    fused, apart = (Network(graph=graph).build(MACHINE, fusion=fusion) for fusion in (True, False))
    assert all(len(part.fused.nodes) == 1 for part in apart.parts)
    assert not total_savings(apart.choices).cycles
    results = [program.run() for program in (fused, apart)]
    assert [result.mismatches for result in results] == [{}, {}]
    assert results[0].cycles < results[1].cycles
    saved = results[1].cycles - results[0].cycles
    assert 0.5 * saved < total_savings(fused.choices).cycles < 2 * saved
    for name in graph.outputs:
        assert np.array_equal(results[0].outputs[name], results[1].outputs[name])


def test_files_contain_choices(tmp_path: Path) -> None:
    program = Network(graph=residual_network()).build(MACHINE)
    save_network(program, tmp_path / "net.accel")
    assert load_network(tmp_path / "net.accel").choices == program.choices
