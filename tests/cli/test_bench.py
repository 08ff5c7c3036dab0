"""`accel bench`: the table, the JSON object, the page, and layers with errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel as package
from accel.base.run_choices import BENCHMARKS
from accel.benchmarks import NETWORKS, Layer
from accel.benchmarks.measure_layers import ROW_KEYS
from accel.run.program import Program
from accel.run.result import RESULT_KEYS
from tests.cli.conftest import Shell

SIZES = {"N": 1, "bias": True, "shift": 8, "clip": (0, 127)}
LAYERS = (
    Layer(
        name="A",
        repeats=3,
        operator="conv2d",
        parameters=SIZES | {"IC": 8, "H": 6, "W": 6, "OC": 16, "kernel": 3, "stride": 1, "padding": 1},
    ),
    Layer(
        name="B",
        repeats=1,
        operator="conv2d",
        parameters=SIZES | {"IC": 16, "H": 6, "W": 6, "OC": 8, "kernel": 1, "stride": 2, "padding": 0},
    ),
    Layer(name="F", repeats=1, operator="dense", parameters=SIZES | {"IC": 72, "OC": 10}),
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that compiles and runs quickly."""
    monkeypatch.setitem(NETWORKS, "small", LAYERS)


def test_json(accel: Shell) -> None:
    found = accel("bench", "small", "--config", "tiny", "--json").json
    assert (found["network"], found["config"]) == ("small", "tiny")
    a, b, f = found["layers"]
    assert found["total_cycles"] == 3 * a["cycles"] + b["cycles"] + f["cycles"]
    assert [(one["name"], one["repeats"], one["mismatches"]) for one in (a, b, f)] == [
        ("A", 3, 0),
        ("B", 1, 0),
        ("F", 1, 0),
    ]
    assert tuple(a) == ROW_KEYS
    assert set(RESULT_KEYS) <= set(a)
    assert a["compulsory_bytes"] == 8 * 36 + 8 * 16 * 9 + 4 * 16 + 16 * 36
    assert b["compulsory_bytes"] == 16 * 9 + 16 * 8 + 4 * 8 + 8 * 9
    assert a["moved_bytes"] == sum(a["bytes_by_kind"].values()) > a["compulsory_bytes"]


def test_epilogues(accel: Shell) -> None:
    """On machines with ``post=1``, scales per channel are the default, and `shift` is an option."""
    assert accel("bench", "small", "--config", "tiny", "--json").json["epilogue"] == "shift"
    scaled = accel("bench", "small", "--config", "tiny-int8", "--json").json
    shifted = accel("bench", "small", "--config", "tiny-int8", "--epilogue", "shift", "--json").json
    assert (scaled["epilogue"], shifted["epilogue"]) == ("scale", "shift")
    assert list(scaled) == list(shifted)
    for found in (scaled, shifted):
        assert [one["error"] for one in found["layers"]] == [None] * 3
        assert tuple(found["layers"][0]) == ROW_KEYS
    assert len(scaled["layers"][0]["parameters"]["scale"]) == 16
    assert shifted["layers"][0]["parameters"]["shift"] == 8
    refusal = accel("bench", "small", "--config", "tiny", "--epilogue", "scale", code=2)
    assert "configuration 'tiny' has post=0 and only shifts sums" in refusal.err


def test_the_page_describes_the_epilogue(accel: Shell) -> None:
    accel("bench", "small", "--config", "tiny-int8", "-o", "page.md")
    page = Path("page.md").read_text()
    assert "The epilogue has a bias, a scale per channel" in page
    assert "There are no *passes*" in page
    accel("bench", "small", "--config", "tiny", "-o", "page.md")
    page = Path("page.md").read_text()
    assert "a scale per channel" not in page
    assert "reset and bias together" in page


def test_every_mode_has_the_cycles_of_run(accel: Shell) -> None:
    """The serial machine runs the program that was compiled with one virtual thread."""
    accel("compile", "conv2d", "--ic", 8, "--oc", 16, "--size", 6, "--kernel", 3, "--padding", 1, "--bias",
          "--shift", 8, "--clip", "0,127", "--config", "tiny", "--vthreads", 1, "-o", "a.accel")  # fmt: skip
    found = accel("bench", "small", "--config", "tiny", "--json").json["layers"][0]
    alone = accel("run", "a.accel", "--json").json
    serial = accel("run", "a.accel", "--serial", "--json").json
    assert found["modes"]["v1"]["cycles"] == alone["cycles"]
    assert found["modes"]["serial"]["cycles"] == serial["cycles"] > alone["cycles"]
    assert found["modes"]["chosen"]["cycles"] == found["cycles"] <= 1.05 * alone["cycles"]
    assert found["modes"]["chosen"]["utilization"] == found["utilization"]


