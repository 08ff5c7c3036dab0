"""ALU compared with the scalar interpreter: any micro-ops, then the vectorised paths and
their limits."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.core.alu_operations import operation_of_code
from accel.core.config import Config
from accel.core.isa import Alu, AluOp, UopArray
from accel.sim.functional import alu
from accel.sim.functional.micro_op_patterns import Axis
from accel.sim.functional.scratchpads import Scratchpads
from tests.reference import assert_same_effect, operate
from tests.sim.functional.boxes import MACHINE, any_box, box_instruction, random_pads, rows_of
from tests.strategies import examples, loops, micro_ops, seeded, small_machines

int32 = st.integers(-(1 << 31), (1 << 31) - 1)
operands = st.integers(-40, 40) | int32 | st.sampled_from([-(1 << 31), (1 << 31) - 1])
operations = st.sampled_from(AluOp)


@examples(400)
@given(st.data())
def test_alu_equals_the_scalar_interpreter(data: st.DataObject) -> None:
    config = data.draw(small_machines)
    instruction = data.draw(loops(config, gemm=False))
    pads = Scratchpads.random(config, data.draw(st.integers(0, 99)))
    pads.acc[::2] %= 64
    pads.uop[:] = data.draw(micro_ops(config))
    assert_same_effect(config, pads, instruction)


@examples(300)
@given(operations, operands, operands)
def test_an_operation_on_two_numbers(op: AluOp, x: int, y: int) -> None:
    found = operation_of_code(op).function(np.array([[x]], dtype=np.int32), np.array([[y]], dtype=np.int32))
    assert found.dtype == np.int32
    assert found.tolist() == [[operate(op, x, y)]]


@pytest.mark.parametrize(
    ("x", "amount", "result"),
    [
        (-8, 1, -4),
        (-7, 1, -4),
        (5, 31, 0),
        (-5, 31, -1),
        (-5, 32767, -1),
        (3, -1, 6),
        (1, -31, -(1 << 31)),
        (3, -31, -(1 << 31)),
        (1, -32, 0),
        (-1, -32768, 0),
        (7, 0, 7),
    ],
)
def test_shifts(x: int, amount: int, result: int) -> None:
    """Right, left by negative amounts, and so far that only the sign or nothing is left."""
    config = Config(batch=1, block_in=1, block_out=1, inp_bytes=2, wgt_bytes=2, acc_bytes=8)
    for use_imm in (False, True):
        pads = Scratchpads.zeros(config)
        pads.acc[:, 0, 0] = x, amount
        pads.uop[0] = 1 << config.acc_address_bits
        instruction = Alu(uop_end=1, alu_op=AluOp.SHR, use_imm=use_imm, imm=amount)
        assert_same_effect(config, pads, instruction)
        assert pads.acc[:, 0, 0].tolist() == [result, amount]


@pytest.mark.parametrize("op", AluOp)
@pytest.mark.parametrize("imm", [-32768, -3, 0, 1, 7, 32767])
@pytest.mark.parametrize("kinds", list(product((0, 1), repeat=2)), ids=str)
def test_an_immediate_on_a_box_is_vectorised(
    op: AluOp, imm: int, kinds: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loops that move dst or repeat the same accumulators; src is ignored."""
    monkeypatch.setattr(alu, "index_chunks", _not_to_be_called)
    around = [Axis(3, (20 * kinds[0], 31, 0)), Axis(3, (5 * kinds[1], 31, 0))]
    rows = rows_of([Axis(5, (-1, 9, 0))])
    instruction = box_instruction(Alu, around, rows, alu_op=op, use_imm=True, imm=imm)
    assert_same_effect(MACHINE, random_pads(rows), instruction)


DISJOINT = (0, 32, 0)


