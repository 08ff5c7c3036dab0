"""Saved runs of networks, their comparison, and advice."""

import json
import re
from functools import cache
from pathlib import Path

import pytest

from accel.base.errors import AccelError, ProgramError
from accel.base.records import replace
from accel.network.network import Network
from accel.network.network_advice import advise_network
from accel.network.network_program import NetworkProgram
from accel.network.network_report import NetworkReport
from accel.network.network_result import NetworkResult
from accel.network.saved_network_run import saved_network
from accel.run import advice_candidates
from accel.views.run_comparison import Comparison
from accel.views.saved_run import SavedRun
from tests.network.networks import MACHINE, divided_network, residual_network


@cache
def program(**fields: int) -> NetworkProgram:
    return Network(graph=divided_network()).build(MACHINE).with_timing(fields)


@cache
def ran(**fields: int) -> NetworkResult:
    return program(**fields).run(check=False, record=True)


@cache
def saved(**fields: int) -> SavedRun:
    overrides = {name: str(value) for name, value in fields.items()}
    return saved_network(ran(**fields), name="net", overrides=overrides, seed=0)


def test_round_trip(tmp_path: Path) -> None:
    run = saved()
    assert [one.program for one in run.layers] == [1, None, 2]
    assert sum(one.cycles or 0 for one in run.layers) == run.cycles == ran().cycles
    assert sum(one.cycles for one in run.critical) == run.cycles
    assert all(sum(unit.values()) == run.cycles for unit in run.figures["stalls"].values())
    run.save(tmp_path / "n.accelrun")
    again = SavedRun.load(tmp_path / "n.accelrun")
    assert (again.layers, again.critical, again.traffic) == (run.layers, run.critical, run.traffic)
    assert (again.states == run.states).all()
    assert again.figures == json.loads(json.dumps(run.figures))
    wrong = replace(run, layers=run.layers[:1])
    wrong.save(tmp_path / "w.accelrun")
    with pytest.raises(ProgramError, match=r"its layers do not take the \d+ cycles"):
        SavedRun.load(tmp_path / "w.accelrun")
    with pytest.raises(AccelError, match="no run of the machine was recorded"):
        saved_network(program().run(check=False))


def test_segments_belong_to_layers() -> None:
    run, result = saved(), ran()
    for one in run.critical:
        kept, known = run.layer_of(one.start), result.layer_of(one.start)
        assert kept is not None
        assert known is not None
        assert kept.name == known.name
    assert run.layer_of(run.cycles) is None
    page = NetworkReport(program(), result).html()
    assert 'id="critical"' in page
    assert re.search(r">1:\d+ \w+ in a<", page)
    assert page.count('<svg class="chart" role="img"') == 1


def test_comparison_of_layers_and_programs() -> None:
    found = Comparison(saved(), saved(read_latency=200))
    more = found.b.cycles - found.a.cycles
    assert more > 0
    assert [one.name for one in found.layers] == ["a", "t", "b"]
    assert sum(one.difference for one in found.layers) == more
    for layer in found.layers:
        assert sum(one.difference for one in layer.causes) == layer.difference
    assert [one.key for one in found.programs] == [1, 2]
    assert sum(one.difference for one in found.programs) == more
    told = found.to_dict()
    assert json.loads(json.dumps(told)) == told
    assert "load read latency (" in found.html()


def test_advice_equals_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = {"read_latency": 100}
    kept = ("read_latency", "bus_bits", "block_out", "outstanding")
    monkeypatch.setattr(
        advice_candidates, "_LEVERS", {name: advice_candidates._LEVERS[name] for name in kept}
    )
    found = advise_network(program(**slow), ran(**slow))
    assert {one.recompiled for one in found.advice} == {False, True}
    assert found.without == ""
    for one in found.advice:
        config = program(**slow).config.override({one.field: one.then})
        again = Network(graph=divided_network()).build(config) if one.recompiled else None
        then = (again or program(**slow).with_timing({one.field: one.then})).run(check=False)
        assert then.cycles == pytest.approx(one.cycles, rel=0.02)
        assert one.speedup == pytest.approx((ran(**slow).cycles or 0) / one.cycles)
    assert "gains the most" in found.advice[0].reason


def test_no_geometry_advice_for_networks_with_options() -> None:
    other = Network(graph=residual_network()).build(MACHINE, fusion=False)
    found = advise_network(other, other.run(check=False, record=True))
    assert "Fields of the geometry were not tried: the network was compiled by options" in found.left_out
    assert found.to_dict()["without"]
    assert not any(one.recompiled for one in found.advice)
