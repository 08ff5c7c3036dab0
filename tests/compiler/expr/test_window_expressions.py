"""Windows: computations that pad, move and skip are recognised, and one LOAD executes each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel import te
from accel.base.errors import ShapeError, TensorizeError
from accel.compiler.expr.linear_expressions import evaluate
from accel.compiler.expr.scalar_expressions import Const, Guarded
from accel.compiler.expr.window_expressions import window_of
from accel.te import Schedule, Tensor
from tests.compiler.oracle import some_inputs
from tests.expect import refused
from tests.strategies import examples


@examples(100)
@given(st.data())
def test_pad_is_numpys(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    before, after = ([data.draw(st.integers(0, 3)) for _ in shape] for _ in range(2))
    A = te.placeholder(shape, name="A")
    P = te.pad(A, before, after)
    inputs = {"A": np.random.default_rng(0).integers(-128, 128, shape, dtype=np.int8)}
    want = np.pad(inputs["A"], list(zip(before, after, strict=True)))
    np.testing.assert_array_equal(te.evaluate([P], inputs)["A_pad"], want)
    np.testing.assert_array_equal(te.interpret(te.lower(te.create_schedule(P)), inputs)["A_pad"], want)


@examples(100)
@given(st.data())
def test_a_box_of_a_window(data: st.DataObject) -> None:
    """The part of the tensor that a box shows, and the zeros around it."""
    size, before, after = (
        data.draw(st.integers(1, 6)),
        data.draw(st.integers(0, 9)),
        data.draw(st.integers(0, 9)),
    )
    A = te.placeholder((size,), name="A")
    P = te.pad(A, [before], [after])
    window = window_of(P.op.axis, P.op.body)  # type: ignore[union-attr]
    assert window is not None
    first = data.draw(st.integers(0, P.shape[0] - 1))
    extent = data.draw(st.integers(1, P.shape[0] - first))
    (part,), padding = window.source([Const(first)], [Const(extent)])
    front, behind = (evaluate(side, {}) for side in padding[0]) if padding else (0, 0)
    start, length = evaluate(part.start, {}), max(0, evaluate(part.extent, {}))
    values = np.arange(1, size + 1)
    shown = np.concatenate([np.zeros(front), values[start : start + length], np.zeros(behind)])
    np.testing.assert_array_equal(np.pad(values, (before, after))[first : first + extent], shown)


def test_recognised_windows() -> None:
    A = te.placeholder((9, 9), name="A")

    def window(shape: tuple[int, int], body: object) -> object:
        op = te.compute(shape, body, name="P").op  # type: ignore[arg-type]
        return window_of(op.axis, op.body)  # type: ignore[union-attr]

    found = window((4, 5), lambda y, x: A[y * 2 + 1, x + 3])
    assert (found.steps, found.offsets, found.padded) == ((2, 1), (1, 3), False)  # type: ignore[attr-defined]
    for body in (
        lambda y, x: A[x, y],
        lambda y, x: A[y, 3],
        lambda y, x: A[8 - y, x],
        lambda y, x: A[y + x, x],
        lambda y, x: A[y, x] + 1,
        lambda y, x: Guarded(A[y, x], ((y, Const(2)),)),
        lambda y, x: Guarded(A[y, x], ((y, x),)),
        lambda y, x: Guarded(A[y * 3 - 1, x], ((Const(0), y * 3),)),
    ):
        assert window((3, 4), body) is None


# --- in scratchpads ------------------------------------------------------------------------------------


def product_of(window: Tensor, machine: accel.Machine) -> Schedule:
    """Return ``window`` (M, K) times B, with the window in inp_buffer."""
    B = te.placeholder((window.shape[1], 8), name="B")
    k = te.reduce_axis((0, window.shape[1]), name="k")
    C = te.compute(
        (window.shape[0], 8), lambda y, x: te.sum(window[y, k] * B[k, x], axis=k), name="C", dtype="int8"
    )
    s = te.create_schedule(C)
    s[window].set_scope(machine.inp_buffer)
    y, x = s[C].axis
    (_, _, _, yi, _, _) = s[C].tile(y, x, k, 1, 8, 4)
    sums = s.cache_write(C, machine.acc_buffer)
    s.cache_read(B, machine.wgt_buffer)
    s[window].compute_root()
    s[sums].tensorize(yi, machine.gemm)
    return s


@pytest.mark.parametrize("step", [1, 3])
def test_rows_at_a_distance(step: int) -> None:
    machine = accel.machine("tiny")
    A = te.placeholder((20, 4), name="A")
    s = product_of(te.compute((5, 4), lambda y, k: A[y * step + 2, k], name="W"), machine)
    assert f"dma_copy2d(W, A[2:{2 + 4 * step + 1}{f':{step}' if step > 1 else ''}][0:4])" in te.format_nest(
        te.tensorize(s)
    )
    inputs = some_inputs(s.outputs, 0)
    want = te.evaluate(s.outputs, inputs)["C"]
    np.testing.assert_array_equal(te.interpret(te.tensorize(s), inputs)["C"], want)
    np.testing.assert_array_equal(accel.build(s, machine).run(inputs).outputs["C"], want)


def test_zeros_are_shown() -> None:
    s = product_of(te.pad(te.placeholder((5, 4), name="A"), (1, 0), (20, 0), name="W"), accel.machine("tiny"))
    assert "vdla.dma_copy2d(W, A[0:5][0:4], pad=(1+20, 0))" in te.format_nest(te.tensorize(s))


@pytest.mark.parametrize(
    "window",
    [
        lambda A: te.pad(A, (0, 1), (0, 3), name="W"),
        lambda A: te.compute((5, 4), lambda y, k: A[y, k * 2], name="W"),
    ],
)
def test_elements_are_whole(window: object) -> None:
    W = window(te.placeholder((5, 8), name="A"))  # type: ignore[operator]
    with refused(
        TensorizeError,
        "W has padding or steps in dimension 1, of which an element holds 4; dma_copy2d moves whole elements",
    ):
        accel.build(product_of(W, accel.machine("tiny")), "tiny")


@pytest.mark.parametrize("before", [(1,), (1, -1), (1, True), (0.5, 1)])
def test_bad_padding(before: tuple[object, ...]) -> None:
    A = te.placeholder((3, 3), name="A")
    with refused(ShapeError, f"the padding of A is {before}; it must be 2 integers, none negative"):
        te.pad(A, before)  # type: ignore[arg-type]


def test_guards_must_cover_all_reads_outside_the_tensor() -> None:
    A = te.placeholder((3,), name="A")
    with refused(ShapeError, "P reads A at y-1 in dimension 0, which runs over 0..3; the tensor has 3 there"):
        te.compute((5,), lambda y: Guarded(A[y - 1], ((Const(0), y),)), name="P")
