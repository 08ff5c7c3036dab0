"""Rules of elementwise operators: where they apply, and conditions without which both sides would differ."""

import pytest

from accel.base.errors import MismatchError
from accel.base.records import replace
from accel.graph.elementwise_operators import Clip, Function, Requantize
from accel.graph.graph_tensor import Quantization
from accel.graph.movement_operators import Concat
from accel.rewriting import constant_rules, transpose_rules
from accel.rewriting.byte_rules import CLIP_PAIR
from accel.rewriting.constant_rules import COMMON_SUBEXPRESSION, EQUAL_QUANTIZES
from accel.rewriting.rule_application import simplify
from accel.rewriting.rule_check import check_rule
from accel.rewriting.rules import RULES
from tests.network.networks import Small

BY_NAME = {rule.name: rule for rule in RULES}


def test_an_operand_of_two_concats_is_requantized_once() -> None:
    small = Small((1, 8, 3, 3))
    wide, wider = Quantization.of(0.1, 0), Quantization.of(0.2, 0)
    for name, quantization in (("r", wide), ("same", wide), ("other", wider)):
        small.builder.emit(Requantize(), ["x"], name, dtype="int8", quantization=quantization)
    small.builder.emit(Concat(axis=1), ["r", "same"], "y")
    found, counts = simplify(small.graph("y", "other"), [EQUAL_QUANTIZES])
    assert [(node.operator.kind, node.inputs) for node in found.nodes if node.output != "other"] == [
        ("Requantize", ("x",)),
        ("Concat", ("r", "r")),
    ]
    assert "other" in found.tensors
    assert counts == {"equal-quantizes": 1}


def test_equal_chains_become_one() -> None:
    small = Small((1, 8, 3, 3))
    for name in "ab":
        small.sigmoid("x", f"{name}1")
        small.clip(f"{name}1", f"{name}2", -20, 50)
    small.add("a2", "b2", "y")
    found, counts = simplify(small.graph("y"), [COMMON_SUBEXPRESSION])
    assert [node.operator.kind for node in found.nodes] == ["Sigmoid", "Clip", "Add"]
    assert counts == {"common-subexpression": 2}


def test_an_output_keeps_its_name_when_it_equals_another_tensor() -> None:
    small = Small((1, 8, 3, 3))
    small.sigmoid("x", "first")
    small.sigmoid("x", "second")
    small.clip("first", "y", 0, None)
    found, _ = simplify(small.graph("y", "second"), [COMMON_SUBEXPRESSION])
    assert [(node.operator, node.inputs, node.output) for node in found.nodes] == [
        (Function(function="Sigmoid"), ("x",), "second"),
        (Clip(low=0), ("second",), "y"),
    ]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        (((0, 50), (-10, 20)), (0, 20)),
        (((0, None), (None, 20)), (0, 20)),
        (((0, 10), (20, 30)), (20, 20)),  # no value is left between both
        (((40, 30), (None, None)), (30, 30)),  # the upper bound wins
    ],
)
def test_bounds_of_two_clips(bounds: tuple[tuple[int | None, ...], ...], expected: tuple[int, ...]) -> None:
    small = Small((16, 16))
    small.clip("x", "t", *bounds[0])
    small.clip("t", "y", *bounds[1])
    found, _ = simplify(small.graph("y"), [CLIP_PAIR])
    assert [node.operator for node in found.nodes] == [Clip(low=expected[0], high=expected[1])]


@pytest.mark.parametrize(
    "name", ["clip-of-nothing", "slice-of-everything", "take-of-everything", "neutral-constant"]
)
def test_without_its_condition_a_rule_fails(name: str) -> None:
    def keeps_type(match) -> bool:  # type: ignore[no-untyped-def]
        x, out = match["x"], match.root
        return (x.shape, x.dtype, x.quantization) == (out.shape, out.dtype, out.quantization)

    rule = replace(BY_NAME[name], condition=keeps_type)
    with pytest.raises(MismatchError, match=name):
        check_rule(rule, 200)


@pytest.mark.parametrize(
    ("module", "function", "name"),
    [
        (constant_rules, "_grows_exactly", "factor-pair"),
        (transpose_rules, "swaps_operands", "constant-before-transpose"),
        (transpose_rules, "swaps_operands", "first-constant-before-transpose"),
        (transpose_rules, "swaps_operands", "binary-before-transpose"),
        (transpose_rules, "swaps_operands", "binary-after-transpose"),
    ],
)
def test_without_a_check_in_its_replacement_a_rule_fails(
    monkeypatch: pytest.MonkeyPatch, module: object, function: str, name: str
) -> None:
    monkeypatch.setattr(module, function, lambda *_: True)
    with pytest.raises(MismatchError, match=name):
        check_rule(BY_NAME[name], 2000)
