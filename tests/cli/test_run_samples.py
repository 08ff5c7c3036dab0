"""``accel run --state``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Shell
from tests.formats.test_tflite_control import MATRIX, accumulator, branching, plus, sum_is_positive

pytest.importorskip("tflite")


def test_the_models_own_state(accel: Shell, tmp_path: Path) -> None:
    model, samples, after = (tmp_path / name for name in ("sum.tflite", "x.npy", "after.npy"))
    model.write_bytes(accumulator(MATRIX[:2]))
    data = np.random.default_rng(0).normal(size=(4, 2, 3)).astype(np.float32)
    np.save(samples, data)
    arguments = ["--input", f"x={samples}", "--output", f"after={after}"]
    accel("run", model, "--state", "model", *arguments)
    total, wanted = MATRIX[:2], []
    for one in data:
        total = total + one
        wanted.append(total)
    np.testing.assert_array_equal(np.load(after), wanted)


def test_a_model_without_state(accel: Shell, tmp_path: Path) -> None:
    model = tmp_path / "branch.tflite"
    model.write_bytes(branching(sum_is_positive, plus(1), plus(2)))
    message = "--state model is given, and the model has no state; name OUTPUT=INPUT"
    accel.refused("run", model, "--state", "model", message=message)
