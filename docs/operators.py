"""Writes docs/reference/operators.md: where each ONNX operator runs, and whether it equals ONNX Runtime.

    python docs/operators.py [--check]

For each operator it takes the test cases that come with ONNX and that ONNX Runtime can run, imports them,
runs them, and compares the results. It takes about a minute. With ``--check`` it compares the page and writes
nothing.
"""

import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx.backend.test.case.node import collect_testcases

from accel.base.errors import AccelError
from accel.formats.onnx_import import import_model
from accel.graph.elementwise_operators import Function, Table
from accel.graph.foreign_operator import Foreign
from accel.graph.graph import Graph, Node
from accel.graph.movement_operators import Movement
from accel.network.fused_nodes import FusedNodes
from accel.network.lowering.lowered_layer import NotOnMachine
from accel.network.lowering.lowering_table import LOWERINGS, lower
from accel.network.network import Network

PAGE = Path(__file__).parent / "reference" / "operators.md"
MACHINE, MOVE, HOST, FOREIGN = "machine", "move", "host", "ONNX Runtime"
TEXT = """# Operators of ONNX

Where each operator of a network runs. `python docs/operators.py` writes this page: it imports and runs the
test cases that come with ONNX, and compares the results with ONNX Runtime.

- **machine**: on the machine if its operands and its result are quantized, its weights are constants, and the
  integers are exact. `accel compile onnx --explain` names the reason where one is not.
- **move**: no computation. Layers read the values where they are, or the host moves them.
- **host**: the graph knows the operator. ONNX Runtime computes it on the host, or numpy without ONNX Runtime.
- **ONNX Runtime**: any other operator, in a session on the host. In some forms, a quantized network has other
  operators instead: a nearest Resize becomes moves, a linear one by a power of two depthwise convolutions.

*Equal* counts cases with equal results, of those that ONNX Runtime runs and whose tensors are numbers.
Operators on strings and on sequences as inputs are refused. `com.microsoft` operators of quantizers (QGemm,
QLinearAdd, QLinearConcat and the like) run as the operators without `QLinear` do.

| operator | runs on | equal |
| --- | --- | --- |
"""


def places(graph: Graph) -> set[str]:
    """Return where the nodes of a graph run."""
    found = {FOREIGN} if graph.tail is not None else set()
    for node in graph.nodes:
        operator = node.operator
        if isinstance(operator, Foreign):
            found.add(FOREIGN)
        elif isinstance(operator, Movement):
            found.add(MOVE)
        elif isinstance(operator, Function | Table):
            found.add(MACHINE if is_lowered(graph, node) else HOST)
        else:
            found.add(MACHINE if type(operator) in LOWERINGS else HOST)
    return found


def is_lowered(graph: Graph, node: Node) -> bool:
    """Return whether the machine executes a function, which only linear and clipped ones allow."""
    try:
        lower(graph, FusedNodes(main=node))
    except NotOnMachine:
        return False
    return True


def quantized_places(model: onnx.ModelProto) -> set[str]:
    """Return where an operator of one float32 tensor runs between quantized tensors."""
    graph = model.graph
    tensors = [one.type.tensor_type for one in (*graph.input, *graph.output)]
    is_float = [one.elem_type == onnx.TensorProto.FLOAT for one in tensors]
    if len(graph.input) != 1 or len(graph.output) != 1 or not all(is_float):
        return set()
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    pair = ["scale", "zero"]
    (inner,) = copy.graph.node
    inner.input[0], inner.output[0] = "quantized x", "float y"
    make = onnx.helper.make_node
    before = [
        make("QuantizeLinear", [graph.input[0].name, *pair], ["integers x"]),
        make("DequantizeLinear", ["integers x", *pair], ["quantized x"]),
    ]
    after = [
        make("QuantizeLinear", ["float y", *pair], ["integers y"]),
        make("DequantizeLinear", ["integers y", *pair], [graph.output[0].name]),
    ]
    nodes = [*before, inner, *after]
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    to_array = onnx.numpy_helper.from_array
    copy.graph.initializer.extend([to_array(np.float32(0.1), "scale"), to_array(np.int8(0), "zero")])
    try:
        return places(import_model(copy.SerializeToString()))
    except AccelError:
        return set()


def is_equal(wanted: list[Any], found: dict[str, Any]) -> bool:
    for values, array in zip(wanted, found.values(), strict=True):
        if not isinstance(values, np.ndarray):
            continue
        if values.shape != array.shape or values.dtype != array.dtype:
            return False
        if values.dtype.kind == "f":
            exact, close = values.astype(np.float64), array.astype(np.float64)
            if not np.allclose(close, exact, rtol=1e-3, atol=1e-5, equal_nan=True):
                return False
        elif not np.array_equal(values, array):
            return False
    return True


def page() -> str:
    """Run all cases, and return the page."""
    warnings.simplefilter("ignore")
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    where: dict[str, set[str]] = defaultdict(set)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for case in collect_testcases(None):
        nodes = case.model.graph.node
        if len(nodes) != 1 or len(case.model.functions):
            continue
        content = case.model.SerializeToString()
        given = dict(zip((one.name for one in case.model.graph.input), case.data_sets[0][0], strict=False))
        try:
            session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
            wanted = session.run(None, given)
        except Exception:  # ONNX Runtime has not all operators
            wanted = []
        arrays = [one for one in given.values() if isinstance(one, np.ndarray)]
        has_numbers = len(arrays) == len(given) and all(one.dtype != object and one.size for one in arrays)
        if not wanted or not has_numbers:
            continue
        kind = nodes[0].op_type
        counts[kind][1] += 1
        try:
            graph = import_model(content)
            inputs = {name: given[name] for name in graph.inputs}
            found = Network(graph=graph).build().run(inputs, backend="functional").outputs
        except AccelError:
            continue
        where[kind] |= places(graph) | quantized_places(case.model)
        counts[kind][0] += is_equal(wanted, found)
    rows = []
    for kind, (equal, count) in sorted(counts.items()):
        runs = next((one for one in (MACHINE, HOST, MOVE, FOREIGN) if one in where[kind]), FOREIGN)
        rows.append(f"| {kind} | {runs} | {equal} of {count} |\n")
    total = [sum(one[at] for one in counts.values()) for at in (0, 1)]
    return f"{TEXT}{''.join(rows)}\nAll together: {total[0]:,} of {total[1]:,} cases are equal.\n"


def main() -> None:
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != text:
        raise SystemExit(f"{PAGE} is out of date; write it anew with python docs/operators.py")


if __name__ == "__main__":
    main()
