"""Layers that differ in scales, zero points and bounds only, and share their instructions."""

from collections import Counter

import numpy as np
import pytest

from accel.compiler.codegen import compile_schedule
from accel.graph.graph import Graph
from accel.graph.graph_tensor import Quantization
from accel.network.network import Network
from accel.network.network_program import NetworkProgram
from tests.network.networks import Small


class Varied(Small):
    """Every result has its own scale and zero point."""

    def _emit(self, operator, names, output, scale, dtype) -> str:  # type: ignore[no-untyped-def]
        kind = dtype or self.builder.tensors[names[0]].dtype
        bounds = np.iinfo(kind)
        zero = int(self.rng.choice([0, bounds.min, self.rng.integers(bounds.min, bounds.max)]))
        quantization = Quantization.of(float(scale * 2 ** self.rng.uniform(-1, 1)), zero)
        return self.builder.emit(operator, names, output, dtype=kind, quantization=quantization)


def blocks(seed: int, dtype: str) -> Graph:
    """Four blocks of two convolutions, some with bounds, functions and residuals."""
    small = Varied((1, 16, 7, 7), dtype=dtype, seed=seed)
    last = small.conv("x", "first", 16, pad=1)
    for n in range(4):
        inner = small.conv(last, f"a{n}", 16, pad=1)
        if small.rng.random() < 0.5:
            inner = small.clip(inner, f"clip{n}", *np.sort(small.rng.integers(0, 120, 2)).tolist())
        if small.rng.random() < 0.3:
            inner = small.sigmoid(inner, f"sigmoid{n}")
        outer = small.conv(inner, f"b{n}", 16, pad=1)
        last = small.add(last, outer, f"c{n}") if small.rng.random() < 0.7 else outer
    return small.graph(last)


@pytest.mark.parametrize("on", ["vta-int8", "tiny-npu"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("seed", [1, 2])
def test_blocks_share_instructions(seed: int, dtype: str, on: str, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: Counter[bool] = Counter()
    image_like = compile_schedule.image_like

    def counted(*arguments):  # type: ignore[no-untyped-def]
        found = image_like(*arguments)
        copied[found is not None] += 1
        return found

    monkeypatch.setattr(compile_schedule, "image_like", counted)
    program: NetworkProgram = Network(graph=blocks(seed, dtype)).build(on, approximate=True)
    assert copied[True] >= 3
    program.run(program.random_inputs()).raise_if_wrong()
