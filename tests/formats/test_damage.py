"""Damaged models: each is read, or refused with a one-line error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from accel.base.errors import AccelError
from accel.formats.compare_with_runtime import random_inputs
from accel.formats.onnx_import import import_model
from accel.formats.onnx_operator_rules import RULES
from accel.graph.graph_evaluation import evaluate
from tests.formats.generated import KINDS, generate, models
from tests.formats.runtime import onnx
from tests.thorough import also

COUNT = 400
"""Damaged models per test."""
WORK = 10**7
"""Models with at most this many MACs and values are also evaluated."""
NUMBERS = (-2, -1, 0, 1, 2, 3, 100, 2**31, 2**62, -(2**62))
DTYPES = ("int64", "int8", "uint8", "int32", "float32", "float64", "bool")


def sources(rng: np.random.Generator) -> list[bytes]:
    kinds = sorted(KINDS)
    found: list[bytes] = []
    for _ in range(20):
        chosen = [kinds[place] for place in rng.integers(0, len(kinds), 6)]
        found += models(generate(chosen, int(rng.integers(1 << 32))))[:2]
    return found


def outcome(content: bytes) -> str:
    """Read and evaluate a model; return the error message, if any."""
    try:
        graph = import_model(content)
        if sum(map(graph.macs, graph.nodes)) + sum(one.size for one in graph.tensors.values()) < WORK:
            evaluate(graph, random_inputs(graph))
    except AccelError as error:
        return str(error)
    return ""


def changed(made: Any, rng: np.random.Generator) -> None:

    def one_of(options: Any) -> Any:
        return options[int(rng.integers(len(options)))]

    graph = made.graph
    node, constant = one_of(graph.node), one_of(graph.initializer)
    names = [name for one in graph.node for name in (*one.input, *one.output)]
    place = int(rng.integers(len(node.input))) if len(node.input) else None
    declared = graph.input[0].type.tensor_type
    what = int(rng.integers(12))
    if what == 0 and place is not None:
        del node.input[place]
    elif what in {1, 2} and place is not None:
        node.input[place] = one_of(names) if what == 1 else ""
    elif what == 3 and len(node.attribute):
        del node.attribute[int(rng.integers(len(node.attribute)))]
    elif what in {4, 5} and len(node.attribute):
        damage_attribute(one_of(node.attribute), one_of, rng)
    elif what == 6:
        node.domain, node.op_type = one_of(list(RULES))
    elif what == 7:
        shape = rng.integers(0, 4, int(rng.integers(0, 4)))
        values = rng.integers(-3, 9, shape).astype(one_of(DTYPES))
        constant.CopyFrom(onnx.numpy_helper.from_array(values, constant.name))
    elif what == 8 and len(constant.dims):
        constant.dims[0] = one_of(NUMBERS)
    elif what == 9:
        declared.elem_type = int(rng.integers(0, 25))
    elif what == 10:
        one_of(declared.shape.dim).dim_value = one_of(NUMBERS)
    elif what == 11:
        made.opset_import[0].version = int(rng.integers(8, 30))


def damage_attribute(attribute: Any, one_of: Any, rng: np.random.Generator) -> None:
    """Change an attribute: another value, one value more or less, or another type."""
    kinds = onnx.AttributeProto
    if attribute.type == kinds.INT:
        attribute.i = one_of(NUMBERS)
    elif attribute.type == kinds.INTS and len(attribute.ints) and rng.random() < 0.5:
        attribute.ints[0] = one_of(NUMBERS)
    elif attribute.type == kinds.INTS:
        attribute.ints.append(1)
    elif attribute.type == kinds.FLOAT:
        attribute.f = one_of((0.0, -1.0, float("nan"), float("inf"), 1e30))
    elif attribute.type == kinds.STRING:
        attribute.s = b"\xffBAD"
    if rng.random() < 0.2:
        attribute.type = one_of(
            (kinds.FLOAT, kinds.INT, kinds.STRING, kinds.TENSOR, kinds.FLOATS, kinds.INTS)
        )


@pytest.mark.parametrize("seed", [0, also(1), also(2)])
def test_models_that_do_not_hold_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pool = sources(rng)
    found = []
    for _ in range(COUNT):
        made = onnx.ModelProto.FromString(pool[int(rng.integers(len(pool)))])
        for _ in range(int(rng.integers(1, 4))):
            changed(made, rng)
        found.append(outcome(made.SerializeToString()))
    assert all(one.isprintable() for one in found)
    assert COUNT // 10 < found.count("") < COUNT // 2
    assert len(set(found)) > COUNT // 3


def test_files_that_are_damaged() -> None:
    rng = np.random.default_rng(0)
    pool = sources(rng)
    found = []
    for _ in range(COUNT):
        content = bytearray(pool[int(rng.integers(len(pool)))])
        for _ in range(int(rng.integers(1, 4))):
            content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        kept = int(rng.integers(len(content))) if rng.random() < 0.1 else len(content)
        found.append(outcome(bytes(content[:kept])))
    assert all(one.isprintable() for one in found)
    assert 0 < found.count("") < COUNT // 2
