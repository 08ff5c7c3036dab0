"""Operators that used to run on the host, or not at all, run on the machine and equal ONNX Runtime."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel
from accel.base.errors import GraphError
from accel.base.records import replace
from accel.formats.compare_with_runtime import compare
from accel.formats.onnx_import import import_model
from accel.formats.onnx_runtime import run_optimized
from accel.graph.elementwise_operators import Quantize
from accel.graph.foreign_operator import Foreign
from accel.graph.movement_operators import Transpose
from accel.network.network import Network
from accel.network.network_cuts import network_cuts
from accel.network.network_program import NetworkProgram
from accel.network.network_text import network_text
from tests.formats.runtime import model, node

RNG = np.random.default_rng(11)
Constants = dict[str, Any]


def qdq(
    name: str, to: str, dtype: Any = np.int8, scale: float = 0.02, zero: int = 3
) -> tuple[list[Any], Constants]:
    """Return a QuantizeLinear and a DequantizeLinear from one tensor to another, and their constants."""
    pair = [f"{to}_scale", f"{to}_zero"]
    return [
        node("QuantizeLinear", [name, *pair], f"{to}_q"),
        node("DequantizeLinear", [f"{to}_q", *pair], to),
    ], {pair[0]: np.float32(scale), pair[1]: dtype(zero)}


def weights(*shape: int, channels: int = 0, axis: int = 0) -> tuple[list[Any], Constants]:
    """Return a DequantizeLinear of random weights ``w``, with a scale for each channel if there are any."""
    scale = RNG.uniform(0.002, 0.02, channels).astype(np.float32) if channels else np.float32(0.01)
    values = RNG.integers(-127, 128, shape).astype(np.int8)
    zero = np.zeros(channels, np.int8) if channels else np.int8(0)
    return [node("DequantizeLinear", ["w_q", "w_scale", "w_zero"], "w", axis=axis)], {
        "w_q": values,
        "w_scale": scale,
        "w_zero": zero,
    }


def built(content: bytes) -> NetworkProgram:
    return Network(graph=import_model(content)).build("vta-int8")


def is_equal(content: bytes, shape: tuple[int, ...], *, tolerance: float = 0.0) -> NetworkProgram:
    """Run a model on the machine and in ONNX Runtime, compare outputs, and return the program."""
    program = built(content)
    inputs = {"x": RNG.uniform(-2, 2, shape).astype(np.float32)}
    result = program.run(inputs)
    wanted, _ = run_optimized(content, inputs, list(program.graph.result_names))
    for name, values in wanted.items():
        assert np.abs(result.outputs[name].astype(np.float64) - values).max(initial=0) <= tolerance
    assert not result.mismatches
    compare(program.graph, inputs).raise_if_bad()
    return program


@pytest.mark.parametrize(
    ("shape", "kernel", "groups", "attributes"),
    [
        ((1, 16, 7, 6), (16, 8, 2, 2), 1, {"strides": [2, 2]}),
        ((1, 16, 7, 6), (16, 8, 3, 3), 1, {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}),
        ((1, 8, 7), (8, 8, 4), 1, {"strides": [2], "pads": [1, 1]}),
        ((1, 8, 7, 6), (8, 1, 2, 2), 8, {"strides": [2, 2]}),
        ((1, 8, 7, 6), (8, 4, 3, 3), 4, {"strides": [3, 3], "auto_pad": "SAME_UPPER"}),
        ((1, 16, 7, 6), (16, 8, 3, 3), 1, {"strides": [2, 2], "output_shape": [14, 12]}),
        ((2, 4, 5, 3), (4, 5, 1, 3), 1, {"strides": [3, 1], "pads": [0, 2, 0, 0]}),
    ],
)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_transposed_convolutions(
    shape: tuple[int, ...], kernel: tuple[int, ...], groups: int, attributes: dict[str, Any], dtype: Any
) -> None:
    before, first = qdq("x", "a", dtype)
    middle, second = weights(*kernel, channels=kernel[1] if groups == 1 else 0, axis=1)
    after, last = qdq("c", "y", dtype, 0.1, 1)
    bias = {"b": RNG.normal(size=kernel[1] * groups).astype(np.float32)}
    nodes = [
        *before,
        *middle,
        node("ConvTranspose", ["a", "w", "b"], "c", group=groups, **attributes),
        *after,
    ]
    content = model(nodes, {"x": ("float32", shape)}, ["y"], first | second | last | bias)
    # ONNX Runtime adds float32 here, which breaks ties otherwise
    assert is_equal(content, shape, tolerance=0.1001).machine_share == 1


@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose", "MatMul"])
def test_products_with_a_float_result_are_sums_on_the_machine(kind: str) -> None:
    shape, kernel = ((3, 20), (20, 12)) if kind == "MatMul" else ((1, 8, 6, 5), (8, 8, 3, 3))
    before, first = qdq("x", "a")
    axis = 0 if kind == "Conv" else 1
    middle, second = weights(*kernel, channels=kernel[axis], axis=axis)
    nodes = [
        *before,
        *middle,
        node(kind, ["a", "w"], "c"),
        node("Sigmoid", ["c"], "s"),
        node("Mul", ["c", "s"], "y"),
    ]
    program = is_equal(model(nodes, {"x": ("float32", shape)}, ["y"], first | second), shape, tolerance=1e-5)
    assert program.machine_share == 1
    assert "int32" in {tensor.dtype for tensor in program.graph.tensors.values()}


@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 1, 1, 1], [2, 0, 1, 3]])
@pytest.mark.parametrize("strides", [[1, 1], [2, 3]])
def test_dynamically_quantized_convolutions(pads: list[int], strides: list[int]) -> None:
    kernel = RNG.integers(-127, 128, (6, 4, 3, 3)).astype(np.int8)
    nodes = [
        node("DynamicQuantizeLinear", ["x"], "q", "s", "z"),
        node("ConvInteger", ["q", "k", "z", "kz"], "sums", pads=pads, strides=strides),
        node("Cast", ["sums"], "f", to=1),
        node("Mul", ["s", "ks"], "scale"),
        node("Mul", ["f", "scale"], "y"),
    ]
    constants = {"k": kernel, "kz": np.int8(0), "ks": np.float32(0.01)}
    shape = (1, 4, 7, 8)
    program = is_equal(model(nodes, {"x": ("float32", shape)}, ["y"], constants), shape)
    assert program.machine_share == 1
    assert program.macs > 0


def test_dynamically_quantized_matrices() -> None:
    matrix = RNG.integers(0, 256, (20, 12)).astype(np.uint8)
    nodes = [
        node("DynamicQuantizeLinear", ["x"], "q", "s", "z"),
        node("MatMulInteger", ["q", "m", "z", "mz"], "sums"),
        node("Cast", ["sums"], "f", to=1),
        node("Mul", ["f", "s"], "y"),
    ]
    content = model(nodes, {"x": ("float32", (2, 3, 20))}, ["y"], {"m": matrix, "mz": np.uint8(128)})
    assert is_equal(content, (2, 3, 20)).machine_share == 1


def test_equal_quantizes_of_one_tensor_are_one() -> None:
    before, first = qdq("x", "a")
    middle, second = weights(8, 8, 3, 3, channels=8)
    left, more = qdq("c", "l", scale=0.1, zero=1)
    right, _ = qdq("c", "r", scale=0.1, zero=1)
    more |= {"r_scale": np.float32(0.1), "r_zero": np.int8(1)}
    nodes = [
        *before,
        *middle,
        node("Conv", ["a", "w"], "c"),
        *left,
        *right,
        node("Add", ["l", "r"], "t"),
        *qdq("t", "y")[0],
    ]
    constants = first | second | more | {"y_scale": np.float32(0.2), "y_zero": np.int8(0)}
    shape = (1, 8, 6, 5)
    program = is_equal(model(nodes, {"x": ("float32", shape)}, ["y"], constants), shape)
    assert program.machine_share == 1
    assert sum(isinstance(one.operator, Quantize) for one in program.graph.nodes) == 1


@pytest.mark.parametrize(
    ("shape", "axes", "keep"),
    [
        ((1, 6, 5, 7), [2, 3], 1),
        ((2, 6, 20, 15), [2, 3], 0),
        ((1, 5, 7, 6), [1, 2], 0),
        ((2, 3, 130), [2], 1),
        ((1, 3, 4, 5, 6), [2, 3, 4], 0),
        ((2, 6, 5), [1], 1),
        ((3, 4), [1], 0),
        ((3, 4), [0, 1], 1),
    ],
)
def test_maxima_along_axes(shape: tuple[int, ...], axes: list[int], keep: int) -> None:
    before, first = qdq("x", "a")
    after, last = qdq("m", "y", zero=3)
    nodes = [*before, node("ReduceMax", ["a"], "m", axes=axes, keepdims=keep), *after]
    program = is_equal(model(nodes, {"x": ("float32", shape)}, ["y"], first | last), shape)
    kinds = {one.operator.kind for one in program.graph.nodes}
    assert "MaxPool" in kinds


def test_transposes_cancel_through_constants_of_channels() -> None:
    shape = (1, 8, 6, 5)
    before, first = qdq("x", "a")
    middle, second = weights(8, 8, 3, 3, channels=8)
    one, more = qdq("c", "d", scale=0.1)
    nodes = [
        *before,
        *middle,
        node("Conv", ["a", "w"], "c", pads=[1] * 4),
        *one,
        node("Transpose", ["d"], "last", perm=[0, 2, 3, 1]),
        node("Mul", ["last", "factors"], "p0"),
        *qdq("p0", "p")[0],
        node("Transpose", ["p"], "q", perm=[0, 3, 1, 2]),
        *qdq("q", "y")[0],
    ]
    constants = first | second | more | {"factors": RNG.uniform(0.5, 1, 8).astype(np.float32)}
    constants |= {"p_scale": np.float32(0.05), "p_zero": np.int8(0)}
    constants |= {"y_scale": np.float32(0.05), "y_zero": np.int8(0)}
    program = is_equal(model(nodes, {"x": ("float32", shape)}, ["y"], constants), shape)
    assert not any(isinstance(node.operator, Transpose) for node in program.graph.nodes)


def test_transposes_cancel_one_after_another() -> None:
    there, back = [0, 2, 3, 1], [0, 3, 1, 2]
    nodes = [
        node("Transpose", ["x"], "a", perm=there),
        node("Transpose", ["a"], "b", perm=back),
        node("Transpose", ["b"], "c", perm=there),
        node("Transpose", ["c"], "d", perm=back),
        node("Relu", ["d"], "y"),
    ]
    program = is_equal(model(nodes, {"x": ("float32", (1, 2, 3, 4))}, ["y"], {}), (1, 2, 3, 4))
    assert not any(isinstance(node.operator, Transpose) for node in program.graph.nodes)


def test_quantization_to_four_bits_is_refused() -> None:
    """The host and the machine would clip to 8 bits."""
    onnx = pytest.importorskip("onnx")
    nodes = [node("QuantizeLinear", ["x", "s", "z"], "q"), node("DequantizeLinear", ["q", "s", "z"], "y")]
    content = model(nodes, {"x": ("float32", (4, 8))}, ["y"], {"s": np.float32(0.1)}, opset=21)
    changed = onnx.load_from_string(content)
    changed.graph.initializer.append(onnx.helper.make_tensor("z", onnx.TensorProto.INT4, [], [1]))
    with pytest.raises(GraphError, match="it quantizes to 4 bits"):
        built(changed.SerializeToString())


def test_four_bit_weights_are_bytes() -> None:
    onnx = pytest.importorskip("onnx")
    before, first = qdq("x", "a")
    after, last = qdq("p", "y", scale=0.2)
    content = model(
        [*before, node("DequantizeLinear", ["w4", "s4"], "w"), node("MatMul", ["a", "w"], "p"), *after],
        {"x": ("float32", (3, 20))},
        ["y"],
        first | last | {"s4": np.float32(0.1), "w4": np.zeros((20, 12), np.int8)},
    )
    changed = onnx.load_from_string(content)
    values = RNG.integers(-8, 8, (20, 12))
    for place, one in enumerate(changed.graph.initializer):
        if one.name == "w4":
            int4 = onnx.helper.make_tensor("w4", onnx.TensorProto.INT4, (20, 12), values.ravel().tolist())
            changed.graph.initializer[place].CopyFrom(int4)
    program = built(changed.SerializeToString())
    assert program.machine_share == 1
    assert np.array_equal(next(a for a in program.graph.constants.values() if a.shape == (20, 12)), values)


INDICES = {
    "one": np.array(1),
    "from the end": np.array(-1),
    "range": np.array([1, 2, 3]),
    "table": np.array([[0, 1], [2, 3]]),
    "steps": np.array([5, 3, 1]),
    "list of one": np.array([2]),
}


@pytest.mark.parametrize("indices", INDICES.values(), ids=INDICES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_gather_of_a_range_is_a_slice(indices: np.ndarray, axis: int) -> None:
    before, first = qdq("x", "a")
    after, last = qdq("g", "y")
    nodes = [*before, node("Gather", ["a", "places"], "g", axis=axis), *after]
    constants = first | last | {"places": indices.astype(np.int64)}
    program = is_equal(model(nodes, {"x": ("float32", (6, 7, 8))}, ["y"], constants), (6, 7, 8))
    assert "Slice" in {one.operator.kind for one in program.graph.nodes}
    assert "Gather" not in {one.operator.kind for one in program.graph.nodes}


@pytest.mark.parametrize("indices", [[2, 0, 1], [1, 1], [[0, 1], [1, 2]], [0, -1, 1]])
def test_other_gathers_run_in_onnx_runtime(indices: list[Any]) -> None:
    constants = {"places": np.array(indices, np.int64)}
    content = model([node("Gather", ["x", "places"], "y")], {"x": ("float32", (6, 7))}, ["y"], constants)
    assert [one.operator.kind for one in is_equal(content, (6, 7)).graph.nodes] == ["Gather"]


def test_an_index_outside_of_the_axis_is_refused() -> None:
    content = model(
        [node("Gather", ["x", "i"], "y")], {"x": ("float32", (5, 2))}, ["y"], {"i": np.array([7])}
    )
    with pytest.raises(GraphError, match=r"its indices are \[7\]; axis 0 has 5 values"):
        import_model(content)


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_gather_keeps_a_sum_in_float32(place: str) -> None:
    """ONNX Runtime moves no Quantize through a Gather, so it computes an Add next to one in float32."""
    left, first = qdq("x", "a", scale=0.05)
    right, second = qdq("x", "b", scale=0.1, zero=-7)
    after, last = qdq("r", "y", scale=0.1, zero=1)  # many sums lie halfway between two integers
    gathers = [node("Gather", [name, "places"], f"{name}g", axis=1) for name in ("a", "b", "s")]
    middle = [*gathers[:2], node("Add", ["ag", "bg"], "r")]
    if place == "after":
        gathers[2] = node("Gather", ["s", "places"], "r", axis=1)
        middle = [node("Add", ["a", "b"], "s"), gathers[2]]
    constants = first | second | last | {"places": np.array([2, 3, 4], np.int64)}
    shape = (4, 6, 50)
    is_equal(model([*left, *right, *middle, *after], {"x": ("float32", shape)}, ["y"], constants), shape)


def test_attention_reads_parts_of_one_projection() -> None:
    """PyTorch exports query, key and value as three Gathers of one tensor."""
    before, first = qdq("x", "a")
    middle, second = weights(8, 24)
    after, last = qdq("p", "q", scale=0.2)
    nodes = [
        *before,
        *middle,
        node("MatMul", ["a", "w"], "p"),
        *after,
        node("Reshape", ["q", "shape"], "r"),
        node("Transpose", ["r"], "t", perm=[1, 0, 2]),
        *(node("Gather", ["t", f"i{n}"], f"g{n}", axis=0) for n in range(3)),
        node("Transpose", ["g1"], "k", perm=[1, 0]),
        node("MatMul", ["g0", "k"], "scores"),
        node("MatMul", ["scores", "g2"], "y"),
    ]
    constants = first | second | last | {"shape": np.array([5, 3, 8], np.int64)}
    constants |= {f"i{n}": np.int64(n) for n in range(3)}
    content = model(nodes, {"x": ("float32", (5, 8))}, ["y"], constants)
    program = is_equal(content, (5, 8), tolerance=1e-3)
    assert not any(isinstance(one.operator, Foreign) for one in program.graph.nodes)


def test_the_first_of_several_tokens_stays_on_the_machine() -> None:
    """``x[:, 0]`` between two layers does not end a program."""
    before, first = qdq("x", "a")
    middle, second = weights(16, 32)
    inner, third = qdq("p", "q", scale=0.2)
    again, fourth = qdq("g", "h", scale=0.2)
    after, last = qdq("o", "y", scale=0.4)
    nodes = [
        *before,
        *middle,
        node("MatMul", ["a", "w"], "p"),
        *inner,
        node("Gather", ["q", "zero"], "g", axis=1),
        *again,
        node("DequantizeLinear", ["v_q", "w_scale", "w_zero"], "v"),
        node("MatMul", ["h", "v"], "o"),
        *after,
    ]
    constants = first | second | third | fourth | last
    constants |= {"zero": np.int64(0), "v_q": RNG.integers(-127, 128, (32, 16)).astype(np.int8)}
    content = model(nodes, {"x": ("float32", (1, 8, 16))}, ["y"], constants)
    program = is_equal(content, (1, 8, 16))
    assert (program.machine_share, len(program.chains)) == (1, 1)


def test_branches_at_the_end_read_tensors_under_other_names() -> None:
    """An Identity gives a tensor the name that the branches read."""
    onnx = pytest.importorskip("onnx")
    unknown = onnx.helper.make_empty_tensor_value_info
    then, other = (
        onnx.helper.make_graph([onnx.helper.make_node(kind, ["same", "one"], [out])], out, [], [unknown(out)])
        for kind, out in (("Add", "t"), ("Sub", "e"))
    )
    nodes = [
        node("Relu", ["x"], "r"),
        node("Identity", ["r"], "same"),
        node("NonZero", ["x"], "places"),
        node("ReduceSum", ["places"], "sum", keepdims=0),
        node("Greater", ["sum", "zero"], "condition"),
        node("If", ["condition"], "y", then_branch=then, else_branch=other),
    ]
    constants = {"one": np.float32([1, 2, 3]), "zero": np.int64(0)}
    is_equal(model(nodes, {"x": ("float32", (2, 3))}, ["y", "places"], constants), (2, 3))


def test_the_end_of_a_network_may_depend_on_values(tmp_path: Path) -> None:
    before, first = qdq("x", "a")
    middle, second = weights(8, 8, 3, 3, channels=8)
    after, last = qdq("c", "d", scale=0.1)
    nodes = [
        *before,
        *middle,
        node("Conv", ["a", "w"], "c"),
        *after,
        node("Greater", ["d", "zero"], "mask"),
        node("NonZero", ["mask"], "places"),
        node("Transpose", ["places"], "turned", perm=[1, 0]),
        node("GatherND", ["d", "turned"], "kept"),
    ]
    constants = first | second | last | {"zero": np.float32(0)}
    shape = (1, 8, 6, 5)
    content = model(nodes, {"x": ("float32", shape)}, ["kept", "d"], constants)
    program = is_equal(content, shape)
    assert program.machine_share == 1
    placed, graph = (network_text(program, stage).splitlines() for stage in ("placed", "graph"))
    kinds = "NonZero, Transpose, GatherND"
    assert placed[-2] == f"host     {kinds}  (after each run; its shapes depend on values)"
    assert graph[-1] == f"after the graph: {kinds} of 'mask', 'd' -> 'kept'"
    accel.save_network(program, tmp_path / "n.accel")
    inputs = {"x": RNG.uniform(-2, 2, shape).astype(np.float32)}
    again = accel.load_network(tmp_path / "n.accel").run(inputs).outputs
    assert list(again) == ["kept", "d"]
    assert np.array_equal(again["kept"], again["d"][again["d"] > 0])


def test_a_network_with_state() -> None:
    nodes = [node("Add", ["x", "h"], "sum"), node("Mul", ["sum", "half"], "next")]
    inputs: dict[str, Any] = {"x": ("float32", (1, 4)), "h": ("float32", (1, 4))}
    program = built(model(nodes, inputs, ["sum", "next"], {"half": np.float32(0.5)}))
    session = accel.NetworkSession(program, {"next": "h"})
    ones = np.ones((1, 4), np.float32)
    found = [float(session.run({"x": ones}).outputs["sum"][0, 0]) for _ in range(3)]
    assert found == [1, 1.5, 1.75]
    session.reset({"h": ones})
    assert float(session.run({"x": ones}).outputs["sum"][0, 0]) == 2
    with pytest.raises(accel.ShapeError, match="'h' is not an output of the network"):
        accel.NetworkSession(program, {"h": "x"})


def test_float16_is_the_hosts() -> None:
    kernel = RNG.normal(size=(4, 3, 3, 3)).astype(np.float16)
    nodes = [node("Conv", ["x", "k"], "c"), node("Relu", ["c"], "r"), node("GlobalAveragePool", ["r"], "y")]
    content = model(nodes, {"x": ("float16", (1, 3, 6, 6))}, ["y"], {"k": kernel})
    program = built(content)
    inputs = {"x": RNG.normal(size=(1, 3, 6, 6)).astype(np.float16)}
    wanted, _ = run_optimized(content, inputs, ["y"])
    assert np.array_equal(program.run(inputs).outputs["y"], wanted["y"])
    assert program.macs == 4 * 16 * 27
    assert program.machine_share == 0


@pytest.mark.parametrize("is_cut", [False, True])
def test_concat_in_place_cuts_no_program(is_cut: bool) -> None:
    """Layers write and read a Concat's values in place, so only a product of two tensors ends a program."""
    before, constants = qdq("x", "a")
    middle, more = weights(16, 16, 1, 1)
    constants |= more
    nodes = [*before, *middle, node("DequantizeLinear", ["v_q", "w_scale", "w_zero"], "v")]
    constants["v_q"] = RNG.integers(-127, 128, (16, 32, 1, 1)).astype(np.int8)
    steps = [
        node("Conv", ["a", "w"], "left"),
        node("Conv", ["left_qdq", "w"], "right"),
        node("Concat", ["right_qdq", "left_qdq"], "joined", axis=1),
        node("Conv", ["joined_qdq", "v"], "wide"),
    ]
    if is_cut:
        steps += [node("Mul", ["wide_qdq", "a"], "gated"), node("Conv", ["gated_qdq", "w"], "last")]
    for step in steps:
        name = step.output[0]
        pair, more = qdq(name, f"{name}_qdq")
        nodes += [step, *pair]
        constants |= more
    shape = (1, 16, 4, 4)
    program = is_equal(model(nodes, {"x": ("float32", shape)}, [f"{name}_qdq"], constants), shape)
    assert "Concat" in [part.fused.main.operator.kind for part in program.parts]
    assert len(program.chains) == 1 + is_cut
    assert [cut.operator for cut in network_cuts(program)] == ["Mul"] * is_cut


def test_an_output_of_a_damaged_tail_is_refused() -> None:
    nodes = [node("NonZero", ["x"], "places")]
    graph = import_model(
        model([*nodes, node("Relu", ["x"], "y")], {"x": ("float32", (2, 3))}, ["places", "y"], {})
    )
    assert graph.tail is not None
    damaged = replace(graph.tail, outputs=("places", "other"))
    with pytest.raises(GraphError, match="output 'other' has no producer"):
        damaged.run({"x": np.zeros((2, 3), np.float32)})