def test_settings_reach_the_machine(accel: Shell) -> None:
    fast, slow = (
        accel("bench", "small", "--config", "tiny", "--set", f"read_latency={n}", "--json").json[
            "total_cycles"
        ]
        for n in (10, 200)
    )
    assert slow > fast + 5 * 190


def test_table(accel: Shell) -> None:
    found = accel("bench", "small", "--config", "tiny", "--json").json
    title, headings, *layers, last = accel("bench", "small", "--config", "tiny").text.splitlines()
    assert title.startswith("small on tiny (")
    assert headings.split()[:4] == ["layer", "times", "cycles", "roofline"]
    assert headings.endswith("busiest unit")
    for line, row in zip(layers, found["layers"], strict=True):
        assert line.split()[:3] == [row["name"], str(row["repeats"]), f"{row['cycles']:,}"]
        assert f" {row['roofline_fraction']:.3f} " in line
        busy = {unit: states["busy"] for unit, states in row["stalls"].items() if unit != "fetch"}
        unit, most = max(busy.items(), key=lambda one: one[1])
        assert line.endswith(f"{unit} {most / row['cycles']:.1%}")
    assert last.split()[:3] == ["total", "5", f"{found['total_cycles']:,}"]


def test_page(accel: Shell) -> None:
    assert accel("bench", "small", "--config", "tiny", "-o", "small.md").err == "wrote small.md\n"
    written = Path("small.md").read_text(encoding="utf-8")
    found = accel("bench", "small", "--config", "tiny", "--json").json
    a = found["layers"][0]
    lines = written.splitlines()
    assert lines[0] == "# small on `tiny`"
    assert f"| A | 6 x 6 x 8 to 16, 3 x 3 | 3 | {a['cycles']:,} |" in written
    assert "| B | 6 x 6 x 16 to 8, 1 x 1 / 2 |" in written
    above = sum(one["repeats"] * (one["cycles"] - one["uops"]) for one in found["layers"])
    assert lines[-1].startswith("| total | 5 | ")
    assert lines[-1].endswith(f" | {found['total_cycles']:,} | {above:,} |")
    assert {line.count("|") for line in lines if line.startswith("| A |")} == {15, 10}


def test_processes_find_the_same(accel: Shell) -> None:
    one, two = (
        accel("bench", "small", "--config", "tiny", "--json", "--jobs", jobs).json["layers"]
        for jobs in (1, 2)
    )
    assert [row["modes"] for row in one] == [row["modes"] for row in two]


def test_a_mismatch_is_a_failure(accel: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Program.reference

    def wrong(self: Program, inputs: Any) -> dict[str, Any]:
        expected = right(self, inputs)
        if expected["out"].shape == (1, 10):
            expected["out"] = (expected["out"] + np.int8(1)).astype(np.int8)
        return expected

    monkeypatch.setattr(Program, "reference", wrong)
    message = "10 of 10 output elements differ from the numpy reference"
    found = accel("bench", "small", "--config", "tiny", "--json", "-o", "small.md", code=1).json
    assert [row["error"] and row["error"]["message"] for row in found["layers"]] == [None, None, message]
    assert not Path("small.md").exists()
    text = accel("bench", "small", "--config", "tiny", code=1).text
    assert text.splitlines()[-1] == f"AT FAULT  F: {message}"


def test_a_program_at_fault_has_no_figures(accel: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def deadlock(*_: Any, **__: Any) -> None:
        raise package.RaceError("two units meet")

    monkeypatch.setattr(Program, "run", deadlock)
    found = accel("bench", "small", "--config", "tiny", "--json", code=1).json
    assert found["total_cycles"] is None
    assert found["layers"][0]["error"]["cause"] == "race"
    lines = accel("bench", "small", "--config", "tiny", code=1).text.splitlines()
    assert lines[2].split()[:4] == ["A", "3", "-", "-"]
    assert not any(line.startswith("total") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["resnet1"], "the network is 'resnet1'; did you mean 'resnet18'?"),
        (["small", "-o", "small.txt"], "the page is to be written to 'small.txt'; the name must end in .md"),
        (["small", "-o", "no/small.md"], "'no/small.md' cannot be written: there is no folder 'no'"),
    ],
)
def test_bad_input_is_said(arguments: list[str], message: str, accel: Shell) -> None:
    accel.refused("bench", *arguments, message=message)


def test_a_layer_that_does_not_fit_is_named(accel: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    large = Layer(name="L", repeats=1, operator="dense", parameters=SIZES | {"IC": 1 << 20, "OC": 10})
    monkeypatch.setitem(NETWORKS, "small", (large,))
    accel.refused(
        "bench",
        "small",
        "--config",
        "tiny",
        message="L: out sums 1048576 products of int8 values; int32 can hold 131071",
    )


def test_help_names_the_networks() -> None:
    assert tuple(name for name in NETWORKS if name != "small") == BENCHMARKS
