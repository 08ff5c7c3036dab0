"""Sums and products of two tensors, or of pictures and a value per channel, on machines with ``res_mul=1``:
alone and behind a convolution. They equal ONNX Runtime."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.core.isa import StoreAdd, StoreMul
from accel.formats.onnx_import import import_model
from accel.formats.onnx_runtime import run_onnx_runtime, run_optimized
from accel.network.network import Network
from accel.network.network_file import load_network, save_network
from accel.network.network_program import NetworkProgram
from tests.formats.runtime import model, node
from tests.strategies import examples

Array = npt.NDArray[Any]
MACHINES = [accel.machine(name, res_mul=1) for name in ("vta-int8", "gemm8x8-int8", "tiny-int8", "ecp5-int8")]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A sum or product of ``a``, perhaps after a 1x1 convolution, and ``b``.

    Attributes:
        kind: Add or Mul.
        shape, other: shapes of ``a`` and ``b``.
        zeros, scales: of ``a``, ``b``, the convolution's result and ``y``.
        is_qdq: whether the model has DequantizeLinear and QuantizeLinear instead of QLinear operators.
        is_swapped: whether ``b`` is the first operand.
    """

    kind: str = "Mul"
    dtype: str = "int8"
    shape: tuple[int, ...] = (1, 20, 5, 6)
    other: tuple[int, ...] = (1, 20, 5, 6)
    zeros: tuple[int, int, int, int] = (3, -7, 11, -20)
    scales: tuple[float, float, float, float] = (0.0371, 0.0391, 0.0457, 0.0613)
    is_qdq: bool = False
    has_conv: bool = False
    is_swapped: bool = False

    def content(self) -> bytes:
        """Return the model."""
        constants: dict[str, Any] = {}
        for name, zero, scale in zip("abcy", self.zeros, self.scales, strict=True):
            constants |= {f"{name}_s": np.float32(scale), f"{name}_z": np.dtype(self.dtype).type(zero)}
        nodes, left = [], "a"
        if self.has_conv:
            channels = self.shape[1]
            kernel = (channels, channels, *[1] * (len(self.shape) - 2))
            weights = np.random.default_rng(1).integers(-127, 127, kernel, np.int8)
            constants |= {"w": weights, "w_s": np.float32(0.004), "w_z": np.int8(0)}
            names = ["a", "a_s", "a_z", "w", "w_s", "w_z", "c_s", "c_z"]
            nodes, left = [node("QLinearConv", names, "c")], "c"
        operands = [(left, f"{left}_s", f"{left}_z"), ("b", "b_s", "b_z")]
        if self.is_swapped:
            operands.reverse()
        if self.is_qdq:
            nodes += [node("DequantizeLinear", one, f"{one[0]}_f") for one in operands]
            nodes.append(node(self.kind, [f"{one[0]}_f" for one in operands], "y_f"))
            nodes.append(node("QuantizeLinear", ["y_f", "y_s", "y_z"], "y"))
        else:
            names = [*operands[0], *operands[1], "y_s", "y_z"]
            nodes.append(node(f"QLinear{self.kind}", names, "y"))
        inputs = {"a": (self.dtype, self.shape), "b": (self.dtype, self.other)}
        return model(nodes, inputs, ["y"], constants)

    def feeds(self, seed: int) -> dict[str, Array]:
        rng, info = np.random.default_rng(seed), np.iinfo(self.dtype)
        return {
            name: rng.integers(info.min, info.max, shape, self.dtype, endpoint=True)
            for name, shape in (("a", self.shape), ("b", self.other))
        }


def built(case: Case, machine: accel.Machine, **options: Any) -> NetworkProgram:
    return Network(graph=import_model(case.content())).build(machine, **options)


