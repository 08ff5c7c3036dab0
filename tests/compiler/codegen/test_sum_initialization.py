"""Sums that start with an overwriting step need no reset pass, whatever taps exist."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import accel
from accel import te
from accel.compiler.codegen.sum_initialization import UnstartedSums, boxes_of, rows_of
from accel.compiler.expr.scalar_expressions import IterVar
from accel.compiler.operators.default_schedule import default_schedule
from accel.compiler.plans.conv_model import conv_shape
from accel.compiler.plans.conv_space import fitting_plans
from accel.compiler.plans.gemm_plan import GemmPlan
from accel.compiler.plans.gemm_schedule import gemm_schedule
from accel.compiler.target.machine import machine
from accel.core.isa import Alu, Gemm, Mac
from tests.compiler.convs import any_inputs, convolutions, expected, transposed
from tests.compiler.running import as_it_is
from tests.compiler.verdicts import program_is_right
from tests.strategies import examples
from tests.thorough import diagonal

SECOND = ("vta-int8", "gemm8x8-int8", "tiny-int8")
"""Machines with ``post=1``."""


def resets(program: accel.Program) -> int:
    """Number of micro-ops that write zeros."""
    return sum(i.uop_count for i in program.instructions if isinstance(i, Gemm) and i.reset)


def overwritten(program: accel.Program) -> int:
    """Number of micro-ops that overwrite."""
    return sum(i.uop_count for i in program.instructions if isinstance(i, Mac) and i.overwrite)


def right(program: accel.Program, workload: accel.Workload) -> None:
    inputs = any_inputs(workload, seed=1)
    program_is_right(program, inputs, expected(workload, inputs))


def blocks(program: accel.Program, workload: accel.Workload) -> int:
    """Accumulator elements of the output, one per block of channels and pixel."""
    config = program.config
    n, c, *places = workload.output.shape
    return -(-n // config.batch) * -(-c // config.block_out) * int(np.prod(places))


CASES: dict[str, dict[str, Any]] = {
    "padding on all sides": {"kernel": 3, "padding": 1},
    "no tap that is there for all": {"kernel": 2, "padding": 1},
    "more padding than kernel": {"kernel": 3, "padding": 2, "dilation": 1},
    "stride": {"kernel": 3, "stride": 2, "padding": 1},
    "dilation": {"kernel": 3, "padding": 3, "dilation": 3},
    "stride, dilation, padding on one side": {
        "kernel": (3, 2),
        "stride": (2, 3),
        "padding": (4, 0, 0, 1),
        "dilation": 2,
    },
    "one tap": {"kernel": 1},
}


@pytest.mark.parametrize(("name", "case"), diagonal(SECOND, list(CASES)))
def test_each_sum_is_overwritten_once(name: str, case: str) -> None:
    workload = accel.conv2d(1, 19, 9, 11, 21, **CASES[case], bias=True, shift=3)
    program = as_it_is(workload, machine(name))
    right(program, workload)
    assert resets(program) == 0
    assert overwritten(program) == blocks(program, workload)


@pytest.mark.parametrize("name", SECOND)
def test_a_kernel_row_by_row(name: str) -> None:
    """The first output row starts with the kernel's second row."""
    workload = accel.conv2d(1, 19, 9, 11, 21, 3, padding=1, shift=3)
    program = as_it_is(default_schedule(workload, machine(name), None, {"step_kh": 1}), machine(name))
    right(program, workload)
    assert resets(program) == 0
    assert overwritten(program) == blocks(program, workload)


