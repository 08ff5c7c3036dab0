"""Functions of one operand as sums of layers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.base.records import replace
from accel.core.config import NAMED
from accel.graph.elementwise_operators import ChannelTable, Function, Table
from accel.graph.graph import Graph
from accel.graph.graph_builder import Builder
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Array, Quantization, Tensor
from accel.graph.movement_operators import Concat
from accel.graph.quantize_values import all_values
from accel.network import function_parts
from accel.network.cost import ZERO_COST
from accel.network.function_parts import divide_functions
from accel.network.network import Network
from tests.network.networks import MACHINE, Small

CONFIG = NAMED[MACHINE]
X, Y = Quantization.of(0.0513, -11), Quantization.of(0.0719, 20)


def function_graph(operator: Operator, entries: Array | None = None, pixels: int = 32) -> Graph:
    builder = Builder()
    builder.input(Tensor(name="x", shape=(1, 20, pixels, pixels), dtype="int8", quantization=X))
    names = ["x"] if entries is None else ["x", builder.constant("entries", entries, Y)]
    builder.emit(operator, names, "y", dtype="int8", quantization=Y)
    return builder.graph("made", ["y"])


def rows(slopes: Array, factor: float = 1.0, addend: float = 0.0) -> Array:
    """A PRelu of ``factor * x + addend`` for each slope."""
    numbers = (all_values("int8").astype(np.float64) + 11) * 0.0513 * factor + addend
    results = np.where(numbers < 0, np.outer(slopes, numbers), numbers)
    return np.clip(np.rint(results / 0.0719) + 20, -128, 127).astype(np.int8)


def kinds(graph: Graph) -> list[str]:
    return [node.operator.kind for node in graph.nodes]


@pytest.mark.parametrize(
    ("slopes", "parts"),
    [
        (np.linspace(0, 1, 20), 2),
        (np.linspace(-1, -0.1, 20), 2),
        (np.linspace(-0.5, 0.5, 20), 3),
        (np.array([0.2]), 2),
    ],
)
@pytest.mark.parametrize(("factor", "addend"), [(1.0, 0.0), (-0.7, 1.1)])
def test_a_prelu_is_a_sum(slopes: Array, parts: int, factor: float, addend: float) -> None:
    """Also after a batch normalization, which moves the place where the slope changes."""
    graph = function_graph(ChannelTable(), rows(slopes, factor, addend))
    divided, choices = divide_functions(graph, CONFIG)
    assert kinds(divided) == [*["ChannelTable"] * 2, "Add", *["ChannelTable", "Add"] * (parts - 2)]
    assert [one.stages for one in choices[0].alternatives] == [
        ("ChannelTable", *["ChannelTable + Add"] * (parts - 1)),
        ("ChannelTable on the host",),
    ]
    inputs = Network(graph=graph).build(MACHINE).random_inputs()
    np.testing.assert_array_equal(evaluate(divided, inputs)["y"], evaluate(graph, inputs)["y"])


@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(-128, 127))
def test_a_sum_has_the_function_s_values(seed: int, channels: int, split: int) -> None:
    """Of tables with any values, also those that no layers compute."""
    table = np.random.default_rng(seed).integers(-128, 128, (256, channels))
    for half in (np.maximum(table, split), np.minimum(table, split)):
        first, second = function_parts._monotone_parts(half, split)
        np.testing.assert_array_equal(first + second - split, half)


def test_a_line_that_is_exact_in_two_halves() -> None:
    """Its offset is nearly an integer times its slope, so that biases of int8 weights are too far away."""
    numbers = np.arange(-128, 128).astype(np.float32) + 11
    steep = np.rint(np.float32(1.9145071) * numbers + np.float32(28.725775)) - 128
    table = np.stack([numbers - 128, steep]).clip(-128, 127).astype(np.int8)
    graph = function_graph(ChannelTable(), table.repeat(10, axis=0))
    relu = replace(graph.tensors["y"], quantization=Quantization.of(0.0719, -128))
    graph = replace(graph, tensors={**graph.tensors, "y": relu})
    divided, _ = divide_functions(graph, CONFIG)
    assert kinds(divided) == ["ChannelTable", "ChannelTable", "Add"]
    program = Network(graph=graph).build(MACHINE)
    assert not program.run().mismatches
    assert all(part.on_machine for part in program.parts)


@pytest.mark.parametrize("operator", [Function(function="Sigmoid"), Table(values=(3, 1) * 128)])
def test_functions_without_parts_stay(operator: Operator) -> None:
    graph = function_graph(operator)
    found, choices = divide_functions(graph, CONFIG)
    assert found is graph
    assert not choices


def test_machines_with_tables_look_functions_of_all_channels_up() -> None:
    leaky = function_graph(Function(function="LeakyRelu", parameters=(("alpha", 0.25),)))
    with_tables = CONFIG.override({"tab_bytes": 512})
    assert kinds(divide_functions(leaky, CONFIG)[0]) == ["ChannelTable", "ChannelTable", "Add"]
    assert divide_functions(leaky, with_tables)[0] is leaky
    prelu = function_graph(ChannelTable(), rows(np.linspace(0, 1, 20)))
    assert "Add" in kinds(divide_functions(prelu, with_tables)[0])


def test_the_host_keeps_what_it_computes_in_fewer_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = function_graph(ChannelTable(), rows(np.linspace(0, 1, 20)))
    monkeypatch.setattr(function_parts, "host_cost", lambda *_, **__: ZERO_COST)
    found, choices = divide_functions(graph, CONFIG)
    assert found is graph
    assert choices[0].alternatives[0].stages == ("ChannelTable on the host",)


def test_a_table_for_each_channel_after_a_concat_inside_a_block() -> None:
    """The lanes after the first 20 channels hold no channel, and have the results of no channel."""
    small = Small((1, 20, 8, 8))
    names = [small.conv("x", f"a{channels}", channels, kernel=1) for channels in (20, 16)]
    small.builder.emit(Concat(axis=1), names, "c")
    entries = rows(np.linspace(-0.5, 0.5, 36))
    small.builder.constant("entries", entries, Y)
    small.builder.emit(ChannelTable(), ["c", "entries"], "t", dtype="int8", quantization=Y)
    small.conv("t", "b", 16, kernel=1)
    program = Network(graph=small.graph("b")).build(MACHINE, keep=True)
    assert not program.run().mismatches
    assert len(program.chains) == 1
