import pytest

from accel.cli import demo_network
from accel.core.config import NAMED
from accel.network.digits import COUNT, digits_network
from tests.cli.conftest import Shell


@pytest.mark.parametrize("config", ["tiny", "gemm8x8"])
def test_the_demo_shows_the_result_first_and_the_stages_if_asked(config: str, accel: Shell) -> None:
    arguments = ("demo", "--size", 24, "--config", config)
    brief = accel(*arguments).text.splitlines()
    assert len(brief) < 50
    for word in ("% of the run", "utilization", "proven", "all equal", "--verbose"):
        assert any(word in line for line in brief)
    text = accel(*arguments, "--verbose").text
    assert text.splitlines()[: len(brief) - 1] == brief[:-1]
    titles = [line[:2] for line in text.splitlines() if line[1:3] == ". "]
    assert titles == [f"{n}." for n in range(1, 6)]
    for word in ("fused_gemm", "push_dep_to", "LOAD.INP"):
        assert word in text


def test_the_chart_of_a_long_run_shows_that_units_overlap(accel: Shell) -> None:
    lines = accel("demo", "--size", 256).text.splitlines()
    start = next(n for n, line in enumerate(lines) if line.endswith("overlap, in the middle of the run"))
    for unit in ("load", "compute", "store"):
        row = next(line for line in lines[start:] if line.startswith(unit))
        assert "█" in row


def test_the_network_reads_digits(accel: Shell) -> None:
    lines = accel("demo", "--network", "--pictures", 4, "--clock", 50).text.splitlines()
    titles = [line[:2] for line in lines if line[1:2] == "."]
    assert titles == [f"{n}." for n in range(1, 4)]
    figures = dict(line.split("  ", 1) for line in lines[lines.index("3. What came of it") + 1 :])
    assert figures["right"].strip() == "4 of 4 pictures, 100.0%"
    assert figures["at 50 MHz"].endswith(" pictures per second")
    assert figures["ONNX Runtime"].strip() == "same class for 4 of 4, same scores for 4"
    assert sum(line.count(", read as ") for line in lines) == 3


def test_the_network_as_data(accel: Shell) -> None:
    found = accel("demo", "--network", "--pictures", 3, "--clock", 200, "--json").json
    assert (found["pictures"], found["mismatches"], found["host_macs"]) == (3, 0, 0)
    assert (found["config"], found["backend"]) == ("vta-npu", "sim")
    right = sum(one == two for one, two in zip(found["classes"], found["predictions"], strict=True))
    assert (found["right"], found["accuracy"]) == (right, right / 3)
    cycles = [layer["cycles"] for layer in found["layers"] if layer["where"] == "machine"]
    assert found["cycles"] == sum(cycles)
    assert found["pictures_per_second"] == pytest.approx(200e6 / found["cycles"])
    assert found["onnxruntime"]["same_class"] == 3
    graph = digits_network().graph
    assert found["macs"] == sum(map(graph.macs, graph.nodes))


def test_the_network_without_time_and_without_onnx_runtime(
    accel: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_network, "find_spec", lambda _: None)
    arguments = ("demo", "--network", "--pictures", 2, "--backend", "functional")
    text = accel(*arguments).text
    assert "not installed; the extra onnx brings it" in text
    assert "per second" not in text
    found = accel(*arguments, "--json").json
    assert (found["onnxruntime"], found["cycles"], found["pictures_per_second"]) == (None, None, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--network", "--pictures", COUNT + 1],
            "Invalid value for '--pictures': 101 is not in the range 1<=x<=100. (see 'accel demo --help')",
        ),
        (
            ["--network", "--size", 8],
            "--size is given; it is for the matrix product, which --network replaces",
        ),
        (["--clock", 8], "--clock is given; it is for the network, which --network runs"),
        (["--json"], "--json is given; it is for the network, which --network runs"),
        (
            ["--network", "--config", "vta"],
            "vta has post=0; networks are compiled for machines with post=1, as vta-npu",
        ),
        (
            ["--size", 0],
            "Invalid value for '--size': 0 is not in the range 1<=x<=4096. (see 'accel demo --help')",
        ),
        (
            ["--config", "x"],
            f"'x' is not a configuration; valid are {', '.join(sorted(NAMED))}; the path of a TOML or JSON "
            "file works too",
        ),
    ],
)
def test_bad_input(arguments: list[object], message: str, accel: Shell) -> None:
    accel.refused("demo", *arguments, message=message)