def equals_onnx_runtime(case: Case, program: NetworkProgram, seed: int) -> None:
    feeds = case.feeds(seed)
    if case.is_qdq:
        want = run_optimized(case.content(), feeds, ["y"])[0]["y"]
    else:
        want = run_onnx_runtime(case.content(), feeds)["y"]
    result = program.run(feeds, backend="functional")
    result.raise_if_wrong()
    np.testing.assert_array_equal(result.outputs["y"], want)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw shapes, types, scales and zero points."""
    dtype = draw(st.sampled_from(["int8", "uint8"]))
    info = np.iinfo(dtype)
    rank = draw(st.sampled_from([2, 3, 4, 4, 4]))
    shape = (draw(st.integers(1, 3)), draw(st.integers(1, 40)), *[draw(st.integers(1, 7)) for _ in range(2)])
    shape = shape[:rank]
    has_vector = rank > 2 and draw(st.booleans())
    zeros = tuple(draw(st.integers(int(info.min), int(info.max))) for _ in range(4))
    kind = draw(st.sampled_from(["Add", "Mul", "Mul"]))
    a, b, c, y = (10 ** draw(st.floats(-2.5, -1)) for _ in range(4))
    if kind == "Mul":
        y = a * b * 10 ** draw(st.floats(0.3, 2.2))
    return Case(
        kind=kind,
        dtype=dtype,
        shape=shape,
        other=(*shape[:2], *[1] * (rank - 2)) if has_vector else shape,
        zeros=zeros,
        scales=(a, b, c, y),
        is_qdq=draw(st.booleans()),
        has_conv=rank > 2 and draw(st.booleans()),
        is_swapped=draw(st.booleans()),
    )


@examples(60)
@given(cases(), st.sampled_from(MACHINES), st.booleans(), st.integers(0, 100))
def test_any_sum_or_product(case: Case, machine: accel.Machine, fusion: bool, seed: int) -> None:
    equals_onnx_runtime(case, built(case, machine, fusion=fusion), seed)


@pytest.mark.parametrize("machine", MACHINES, ids=str)
@pytest.mark.parametrize("kind", ["Add", "Mul"])
@pytest.mark.parametrize("has_vector", [False, True])
def test_fused_and_alone(kind: str, has_vector: bool, machine: accel.Machine) -> None:
    """One layer with the convolution, or two layers. A value per channel is held for a whole STORE."""
    vector = (1, 20, 1, 1)
    case = Case(kind=kind, has_conv=True, other=vector if has_vector else Case.shape)
    instruction = StoreMul if kind == "Mul" else StoreAdd
    for fusion, layers in ((True, [f"Conv + {kind}"]), (False, ["Conv", kind])):
        program = built(case, machine, fusion=fusion, keep=True)
        assert [part.fused.operators() for part in program.parts if part.on_machine] == layers
        equals_onnx_runtime(case, program, 1)
        (chain,) = program.chains
        stores = [one for one in chain.program.instructions if isinstance(one, StoreAdd)]
        assert {type(one) for one in stores} == {instruction}
        assert {one.hold for one in stores} == {has_vector}


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_squeeze_and_excite_is_one_program(machine: accel.Machine, tmp_path: Path) -> None:
    """A convolution, its mean, two small layers, and the product of the convolution with their result."""
    rng = np.random.default_rng(5)
    constants: dict[str, Any] = {}
    nodes: list[Any] = []

    def quantization(name: str, scale: float, zero: int) -> list[str]:
        constants.update({f"{name}_s": np.float32(scale), f"{name}_z": np.uint8(zero)})
        return [f"{name}_s", f"{name}_z"]

    def layer(source: str, name: str, sizes: tuple[int, int], scale: float, zero: int) -> None:
        constants[f"{name}_w"] = rng.integers(-127, 127, (*sizes, 1, 1), np.int8)
        constants[f"{name}_ws"], constants[f"{name}_wz"] = np.float32(0.007), np.int8(0)
        weights = [f"{name}_w", f"{name}_ws", f"{name}_wz"]
        names = [source, f"{source}_s", f"{source}_z", *weights, *quantization(name, scale, zero)]
        nodes.append(node("QLinearConv", names, name))

    quantization("x", 0.0213, 128)
    layer("x", "a", (24, 20), 0.0307, 120)
    names = ["a", "a_s", "a_z", *quantization("m", 0.0117, 127)]
    nodes.append(node("QLinearGlobalAveragePool", names, "m", channels_last=0))
    layer("m", "r", (8, 24), 0.0231, 0)
    layer("r", "g", (24, 8), 0.0041, 0)
    names = ["a", "a_s", "a_z", "g", "g_s", "g_z", *quantization("y", 0.0271, 117)]
    nodes.append(node("QLinearMul", names, "y"))
    content = model(nodes, {"x": ("uint8", (1, 20, 7, 9))}, ["y"], constants)
    feeds = {"x": rng.integers(0, 256, (1, 20, 7, 9)).astype(np.uint8)}
    program = Network(graph=import_model(content)).build(machine)
    assert [part.fused.name for part in program.parts if not part.on_machine] == []
    assert len(program.chains) == 1
    want = run_onnx_runtime(content, feeds)["y"]
    result = program.run(feeds)
    result.raise_if_wrong()
    np.testing.assert_array_equal(result.outputs["y"], want)
    save_network(program, tmp_path / "net.accel")
    np.testing.assert_array_equal(load_network(tmp_path / "net.accel").run(feeds).outputs["y"], want)


def test_inexact_products_stay_on_the_host() -> None:
    """``approximate`` keeps them on the machine, with few differences."""
    case = Case(scales=(0.1, 0.05, 0.05, 0.02), zeros=(3, 5, 0, 7))
    program = built(case, MACHINES[0])
    (part,) = program.parts
    assert not part.on_machine
    assert part.reason.startswith("integers would change the product of ")
    equals_onnx_runtime(case, program, 2)
    kept = built(case, MACHINES[0], approximate=True)
    (part,) = kept.parts
    assert part.on_machine
    assert part.layer is not None
    assert 0 < part.layer.differences < 2000
    feeds = case.feeds(2)
    found, want = kept.run(feeds).outputs["y"], run_onnx_runtime(case.content(), feeds)["y"]
    assert abs(found.astype(int) - want.astype(int)).max() <= 1


def test_reasons() -> None:
    """Of machines without products, and of shapes that no machine combines."""
    (part,) = built(Case(), accel.machine("vta-int8")).parts
    assert part.reason == "the machine does not multiply two tensors value by value"
    (part,) = built(Case(kind="Add", other=(1, 20, 1, 1)), accel.machine("vta-int8")).parts
    assert part.reason == "the machine adds no value per channel that varies"
    (part,) = built(Case(other=(1, 1, 5, 6)), MACHINES[0]).parts
    assert part.reason == (
        "it multiplies (1, 20, 5, 6) and (1, 1, 5, 6); the machine multiplies what has one shape, and "
        "pictures and one value per channel"
    )
