"""Schedule operators: their effect on the nest, unchanged results, and errors."""

import re
from collections import Counter
from collections.abc import Callable
from random import Random
from textwrap import dedent

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from accel import te
from accel.base.errors import ScheduleError, ShapeError
from accel.compiler.expr.scalar_expressions import IterVar
from accel.compiler.schedule.schedule_steps import apply_steps
from accel.compiler.target.machine import machine
from accel.te import Schedule, Stage, Tensor
from tests.compiler.expressions import random_expression
from tests.compiler.nests import matrix, prints
from tests.compiler.oracle import expected, some_inputs
from tests.compiler.schedules import OPERATORS, Choice, apply, choices
from tests.expect import refused
from tests.strategies import examples

M = machine("tiny")


def test_any_operators_in_any_order_do_not_change_results() -> None:
    tally = Counter[str]()

    @examples(250, least=100)
    @given(st.integers(0, 1 << 32), choices)
    def check(seed: int, chosen: list[Choice]) -> None:
        output = random_expression(Random(seed))
        s = te.create_schedule(output)
        tally.update(apply(s, chosen))
        nest = te.lower(s)
        note(te.format_nest(nest))
        inputs = some_inputs([output], seed)
        want = expected([output], inputs)[output.name]
        np.testing.assert_array_equal(te.interpret(nest, inputs)[output.name], want)

    check()
    assert min(tally[name] for name in OPERATORS) >= 2


# --- effects of operators ------------------------------------------------------------------------


def stages(size: int = 10) -> tuple[Tensor, Tensor, Tensor, Schedule]:
    A = te.placeholder((size + 2,), name="A")
    B = te.compute((size + 2,), lambda y: A[y] * 2, name="B")
    C = te.compute((size,), lambda y: B[y] + B[y + 2], name="C")
    return A, B, C, te.create_schedule(C)


def test_compute_at() -> None:
    _, B, C, s = stages(16)
    yo, _ = s[C].split("y", 8)
    s[B].compute_at(s[C], yo)
    prints(
        s,
        """
        int32 B[10]
        for yo in range(2):
            for y in range(10):
                B[y] = A[yo*8+y] * 2
            for yi in range(8):
                C[yo*8+yi] = B[yi] + B[yi+2]
        """,
    )


def test_compute_root() -> None:
    _, B, C, s = stages()
    s[B].compute_at(s[C], "y")
    s[B].compute_root()
    assert te.format_nest(te.lower(s)) == te.format_nest(te.lower(te.create_schedule(C)))
    assert s.steps[-1] == {"op": "compute_root", "stage": "B"}


def test_compute_root_of_a_copy() -> None:
    """It then goes to its reader's intrinsic, the default."""
    A = te.placeholder((4, 32), "int32", name="A")
    C = te.compute((4, 32), lambda y, x: A[y, x] + 1, name="C", dtype="int8")
    s = te.create_schedule(C)
    CL = s[s.cache_write(C, M.acc_buffer)]
    AL = s[s.cache_read(A, M.acc_buffer)]
    _, _, yi, _ = CL.tile(*CL.axis, 1, 8)
    CL.tensorize(yi, M.alu)
    assert "acc_buffer AL[1][8]" in te.format_nest(te.lower(s))
    AL.compute_root()
    assert "acc_buffer AL[4][32]" in te.format_nest(te.lower(s))
    AL.compute_at(CL, "yo")
    assert "acc_buffer AL[1][32]" in te.format_nest(te.lower(s))


def test_compute_inline() -> None:
    _, B, _, s = stages()
    s[B].compute_inline()
    assert te.format_nest(te.lower(s)) == dedent("""\
        for y in range(10):
            C[y] = A[y] * 2 + A[y+2] * 2
        """)
    assert [stage.name for stage in s.stages] == ["C"]
    assert s.steps == [{"op": "compute_inline", "stage": "B"}]


def test_compute_at_again_moves_it() -> None:
    _, B, C, s = stages()
    yo, yi = s[C].split("y", 5)
    s[B].compute_at(s[C], yo)
    s[B].compute_at(C, yi)
    assert s[B].attach == (s[C], yi)


def test_cache_read() -> None:
    A, _, _, s = stages()
    assert s.cache_read(A, M.acc_buffer).name == "AL"
    prints(
        s,
        """
        acc_buffer AL[12]
        int32 B[12]
        for i0 in range(12):
            AL[i0] = A[i0]
        for y in range(12):
            B[y] = AL[y] * 2
        for y in range(10):
            C[y] = B[y] + B[y+2]
        """,
    )


