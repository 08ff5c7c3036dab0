import json
from pathlib import Path
from typing import Any

import pytest

from accel.base.errors import AccelError, ScheduleError, ShapeError
from accel.base.records import replace
from accel.studio.rendered_state import Limits
from accel.studio.studio_state import StudioState
from accel.studio.studio_view import ViewCache, state_view
from accel.studio.view_worker import answer
from tests.expect import refused

SMALL: dict[str, Any] = {
    "workload": "gemm",
    "parameters": {"M": 24, "N": 24, "K": 32, "shift": 4},
    "machine": "tiny",
}


def state(**more: Any) -> StudioState:
    return StudioState.from_data({**SMALL, **more})


def test_a_view_is_plain_data_and_the_same_each_time() -> None:
    view = state_view(state())
    assert json.loads(json.dumps(view)) == json.loads(json.dumps(state_view(state())))
    assert view["figures"]["cycles"] == view["chart"]["cycles"]
    assert sum(view["figures"]["units"]["compute"].values()) == view["figures"]["cycles"]
    assert not any(" style=" in one["html"] for one in view["sections"])


def test_the_steps_of_a_view_produce_the_same_run() -> None:
    view = state_view(state())
    again = state_view(state(steps=view["schedule"]["steps"], mapping=view["schedule"]["mapping"]))
    assert again["figures"] == view["figures"]
    assert not view["schedule"]["edited"]
    assert again["schedule"]["edited"]


def test_a_pinned_state_is_compared() -> None:
    views = ViewCache()
    view = views.view(state(settings={"read_latency": 300}, pinned=SMALL))
    usual = views.view(state())
    assert view["pinned"]["figures"] == usual["figures"]
    assert view["figures"]["cycles"] > usual["figures"]["cycles"]
    assert "pinned" not in usual
    (section,) = (one["html"] for one in view["sections"] if one["name"] == "compared")
    difference = view["figures"]["cycles"] - usual["figures"]["cycles"]
    assert f">+{difference:,}<" in section
    assert f"{usual['figures']['cycles']:,} and {view['figures']['cycles']:,} cycles" in section
    assert " style=" not in section
    assert views.view(state()) is usual, "it is in the cache"


def test_predictions_of_advice_are_right() -> None:
    views = ViewCache()
    slow = {"read_latency": 300}
    found = views.advice(state(settings=slow))
    assert found["advice"]
    one = next(one for one in found["advice"] if one["simulated"])
    then = views.view(state(settings=slow | {one["field"]: one["then"]}))
    assert one["recompiled"] or then["figures"]["instructions"] > 0
    usual = views.view(state(settings=slow))["figures"]["cycles"]
    assert usual / one["cycles"] == pytest.approx(one["speedup"])
    assert one["change"].startswith(one["field"])


def test_a_network_is_shown_program_by_program(divided: Path) -> None:
    views, paths = ViewCache(), {"d": str(divided)}
    given = StudioState(file="d", machine="vta-int8")
    whole = views.view(given, paths)
    cycles = [one["cycles"] for one in whole["programs"]]
    assert sum(cycles) == whole["figures"]["cycles"]
    assert sum(whole["figures"]["units"]["load"].values()) == sum(cycles)
    assert all(one["drawn"] for one in whole["programs"])
    assert whole["chart"]["cycles"] == sum(whole["chart"]["critical"]["cycles"]) == sum(cycles)
    assert len(whole["listing"]["unit"]) == len(whole["chart"]["name"]) == whole["figures"]["instructions"]
    assert "Timeline" in [one["heading"] for one in whole["sections"]]
    assert [one["layers"] for one in whole["programs"]] == [
        ["QLinearConv of a"],
        ["QLinearConv of b"],
    ]
    second = views.view(replace(given, program=2), paths)
    assert [one["drawn"] for one in second["programs"]] == [False, True]
    assert second["chart"]["cycles"] == cycles[1]
    most = Limits(instructions=whole["figures"]["instructions"] - 1)
    assert state_view(given, most, paths=paths)["chart"]["cycles"] == max(cycles)
    assert second["figures"] == whole["figures"]
    assert "Timeline of program 2" in [one["heading"] for one in second["sections"]]
    with refused(AccelError, "program is 3; 'd' has 2 on this machine"):
        views.view(replace(given, program=3), paths)
    slow = replace(given, settings={"read_latency": 300}, pinned=given)
    (section,) = (one["html"] for one in views.view(slow, paths)["sections"] if one["name"] == "compared")
    assert "Layers" in section
    found = views.advice(replace(slow, pinned=None), paths)
    assert {"read_latency"} <= {one["field"] for one in found["advice"]}
    assert found["left_out"] == ""


def test_advice_says_why_the_geometry_is_not_tried() -> None:
    steps = [*state_view(state())["schedule"]["steps"]]
    place = next(n for n, one in enumerate(steps) if one["op"] == "split" and one["axis"] == "k")
    steps[place] = {**steps[place], "factor": steps[place]["factor"] // 2}
    data = ViewCache().advice(state(steps=steps))
    assert data["left_out"] == (
        "Fields of the geometry were not tried: the program has a requested schedule or mapping, made for"
        " this geometry."
    )
    assert not any(one["recompiled"] for one in data["advice"])


def test_a_bad_step_is_named() -> None:
    steps = [*state_view(state())["schedule"]["steps"]]
    steps[2] = {**steps[2], "stage": "nobody"}
    with pytest.raises(ScheduleError, match=r"schedule step 2 \("):
        state_view(state(steps=steps))


def test_states_above_a_limit_are_refused() -> None:
    with refused(
        ShapeError,
        "multiply-accumulates are 18,432; the studio shows up to 10,000, and commands have no limit",
    ):
        state_view(state(), Limits(macs=10_000))
    count = state_view(state())["figures"]["instructions"]
    with refused(
        ShapeError,
        f"instructions are {count}; the studio shows up to {count - 1}, and commands have no limit",
    ):
        state_view(state(), Limits(instructions=count - 1))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (json.dumps({**SMALL, "machine": "../../etc/passwd"}), "AccelError"),
        (json.dumps({**SMALL, "settings": {"block_in": 3}}), "ConfigError"),
        ('{"workload": "gemm"}', "ShapeError"),
        ("[]", "AccelError"),
    ],
)
def test_the_worker_reports_errors(text: str, kind: str) -> None:
    assert (
        json.loads(answer(ViewCache(), f'{{"ask": "view", "state": {text}, "files": {{}}}}'))["error"]["kind"]
        == kind
    )


def test_errors_name_files_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "795b6904.onnx"
    path.write_bytes(b"garbage")
    given = {
        "ask": "view",
        "state": {"file": "mine.onnx", "machine": "vta-int8"},
        "files": {"mine.onnx": str(path)},
    }
    message = json.loads(answer(ViewCache(), json.dumps(given)))["error"]["message"]
    assert message.startswith("'mine.onnx': this is not an ONNX model")
