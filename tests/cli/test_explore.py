"""`accel explore`: the files, the printed front, the JSON and the exit codes."""

import csv
import json
import shlex
import sys

import pytest

from accel.base.optional_extras import not_installed
from accel.cli.app import main
from accel.explore import exploration_runner
from accel.explore.placement_tasks import ToolVersions, placement_tools
from accel.hw.export import place_and_route
from tests.cli.conftest import Shell
from tests.explore.worker_functions import place_by_formula

SPACE = """
title = "Small"
config = "tiny"
sampler = "{sampler}"
trials = 100
[field]
block_in.powers_of_two = [4, 16]
wgt_bytes.powers_of_two = ["2KiB", "8KiB"]
[limit]
multipliers = 100
[[workload]]
name = "gemm"
M = 16
N = 16
K = 16
shift = 8
"""


@pytest.fixture
def space(accel: Shell) -> str:
    (accel.folder / "small.toml").write_text(SPACE.format(sampler="exhaustive"))
    return "small.toml"


def test_a_space_becomes_a_folder(accel: Shell, space: str) -> None:
    out = accel("explore", space, "--jobs", 1).text
    assert {path.name for path in (accel.folder / "small").iterdir()} == {
        "small.csv",
        "small.html",
        "small.svg",
        "small.journal.jsonl",
        "small.points.json",
    }
    assert out.startswith("Small\n")
    assert "cycles  block_rams (18 Kbit)  block_in  wgt_bytes\n" in out
    assert "infeasible" in out
    assert "no neighbour dominates a point of the front" in out
    with (accel.folder / "small" / "small.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 9
    assert {row["status"] for row in rows} == {"measured", "infeasible"}
    for row in rows:
        assert (row["status"] == "infeasible") == bool(row["message"])


def test_json_has_commands_that_measure_a_point_again(accel: Shell, space: str) -> None:
    found = accel("explore", space, "--jobs", 1, "--json", "--no-picture", "--simulate-front").json
    assert not (accel.folder / "small" / "small.svg").exists()
    assert found["measured"] + found["infeasible"] == found["space_size"] == len(found["points"]) == 9
    assert found["front"] == [
        one["point"]
        for one in sorted((one for one in found["points"] if one["front"]), key=lambda one: one["cycles"])
    ]
    for number in found["front"]:
        point = found["points"][number]
        (command,) = point["commands"]
        program, *arguments = shlex.split(command)
        assert program == "accel"
        accel(*arguments, "-o", "again.accel")
        again = accel("run", "again.accel", "--json").json
        assert again["cycles"] == point["simulated_cycles:gemm"]


def test_the_same_command_continues(accel: Shell, space: str) -> None:
    accel("explore", space, "--jobs", 1, "--trials", 2, "--max-neighbours", 0)
    journal = accel.folder / "small" / "small.journal.jsonl"
    first = journal.read_text().splitlines()
    accel("explore", space, "--jobs", 1)
    second = journal.read_text().splitlines()
    assert second[: len(first)] == first
    assert len({json.loads(line)["key"] for line in second}) == len(second)


@pytest.fixture
def placed(accel: Shell, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same space by time, with invented placements."""
    tools = ToolVersions(yosys="0.1", nextpnr="0.2")
    for module in ("accel.cli.explore", "accel.explore.exploration_runner"):
        monkeypatch.setattr(f"{module}.placement_tools", lambda: tools)
    monkeypatch.setattr(exploration_runner, "measure_placement", place_by_formula)
    settings = 'objectives = ["microseconds", "frequency"]\nconstraints = ["frequency > 70"]\n'
    text = SPACE.format(sampler="exhaustive").replace("[field]", f"{settings}[field]")
    (accel.folder / "placed.toml").write_text(f"{text}[placement]\nseeds = 3\n")
    return "placed.toml"


def test_placed_machines_have_their_frequency(accel: Shell, placed: str) -> None:
    out = accel("explore", placed, "--jobs", 1).text
    assert "microseconds  frequency (MHz)  block_in  wgt_bytes\n" in out
    assert "cores placed and routed on an ECP5-85F: the median of seeds 1 to 3; nextpnr 0.2\n" in out
    with (accel.folder / "placed" / "placed.csv").open() as file:
        rows = list(csv.DictReader(file))
    known = [row for row in rows if row["frequency"]]
    assert {row["status"] for row in known} == {"measured", "infeasible"}
    for row in known:
        assert (float(row["frequency"]) > 70) == (row["status"] == "measured")
        assert float(row["frequency_high"]) - float(row["frequency_low"]) == 4
        time = float(row["cycles:gemm"]) / float(row["frequency"])
        assert float(row["microseconds"]) == pytest.approx(time)
    assert b"frequency (MHz)" in (accel.folder / "placed" / "placed.svg").read_bytes()
    found = accel("explore", placed, "--jobs", 1, "--json").json
    assert found["units"] == {"microseconds": "microseconds", "frequency": "MHz"}
    assert found["placement"]["seeds"] == 3
    assert found["limits"] == {"multipliers": 100, "block_rams": 208, "lut_slots": 83640, "flip_flops": 83640}


def test_missing_tools_are_reported(accel: Shell, placed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel.cli.explore.placement_tools", placement_tools)
    monkeypatch.setattr(place_and_route, "YOSYS", "yowasp-nothing")
    message = not_installed("synthesis needs yowasp-nothing", "fpga")
    accel.refused("explore", placed, "--jobs", 1, "--no-picture", message=message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.toml"], "search space 'no.toml' cannot be read: No such file or directory"),
        (["small.toml", "--sampler", "exhaustiv"], "sampler is 'exhaustiv'; did you mean 'exhaustive'?"),
        (["small.toml", "--executor", "das"], "the executor is 'das'; did you mean 'dask'?"),
        (["small.toml", "-o", "no/folder"], "'no/folder' cannot be written: there is no folder 'no'"),
    ],
    ids=str,
)
def test_bad_input_is_said(arguments: list[str], message: str, accel: Shell, space: str) -> None:
    accel.refused("explore", *arguments, message=message)


def test_a_missing_optuna_is_reported_before_the_search_starts(
    accel: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    (accel.folder / "small.toml").write_text(SPACE.format(sampler="nsga2"))
    monkeypatch.setitem(sys.modules, "optuna", None)
    message = not_installed("this sampler needs optuna", "explore")
    accel.refused("explore", "small.toml", message=message)


def test_an_interrupted_search_prints_how_to_continue(
    accel: Shell, space: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("accel.cli.explore.explore", interrupt)
    with pytest.raises(SystemExit) as end:
        main(["explore", space, "--jobs", "1", "--fresh"])
    assert end.value.code == 130
    assert (
        "accel: interrupted; the measured points are in 'small/small.journal.jsonl', and this continues from "
        "there: accel explore small.toml --jobs 1\n" in capsys.readouterr().err
    )