def test_cache_read_for_some_readers() -> None:
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda y: A[y] * 2, name="B")
    C = te.compute((4,), lambda y: A[y] + B[y], name="C")
    s = te.create_schedule(C)
    s.cache_read(A, M.acc_buffer, [B], name="mine")
    prints(
        s,
        """
        acc_buffer mine[4]
        int32 B[4]
        for i0 in range(4):
            mine[i0] = A[i0]
        for y in range(4):
            B[y] = mine[y] * 2
        for y in range(4):
            C[y] = A[y] + B[y]
        """,
    )


def test_cache_write_takes_the_loops_with_it() -> None:
    """The sums keep the existing tiles and stay int32. The tensor's new loops have the same names."""
    A = te.placeholder((8, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    C = te.compute((8,), lambda y: te.sum(A[y, k], axis=k), name="C", dtype="int8")
    s = te.create_schedule(C)
    yo, ko, yi, _ = s[C].tile("y", k, 4, 3)
    s[C].reorder(yi, yo)
    CL = s.cache_write(C, M.acc_buffer)
    assert CL.dtype == "int32"
    assert s[CL].leaves[:2] == [yi, ko]
    assert [v.name for v in s[C].leaves] == ["yi", "yo"]
    prints(
        s,
        """
        acc_buffer CL[8]
        for yi in range(4):
            for yo in range(2):
                CL[yo*4+yi] = 0
            for ko in range(2):
                for yo in range(2):
                    for ki in range(3):
                        CL[yo*4+yi] += A[yo*4+yi][ko*3+ki]
        for yi in range(4):
            for yo in range(2):
                C[yo*4+yi] = CL[yo*4+yi]
        """,
    )


def test_cache_write_keeps_attached_stages() -> None:
    _, B, C, s = stages()
    yo, _ = s[C].split("y", 5)
    s[B].compute_at(s[C], yo)
    CL = s.cache_write(C, M.acc_buffer)
    assert s[B].attach == (s[CL], yo)
    prints(
        s,
        """
        int32 B[7]
        acc_buffer CL[10]
        for yo in range(2):
            for y in range(7):
                B[y] = A[yo*5+y] * 2
            for yi in range(5):
                CL[yo*5+yi] = B[yi] + B[yi+2]
        for yo in range(2):
            for yi in range(5):
                C[yo*5+yi] = CL[yo*5+yi]
        """,
    )


def test_set_scope() -> None:
    _, B, _, s = stages()
    s[B].set_scope(M.acc_buffer)
    assert te.format_nest(te.lower(s)).startswith("acc_buffer B[12]\n")


def test_axes_may_be_named() -> None:
    """The variable of another stage with the same name also works."""
    s, C = matrix(4, 8)
    y, x = C.axis
    CL = s.cache_write(C.tensor, M.acc_buffer)
    s[CL].split(y, 2)
    s[C].split(x, 2)
    s[C].split("y", 2)
    assert [v.name for v in s[CL].leaves] == ["yo", "yi", "x"]
    assert [v.name for v in s[C].leaves] == ["yo", "yi", "xo", "xi"]


def test_new_names_are_fresh() -> None:
    _, C = matrix(16, 8)
    yo, _ = C.split("y", 4)
    assert [v.name for v in C.split(yo, 2)] == ["yoo", "yoi"]
    assert [v.name for v in C.split("x", 2, names=("yo", "yo"))] == ["yo2", "yo3"]


# --- errors --------------------------------------------------------------------------------------


def sums() -> Stage:
    A = te.placeholder((8, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    C = te.compute((8,), lambda y: te.sum(A[y, k], axis=k), name="C", dtype="int8")
    return te.create_schedule(C)[C]


TILE_TAKES = "it takes axes, and one integer factor for each"


@pytest.mark.parametrize(
    ("operate", "message"),
    [
        (lambda C: C.split("z", 4), "'z' is not a loop of C; valid are x, y"),
        (lambda C: C.split("xo", 4), "'xo' is not a loop of C; did you mean 'x'?"),
        (lambda C: C.split(IterVar("yy", 4), 4), "'yy' is not a loop of C; did you mean 'y'?"),
        (lambda C: C.split(3, 4), "3 is not an axis; give a loop of C or its name"),
        (lambda C: C.split("x", 0), "the factor for x of C is 0; it must be a positive integer"),
        (lambda C: C.split("x", 2.0), "the factor for x of C is 2.0; it must be a positive integer"),
        (lambda C: C.split("x", True), "the factor for x of C is True; it must be a positive integer"),
        (lambda C: C.tile("y", "x", 8), f"tile of C is given 3 arguments; {TILE_TAKES}"),
        (lambda C: C.tile(), f"tile of C is given 0 arguments; {TILE_TAKES}"),
        (lambda C: C.tile("y", 4, "x", 4), f"tile of C is given 4 arguments; {TILE_TAKES}"),
        (lambda C: C.tile("y", "y", 4, 4), "tile of C names an axis twice"),
        (lambda C: C.tile("y", "x", 4, -1), "the factor for x of C is -1; it must be a positive integer"),
        (lambda C: C.fuse("x", "y"), "x and y of C are not adjacent; reorder them first"),
        (lambda C: C.fuse("y", "y"), "y and y of C are not adjacent; reorder them first"),
        (lambda C: C.reorder("y", "x", "y"), "reorder of C names an axis twice"),
        (lambda C: C.reorder("y", "k"), "'k' is not a loop of C; valid are x, y"),
        (lambda C: C.unroll("yi"), "'yi' is not a loop of C; did you mean 'y'?"),
        (lambda C: C.compute_at(C, "y"), "C cannot be computed at C, which does not need it"),
        (lambda C: C.set_scope(M.acc_buffer), "C is an output; it must be in DRAM: use cache_write"),
        (lambda C: C.tensorize("z", M.gemm), "'z' is not a loop of C; valid are x, y"),
        (
            lambda C: C.tensorize("y", "gemm"),
            "'gemm' is not an intrinsic; declare one with decl_tensor_intrin or take a machine's",
        ),
    ],
)
def test_operators_refuse(operate: Callable[[Stage], object], message: str) -> None:
    """They also leave the schedule unchanged."""
    s, C = matrix(8, 8)
    with refused(ScheduleError, message):
        operate(C)
    assert [v.name for v in C.leaves] == ["y", "x"]
    assert s.steps == []


def test_space_and_reduce_loops_do_not_fuse() -> None:
    with refused(ScheduleError, "y is a space axis and k a reduce axis; only axes of the same kind fuse"):
        sums().fuse("y", "k")


@pytest.mark.parametrize(
    "operate", [lambda C: C.split("y", 2), lambda C: C.tile("y", 2), lambda C: C.fuse("y", "x")]
)
@pytest.mark.parametrize(
    ("before", "message"),
    [
        (
            lambda s: s["A1"].compute_at(s["C"], "y"),
            "A1 is computed at y of C; split and fuse before compute_at",
        ),
        (lambda s: s["C"].tensorize("y", M.alu), "C is tensorized at y; split and fuse before tensorize"),
        (lambda s: s["C"].unroll("y"), "y of C is unrolled; split and fuse before unroll"),
    ],
)
def test_loops_that_another_operator_has_named_stay(
    operate: Callable[[Stage], object], before: Callable[[Schedule], None], message: str
) -> None:
    A = te.placeholder((8, 8), name="A")
    A1 = te.compute((8, 8), lambda y, x: A[y, x] + 1, name="A1")
    C = te.compute((8, 8), lambda y, x: A1[y, x] + 1, name="C")
    s = te.create_schedule(C)
    before(s)
    with refused(ScheduleError, message):
        operate(s[C])


def test_names_are_checked() -> None:
    s, C = matrix(8, 8)
    with refused(ShapeError, "the name is 'x o'; it must be an identifier"):
        C.split("x", 2, names=("x o", "xi"))
    with refused(ShapeError, "the name is '1L'; it must be an identifier"):
        s.cache_write(C.tensor, M.acc_buffer, name="1L")


@pytest.mark.parametrize(
    ("operate", "message"),
    [
        (lambda s, A, B, C: s["D"], "'D' is not a stage of this schedule; valid are B, C"),
        (lambda s, A, B, C: s[A], "'A' is not a stage of this schedule; valid are B, C"),
        (lambda s, A, B, C: s.tensor("D"), "'D' is not a tensor of this schedule; valid are A, B, C"),
        (lambda s, A, B, C: s.cache_read(C, M.acc_buffer), "no stage reads C; there is nothing to cache"),
        (lambda s, A, B, C: s.cache_read(A, M.acc_buffer, [C]), "C does not read A; readers are B"),
        (
            lambda s, A, B, C: s.cache_read(A, "acc_buffer"),
            "'acc_buffer' is not a memory scope; take a machine's, as machine.acc_buffer",
        ),
        (
            lambda s, A, B, C: s.cache_write(C, None),
            "None is not a memory scope; take a machine's, as machine.acc_buffer",
        ),
        (
            lambda s, A, B, C: s[B].set_scope(0),
            "0 is not a memory scope; take a machine's, as machine.acc_buffer",
        ),
        (
            lambda s, A, B, C: s.cache_write(A, M.acc_buffer),
            "'A' is not a stage of this schedule; valid are B, C",
        ),
        (lambda s, A, B, C: s[C].compute_at(s[B], "y"), "C cannot be computed at B, which does not need it"),
        (
            lambda s, A, B, C: s[C].compute_inline(),
            "C is an output; only tensors that others read can be inlined",
        ),
        (
            lambda s, A, B, C: (s[s.cache_read(A, M.acc_buffer)].compute_at(B, "y"), s[B].compute_inline()),
            "AL is computed at a loop of B, which has none if it is inlined",
        ),
    ],
)
def test_schedules_refuse(operate: Callable[..., object], message: str) -> None:
    A, B, C, s = stages()
    with refused(ScheduleError, message):
        operate(s, A, B, C)


def test_an_output_is_computed_outside_of_loops() -> None:
    _, B, C, _ = stages()
    s = te.create_schedule([B, C])
    with refused(ScheduleError, "B is an output; it is computed outside of all loops"):
        s[B].compute_at(s[C], "y")


def test_tensors_that_cannot_be_scheduled() -> None:
    A = te.placeholder((4,), name="A")
    with refused(ScheduleError, "A is a placeholder; only computed tensors can be scheduled"):
        te.create_schedule(A)
    B = te.compute((4,), lambda y: A[y] + 1, name="A")
    with refused(ScheduleError, "two tensors are named 'A'; give each its own name"):
        te.create_schedule(B)


def test_phases_are_computed_apart() -> None:
    A = te.placeholder((9,), "int32", name="A")
    B = te.compute((9,), lambda x: A[x] + 1, name="B")
    C = te.compute((4,), lambda x: B[2 * x] * B[2 * x + 1], name="C")
    s = te.create_schedule(C)
    assert [one.name for one in s.split_phases("B", 0, 2)] == ["B_0", "B_1"]
    assert [one.name for one in s.split_phases(A, 0, 2)] == ["A_0", "A_1"]
    assert [one.shape for one in map(s.tensor, ("B_0", "B_1"))] == [(5,), (4,)]
    inputs = some_inputs([C], 3)
    np.testing.assert_array_equal(te.interpret(te.lower(s), inputs)["C"], expected([C], inputs)["C"])
    again = te.create_schedule(C)
    apply_steps(again, s.steps, M.intrinsic, M.scope)
    assert te.format_nest(te.lower(again)) == te.format_nest(te.lower(s))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("B", 0, 3), "C reads B[2*x]; that may be in any of 3 phases"),
        (("B", 1, 2), "B has no dimension 1; it has 1"),
        (("B", 0, 0), "B is split into 0 phases; it must be at least 1"),
        (
            ("C", 0, 2),
            "C is an output, a sum, or has loops that other operators have named; it cannot be split",
        ),
    ],
)
def test_tensors_without_phases(arguments: tuple[str, int, int], message: str) -> None:
    A = te.placeholder((9,), "int32", name="A")
    B = te.compute((9,), lambda x: A[x] + 1, name="B")
    C = te.compute((4,), lambda x: B[2 * x] * B[2 * x + 1], name="C")
    with pytest.raises(ScheduleError, match=re.escape(message)):
        te.create_schedule(C).split_phases(*arguments)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ahead", "prefetches"),
        ("copies", "is_copy"),
        ("host", "host_packing"),
        ("is_plain", "has_plain_loops"),
        ("keep", "resident_at"),
        ("keeps", "is_resident"),
        ("rooted", "is_root"),
    ],
)
def test_renamed_attributes_of_a_stage_warn(old: str, new: str) -> None:
    _, stage = matrix(4, 4)
    with pytest.warns(DeprecationWarning, match=f"Stage.{old} is now Stage.{new}"):
        assert getattr(stage, old) == getattr(stage, new)
    with pytest.raises(AttributeError, match="'Stage' object has no attribute 'nothing'"):
        _ = stage.nothing  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("old", "new"), [("around", "refill_loops"), ("prepared", "preparations"), ("starts", "load_orders")]
)
def test_renamed_attributes_of_a_nest_warn(old: str, new: str) -> None:
    nest = te.lower(matrix(4, 4)[0])
    with pytest.warns(DeprecationWarning, match=f"Nest.{old} is now Nest.{new}"):
        assert getattr(nest, old) is getattr(nest, new)
