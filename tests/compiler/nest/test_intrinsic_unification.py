"""Unification: the access for each operand, and the loop for each axis."""

import pytest

from accel import te
from accel.base.errors import TensorizeError
from accel.compiler.expr.scalar_expressions import Binary, Cast, Const, Expr, IterVar, Read, Sum, format_expr
from accel.compiler.expr.window_expressions import Range
from accel.compiler.nest.intrinsic_unification import (
    Access,
    BlockLoop,
    Unified,
    check_short_blocks,
    map_axes,
    match,
)
from accel.compiler.nest.nest import Buffer
from tests.expect import refused

W, X, Y = (te.placeholder((8, 8), name=name) for name in ("w", "x", "y"))
A, B = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
i, j = IterVar("i", 8), IterVar("j", 8)
k = IterVar("k", 8, "reduce")
W_IK, X_JK, Y_IJ = W[i, k], X[j, k], Y[i, j]
A1, B1 = A[0, 0], B[0, 0]


def matches(pattern: Expr, found: Expr) -> list[dict[str, str]]:
    return [
        {tensor.name: format_expr(read) for tensor, read in binding.items()}
        for binding in match(pattern, found)
    ]


@pytest.mark.parametrize("op", ["+", "*", "min", "max"])
def test_commutative_operations_match_both_ways(op: str) -> None:
    assert matches(Binary(op, W_IK, X_JK), Binary(op, A1, B1)) == [
        {"w": "A[0][0]", "x": "B[0][0]"},
        {"w": "B[0][0]", "x": "A[0][0]"},
    ]


@pytest.mark.parametrize("op", ["-", ">>", "<<", "//", "%"])
def test_other_operations_match_one_way(op: str) -> None:
    assert matches(Binary(op, W_IK, X_JK), Binary(op, A1, B1)) == [{"w": "A[0][0]", "x": "B[0][0]"}]
    assert matches(Binary(op, W_IK, Const(3)), Binary(op, Const(3), B1)) == []


@pytest.mark.parametrize(
    ("pattern", "found", "count"),
    [
        (W_IK * X_JK + Y_IJ, A1 + A1 * B1, 2),
        (W_IK * W_IK, A1 * A1, 2),
        (W_IK * W_IK, A1 * B1, 0),
        (W_IK * 3, A1 * 3, 1),
        (W_IK * 3, A1 * 4, 0),
        (W_IK + X_JK, A1 * B1, 0),
        (Sum(W_IK, (k,)), Sum(A1, (k,)), 1),
        (Sum(W_IK, (k,)), A1, 0),
        (W_IK, Sum(A1, (k,)), 0),
        (Cast(W_IK + 1, "int8"), Cast(A1 + 1, "int8"), 1),
        (Cast(W_IK + 1, "int8"), A1 + 1, 0),
        (Const(0), Const(0), 1),
        (Const(0), Const(1), 0),
        (W_IK, Const(1), 0),
        (W_IK + X_JK, A1, 0),
    ],
)
def test_forms(pattern: Expr, found: Expr, count: int) -> None:
    assert len(matches(pattern, found)) == count


# --- loops onto axes -------------------------------------------------------------------------------


def loop(
    name: str, span: int, kind: str = "space", *, whole: bool = False, extent: Expr | None = None
) -> BlockLoop:
    var = IterVar(name, span, kind)  # type: ignore[arg-type]
    return BlockLoop(var, Const(span) if extent is None else extent, span, whole)


YI, XI, KI = loop("yi", 8), loop("xi", 8), loop("ki", 8, "reduce")
y, x, r = YI.var, XI.var, KI.var
o = IterVar("o", 4)


def access(
    name: str, indices: tuple[Expr, ...], pattern: Read, *, output: bool = False, ends: bool = False
) -> Access:
    axes = tuple(index for index in pattern.indices if isinstance(index, IterVar))
    buffer = Buffer(name, (64,) * len(indices), "int8", None)
    held = tuple(Const(64) for _ in indices)
    return Access(buffer, held, indices, axes, format_expr(pattern), output, (ends,) * len(indices))


def mapped(block: list[BlockLoop], *accesses: Access) -> Unified:
    return map_axes("gemm", block, [i, j, k], accesses)


TENSORS = (Y, W, X)
C_YX = access("C", (y, x), Y_IJ, output=True)


def test_loops_map_in_any_order() -> None:
    """The accesses determine the axis of each loop, and with it the order of dimensions."""
    unified = mapped([XI, KI, YI], C_YX, access("A", (r, y), W_IK), access("B", (x, r), X_JK))
    assert unified.loops == {i: YI, j: XI, k: KI}
    assert [operand.dims for operand in unified.operands] == [(0, 1), (1, 0), (0, 1)]