@pytest.mark.parametrize("name", SECOND)
def test_sums_without_any_step_are_set_to_zero(name: str) -> None:
    """A stride longer than the kernel leaves out outputs. So does padding on all sides."""
    workload = accel.conv2d_transpose(1, 19, 4, 5, 21, 2, stride=3, bias=True, shift=3)
    program = as_it_is(workload, machine(name))
    right(program, workload)
    met = -(-21 // program.config.block_out) * (4 * 2) * (5 * 2)
    assert overwritten(program) == met
    assert resets(program) == blocks(program, workload) - met > 0
    apart = accel.conv2d(1, 5, 3, 3, 6, 2, padding=4, bias=True, shift=3)
    program = as_it_is(apart, machine(name))
    right(program, apart)
    assert overwritten(program) + resets(program) == blocks(program, apart)


@pytest.mark.parametrize(("threads", "name"), diagonal([1, 2, 3], SECOND))
def test_virtual_threads(name: str, threads: int) -> None:
    workload = accel.conv2d(1, 40, 9, 11, 70, 3, padding=1, bias=True, shift=3)
    program = as_it_is(workload, machine(name), vthreads=threads)
    right(program, workload)
    assert resets(program) == 0
    assert overwritten(program) == blocks(program, workload)


@pytest.mark.parametrize("name", SECOND)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (35, 50, 70), (64, 64, 64)], ids=str)
def test_products(name: str, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    workload = accel.gemm(m, n, k, bias=True, shift=4)
    program = as_it_is(workload, machine(name))
    inputs = {
        t.name: np.random.default_rng(3).integers(-128, 128, t.shape).astype(t.dtype)
        for t in program.tensors
        if t.role == "input"
    }
    sums = inputs["A"].astype(np.int64) @ inputs["B"].astype(np.int64) + inputs["bias"]
    program_is_right(program, inputs, (sums >> 4).clip(-128, 127).astype(np.int8))
    config = program.config
    assert resets(program) == 0
    assert overwritten(program) == -(-m // config.batch) * -(-n // config.block_out)


@examples(40)
@given(st.data())
def test_any_convolution(data: st.DataObject) -> None:
    m = machine(data.draw(st.sampled_from(SECOND)))
    workload = data.draw(convolutions(m.config))
    right(as_it_is(workload, m), workload)


@examples(30)
@given(st.data())
def test_any_convolution_with_little_memory(data: st.DataObject) -> None:
    """Kernel rows are separate steps, parameters are not resident, and residuals come in
    small pieces."""
    m = machine(
        "tiny-int8",
        uop_bytes=128,
        inp_bytes=data.draw(st.sampled_from([128, 256])),
        wgt_bytes=512,
        acc_bytes=512,
        par_bytes=data.draw(st.sampled_from([64, 128])),
        res_bytes=data.draw(st.sampled_from([16, 32])),
    )
    workload = data.draw(convolutions(m.config, 6))
    assert len(fitting_plans(conv_shape(workload, m.config), m.config, 1).rows)
    right(as_it_is(workload, m), workload)


@examples(20)
@given(st.data())
def test_any_transposed_convolution(data: st.DataObject) -> None:
    m = machine(data.draw(st.sampled_from(SECOND)))
    workload = data.draw(transposed(m.config))
    right(as_it_is(workload, m), workload)


SMALL = {
    "uop_bytes": 128,
    "inp_bytes": 128,
    "wgt_bytes": 512,
    "acc_bytes": 512,
    "par_bytes": 64,
    "res_bytes": 32,
}
"""Scratchpads in which most tiles end at the last accumulator."""


@pytest.mark.parametrize("changes", [{}, SMALL], ids=["tiny-int8", "small"])
@pytest.mark.parametrize(
    ("size", "kernel", "stride"),
    [((2, 5), 1, 3), ((2, 4), (1, 3), (4, 3)), ((3, 3), (1, 2), (4, 1))],
    ids=str,
)
def test_loops_that_run_past_the_accumulators(
    changes: dict[str, int], size: tuple[int, int], kernel: Any, stride: Any
) -> None:
    """A loop over whole strides has iterations after the tile's last row, which guards exclude."""
    workload = accel.conv2d_transpose(1, 2, *size, 8, kernel, stride=stride, bias=True, shift=3)
    right(as_it_is(workload, machine("tiny-int8", **changes)), workload)


@examples(60)
@given(st.data())
def test_any_transposed_convolution_whose_stride_is_longer_than_the_kernel(data: st.DataObject) -> None:
    m = machine("tiny-int8", **data.draw(st.sampled_from([{}, SMALL])))
    workload = data.draw(transposed(m.config, longest=2, strides=(2, 4)))
    assume(len(fitting_plans(conv_shape(workload, m.config), m.config, 1).rows))
    right(as_it_is(workload, m), workload)


def test_accumulators_outside_the_memory_are_not_to_be_started() -> None:
    config = machine("tiny-int8").config
    unstarted = UnstartedSums(config)
    unstarted.reset(np.arange(config.acc_depth), 7)
    outside = np.array([-config.acc_depth - 1, -1, 0, config.acc_depth - 1, config.acc_depth])
    assert unstarted.among(outside).tolist() == [False, False, True, True, False]


def test_nests_keep_their_resets() -> None:
    """Machines with either ``post`` have the same nest, with resets."""
    plan = GemmPlan(rows=2, columns=2, depth=1, threads=1, thread_axis="inner", outer="rows")
    workload = accel.gemm(8, 48, 48)
    texts = [
        te.format_nest(te.tensorize(gemm_schedule(workload, machine(name), plan)))
        for name in ("vta", "vta-int8")
    ]
    assert texts[0] == texts[1]
    assert "fill_zero" in texts[1]


def test_machines_with_post_0_reset() -> None:
    program = as_it_is(accel.conv2d(1, 19, 9, 11, 21, 3, padding=1, shift=3), machine("vta"))
    assert overwritten(program) == 0
    assert resets(program) == 2 * 9 * 11


@examples(200)
@given(st.sets(st.integers(0, 60)))
def test_rows_are_all_the_numbers(numbers: set[int]) -> None:
    found = [
        first + row * apart + n
        for first, count, apart, length in rows_of(sorted(numbers))
        for row in range(count)
        for n in range(length)
    ]
    assert found == sorted(numbers)


def test_rows_of_a_grid_are_few() -> None:
    grid = [3 + 10 * row + n for row in range(5) for n in range(4)]
    assert list(rows_of(grid)) == [(3, 5, 10, 4)]
    assert list(rows_of(range(0, 30, 3))) == [(0, 10, 3, 1)]
    assert list(rows_of([])) == []


@examples(100)
@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=5))
def test_boxes_are_where_a_mask_is_set(rows: list[list[bool]]) -> None:
    mask = np.array(rows)
    y, x = IterVar("y", 9), IterVar("x", 9)
    found = np.zeros_like(mask, dtype=int)
    for box in boxes_of(mask, [y, x], {y: (2, 2 + len(rows)), x: (1, 4)}):
        (top, bottom), (left, right) = box[y], box[x]
        found[top - 2 : bottom - 2, left - 1 : right - 1] += 1
    np.testing.assert_array_equal(found, mask)


def test_missing_zeros_are_written_once() -> None:
    """The statement that resets them writes them, and only in the requested range."""
    unstarted = UnstartedSums(machine("tiny-int8").config)
    assert not unstarted.any
    unstarted.reset(np.array([[1, 2], [5, 6]]), 7)
    unstarted.reset(np.array([9]), 8)
    unstarted.start(np.array([2]))
    assert unstarted.among(np.array([1, 2, 5, 9])).tolist() == [True, False, True, True]
    emitted = unstarted.settled(0, 9)
    assert {one.statement for one in emitted} == {7}
    assert all(isinstance(one.instruction, Gemm) and one.instruction.reset for one in emitted)
    assert sum(one.instruction.uop_count for one in emitted if isinstance(one.instruction, Gemm)) == 3
    assert unstarted.any
    (last,) = unstarted.settled(0, 10)
    assert last.statement == 8
    assert not unstarted.any
    assert not isinstance(last.instruction, Alu)
