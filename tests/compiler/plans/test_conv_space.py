"""All plans of a convolution that fit, and the rough estimate of their cycles."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.base.errors import ScheduleError
from accel.compiler.codegen.compile_schedule import compile_schedule
from accel.compiler.operators.default_schedule import find_candidates
from accel.compiler.plans.conv_model import conv_shape
from accel.compiler.plans.conv_plan import conv_table
from accel.compiler.plans.conv_schedule import conv_schedule
from accel.compiler.plans.conv_space import conv_plans, fitting_plans
from accel.compiler.plans.cycle_estimate import estimate_cycles
from accel.compiler.plans.tile_sizes import TileSizes
from accel.core.config import Config
from tests.compiler.convs import convolutions
from tests.compiler.running import as_it_is
from tests.expect import refused
from tests.strategies import examples
from tests.thorough import diagonal

LAYER = accel.conv2d(1, 128, 28, 28, 256, 3, stride=2, padding=1, bias=True, relu=True, shift=8)


@examples(40)
@given(st.data())
def test_plans_that_fit_compile(data: st.DataObject) -> None:
    config = Config(
        name="small",
        batch=1,
        block_in=2,
        block_out=4,
        uop_bytes=1024,
        inp_bytes=64,
        wgt_bytes=256,
        acc_bytes=512,
    )
    workload = data.draw(convolutions(config, 4))
    shape = conv_shape(workload, config)
    table = fitting_plans(shape, config, None, thread_counts=(1, 2, 3, 4))
    if not len(table.rows):
        return
    chosen = np.array([data.draw(st.integers(0, len(table.rows) - 1))])
    (plan,) = conv_plans(shape, config, table.take(chosen))
    compile_schedule(conv_schedule(workload, accel.machine(config), plan), config)
    sizes = TileSizes(shape, config, conv_table([plan]))
    assert sizes.fits().all()
    assert sizes.has_work_for_threads().all()


def test_tables_convert_to_plans_and_back() -> None:
    config = accel.machine("vta").config
    shape = conv_shape(LAYER, config)
    plans = conv_plans(shape, config, fitting_plans(shape, config, None, thread_counts=(1, 2)))[::97]
    assert conv_plans(shape, config, conv_table(plans)) == plans


@pytest.mark.parametrize(
    ("name", "options"), diagonal(["vta", "gemm8x8"], [{}, {"shift": 6}, {"shift": 6, "bias": True}]), ids=str
)
def test_the_estimate_is_close_for_the_best_plan(name: str, options: dict[str, Any]) -> None:
    """The error is less than one pass over the output."""
    workload, config = accel.conv2d(1, 64, 28, 28, 64, 1, **options), accel.machine(name).config
    shape, best = conv_shape(workload, config), find_candidates(workload, config)[0].plan
    estimate = estimate_cycles(TileSizes(shape, config, conv_table([best])))[0]
    taken = as_it_is(workload, name).run(check=False).cycles
    assert shape.output_blocks / taken > 0.06
    assert estimate == pytest.approx(taken, rel=0.055)


def test_given_sizes_do_not_change() -> None:
    config = accel.machine("vta").config
    shape = conv_shape(LAYER, config)
    found = fitting_plans(shape, config, 2, {"rows": 5, "depth": 99, "kernel_rows": 2})
    assert len(found.rows)
    assert set(found.rows) == {5}
    assert set(found.depth) == {shape.depth}
    assert set(found.kernel_rows) == {2}
    assert set(found.threads) == {2}
    assert (TileSizes(shape, config, found).threaded_iterations >= 2).all()


def test_only_requested_threads_must_all_have_work() -> None:
    config = accel.machine("vta").config
    shape = conv_shape(accel.conv2d(1, 16, 6, 6, 48, 3), config)
    several = fitting_plans(shape, config, None, thread_counts=(4,))
    assert (TileSizes(shape, config, several).threaded_iterations < 4).any()
    requested = fitting_plans(shape, config, 4)
    assert (TileSizes(shape, config, requested).threaded_iterations >= 4).all()


@pytest.mark.parametrize("name", ["rows", "columns"])
def test_tiles_of_transposed_convolutions_are_multiples_of_the_stride(name: str) -> None:
    config = accel.machine("vta").config
    shape = conv_shape(accel.conv2d_transpose(1, 16, 8, 8, 16, 4, stride=2, padding=1), config)
    assert len(fitting_plans(shape, config, 1, {name: 4}).rows)
    assert len(fitting_plans(shape, config, 1, {name: 16}).rows)
    message = f"a tile has 3 {name}; of this transposed convolution it must have a multiple of 2, or all 16"
    with refused(ScheduleError, message):
        fitting_plans(shape, config, 1, {name: 3})
