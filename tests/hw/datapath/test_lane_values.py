"""Hardware of expressions over lanes computes what numpy does, in as many slots as it has stages."""

from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from hypothesis import given
from hypothesis import strategies as st

from accel.core.alu_operations import LEFT, RIGHT, Operation, find_operation
from accel.core.lane_evaluation import evaluate
from accel.core.lane_expressions import Lane, lane_input, lane_sum, wrapped
from accel.hw.datapath.alu import operation_results
from accel.hw.datapath.lane_values import lane_values, stages_of
from accel.hw.formal.prove_alu import OperationRow, proof_of
from accel.hw.formal.smt_solver import prove
from tests.core.test_lane_expressions import expressions
from tests.hw.bench import as_array, as_integer, run
from tests.own_operations import OWN
from tests.random_lane_expressions import EDGES, random_expression
from tests.strategies import examples, seeded
from tests.thorough import also

LANES = 4
BITS = 32


class Row(wiring.Component):
    """A row of lanes of an expression, whose result is wrapped to 32 bits."""

    def __init__(self, node: Lane, stages: int) -> None:
        self._node = node
        self._stages = stages
        sides = {name: In(LANES * BITS) for name in (LEFT, RIGHT)}
        super().__init__(sides | {"result": Out(LANES * BITS)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        inputs = {
            name: [getattr(self, name).word_select(n, BITS).as_signed() for n in range(LANES)]
            for name in (LEFT, RIGHT)
        }
        values = lane_values(m, wrapped(self._node), inputs, stages=self._stages)
        for n, value in enumerate(values):
            m.d.comb += self.result.word_select(n, BITS).eq(value)
        unused = Signal()
        m.d.sync += unused.eq(self.x[0])  # so that there is a clock
        return m


def results(row: Row, pairs: np.ndarray[Any, Any], stages: int) -> np.ndarray[Any, Any]:
    """The results for operands int32[count, 2, LANES], after the slots of each pair."""
    found = []

    async def bench(context: Any) -> None:
        for x, y in pairs:
            context.set(row.x, as_integer(x))
            context.set(row.y, as_integer(y))
            for _ in range(stages):
                await context.tick()
            found.append(as_array(context.get(row.result), "<i4", (LANES,)))

    run(row, bench)
    return np.array(found)


@examples(60)
@given(expressions(), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_any_expression(node: Lane, stages: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = rng.choice(np.array(EDGES), (6, 2, LANES)).astype(np.int32)
    inputs = {LEFT: pairs[:, 0], RIGHT: pairs[:, 1]}
    wanted = np.broadcast_to(evaluate(wrapped(node), inputs), (6, LANES))
    np.testing.assert_array_equal(results(Row(node, stages), pairs, stages), wanted)


@examples(40)
@given(seeded(random_expression, depth=3, rows=True), st.integers(0, 4), st.integers(0, 2**32 - 1))
def test_any_expression_of_a_row(node: Lane, stages: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = rng.choice(np.array(EDGES), (6, 2, LANES)).astype(np.int32)
    inputs = {LEFT: pairs[:, 0], RIGHT: pairs[:, 1]}
    wanted = np.broadcast_to(evaluate(wrapped(node), inputs), (6, LANES))
    np.testing.assert_array_equal(results(Row(node, stages), pairs, stages), wanted)


@pytest.mark.parametrize("operation", OWN, ids=lambda one: one.name)
def test_declared_operations(operation: Operation) -> None:
    rng = np.random.default_rng(1)
    pairs = rng.integers(-(2**31), 2**31, (40, 2, LANES)).astype(np.int32)
    pairs[:20] %= 2000
    wanted = operation.function(pairs[:, 0], pairs[:, 1])
    row = Row(operation.expression, operation.stages)
    np.testing.assert_array_equal(results(row, pairs, operation.stages), wanted)


def test_stages_cut_the_longest_path() -> None:
    x = lane_input("x")
    node = x
    for n in range(8):
        node = wrapped(node + n)
    at = stages_of(node, 3, 1)
    order = [at[id(one)][0] for one in _chain(node) if one.kind == "add"]
    assert order == sorted(order)
    assert [order.count(stage) for stage in range(4)] == [2, 2, 2, 2]


def test_registers_cut_the_tree_of_a_reduction() -> None:
    total = lane_sum(lane_input("x"))
    assert stages_of(total, 0, 16)[id(total)] == (0, 0, 0, 0)
    assert stages_of(total, 1, 16)[id(total)] == (0, 0, 1, 1)
    assert stages_of(total, 3, 16)[id(total)] == (0, 1, 2, 3)
    assert stages_of(total, 2, 1)[id(total)] == (1,)


def _chain(node: Lane) -> list[Lane]:
    return [*(_chain(node.operands[0]) if node.operands else []), node]


# --- proofs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t_product", "t_gap", also("t_even"), also("t_range")])
def test_generated_hardware_is_proven(name: str) -> None:
    assert prove(proof_of(find_operation(name))).failed == ()


def _by_hand(m: Module, left: Any, right: Any) -> Any:
    difference = Signal(33)
    m.d.sync += difference.eq(left - right)
    return Mux(difference[-1], -difference, difference)[:BITS]


def _gap(**values: Any) -> Operation:
    (gap, *_) = OWN
    return Operation(name="t_gap", result=gap.result, **values)


def test_hand_made_hardware_is_proven() -> None:
    assert prove(proof_of(_gap(datapath=_by_hand, stages=1))).failed == ()


@pytest.mark.parametrize(
    "wrong",
    [
        _gap(datapath=_by_hand),  # the register makes it a cycle late
        _gap(datapath=lambda m, left, right: (left - right)[:BITS]),
        _gap(datapath=lambda m, left, right: abs((left - right)[:BITS].as_signed())[:BITS]),
    ],
    ids=["late", "signed", "wraps too early"],
)
def test_wrong_hand_made_hardware_is_found(wrong: Operation) -> None:
    assert prove(proof_of(wrong)).failed == ("T_GAP, lane 0",)


def test_hardware_with_a_register_too_many_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    late = find_operation("t_product")
    monkeypatch.setattr(
        OperationRow,
        "elaborate",
        lambda row, platform: _too_late(row, late),
    )
    assert prove(proof_of(late)).failed


def _too_late(row: OperationRow, operation: Operation) -> Module:
    m = Module()
    deeper = Operation(
        name="t_product", result=lambda x, y: operation.expression, stages=operation.stages + 1
    )
    values = operation_results(m, deeper, *row.operands.values(), replaced={"multiply": row._product})
    m.d.comb += row.result.eq(Cat(values))
    return m