@pytest.mark.parametrize("op", AluOp)
@pytest.mark.parametrize(
    ("around", "inner", "lowest"),
    [
        pytest.param(
            [Axis(2, (16, 16, 0)), Axis(3, (4, 4, 0))], Axis(4, (1, 1, 0)), DISJOINT, id="element by element"
        ),
        pytest.param(
            [Axis(2, (16, 4, 0)), Axis(3, (4, 9, 0))], Axis(4, (-1, 2, 0)), DISJOINT, id="other strides"
        ),
        pytest.param(
            [Axis(2, (16, 0, 0)), Axis(3, (4, 0, 0))], Axis(4, (1, 0, 0)), DISJOINT, id="one for all"
        ),
        pytest.param(
            [Axis(2, (16, 4, 0)), Axis(3, (0, 9, 0))], Axis(4, (0, -2, 0)), DISJOINT, id="accumulated"
        ),
        pytest.param([Axis(2, (0, 0, 0)), Axis(3, (4, 9, 0))], Axis(4, (1, 1, 0)), DISJOINT, id="repeated"),
        pytest.param(
            [Axis(2, (16, 4, 0)), Axis(3, (4, 9, 0))], Axis(4, (1, 1, 0)), (30, 0, 0), id="src below dst"
        ),
        pytest.param([Axis(2, (16, 16, 0)), Axis(3, (4, 4, 0))], Axis(4, (1, 1, 0)), (0, 0, 0), id="itself"),
    ],
)
def test_tensor_operands_on_a_box_are_vectorised(
    op: AluOp,
    around: list[Axis],
    inner: Axis,
    lowest: tuple[int, int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(alu, "index_chunks", _not_to_be_called)
    rows = rows_of([inner], lowest)
    assert_same_effect(MACHINE, random_pads(rows), box_instruction(Alu, around, rows, alu_op=op))


@pytest.mark.parametrize("op", AluOp)
@pytest.mark.parametrize(
    ("around", "inner", "lowest"),
    [
        pytest.param(
            [Axis(1, (0, 0, 0)), Axis(3, (1, 1, 0))], Axis(4, (1, 1, 0)), (1, 0, 0), id="prefix sum"
        ),
        pytest.param(
            [Axis(1, (0, 0, 0)), Axis(1, (0, 0, 0))], Axis(9, (1, 1, 0)), (0, 1, 0), id="shift down"
        ),
        pytest.param(
            [Axis(3, (0, 0, 0)), Axis(1, (0, 0, 0))], Axis(4, (1, 1, 0)), (0, 0, 0), id="itself again"
        ),
        pytest.param(
            [Axis(2, (1, 4, 0)), Axis(2, (1, 9, 0))], Axis(4, (1, 1, 0)), DISJOINT, id="meeting dst"
        ),
        pytest.param([Axis(2, (0, 0, 0)), Axis(2, (4, 4, 0))], Axis(4, (1, -1, 0)), (0, 0, 0), id="mirrored"),
        pytest.param(
            [Axis(1, (0, 0, 0)), Axis(1, (0, 0, 0))], Axis(4, (-1, 1, 0)), (4, 3, 0), id="backwards"
        ),
    ],
)
def test_tensor_operands_whose_order_has_an_effect(
    op: AluOp, around: list[Axis], inner: Axis, lowest: tuple[int, int, int]
) -> None:
    rows = rows_of([inner], lowest)
    assert_same_effect(MACHINE, random_pads(rows), box_instruction(Alu, around, rows, alu_op=op))


@examples(400)
@given(seeded(any_box, wgt=0), operations, st.booleans(), st.integers(-9, 9))
def test_boxes_whose_points_coincide(
    box: tuple[list[Axis], UopArray], op: AluOp, use_imm: bool, imm: int
) -> None:
    around, rows = box
    instruction = box_instruction(Alu, around, rows, alu_op=op, use_imm=use_imm, imm=imm)
    assert_same_effect(MACHINE, random_pads(rows, imm + 9), instruction)


def test_a_late_reader_holds_back_a_writer_though_an_early_one_has_read() -> None:
    rows = np.array([(1, 9, 0), (1, 9, 0), (1, 0, 0), (2, 0, 0), (0, 9, 0)])
    assert_same_effect(MACHINE, random_pads(rows), Alu(uop_end=5, alu_op=AluOp.ADD))


def _not_to_be_called(*_: object) -> None:
    raise AssertionError("the general path was taken")
