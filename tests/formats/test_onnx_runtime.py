"""ONNX Runtime's results are exact on every processor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from accel.formats import onnx_runtime
from accel.formats.onnx_runtime import run_onnx_runtime
from tests.formats.runtime import Array, model, node

RNG = np.random.default_rng(0)
DATA = RNG.integers(200, 256, (3, 64)).astype(np.uint8)
WEIGHT = RNG.integers(100, 128, (64, 5)).astype(np.int8)
ZEROS = RNG.integers(-128, 128, 5).astype(np.int8)
ONE = np.float32(1)
LARGE = np.float32(2.0**14)


@pytest.fixture(params=[True, False], ids=["a processor that saturates", "this processor"], autouse=True)
def saturates(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """If products of uint8 by int8 saturate, int8 factors are converted to uint8."""
    if request.param:
        monkeypatch.setattr(onnx_runtime, "saturates", lambda: True)


def out(
    nodes: Any,
    constants: Mapping[str, Any],
    feeds: Mapping[str, Array],
    name: str = "out",
) -> Array:
    inputs = {one: (value.dtype.name, value.shape) for one, value in feeds.items()}
    return run_onnx_runtime(model([*nodes], inputs, [name], constants), feeds)[name]


def sums(zero: int = 0, zeros: Array | int = 0) -> Array:
    left, right = DATA.astype(np.int64) - zero, WEIGHT.astype(np.int64) - zeros
    return np.asarray(left @ right)


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
def test_whole_sums(constant: bool) -> None:
    product = node("MatMulInteger", ["a", "b"], "out")
    given = {"a": DATA} if constant else {"a": DATA, "b": WEIGHT}
    np.testing.assert_array_equal(out([product], {"b": WEIGHT} if constant else {}, given), sums())


def test_zero_points() -> None:
    constants = {"b": WEIGHT, "az": np.uint8(7), "bz": np.int8(-128)}
    product = node("MatMulInteger", ["a", "b", "az", "bz"], "out")
    np.testing.assert_array_equal(out([product], constants, {"a": DATA}), sums(7, -128))


@pytest.mark.parametrize("kind", ["QLinearMatMul", "QGemm", "QLinearConv"])
def test_requantized_sums(kind: str) -> None:
    """Two operators share weights, and channels have different zero points."""
    zeros = np.zeros(5, np.int8) if kind == "QLinearConv" else ZEROS
    constants = {
        "b": WEIGHT.T[..., None, None] if kind == "QLinearConv" else WEIGHT,
        "one": ONE,
        "ones": np.ones(5, np.float32),
        "large": LARGE,
        "az": np.uint8(3),
        "bz": zeros,
        "yz": np.uint8(11),
    }
    data = DATA[..., None, None] if kind == "QLinearConv" else DATA
    ends = ["", "large", "yz"] if kind == "QGemm" else ["large", "yz"]
    nodes = [node(kind, ["a", "one", "az", "b", "ones", "bz", *ends], name) for name in ("out", "other")]
    wanted = np.clip(np.rint(sums(3, zeros) / float(LARGE)) + 11, 0, 255)
    for name in ("out", "other"):
        np.testing.assert_array_equal(out(nodes, constants, {"a": data}, name).reshape(3, 5), wanted)


@pytest.mark.parametrize(("left", "right"), [("uint8", "uint8"), ("int8", "int8")])
def test_factors_of_equal_types_are_not_converted(left: str, right: str) -> None:
    data, weight = DATA.astype(left), WEIGHT.astype(right)
    product = node("MatMulInteger", ["a", "b"], "out")
    wanted = data.astype(np.int32) @ weight.astype(np.int32)
    np.testing.assert_array_equal(out([product], {"b": weight}, {"a": data}), wanted)
