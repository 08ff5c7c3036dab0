"""``accel run --energy`` and ``accel bench --energy``."""

from pathlib import Path

import pytest

from tests.cli.conftest import Shell


def test_run_prints_components_and_rankings(accel: Shell, tmp_path: Path) -> None:
    file = tmp_path / "gemm.accel"
    accel("compile", "gemm", "-m", "8", "-n", "8", "-k", "8", "--config", "tiny", "-o", file)
    text = accel("run", file, "--energy").out
    assert "by component, from counts of accesses" in text
    assert "dram > " in text
    found = accel("run", file, "--energy", "--json").json["energy"]
    total = found["total"]
    assert total["low"] < total["nominal"] < total["high"]
    assert total["high"] == pytest.approx(sum(one["high"] for one in found["components"].values()))
    assert "energy" not in accel("run", file, "--json").json


def test_run_prints_the_layers_of_a_network(accel: Shell) -> None:
    found = accel("run", "digits", "--config", "tiny-int8", "--energy", "--json").json["energy"]
    assert len(found["layers"]) > 3
    assert "by layer" in accel("run", "digits", "--config", "tiny-int8", "--energy").out


def test_energy_of_several_samples_is_refused(accel: Shell) -> None:
    refusal = accel("run", "digits", "--state", "model", "--energy", code=2)
    assert refusal.err.count("\n") == 1
    assert "--energy is given with --state" in refusal.err


def test_bench_sums_the_layers_with_their_repeats(accel: Shell) -> None:
    found = accel("bench", "gemm", "--config", "vta", "--energy", "--json").json
    energy = found["energy"]
    for name in ("uop_reads", "read_bytes", "macs"):
        total = sum(one["repeats"] * one["accesses"][name] for one in found["layers"])
        assert energy["counts"][name] == total > 0
    assert len(energy["layers"]) == len(found["layers"])
