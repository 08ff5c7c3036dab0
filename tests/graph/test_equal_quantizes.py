from accel.graph.elementwise_operators import Requantize
from accel.graph.equal_quantizes import merge_equal_quantizes
from accel.graph.graph_tensor import Quantization
from accel.graph.movement_operators import Concat
from tests.network.networks import Small


def test_an_operand_of_two_concats_is_requantized_once() -> None:
    small = Small((1, 8, 3, 3))
    wide, wider = Quantization.of(0.1, 0), Quantization.of(0.2, 0)
    for name, quantization in (("r", wide), ("same", wide), ("other", wider)):
        small.builder.emit(Requantize(), ["x"], name, dtype="int8", quantization=quantization)
    small.builder.emit(Concat(axis=1), ["r", "same"], "y")
    found = merge_equal_quantizes(small.graph("y", "other"))
    assert [(node.operator.kind, node.inputs) for node in found.nodes if node.output != "other"] == [
        ("Requantize", ("x",)),
        ("Concat", ("r", "r")),
    ]
    assert "other" in found.tensors
