"""Which operators the machine supports, and the reasons for all others."""

import pytest

from accel.graph.elementwise_operators import Dequantize, Quantize, Softmax
from accel.graph.graph_operator import Operator
from accel.graph.graph_serialization import OPERATORS
from accel.graph.graph_tensor import Quantization
from accel.graph.movement_operators import Concat, Identity, Pad, Reshape, Slice, Transpose
from accel.network.fused_nodes import FusedNodes
from accel.network.lowering.lowered_layer import NotOnMachine
from accel.network.lowering.lowering_table import LOWERINGS, lower
from tests.network.networks import Small

HOST_OPERATORS = {
    *(
        "Binary",
        "Cast",
        "Concat",
        "DepthToSpace",
        "Dequantize",
        "Foreign",
        "Identity",
        "Mean",
        "Pad",
        "Quantize",
        "Reinterpret",
    ),
    *("Reshape", "Slice", "Softmax", "SpaceToDepth", "Take", "Transpose"),
}


def test_every_operator_has_a_lowering_or_runs_on_the_host() -> None:
    lowered = {one.__name__ for one in LOWERINGS}
    assert lowered.isdisjoint(HOST_OPERATORS)
    assert lowered | HOST_OPERATORS == OPERATORS.keys()


@pytest.mark.parametrize(
    ("operator", "reason"),
    [
        (Identity(), "values stay as they are"),
        (Reshape(sizes=(4, 3)), "values stay as they are"),
        (Transpose(permutation=(1, 0)), "the machine moves no values"),
        (Slice(starts=(0, 1), sizes=(3, 2), steps=(1, 1)), "the machine moves no values"),
        (Concat(axis=0), "the machine moves no values"),
        (Pad(begin=(0, 0), end=(1, 0), value=-11), "the machine moves no values"),
        (Softmax(axes=(1,)), "the machine has no Softmax"),
        (Dequantize(), "the machine has no float32"),
        (Quantize(), "the machine has no float32"),
    ],
    ids=lambda one: one.kind if isinstance(one, Operator) else "",
)
def test_reasons(operator: Operator, reason: str) -> None:
    small = Small((3, 4))
    source = small.builder.emit(Dequantize(), ["x"], "numbers", dtype="float32")
    dtype = "float32" if isinstance(operator, Dequantize) else "int8"
    quantization = None if dtype == "float32" else Quantization.of(0.5, 1)
    operand = source if isinstance(operator, Quantize) else "x"
    small.builder.emit(operator, [operand], "y", dtype=dtype, quantization=quantization)
    graph = small.graph("y")
    with pytest.raises(NotOnMachine) as error:
        lower(graph, FusedNodes(main=graph.producers["y"]))
    assert str(error.value) == reason
