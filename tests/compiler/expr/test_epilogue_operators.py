"""Lists of epilogue operators: their meaning, and that the compiler keeps them."""

import pytest
from hypothesis import given

import accel
from accel import te
from accel.compiler.expr.epilogue_operators import RELU, Bias, Finished, Shift, saturate
from accel.compiler.expr.expression_data import expression_from_data, expression_to_data
from accel.compiler.expr.scalar_expressions import Cast, Guarded, arithmetic, format_expr, reads, rewrite
from accel.compiler.expr.tensor_expressions import Compute
from accel.compiler.nest.epilogue_matching import chain_of
from accel.compiler.nest.nest import BlockEpilogue, walk_nodes
from accel.compiler.ops.epilogue import Epilogue
from accel.compiler.ops.workload import Workload
from accel.compiler.target.alu_epilogue import simplified
from tests.compiler.convs import epilogues
from tests.compiler.running import as_it_is
from tests.strategies import examples

S, bias = (te.placeholder((4,), "int32", name=name) for name in ("S", "bias"))
residual = te.placeholder((4,), name="residual")
y = te.IterVar("y", 4)


def test_a_list_prints_as_its_arithmetic() -> None:
    value = Finished(S[y], (Bias(bias[y]), Shift(3), RELU, *saturate(-128, 127)))
    text = "min(max(max(S[y] + bias[y] >> 3, 0), -128), 127)"
    assert format_expr(value) == format_expr(arithmetic(value)) == text
    assert arithmetic(value) == te.clip(te.max((S[y] + bias[y]) >> 3, 0), -128, 127)
    assert reads(value) == reads(arithmetic(value)) == [S[y], bias[y]]


def test_changing_its_expressions_keeps_the_list() -> None:
    value = Finished(S[y], (Bias(Guarded(bias[y], ((y, te.IterVar("z", 2)),))), Shift(3)))
    moved = rewrite(value, lambda node: te.IterVar("w", 4) if node is y else None)
    assert isinstance(moved, Finished)
    assert [type(op) for op in moved.ops] == [Bias, Shift]
    assert "w" in format_expr(moved)
    assert "y" not in format_expr(moved)


@examples(100)
@given(epilogues)
def test_declared_epilogues_equal_recognised_ones(options: dict[str, object]) -> None:
    """So a program from a file, which contains arithmetic, becomes the same nest."""
    epilogue = Epilogue(**options)  # type: ignore[arg-type]
    ops = epilogue.operators(bias[y] if epilogue.bias else None, residual[y] if epilogue.residual else None)
    plain = arithmetic(Finished(S[y], ops))
    if plain == S[y]:
        assert not ops
        return
    assert chain_of("C", plain, lambda read: read.tensor is S).ops == simplified(ops)
    assert chain_of("C", Finished(S[y], ops), lambda read: read.tensor is S).ops == simplified(ops)


@pytest.mark.parametrize(
    "workload",
    [
        accel.gemm(20, 30, 40, bias=True, residual=True, shift=7, relu=True),
        accel.conv2d(1, 8, 5, 5, 8, 3, padding=1, bias=True, shift=6),
        accel.avg_pool2d(1, 8, 7, 7, 3, stride=2, padding=1),
    ],
    ids=["gemm", "conv2d", "avg_pool2d"],
)
def test_the_list_stays_until_instructions_are_emitted(workload: Workload) -> None:
    """One list follows the sums of a tile. Its arithmetic, read back from a file, gives the same list."""
    assert isinstance(workload.output.op, Compute)
    body = workload.output.op.body
    assert isinstance(body, Cast)
    assert isinstance(body.value, Finished)
    program = as_it_is(workload, "gemm8x8")
    again = expression_from_data(expression_to_data([workload.output]))
    assert expression_to_data(again) == expression_to_data([workload.output])
    found = [
        node for node in walk_nodes(te.tensorize(program.schedule()).body) if isinstance(node, BlockEpilogue)
    ]
    (node,) = found
    for one, op in zip(node.ops, simplified(body.value.ops), strict=True):
        assert isinstance(one.op, type(op))  # a residual may become a product
