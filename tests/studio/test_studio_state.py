"""States: parsed from a page's data, and as commands."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from accel.base.errors import AccelError, ConfigError, ShapeError
from accel.cli.app import app
from accel.compiler.operators.operator_registry import OPERATORS
from accel.core.config import NAMED
from accel.run.build_program import build
from accel.run.program import Program
from accel.studio.form_fields import START, form_data
from accel.studio.state_commands import commands
from accel.studio.studio_state import StudioState
from tests.expect import refused

CONV: dict[str, Any] = {
    "workload": "conv2d",
    "parameters": {"IC": 16, "size": "8x9", "OC": 16, "kernel": 3, "padding": "1,0,2,1", "relu": True},
    "machine": "vta",
    "settings": {"read_latency": 99, "inp_bytes": "16KiB"},
}


def test_states_survive_a_round_trip() -> None:
    data = {**CONV, "pinned": {"workload": "gemm", "parameters": {"M": 8}, "machine": "tiny"}}
    state = StudioState.from_data(data)
    assert state.to_data() == data
    assert StudioState.from_data(json.loads(json.dumps(state.to_data()))) == state
    assert state.key == StudioState.from_data(CONV).key != START.key


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (3, "the state is an integer; it must be an object of at most 400 entries"),
        ({}, "the state has no workload; it must name an operator or a file"),
        ({"workload": 3}, "workload is 3; it must be a name"),
        ({"workload": "gemm", "wrokload": 1}, "the state has 'wrokload'; did you mean 'workload'?"),
        ({"workload": "gemm", "steps": {}}, "steps is an object; it must be a list of at most 400 objects"),
        (
            {"workload": "gemm", "steps": [3]},
            "a step is an integer; it must be an object of at most 400 entries",
        ),
        (
            {"workload": "gemm", "settings": {str(n): n for n in range(401)}},
            "settings is an object; it must be an object of at most 400 entries",
        ),
    ],
)
def test_other_data_is_refused(data: object, message: str) -> None:
    with refused(AccelError, message):
        StudioState.from_data(data)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"M": "x"}, "M is 'x'; it must be of the form an integer"),
        ({"M": 1.5}, "M is 1.5; it must be of the form an integer"),
        ({"M": [1, 2]}, "M is [1, 2]; it must be of the form an integer"),
        ({"bias": 1}, "bias is 1; it must be true or false"),
        ({"clip": "1"}, "clip is '1'; it must be of the form LOW,HIGH"),
        ({"scale": "x"}, "scale is 'x'; it must be a number"),
        ({"MM": 1}, "'MM' is not a parameter of gemm; did you mean 'M'?"),
    ],
)
def test_malformed_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with refused(ShapeError, message):
        StudioState(workload="gemm", parameters=parameters).arguments()


def test_a_machine_is_never_a_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"block_in": 8}', encoding="utf-8")
    with pytest.raises(AccelError, match="is not a machine"):
        StudioState(workload="gemm", machine=str(path)).config()
    with pytest.raises(ConfigError):
        StudioState(workload="gemm", settings={"inp_bytes": 3}).config()


def test_the_form_has_every_operator_with_valid_first_parameters() -> None:
    found = form_data()
    assert [one["name"] for one in found["operators"]] == list(OPERATORS)
    for one in found["operators"]:
        StudioState(workload=one["name"], parameters=one["example"]).make_workload()
    StudioState.from_data(found["start"]).make_workload()
    assert NAMED[found["network_machine"]].post


def typed(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The program that the first commands of a text compile."""
    monkeypatch.chdir(folder)
    head, _, rest = text.partition("<< 'END'\n")
    if rest:
        content, _, head = rest.partition("\nEND\n")
        Path("schedule.json").write_text(content, encoding="utf-8")
    words = shlex.split(head.splitlines()[0])
    assert words[0] == "accel"
    with app.make_context("accel", words[1:], obj=tuple(words[1:])) as context:
        assert app.invoke(context) == 0
    return Program.load(words[-1])


def test_commands_have_the_operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As text of the form, and as the list of a program's parameters."""
    for given in ("max=3, add=channel", ["max=3", "add=channel"]):
        state = StudioState.from_data({**CONV, "parameters": {**CONV["parameters"], "operations": given}})
        workload = state.make_workload()
        assert workload.parameters["operations"] == ["max=3", "add=channel"]
        assert "--operation max=3,add=channel" in commands(state)
        program = build(workload, state.config())
        assert typed(commands(state), tmp_path, monkeypatch).instructions == program.instructions
    wrong = StudioState.from_data({**CONV, "parameters": {**CONV["parameters"], "operations": 7}})
    with refused(
        ShapeError,
        "operations has 7; it must be pairs of an operation and its operand, as "
        "('max', 7), or text of the form NAME=N | NAME=channel",
    ):
        wrong.make_workload()


def test_commands_compile_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = StudioState.from_data({**CONV, "parameters": {**CONV["parameters"], "shift": 3, "clip": "-5,9"}})
    program = build(state.make_workload(), state.config())
    assert typed(commands(state), tmp_path, monkeypatch).instructions == program.instructions
    steps = tuple(program.schedule().steps)
    edited = StudioState.from_data({**state.to_data(), "steps": list(steps), "mapping": program.mapping})
    assert typed(commands(edited), tmp_path, monkeypatch).instructions == program.instructions
