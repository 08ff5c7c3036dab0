"""Boxes of micro-ops enumerate the indices of the two loops, and nothing else counts as a box."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.base.records import replace
from accel.core.instruction_access import loop_shape
from accel.core.isa import Gemm, Loops, UopArray
from accel.sim.functional import micro_op_patterns
from accel.sim.functional.micro_op_patterns import (
    Axis,
    Box,
    affine_box,
    affine_boxes,
    index_chunks,
    is_injective,
    split_axis,
    strided,
)
from accel.sim.functional.scratchpads import Scratchpads
from tests.reference import assert_same_effect
from tests.sim.functional.boxes import MACHINE, rows_of
from tests.strategies import examples, loops, micro_ops, small_machines

index = st.integers(0, 3)
rows = st.lists(st.tuples(index, index, index), min_size=1, max_size=12).map(
    lambda found: np.array(found, dtype=np.int64)
)
stride = st.integers(-3, 3)
axes = st.lists(st.builds(Axis, st.integers(1, 4), st.tuples(stride, stride, stride)), max_size=3)


def points(box: Box) -> list[list[int]]:
    return [
        [
            base + sum(n * axis.strides[k] for n, axis in zip(steps, box.axes, strict=True))
            for k, base in enumerate(box.base)
        ]
        for steps in product(*[range(axis.extent) for axis in box.axes])
    ]


def used_indices(instruction: Loops, uops: UopArray) -> list[list[int]]:
    """Return the indices in order of execution, zero for operands that are not used."""
    shape = loop_shape(instruction, MACHINE)
    d_out, d_in, s_out, s_in, w_out, w_in = shape.factors
    return [
        [
            (row[0] + i * d_out + j * d_in) * shape.checked[0],
            (row[1] + i * s_out + j * s_in) * shape.checked[1],
            (row[2] + i * w_out + j * w_in) * shape.checked[2],
        ]
        for i in range(instruction.iter_out)
        for j in range(instruction.iter_in)
        for row in uops.tolist()
    ]


@examples(300)
@given(loops(MACHINE), rows | axes.map(rows_of))
def test_a_box_enumerates_the_same_indices_in_the_same_order(instruction: Loops, uops: UopArray) -> None:
    box = affine_box(uops, loop_shape(instruction, MACHINE))
    if box is not None and instruction.iter_out and instruction.iter_in:
        assert points(box) == used_indices(instruction, uops)


@examples(100)
@given(axes)
def test_every_box_without_repeated_points_is_found(inner: list[Axis]) -> None:
    spread = [Axis(axis.extent, (4**n, 0, axis.strides[2])) for n, axis in enumerate(inner)]
    assert affine_box(rows_of(spread[::-1]), loop_shape(Gemm(), MACHINE)) is not None


@examples(200)
@given(st.lists(axes, min_size=1, max_size=4), st.integers(1, 12))
def test_boxes_together_enumerate_all_micro_ops(parts: list[list[Axis]], most: int) -> None:
    """Several boxes, one after the other."""
    uops = np.concatenate([rows_of(part, (9 * n, 0, 7 * n)) for n, part in enumerate(parts)])
    shape = loop_shape(Gemm(iter_out=2, dst_factor_out=50, iter_in=3, src_factor_in=1), MACHINE)
    boxes = affine_boxes(uops, shape, most)
    every = affine_boxes(uops, shape, len(uops))
    assert every is not None
    if boxes is None:
        assert len(every) > most
        return
    assert len(boxes) <= most
    wanted = [[d + 50 * i, s + j, w] for i in range(2) for j in range(3) for d, s, w in uops.tolist()]
    assert sorted(point for box in boxes for point in points(box)) == sorted(wanted)


def test_the_fewest_boxes_are_found() -> None:
    parts = [[Axis(6, (7, 7, 0))], [Axis(2, (0, 7, 3)), Axis(7, (7, 7, 0))], [Axis(5, (7, 7, 0))]]
    uops = np.concatenate([rows_of(part, (n, 20 * n, 0)) for n, part in enumerate(parts)])
    boxes = affine_boxes(uops, loop_shape(Gemm(), MACHINE), 10)
    assert boxes is not None
    assert [box.axes for box in boxes] == [tuple(part) for part in parts]


def test_micro_ops_without_any_pattern_are_rejected_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search for boxes in them would take longer than their execution."""
    monkeypatch.setattr(micro_op_patterns, "_merge_neighbours", None)
    uops = np.random.default_rng(0).integers(0, 1 << 10, (1 << 12, 3))
    assert affine_boxes(uops, loop_shape(Gemm(), MACHINE), 64) is None


@examples(100)
@given(axes)
def test_a_split_box_has_the_same_points(inner: list[Axis]) -> None:
    box = Box((3, 4, 5), tuple(inner))
    parts = split_axis(box)
    moving = [axis for axis in inner if axis.strides[0]]
    assert bool(parts) == bool(moving)
    if parts:
        assert sorted(point for part in parts for point in points(part)) == sorted(points(box))
        assert all(len(part.axes) == len(inner) - 1 for part in parts)


def test_micro_ops_that_are_not_a_box() -> None:
    for uops in ([0, 1, 3], [0, 1, 2, 5, 6, 8], [0, 1, 4, 5, 7]):
        assert affine_box(np.array([(u, 0, 0) for u in uops]), loop_shape(Gemm(), MACHINE)) is None


@examples(150)
@given(loops(MACHINE, gemm=True), rows, st.integers(1, 9))
def test_indices_come_in_chunks_in_order_of_execution(instruction: Gemm, uops: UopArray, chunk: int) -> None:
    instruction = replace(instruction, reset=False)
    count = instruction.iter_out * instruction.iter_in * len(uops)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(micro_op_patterns, "_CHUNK_UOPS", chunk)
        found = list(index_chunks(uops, loop_shape(instruction, MACHINE), count))
    assert [row for part in found for row in part.tolist()] == used_indices(instruction, uops)
    assert all(len(part) == chunk for part in found[:-1])


@examples(100)
@given(st.data())
def test_instructions_run_in_chunks_of_micro_ops(data: st.DataObject) -> None:
    config = data.draw(small_machines)
    pads = Scratchpads.random(config, 0)
    pads.uop[:] = data.draw(micro_ops(config))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(micro_op_patterns, "_CHUNK_UOPS", data.draw(st.integers(1, 5)))
        assert_same_effect(config, pads, data.draw(loops(config)))


pairs = st.lists(st.tuples(st.integers(1, 4), st.integers(-9, 9)), max_size=3)


@examples(300)
@given(pairs)
def test_injective_boxes_have_no_point_twice(box: list[tuple[int, int]]) -> None:
    every = [
        sum(n * s for n, (_, s) in zip(steps, box, strict=True))
        for steps in product(*[range(e) for e, _ in box])
    ]
    if is_injective(box):
        assert len(set(every)) == len(every)


@pytest.mark.parametrize(
    "box", [[], [(5, 1)], [(5, -1)], [(4, 1), (3, 4)], [(3, -4), (4, 1)], [(2, 16), (4, 1), (3, 4)]]
)
def test_nested_strides_are_injective(box: list[tuple[int, int]]) -> None:
    assert is_injective(box)


def test_a_strided_view_may_have_negative_strides() -> None:
    array = np.arange(24).reshape(12, 2)
    assert strided(array, 7, [(2, 4), (3, -3)])[:, :, 1].tolist() == [[15, 9, 3], [23, 17, 11]]
