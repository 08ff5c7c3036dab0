"""Comparisons with ONNX Runtime: the differences they find, and the messages."""

from __future__ import annotations

import numpy as np
import pytest

from accel.base.errors import GraphError, MismatchError
from accel.base.records import replace
from accel.formats import compare_with_runtime
from accel.formats.compare_with_runtime import Comparison, compare, random_inputs
from accel.formats.onnx_import import import_model
from accel.formats.onnx_runtime import run_onnx_runtime
from accel.graph.elementwise_operators import Add
from accel.graph.graph import Graph
from accel.graph.graph_tensor import Array
from tests.expect import refused
from tests.formats.runtime import model, node, run

RNG = np.random.default_rng(0)


def added(scales: tuple[float, float, float], zeros: tuple[int, int, int]) -> Graph:
    """A sum of all pairs of values, followed by MaxPool and Dequantize."""
    constants = {f"s{place}": np.float32(scale) for place, scale in enumerate(scales)}
    constants |= {f"z{place}": np.int8(zero) for place, zero in enumerate(zeros)}
    nodes = [
        node("QLinearAdd", ["a", "s0", "z0", "b", "s1", "z1", "s2", "z2"], "sum"),
        node("MaxPool", ["sum"], "maximum", kernel_shape=[2, 2]),
        node("DequantizeLinear", ["maximum", "s2", "z2"], "numbers"),
    ]
    inputs = dict.fromkeys("ab", ("int8", (1, 1, 256, 256)))
    return import_model(model(nodes, inputs, ["numbers"], constants))


def pairs() -> dict[str, Array]:
    values = np.arange(-128, 128).astype(np.int8)
    left, right = np.meshgrid(values, values, indexing="ij")
    return {"a": left[None, None], "b": right[None, None]}


class Wrong(Add, frozen=True, kw_only=True):
    """A sum with one wrong value, where both operands are 5."""

    @staticmethod
    def ordered(operands: object, arrays: object, out: object, *, swapped: bool) -> Array:
        found = Add.ordered(operands, arrays, out, swapped=swapped).copy()  # type: ignore[arg-type]
        found[0, 0, 133, 133] += 1
        return found


def test_a_difference_is_found_where_it_arises(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = added((0.1, 0.2, 0.3), (3, -4, 5))
    assert compare(graph, pairs()).first is None
    nodes = tuple(replace(one, operator=Wrong()) if one.output == "sum" else one for one in graph.nodes)
    right = compare_with_runtime.export_onnx(graph)
    monkeypatch.setattr(compare_with_runtime, "export_onnx", lambda _: right)
    found = compare(replace(graph, nodes=nodes), pairs())
    assert found.first is not None
    assert [one.differing for one in found.tensors] == [1, 0, 0]
    assert (found.first.name, found.first.place, found.first.largest) == ("sum", (0, 0, 133, 133), 1)
    assert found.values == sum(one.values for one in found.tensors) == 256 * 256 + 2 * 255 * 255
    message = (
        "tensor 'sum' (Wrong of node 'QLinearAdd of sum') differs from ONNX Runtime's in 1 of 65536 values, "
        "by up to 1, first at (0, 0, 133, 133)"
    )
    with refused(MismatchError, message):
        found.raise_if_bad()


def test_the_order_of_multiply_adds_is_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order depends on the processor. The test emulates another one by exchanging ONNX
    Runtime's operands."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        scales = (float(rng.uniform(0.01, 1)), float(rng.uniform(0.01, 1)), float(rng.uniform(0.01, 1)))
        graph, feeds = added(scales, (3, -4, 5)), pairs()
        tensors = [graph.tensors[name] for name in ("a", "b")]
        arrays = [feeds["a"], feeds["b"]]
        one, other = (
            Add.ordered(tensors, arrays, graph.tensors["sum"], swapped=swapped) for swapped in (False, True)
        )
        if (one != other).any():
            break
    else:
        pytest.fail("no scales were found where the order matters")

    def exchanged(content: bytes, inputs: dict[str, Array]) -> dict[str, Array]:
        found = run_onnx_runtime(content, inputs)
        return found | {"sum": other}

    monkeypatch.setattr(compare_with_runtime, "run_onnx_runtime", exchanged)
    found = compare(graph, feeds)
    assert found.tensors[0].reordered == found.reordered == (one != other).sum()
    assert found.tensors[0].differing == 0


def test_random_inputs_cover_their_range() -> None:
    constants = {"s": np.float32(0.5), "z": np.uint8(200), "t": np.float32(0.1), "y": np.int8(0)}
    nodes = [
        node("QuantizeLinear", ["f", "s", "z"], "q"),
        node("DequantizeLinear", ["i", "t", "y"], "g"),
        node("Relu", ["h"], "r"),
    ]
    inputs = {name: ("int8" if name == "i" else "float32", (50, 50)) for name in "fih"}
    graph = import_model(model(nodes, inputs, ["q", "g", "r"], constants))
    found = random_inputs(graph, seed=1)
    assert found.keys() == set(inputs)
    assert (found["f"].min() >= -100, found["f"].max() <= 27.5, np.ptp(found["f"]) > 120) == (True,) * 3
    assert np.unique(found["i"]).size > 200
    assert np.abs(found["h"]).max() <= 1
    assert all((found[name] == random_inputs(graph, seed=1)[name]).all() for name in inputs)
    assert (found["i"] != random_inputs(graph, seed=2)["i"]).any()


def test_models_that_onnx_runtime_refuses() -> None:
    content = model([node("Relu", ["x"], "y")], {"x": ("float32", (2,))}, ["y"], {})
    assert run(content, {"x": np.ones(2, np.float32)})["y"].tolist() == [1, 1]
    with pytest.raises(GraphError, match=r"^ONNX Runtime refuses the model: .*INVALID_ARGUMENT"):
        run_onnx_runtime(content, {"x": np.ones(3, np.float32)})


def test_a_comparison_of_no_tensors_finds_no_difference() -> None:
    empty = Comparison(tensors=())
    assert (empty.first, empty.values, empty.reordered) == (None, 0, 0)
    empty.raise_if_bad()


def test_float16_sums_may_have_another_order() -> None:
    rng = np.random.default_rng(0)
    constants = {name: rng.normal(size=(16, 16, 3, 3)).astype(np.float16) / 8 for name in "vw"}
    nodes = [node("Conv", ["x", "v"], "c"), node("Conv", ["c", "w"], "y")]
    graph = import_model(model(nodes, {"x": ("float16", (1, 16, 12, 12))}, ["y"], constants))
    found = compare(graph, random_inputs(graph))
    found.raise_if_bad()
    assert max(one.largest for one in found.tensors) > 0