def test_regions_begin_where_the_block_does() -> None:
    short = loop("yi", 8, extent=te.min(8, 100 - o * 8))
    region = (
        mapped([short, XI, KI], access("C", (o * 8 + short.var, x, o), Y_IJ, output=True)).operands[0].region
    )
    assert [(format_expr(part.start), format_expr(part.extent)) for part in region.ranges] == [
        ("o*8", "min(8, 100-o*8)"),
        ("0", "8"),
        ("o", "1"),
    ]


def test_an_input_may_repeat_and_an_output_may_not() -> None:
    unified = mapped([YI, XI, KI], C_YX, access("A", (y, Const(3)), W_IK))
    assert unified.operands[1].dims == (0, None)
    assert unified.operands[1].region.ranges[1] == Range(Const(3), Const(1))
    with refused(TensorizeError, "the block for gemm: C[yi][0] does not depend on xi; y[i][j] does"):
        mapped([YI, XI, KI], access("C", (y, Const(0)), Y_IJ, output=True))


def test_an_axis_of_one_value_needs_no_loop() -> None:
    one = IterVar("i", 1)
    C = access("C", (x,), Y[one, j], output=True)
    unified = map_axes("gemm", [XI, KI], [one, j, k], [C])
    assert unified.loops == {one: None, j: XI, k: KI}
    assert unified.operands[0].dims == (None, 0)


def test_a_whole_axis_may_be_shorter_than_the_block() -> None:
    short = loop("yi", 3, whole=True)
    unified = mapped([short, XI, KI], access("C", (short.var, x), Y_IJ, output=True))
    assert unified.operands[0].region.ranges[0].extent == Const(3)
    with pytest.raises(TensorizeError, match=r"has the loops yi\(3\), xi\(8\), ki\(8, reduce\)"):
        mapped([loop("yi", 3), XI, KI], C_YX)
    with pytest.raises(TensorizeError, match=r"has the loops yi\(9\)"):
        mapped([loop("yi", 9, whole=True), XI, KI], C_YX)


def test_space_loops_do_not_stand_for_reduce_axes() -> None:
    with pytest.raises(
        TensorizeError, match=r"has the loops yi\(8\), xi\(8\), ki\(8\); gemm needs .*k\(8, reduce\)"
    ):
        mapped([YI, XI, loop("ki", 8)], C_YX)


# --- elements beyond the end -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "ends", "fine"),
    [
        (W_IK * X_JK, (False, False), False),
        (W_IK * X_JK, (True, False), True),
        (W_IK * X_JK, (False, True), True),
        (W_IK + X_JK, (True, False), False),
        (W_IK + X_JK, (True, True), True),
        (W_IK - X_JK, (False, True), False),
        (te.max(W_IK, X_JK), (True, True), True),
        (W_IK * 2 + 1, (True, True), False),
        (W_IK >> 2, (True, False), True),
        (te.cast(W_IK * X_JK, "int8"), (True, False), True),
        (Const(0) * X_JK, (False, False), True),
        (Const(1), (True, True), False),
    ],
)
def test_a_short_block_needs_zeros_behind_its_end(body: Expr, ends: tuple[bool, bool], fine: bool) -> None:
    short = loop("ki", 8, "reduce", extent=te.min(8, 13 - o * 8))
    accesses = [
        C_YX,
        access("A", (y, short.var), W_IK, ends=ends[0]),
        access("B", (x, short.var), X_JK, ends=ends[1]),
    ]
    unified = mapped([YI, XI, short], *accesses)
    check_short_blocks("gemm", body, mapped([YI, XI, KI], *accesses), accesses, TENSORS)  # whole blocks
    if fine:
        check_short_blocks("gemm", body, unified, accesses, TENSORS)
        assert _zero_where_it_should_be(body, ends)
        return
    with refused(
        TensorizeError,
        "the block for gemm: A[yi][ki] and B[xi][ki] do not end with ki, whose last block is short; "
        "gemm sums whole blocks of 8: end a tensor there, or sum a multiple of it",
    ):
        check_short_blocks("gemm", body, unified, accesses, TENSORS)


def _zero_where_it_should_be(body: Expr, ends: tuple[bool, bool]) -> bool:
    """Check with numbers: zeros in the operands that end, arbitrary values in the others."""
    values = (-3, 0, 7)
    return all(
        _evaluate(body, {"w": 0 if ends[0] else a, "x": 0 if ends[1] else b}) == 0
        for a in values
        for b in values
    )


def _evaluate(expr: Expr, values: dict[str, int]) -> int:
    text = format_expr(expr).replace("[i][k]", "").replace("[j][k]", "")
    return int(eval(text, {"min": min, "max": max, "int8": int, **values}))
