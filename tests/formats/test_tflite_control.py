"""Branches, loops, variables and open sizes of TensorFlow Lite files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel.base.errors import AccelError, GraphError, ShapeError
from accel.formats.tflite_import import import_tflite_model
from accel.graph.graph import Graph
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_serialization import graph_from_data, graph_to_data
from accel.graph.graph_state import first_states
from accel.graph.graph_tensor import Array
from accel.network.network import read_network
from accel.network.network_session import NetworkSession
from tests.expect import refused
from tests.formats.tflite_writer import WrittenGraph, write_tflite

pytest.importorskip("tflite")
pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)
PLAIN = {"options": "AddOptions", "FusedActivationFunction": 0}
MATRIX = RNG.normal(size=(3, 3)).astype(np.float32)


def binary(graph: WrittenGraph, kind: str, left: int, right: int, *shape: int, dtype: str = "float32") -> int:
    (made,) = graph.add(
        kind,
        [left, right],
        graph.tensor(*shape, dtype=dtype),
        options=f"{kind.title()}Options" if kind in {"ADD", "MUL", "SUB"} else "",
        **({"FusedActivationFunction": 0} if kind in {"ADD", "MUL", "SUB"} else {}),
    )
    return made


def function(shape: Sequence[int], inputs: Sequence[str], make: Callable[..., Sequence[int]]) -> WrittenGraph:
    """A graph whose outputs ``make`` computes from inputs of these dtypes, of which float32 has a shape."""
    graph = WrittenGraph()
    graph.inputs = [graph.tensor(*(shape if one == "float32" else ()), dtype=one) for one in inputs]
    graph.outputs = make(graph, *graph.inputs)
    return graph


def plus(number: float) -> WrittenGraph:
    return function((2, 3), ["float32"], lambda g, x: [binary(g, "ADD", x, g.known(number), 2, 3)])


def times(number: float) -> WrittenGraph:
    return function((2, 3), ["float32"], lambda g, x: [binary(g, "MUL", x, g.known(number), 2, 3)])


def computed(graph: Graph, **feeds: Array) -> list[Array]:
    found = evaluate(graph, feeds)
    return [graph.constants[name] if name in graph.constants else found[name] for name in graph.outputs]


def sum_is_positive(main: WrittenGraph, x: int) -> int:
    axes = main.known([0, 1], "int32")
    (total,) = main.add("SUM", [x, axes], main.tensor(), options="ReducerOptions", KeepDims=False)
    return binary(main, "GREATER", total, main.known(0.0), dtype="bool")


def branching(condition: Any, *branches: WrittenGraph, then: int = 1, other: int = 2) -> bytes:
    main = WrittenGraph()
    x = main.tensor(2, 3, name="x")
    asked = condition(main, x)
    y = main.tensor(2, 3, name="y")
    main.add("IF", [asked, x], y, options="IfOptions", ThenSubgraphIndex=then, ElseSubgraphIndex=other)
    main.inputs, main.outputs = [x], [y]
    return write_tflite(main, *branches)


# --- IF --------------------------------------------------------------------------------------------


def test_a_branch_that_a_run_chooses() -> None:
    graph = import_tflite_model(branching(sum_is_positive, plus(1), times(3)))
    assert [node.operator.kind for node in graph.nodes][-1] == "If"
    data = np.abs(RNG.normal(size=(2, 3))).astype(np.float32)
    np.testing.assert_array_equal(computed(graph, x=data), [data + 1])
    np.testing.assert_array_equal(computed(graph, x=-data), [-data * 3])


@pytest.mark.parametrize("value", [False, True])
def test_a_branch_that_the_file_chooses(value: bool) -> None:
    content = branching(lambda main, _: main.known(value, "bool"), plus(1), times(3))
    graph = import_tflite_model(content)
    assert [node.operator.kind for node in graph.nodes] == ["Add" if value else "Mul", "Identity"]
    data = RNG.normal(size=(2, 3)).astype(np.float32)
    np.testing.assert_array_equal(computed(graph, x=data), [data + 1 if value else data * 3])


def test_a_branch_that_returns_its_input_and_nested_branches() -> None:
    def nested(graph: WrittenGraph, x: int) -> Sequence[int]:
        asked = binary(graph, "LESS", x, graph.known(np.full((2, 3), 5)), 2, 3, dtype="bool")
        starts, sizes = graph.known([0, 0], "int32"), graph.known([1, 1], "int32")
        (first,) = graph.add("SLICE", [asked, starts, sizes], graph.tensor(1, 1, dtype="bool"))
        y = graph.tensor(2, 3)
        options = {"options": "IfOptions", "ThenSubgraphIndex": 3, "ElseSubgraphIndex": 4}
        return graph.add("IF", [first, x], y, **options)

    same = function((2, 3), ["float32"], lambda _, x: [x])
    content = branching(sum_is_positive, function((2, 3), ["float32"], nested), same, plus(1), times(2))
    graph = import_tflite_model(content)
    ones = np.ones((2, 3), np.float32)
    for data, wanted in ((ones, ones + 1), (ones * 9, ones * 18), (-ones, -ones)):
        np.testing.assert_array_equal(computed(graph, x=data), [wanted])


@pytest.mark.parametrize(
    ("branches", "indices", "message"),
    [
        ([plus(1)], (1, 2), "node 'y': it calls graph 2; the model has subgraphs 1 to 1"),
        ([plus(1)], (1, 0), "node 'y': it calls graph 0; the model has subgraphs 1 to 1"),
        (
            [plus(1), function((2, 3), ["float32", "float32"], lambda _, x, y: [x])],
            (1, 2),
            "node 'y': it calls a graph of 2 inputs with 1",
        ),
        (
            [plus(1), function((2, 3), ["float32"], lambda g, x: [g.known(np.zeros((3, 2)))])],
            (1, 2),
            "node 'y': its branches return float32[2, 3] and float32[3, 2]; both must be the same",
        ),
        (
            [plus(1), function((2, 3), ["float32"], lambda g, x: [x, x])],
            (1, 2),
            "node 'y': its branches have 1 and 2 results",
        ),
    ],
)
def test_branches_that_do_not_fit(
    branches: Sequence[WrittenGraph], indices: tuple[int, int], message: str
) -> None:
    with refused(GraphError, message):
        import_tflite_model(branching(sum_is_positive, *branches, then=indices[0], other=indices[1]))


def test_a_graph_that_calls_itself() -> None:
    def again(graph: WrittenGraph, x: int) -> Sequence[int]:
        options = {"options": "IfOptions", "ThenSubgraphIndex": 1, "ElseSubgraphIndex": 1}
        return graph.add("IF", [graph.known(True, "bool"), x], graph.tensor(2, 3), **options)

    endless = function((2, 3), ["float32"], again)
    with pytest.raises(GraphError, match="graph 1 calls itself"):
        import_tflite_model(branching(sum_is_positive, endless, plus(1)))


def test_calls_that_grow_exponentially_are_refused() -> None:
    def twice(index: int) -> WrittenGraph:
        def make(graph: WrittenGraph, x: int) -> Sequence[int]:
            options = {"options": "IfOptions", "ThenSubgraphIndex": index, "ElseSubgraphIndex": index}
            for _ in range(2):
                (x,) = graph.add("IF", [graph.known(True, "bool"), x], graph.tensor(2, 3), **options)
            return [x]

        return function((2, 3), ["float32"], make)

    graphs = [*(twice(index) for index in range(2, 25)), plus(1)]
    with pytest.raises(GraphError, match="the subgraphs have more than 20000 operators"):
        import_tflite_model(branching(sum_is_positive, graphs[0], *graphs[1:]))


# --- WHILE -----------------------------------------------------------------------------------------


def looping(condition: WrittenGraph, body: WrittenGraph, count: int = 0) -> bytes:
    """A loop over a counter, which starts at a constant, and a tensor."""
    main = WrittenGraph()
    x = main.tensor(2, 3, name="x")
    outputs = [main.tensor(dtype="int32", name="n"), main.tensor(2, 3, name="y")]
    options = {"options": "WhileOptions", "CondSubgraphIndex": 1, "BodySubgraphIndex": 2}
    main.add("WHILE", [main.known(count, "int32"), x], *outputs, **options)
    main.inputs, main.outputs = [x], outputs
    return write_tflite(main, condition, body)


def fewer_than(count: int) -> WrittenGraph:
    return function(
        (2, 3),
        ["int32", "float32"],
        lambda g, n, x: [binary(g, "LESS", n, g.known(count, "int32"), dtype="bool")],
    )


def steps(graph: WrittenGraph, n: int, x: int) -> Sequence[int]:
    matrix = graph.known(MATRIX)
    product = graph.tensor(2, 3)
    graph.add("FULLY_CONNECTED", [x, matrix, -1], product, options="FullyConnectedOptions")
    (bounded,) = graph.add("TANH", [product], graph.tensor(2, 3))
    return [binary(graph, "ADD", n, graph.known(1, "int32"), dtype="int32"), bounded]


def stepped(data: Array, count: int) -> Array:
    for _ in range(count):
        data = np.tanh(data @ MATRIX.T)
    return data


BODY = function((2, 3), ["int32", "float32"], steps)


def test_a_loop_of_a_known_number_of_iterations_is_unrolled() -> None:
    graph = import_tflite_model(looping(fewer_than(4), BODY))
    assert [node.operator.kind for node in graph.nodes].count("MatMul") == 4
    data = RNG.normal(size=(2, 3)).astype(np.float32)
    count, found = computed(graph, x=data)
    assert count == 4
    np.testing.assert_allclose(found, stepped(data, 4), rtol=1e-5)


def test_a_loop_without_an_iteration() -> None:
    graph = import_tflite_model(looping(fewer_than(4), BODY, count=7))
    data = RNG.normal(size=(2, 3)).astype(np.float32)
    count, found = computed(graph, x=data)
    assert count == 7
    np.testing.assert_array_equal(found, data)


def test_a_long_loop_runs_in_onnx_runtime() -> None:
    graph = import_tflite_model(looping(fewer_than(2000), BODY))
    assert {node.operator.kind for node in graph.nodes} == {"Loop"}
    assert sum(map(graph.macs, graph.nodes)) == 18
    data = RNG.normal(size=(2, 3)).astype(np.float32)
    count, found = computed(graph, x=data)
    assert count == 2000
    np.testing.assert_allclose(found, stepped(data, 2000), atol=1e-4)


def test_a_loop_that_a_run_ends() -> None:
    def small(graph: WrittenGraph, n: int, x: int) -> Sequence[int]:
        axes = graph.known([0, 1], "int32")
        (total,) = graph.add("SUM", [x, axes], graph.tensor(), options="ReducerOptions", KeepDims=False)
        return [binary(graph, "LESS", total, graph.known(100.0), dtype="bool")]

    def double(graph: WrittenGraph, n: int, x: int) -> Sequence[int]:
        more = binary(graph, "ADD", n, graph.known(1, "int32"), dtype="int32")
        return [more, binary(graph, "MUL", x, graph.known(2.0), 2, 3)]

    kinds = ["int32", "float32"]
    graph = import_tflite_model(looping(function((2, 3), kinds, small), function((2, 3), kinds, double)))
    ones = np.ones((2, 3), np.float32)
    for data, wanted in ((ones, 5), (ones * 3, 3), (ones * 100, 0)):
        count, found = computed(graph, x=data)
        assert count == wanted
        np.testing.assert_array_equal(found, data * 2**wanted)


def test_loops_that_do_not_fit() -> None:
    kinds = ["int32", "float32"]
    positive = function((2, 3), kinds, lambda g, n, x: [sum_is_positive(g, x)])
    grown = function((2, 3), kinds, lambda g, n, x: [n, g.known(np.zeros((3, 2)))])
    message = "node 'n': it changes float32[2, 3] to float32[3, 2] in an iteration; both must be the same"
    with refused(GraphError, message):
        import_tflite_model(looping(positive, grown))
    two = function((2, 3), kinds, lambda g, n, x: [n, n])
    with refused(GraphError, "node 'n': its condition has 2 results; it must have one"):
        import_tflite_model(looping(two, BODY))
    short = function((2, 3), kinds, lambda g, n, x: [n])
    with refused(GraphError, "node 'n': its body has 2 inputs and 1 results"):
        import_tflite_model(looping(positive, short))
    main = WrittenGraph()
    options = {"options": "WhileOptions", "CondSubgraphIndex": 1, "BodySubgraphIndex": 2}
    counter = main.tensor(dtype="int32", name="n")
    main.add("WHILE", [main.known(0, "int32")], counter, **options)
    main.inputs, main.outputs = [main.tensor(2, 3)], [counter]
    always = function((), ["int32"], lambda g, n: [g.known(True, "bool")])
    more = function((), ["int32"], lambda g, n: [binary(g, "ADD", n, n, dtype="int32")])
    with refused(GraphError, "node 'n': it computes with constants only, and does not end in 512 iterations"):
        import_tflite_model(write_tflite(main, always, more))


# --- variables -------------------------------------------------------------------------------------


def handle(graph: WrittenGraph, name: str) -> int:
    options = {"options": "VarHandleOptions", "Container": "", "SharedName": name}
    (made,) = graph.add("VAR_HANDLE", [], graph.tensor(dtype="resource"), **options)
    return made


def first_value(values: Array, name: str = "total") -> WrittenGraph:
    graph = WrittenGraph()
    graph.add("ASSIGN_VARIABLE", [handle(graph, name), graph.known(values, values.dtype.name)])
    return graph


def read(graph: WrittenGraph, variable: int, *shape: int) -> int:
    (made,) = graph.add("READ_VARIABLE", [variable], graph.tensor(*shape))
    return made


def accumulator(first: Array, *, assigns: bool = True) -> bytes:
    """Returns the sum of all inputs so far, and the sum before."""
    main = WrittenGraph()
    x = main.tensor(2, 3, name="x")
    main.add("CALL_ONCE", [], options="CallOnceOptions", InitSubgraphIndex=1)
    variable = handle(main, "total")
    before = read(main, variable, 2, 3)
    total = binary(main, "ADD", before, x, 2, 3)
    if assigns:
        main.add("ASSIGN_VARIABLE", [variable, total])
    after = read(main, variable, 2, 3)
    main.tensors[before].name, main.tensors[after].name = "before", "after"
    main.inputs, main.outputs = [x], [after, before]
    return write_tflite(main, first_value(first))


@pytest.mark.parametrize("first", [np.zeros((2, 3), np.float32), MATRIX[:2]])
def test_variables_become_states(first: Array) -> None:
    graph = import_tflite_model(accumulator(first))
    (state,) = graph.states
    assert graph.inputs == ("x", "total")
    assert graph.outputs == ("after", "before", "total/next")
    assert (state.output, state.input) == ("total/next", "total")
    assert (state.initial is None) == (not first.any())
    np.testing.assert_array_equal(first_states(graph)["total"], first)
    again = graph_from_data(graph_to_data(graph), lambda tensor: graph.constants[tensor.name])
    assert again.states == graph.states
    np.testing.assert_array_equal(first_states(again)["total"], first)


@pytest.mark.parametrize("first", [np.zeros((2, 3), np.float32), MATRIX[:2]])
def test_a_session_keeps_variables(first: Array, tmp_path: Path) -> None:
    path = tmp_path / "sum.tflite"
    path.write_bytes(accumulator(first))
    program = read_network(path).build("vta-int8")
    session = NetworkSession(program)
    total = first
    for _ in range(3):
        data = RNG.normal(size=(2, 3)).astype(np.float32)
        found = session.run({"x": data}).outputs
        np.testing.assert_array_equal(found["before"], total)
        total = total + data
        np.testing.assert_array_equal(found["after"], total)
    session.reset()
    np.testing.assert_array_equal(session.run({"x": data}).outputs["before"], first)
    np.testing.assert_array_equal(program.run({"x": data}).outputs["before"], first)
    np.testing.assert_array_equal(program.random_inputs()["total"], first)


def test_variables_that_no_run_assigns_are_constants() -> None:
    graph = import_tflite_model(accumulator(MATRIX[:2], assigns=False))
    assert (graph.inputs, graph.states) == (("x",), ())
    np.testing.assert_array_equal(computed(graph, x=np.zeros((2, 3), np.float32)), [MATRIX[:2]] * 2)


def variable_step(kind: str) -> WrittenGraph:
    """A graph that gets a variable and a tensor, and changes the variable."""
    graph = WrittenGraph()
    variable, x = graph.tensor(dtype="resource"), graph.tensor(2, 3)
    changed = binary(graph, kind, read(graph, variable, 2, 3), x, 2, 3)
    graph.add("ASSIGN_VARIABLE", [variable, changed])
    graph.inputs, graph.outputs = [variable, x], [x]
    return graph


def test_branches_that_assign_variables() -> None:
    main = WrittenGraph()
    x = main.tensor(2, 3, name="x")
    main.add("CALL_ONCE", [], options="CallOnceOptions", InitSubgraphIndex=1)
    variable = handle(main, "total")
    options = {"options": "IfOptions", "ThenSubgraphIndex": 2, "ElseSubgraphIndex": 3}
    main.add("IF", [sum_is_positive(main, x), variable, x], main.tensor(2, 3), **options)
    main.inputs, main.outputs = [x], [read(main, variable, 2, 3)]
    content = write_tflite(main, first_value(MATRIX[:2]), variable_step("ADD"), variable_step("MUL"))
    graph = import_tflite_model(content)
    (state,) = graph.states
    for data in (np.ones((2, 3), np.float32), -np.ones((2, 3), np.float32)):
        found = evaluate(graph, {"x": data, **first_states(graph)})
        wanted = MATRIX[:2] + data if data[0, 0] > 0 else MATRIX[:2] * data
        np.testing.assert_array_equal(found[graph.outputs[0]], wanted)
        np.testing.assert_array_equal(found[state.output], wanted)


@pytest.mark.parametrize("count", [3, 2000])
def test_loops_that_assign_variables(count: int) -> None:
    kinds = ["int32", "resource", "float32"]
    condition = function(
        (2, 3), kinds, lambda g, n, v, x: [binary(g, "LESS", n, g.known(count, "int32"), dtype="bool")]
    )

    def step(graph: WrittenGraph, n: int, variable: int, x: int) -> Sequence[int]:
        total = binary(graph, "ADD", read(graph, variable, 2, 3), x, 2, 3)
        graph.add("ASSIGN_VARIABLE", [variable, total])
        return [binary(graph, "ADD", n, graph.known(1, "int32"), dtype="int32"), variable, x]

    main = WrittenGraph()
    x = main.tensor(2, 3, name="x")
    main.add("CALL_ONCE", [], options="CallOnceOptions", InitSubgraphIndex=1)
    variable = handle(main, "total")
    outputs = [main.tensor(dtype="int32"), main.tensor(dtype="resource"), main.tensor(2, 3)]
    options = {"options": "WhileOptions", "CondSubgraphIndex": 2, "BodySubgraphIndex": 3}
    main.add("WHILE", [main.known(0, "int32"), variable, x], *outputs, **options)
    main.inputs, main.outputs = [x], [read(main, outputs[1], 2, 3), outputs[2]]
    first = np.arange(6, dtype=np.float32).reshape(2, 3)
    graph = import_tflite_model(
        write_tflite(main, first_value(first), condition, function((2, 3), kinds, step))
    )
    data = np.ones((2, 3), np.float32)
    found = evaluate(graph, {"x": data, **first_states(graph)})
    np.testing.assert_array_equal(found[graph.outputs[0]], first + count)
    np.testing.assert_array_equal(found[graph.states[0].output], first + count)


def changed_size() -> WrittenGraph:
    """A graph that reads a variable of (3, 3) and assigns (2, 3)."""
    main = WrittenGraph()
    x = main.tensor(2, 3, name="x")
    main.add("CALL_ONCE", [], options="CallOnceOptions", InitSubgraphIndex=1)
    variable = handle(main, "total")
    main.inputs, main.outputs = [x], [read(main, variable, 3, 3)]
    main.add("ASSIGN_VARIABLE", [variable, x])
    return main


def test_variables_that_do_not_fit() -> None:
    main = WrittenGraph()
    x = main.tensor(2, 3, name="x")
    main.inputs = [x]
    main.outputs = [read(main, handle(main, "total"), 2, 3)]
    with refused(
        GraphError,
        "node 't2': variable 'total' has no value before it is read; CALL_ONCE must assign one",
    ):
        import_tflite_model(write_tflite(main))
    main.operators = [("READ_VARIABLE", [x], [2], "", {})]
    with refused(GraphError, "node 't2': tensor 'x' is not a variable; it must be one"):
        import_tflite_model(write_tflite(main))
    with refused(GraphError, "state 'total/next' is float32[2, 3]; its input is float32[3, 3]"):
        import_tflite_model(write_tflite(changed_size(), first_value(MATRIX)))


# --- open sizes ------------------------------------------------------------------------------------


def resized() -> bytes:
    """A reshape to sizes that the file computes from its input, and a mean."""
    graph = WrittenGraph()
    x = graph.tensor(1, 1, 4, name="x", signature=(-1, -1, 4))
    (shape,) = graph.add("SHAPE", [x], graph.tensor(3, dtype="int32"), options="ShapeOptions", OutType=2)
    sizes = []
    for axis in range(2):
        bounds = [graph.known([at], "int32") for at in (axis, axis + 1, 1)]
        fields = {"BeginMask": 0, "EndMask": 0, "EllipsisMask": 0, "NewAxisMask": 0, "ShrinkAxisMask": 1}
        options = {"options": "StridedSliceOptions", **fields}
        sizes += graph.add("STRIDED_SLICE", [shape, *bounds], graph.tensor(dtype="int32"), **options)
    double = binary(graph, "MUL", sizes[1], graph.known(2, "int32"), dtype="int32")
    operands = [sizes[0], double, graph.known(-1, "int32")]
    (wanted,) = graph.add(
        "PACK", operands, graph.tensor(3, dtype="int32"), options="PackOptions", ValuesCount=3, Axis=0
    )
    y = graph.tensor(1, 2, 2, name="y", signature=(-1, -1, -1))
    graph.add("RESHAPE", [x, wanted], y)
    fields = {"options": "ReducerOptions", "KeepDims": False}
    axes = graph.known([1], "int32")
    (mean,) = graph.add("MEAN", [y, axes], graph.tensor(1, 2, name="mean", signature=(-1, 2)), **fields)
    filled = graph.add("FILL", [wanted, graph.known(3.0)], graph.tensor(1, 2, 2, name="filled"))
    graph.inputs, graph.outputs = [x], [y, mean, *filled]
    # -1 is no size of FILL
    graph.operators[-1] = ("FILL", [shape, graph.operators[-1][1][1]], filled, "", {})
    return write_tflite(graph)


def test_sizes_of_inputs_are_computed_through_the_graph(tmp_path: Path) -> None:
    graph = import_tflite_model(resized(), shapes={"x": (3, 5, 4)})
    data = RNG.normal(size=(3, 5, 4)).astype(np.float32)
    y, mean, filled = computed(graph, x=data)
    np.testing.assert_array_equal(y, data.reshape(3, 10, 2))
    np.testing.assert_allclose(mean, y.mean(axis=1), rtol=1e-5)
    np.testing.assert_array_equal(filled, np.full((3, 5, 4), 3.0))
    path = tmp_path / "open.tflite"
    path.write_bytes(resized())
    assert read_network(path, shapes={"x": (1, 2, 4)}).graph.tensors["y"].shape == (1, 4, 2)


@pytest.mark.parametrize(
    ("shapes", "kind", "message"),
    [
        (
            {},
            GraphError,
            "inputs have open sizes; give them, with numbers for the names: --shape x=batch,size1,4",
        ),
        (
            {"x": (1, 2, 5)},
            ShapeError,
            "the shape of input 'x' is (1, 2, 5); the model declares batch,size1,4",
        ),
        ({"x": (1, 2)}, ShapeError, "the shape of input 'x' is (1, 2); the model declares batch,size1,4"),
        ({"y": (1,)}, ShapeError, "a shape is given for 'y'; "),
    ],
)
def test_shapes_that_do_not_fit(
    shapes: dict[str, Sequence[int]], kind: type[AccelError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        import_tflite_model(resized(), shapes=shapes)
    assert str(caught.value).startswith(message)


def test_damaged_files_with_subgraphs() -> None:
    rng = np.random.default_rng(0)
    contents = [
        accumulator(MATRIX[:2]),
        branching(sum_is_positive, plus(1), times(3)),
        looping(fewer_than(3), BODY),
        resized(),
    ]
    found = set()
    for n in range(800):
        changed = bytearray(contents[n % 4])
        place = int(rng.integers(8, len(changed)))
        changed[place] = int(rng.choice([0, 1, 127, 255, changed[place] ^ (1 << int(rng.integers(8)))]))
        try:
            import_tflite_model(bytes(changed), shapes={"x": (1, 2, 4)} if n % 4 == 3 else None)
        except AccelError as error:
            found.add(str(error))
    assert all(one.isprintable() for one in found)
    assert len(found) > 20
