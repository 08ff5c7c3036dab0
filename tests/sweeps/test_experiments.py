"""The claims of docs/experiments hold, on matrix products small enough for a test."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from accel.sweeps import Table, load_spec, run_sweep

FOLDER = Path(__file__).parents[2] / "docs" / "experiments"
EXPERIMENTS = sorted(FOLDER.glob("*.toml"))


def measured(name: str, **vary: Any) -> Table:
    table = run_sweep(load_spec(FOLDER / f"{name}.toml", {key: [v] for key, v in vary.items()}))
    assert table.refused == table.faults == []
    return table


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_each_experiment_has_its_plots_in_the_page(path: Path) -> None:
    page = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert f"accel sweep docs/experiments/{path.name}" in page
    for plot in load_spec(path).plots:
        name = f"{'-'.join(part for part in (path.stem, plot.name) if part)}.svg"
        assert (FOLDER / name).exists()
        assert f"]({name})" in page


def test_pipelines() -> None:
    cycles = measured("pipelines", M=256, N=256, K=256).column("cycles")
    monolithic, one, two, four = cycles
    assert monolithic > one > 1.5 * two
    assert two > four


def test_latency() -> None:
    table = measured("latency")
    at = {row["grid"]: [] for row in table.rows}
    for row in table.rows:
        at[row["grid"]].append(row["utilization"])
    assert all(list(line) == sorted(line, reverse=True) for line in at.values())
    for serial, one, two, four in zip(*at.values(), strict=True):
        assert serial < one < two < four
    remaining = {name: line[-1] / line[0] for name, line in at.items()}
    assert remaining["V = 4"] > 0.9
    assert remaining["V = 2"] < 0.7
    assert remaining["serial"] < 0.5


def test_generations() -> None:
    at: dict[str, list[float]] = {}
    for row in measured("generations").rows:
        at.setdefault(row["grid"], []).append(row["utilization"])
    for mode in ("serial", "V = 1", "chosen V"):
        first, second = at[f"gemm8x8, {mode}"], at[f"gemm8x8-int8, {mode}"]
        assert all(b > a for a, b in zip(first, second, strict=True))
    assert at["gemm8x8, chosen V"][0] < 0.85
    assert at["gemm8x8-int8, chosen V"][0] > 0.96


@pytest.mark.thorough
def test_roofline() -> None:
    for row in measured("roofline", N=256, K=256).rows:
        assert row["macs_per_cycle"] <= row["roof_macs_per_cycle"]
        assert row["roofline_fraction"] > 0.6


def test_buffers() -> None:
    table = measured("buffers")
    traffic, utilization = table.column("traffic_bytes"), table.column("utilization")
    assert all(after < 1.01 * before for before, after in pairwise(traffic))
    assert traffic[0] > 3 * traffic[-1] > 3 * table.column("compulsory_bytes")[-1]
    assert max(utilization[2:]) - min(utilization[2:]) < 0.02
