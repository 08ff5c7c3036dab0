"""Linear Resizes as depthwise convolutions, bit for bit as ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

from accel.formats.linear_resize import RESIZE_BY_PHASES
from accel.formats.onnx_import import import_model
from accel.formats.onnx_runtime import run_onnx_runtime
from accel.network.network import Network
from accel.network.network_program import NetworkProgram
from accel.rewriting.rule_check import check_rule
from tests.formats.runtime import model, node
from tests.thorough import also

SHAPE = (1, 20, 5, 6)


def content(scale: float, sizes: tuple[float, float], *, dtype: str = "int8", **attributes: Any) -> bytes:
    """Return a model with a Resize, whose operand has the scale 0.0437, between two convolutions.

    Args:
        scale: of the Resize's result.
        sizes: factors of the picture's height and width.
    """
    rng = np.random.default_rng(3)
    constants: dict[str, Any] = {"w_s": np.float32(0.004), "w_z": np.int8(0)}
    for name, one, zero in (("x", 0.0371, 3), ("a", 0.0437, 7), ("r", scale, 19), ("y", 0.0517, 0)):
        constants |= {f"{name}_s": np.float32(one), f"{name}_z": np.dtype(dtype).type(zero)}
    constants["w"] = rng.integers(-127, 128, (20, 20, 1, 1)).astype(np.int8)
    constants |= {"none": np.zeros(0, np.float32), "sizes": np.array([1, 1, *sizes], np.float32)}
    nodes = [
        node("QLinearConv", ["x", "x_s", "x_z", "w", "w_s", "w_z", "a_s", "a_z"], "a"),
        node("DequantizeLinear", ["a", "a_s", "a_z"], "a_f"),
        node("Resize", ["a_f", "none", "sizes"], "r_f", **{"mode": "linear", **attributes}),
        node("QuantizeLinear", ["r_f", "r_s", "r_z"], "r"),
        node("QLinearConv", ["r", "r_s", "r_z", "w", "w_s", "w_z", "y_s", "y_z"], "y"),
    ]
    return model(nodes, {"x": (dtype, SHAPE)}, ["r", "y"], constants)


def resized(made: bytes, machine: str = "vta-npu") -> NetworkProgram:
    """Compile a model, and compare a run with ONNX Runtime."""
    graph = import_model(made)
    info = np.iinfo(graph.tensors["x"].dtype)
    feeds = {"x": np.random.default_rng(4).integers(info.min, info.max, SHAPE).astype(info.dtype)}
    program = Network(graph=graph).build(machine)
    result = program.run(feeds, backend="functional")
    result.raise_if_wrong()
    want = run_onnx_runtime(made, feeds)
    for name in ("r", "y"):
        np.testing.assert_array_equal(result.outputs[name], want[name])
    return program


def test_both_sides_are_equal_bit_for_bit() -> None:
    assert check_rule(RESIZE_BY_PHASES, 60).applied > 15


@pytest.mark.parametrize("machine", ["vta-npu", also("ecp5-npu"), also("tiny-npu"), also("vta-int8")])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("mode", ["half_pixel", "asymmetric"])
@pytest.mark.parametrize("sizes", [(2, 2), (1, 4), also((4, 2))])
def test_a_resize_between_convolutions_is_one_program(
    sizes: tuple[float, float], mode: str, dtype: str, machine: str
) -> None:
    made = content(0.039717, sizes, dtype=dtype, coordinate_transformation_mode=mode)
    program = resized(made, machine)
    assert len(program.chains) == 1
    phases = int(np.prod(sizes))
    assert sum(part.on_machine for part in program.parts) == phases + 2


@pytest.mark.parametrize(
    ("scale", "sizes", "attributes"),
    [
        (0.0437, (2, 2), {}),  # ties
        (0.039717, (3, 3), {}),
        (0.039717, (1.5, 2), {}),
        (0.039717, (2, 2), {"mode": "cubic"}),
        (0.039717, (2, 2), {"coordinate_transformation_mode": "align_corners"}),
        (0.039717, (8, 8), {}),
    ],
)
def test_other_resizes_run_in_onnx_runtime(
    scale: float, sizes: tuple[float, float], attributes: dict[str, Any]
) -> None:
    program = resized(content(scale, sizes, **attributes))
    assert len(program.chains) == 2
    assert "Resize" in [part.fused.main.operator.kind for part in program.parts if not part.on_machine]


def test_machines_with_several_rows_leave_it_to_the_host() -> None:
    """Their neighbouring layers run in strips, which saves more cycles."""
    assert len(resized(content(0.039717, (2, 2)), "gemm8x8-npu").chains) == 2
