"""Compiled networks and layers: simulator and hardware agree on every cycle, alone and
in a session."""

from typing import Any

import numpy as np
import pytest

import accel
from accel.core.config import Config
from accel.hw.engines.engine_driver import Engine
from accel.run.lockstep import lockstep
from tests.compiler.convs import any_inputs, expected
from tests.lockstep.builds import BUILDS, built, each, opened

EPILOGUE: dict[str, Any] = {"bias": True, "shift": 8, "clip": (0, 127)}
LAYERS = {
    "3x3": accel.conv2d(1, 8, 9, 7, 12, 3, padding=1, **EPILOGUE),
    "1x1, stride 2": accel.conv2d(2, 12, 8, 8, 8, 1, stride=2, **EPILOGUE),
    "5x3, asymmetric": accel.conv2d(1, 5, 8, 9, 7, (5, 3), padding=(2, 1, 0, 1), stride=(1, 2), **EPILOGUE),
    "depthwise": accel.conv2d(1, 12, 7, 7, 12, 3, padding=1, groups=12, **EPILOGUE),
    "dense": accel.dense(2, 50, 20, **EPILOGUE),
}

RESIDUAL = accel.QuantizedResidual(
    result_scale=0.0513477, scale=0.0312297, zero=3, dtype="uint8", sum_scale=0.0613371, sum_zero=-9
)
SCALES = np.exp(np.random.default_rng(0).normal(-5, 0.7, 12)).astype(np.float32)
QUANTIZED = {
    "3x3 with a residual": accel.conv2d(
        1, 8, 9, 7, 12, 3, padding=1, bias=True,
        quantized=accel.Quantized(
            scale=SCALES, input_zero=200, input_dtype="uint8", output_zero=-5, residual=RESIDUAL
        ),
    ),
    "dense": accel.dense(
        2, 50, 12, bias=True, quantized=accel.Quantized(scale=SCALES, output_zero=7, output_dtype="uint8")
    ),
    "sums": accel.gemm(5, 12, 30, quantized=accel.Quantized(scale=1.0, input_zero=3, output_dtype="int32")),
    "mean": accel.global_avg_pool2d(1, 9, 5, 5, quantized=accel.Quantized(scale=0.04, input_zero=-9)),
    "a residual that the GEMM core adds": accel.gemm(3, 12, 9, bias=True, shift=20, residual=True),
    "shift and residual": accel.gemm(3, 12, 9, bias=True, shift=6, residual=True),
}  # fmt: skip


@pytest.mark.parametrize("name", QUANTIZED)
@pytest.mark.parametrize("build", each(name for name, config in BUILDS.items() if config.post))
def test_quantized_layers(name: str, build: str) -> None:
    config = BUILDS[build].override({"read_latency": 9, "mem_size": 1 << 20})
    program = accel.build(QUANTIZED[name], config)
    assert program.run(backend="functional").mismatches == 0
    found = lockstep(program, built(config), seed=1)
    assert found.difference is None, found.difference
    assert found.cycles > 100


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("build", each(["tiny", "4x2x8"]))
def test_layers(name: str, build: str) -> None:
    config = BUILDS[build].override({"read_latency": 9, "mem_size": 1 << 20})
    program = accel.build(LAYERS[name], config)
    found = lockstep(program, built(config), seed=1)
    assert found.difference is None, found.difference
    assert found.cycles > 100


@pytest.mark.parametrize(
    ("pool", "mapping"),
    [
        (accel.max_pool2d(1, 7, 7, 6, 3, stride=2, padding=1), "strips=2x1"),
        (accel.global_avg_pool2d(1, 20, 3, 3), "channels=2"),
    ],
    ids=["strips", "channels"],
)
def test_mapped_pools(pool: accel.Workload, mapping: str) -> None:
    config = BUILDS["2x2x4"].override({"read_latency": 9, "mem_size": 1 << 20})
    program = accel.build(pool, config, mapping=mapping)
    assert program.run(backend="functional").mismatches == 0
    found = lockstep(program, built(config), seed=1)
    assert found.difference is None, found.difference
    assert found.cycles > 100


def test_a_session_on_the_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two layers reads the first one's output in place."""
    config = BUILDS["tiny"].override({"mem_size": 1 << 20, "mem_base": 1 << 16})

    def shared(asked: Config, *_: object, **__: object) -> Engine:
        assert asked.hardware == config.hardware
        return opened(config)

    monkeypatch.setattr("accel.run.backends.rtl_backend.open_engine", shared)
    first = accel.conv2d(1, 8, 6, 6, 16, 3, padding=1, **EPILOGUE)
    second = accel.conv2d(1, 16, 6, 6, 12, 1, stride=2, **EPILOGUE)
    programs = [accel.build(one, config) for one in (first, second)]
    one, two = any_inputs(first, 0), any_inputs(second, 1)
    cycles = {}
    for backend in ("sim", "rtl"):
        session = accel.Session(config, backend=backend)
        for _ in range(2):
            x = session.run(programs[0], one)["out"]
            y = session.run(programs[1], two | {"data": x})["out"]
            right = expected(second, two | {"data": expected(first, one)})
            np.testing.assert_array_equal(y.numpy(), right)
        cycles[backend] = [result.cycles for result in session.results]
        assert [result.mismatches for result in session.results] == [0] * 4
    assert cycles["rtl"] == cycles["sim"]
