"""The area model: exact parts, the fit, and its errors."""

import json
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import accel
from accel.area.area_features import FLIP_FLOP_FEATURES, LUT_FEATURES, features
from accel.area.area_model import (
    FOLDS,
    Synthesized,
    area_model,
    block_rams,
    fit_area,
    held_out_errors,
    multipliers,
    predict_area,
    read_machines,
    synthesized_machines,
)
from accel.base.errors import ConfigError
from accel.base.records import replace
from accel.core.config import NAMED, Config

MACHINES = synthesized_machines()


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """``bench/area.py`` as a module."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "bench"))
    return import_module("area")


def test_block_rams_and_multipliers_are_exact_for_every_synthesized_machine() -> None:
    assert len(MACHINES) >= 20
    for one in MACHINES:
        found = block_rams(one.config), multipliers(one.config)
        assert found == (one.cells["block_ram"], one.cells["multipliers"]), one.config


def test_multipliers_of_placed_machines() -> None:
    """docs/reference/resources.md has these counts, from placement."""
    placed = {"tiny": 61, "ecp5": 77, "tiny-int8": 65, "ecp5-int8": 93}
    assert {name: multipliers(NAMED[name]) for name in placed} == placed
    without = replace(NAMED["tiny"], alu_ops=("add", "shr"))
    assert multipliers(without) == 61 - 3 * 8


def test_every_machine_is_there_once_and_is_the_hardware_alone() -> None:
    configs = [one.config for one in MACHINES]
    assert len({json.dumps(one.geometry | {"timing": str(one.to_dict())}) for one in configs}) == len(configs)
    assert all(replace(one, name="custom") == one.hardware for one in configs)


def test_errors_on_held_out_machines() -> None:
    model = area_model()
    assert model.machines == len(MACHINES)
    for fitted in (model.lut, model.flip_flop):
        assert 0 < fitted.error.median < 0.08
        assert fitted.error.median <= fitted.error.largest < 0.35
        assert all(weight >= 0 for weight in fitted.weights.values())


def test_a_fit_finds_the_weights_of_exact_data(script: ModuleType) -> None:
    """Each resource is the sum of two features, and the others get next to nothing."""

    def exact(config: Config) -> Synthesized:
        own = features(config)
        cells = {
            "lut4": round(9000 * own["core"] + 700 * own["ALU lanes"]),
            "carry_pairs": 0,
            "distributed_ram": 0,
            "flip_flops": round(6000 * own["core"] + 200 * own["dispatch stages"]),
        }
        return Synthesized(config=config, cells=cells)

    model = fit_area([exact(config) for config in islice(script.drawn(1), 150)])
    assert model.lut.error.largest < 0.02
    assert model.flip_flop.error.largest < 0.02
    own = features(NAMED["tiny"].hardware)
    assert model.lut.predict(own) == pytest.approx(9000 + 700 * 8, rel=0.01)
    assert model.flip_flop.predict(own) == pytest.approx(6000, rel=0.01)


def test_held_out_machines_do_not_take_part_in_their_fit() -> None:
    """A wrong count does not change the predictions of the other machines of its fold."""
    rows = [features(one.config) for one in MACHINES]
    counts = np.array([one.lut_slots for one in MACHINES], dtype=float)
    spoiled = counts.copy()
    spoiled[0] *= 3
    before, after = (held_out_errors(rows, LUT_FEATURES, one) for one in (counts, spoiled))
    same = [n for n in range(1, len(rows)) if np.isclose(before[n], after[n], rtol=1e-9)]
    assert same == list(range(FOLDS, len(rows), FOLDS))


def test_features_grow_with_what_they_measure() -> None:
    base, large = NAMED["tiny"], NAMED["tiny"].override({"block_in": 8, "loads_in_flight": 16})
    one, other = features(base), features(large)
    assert set(LUT_FEATURES) | set(FLIP_FLOP_FEATURES) <= set(one)
    assert other["adder bits"] > one["adder bits"]
    assert other["loads in flight"] == 2 * one["loads in flight"]
    assert all(value >= 0 for value in one.values())


def test_larger_machines_are_marked() -> None:
    assert predict_area(NAMED["tiny"]).outside == ()
    assert "adder bits" in predict_area(NAMED["gemm8x8"]).outside


def test_files_of_machines_are_read() -> None:
    cells = {"lut4": 1, "carry_pairs": 2, "distributed_ram": 3, "flip_flops": 4}
    (one,) = read_machines(json.dumps({"fields": {"batch": 2}, "cells": cells}))
    assert one.config.batch == 2
    assert (one.lut_slots, one.flip_flops) == (1 + 4 + 18, 4)


def test_the_function_of_the_package_takes_names_and_machines() -> None:
    found = accel.predict_area("ecp5")
    assert found == accel.predict_area(accel.machine("ecp5")) == accel.predict_area(NAMED["ecp5"])
    assert (found.block_ram, found.multipliers) == (60, 77)
    with pytest.raises(ConfigError, match="is not a configuration"):
        accel.predict_area("ecp")


def test_the_script_reports_the_errors(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(["--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["machines"] == found["exact"] == len(MACHINES)
    assert len(found["lut_slots"]["errors"]) == len(MACHINES)
    assert script.main([]) == 0
    assert "held-out error" in capsys.readouterr().out
    assert script.main(["--fit", "17", "--json"]) == 0
    later = json.loads(capsys.readouterr().out)["later"]
    assert [len(one) for one in later.values()] == [len(MACHINES) - 17] * 2
    with pytest.raises(SystemExit):
        script.main(["--fit", "1000"])


def test_drawn_machines_are_valid_and_differ(script: ModuleType) -> None:
    found = list(islice(script.drawn(1), 30))
    assert len({str(one.to_dict()) for one in found}) == 30
    assert found == list(islice(script.drawn(1), 30))
    assert {one.post for one in found} == {0, 1}
    assert all(Config(**script.fields_of(one)) == one for one in found)
