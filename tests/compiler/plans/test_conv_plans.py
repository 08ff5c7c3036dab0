"""Plans of convolutions by the thousand: which fit, and a rough bound of what each takes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.base.errors import ScheduleError
from accel.compiler.codegen.build import compile_schedule
from accel.compiler.operators.default import candidates
from accel.compiler.plans.conv_model import conv_shape
from accel.compiler.plans.conv_plans import conv_plans, conv_table, fitting
from accel.compiler.plans.conv_schedule import conv_schedule
from accel.compiler.plans.tiles import Sizes
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
    table = fitting(shape, config, (1, 2, 3, 4))
    if not len(table.rows):
        return
    chosen = np.array([data.draw(st.integers(0, len(table.rows) - 1))])
    (plan,) = conv_plans(shape, config, table.take(chosen))
    compile_schedule(conv_schedule(workload, accel.machine(config), plan), config)
    sizes = Sizes(shape, config, conv_table([plan]))
    assert sizes.fits().all()
    assert sizes.useful().all()


def test_tables_keep_plans() -> None:
    config = accel.machine("vta").config
    shape = conv_shape(LAYER, config)
    plans = conv_plans(shape, config, fitting(shape, config, (1, 2)))[::97]
    assert conv_plans(shape, config, conv_table(plans)) == plans


@pytest.mark.parametrize(
    ("name", "options"), diagonal(["vta", "gemm8x8"], [{}, {"shift": 6}, {"shift": 6, "bias": True}]), ids=str
)
def test_the_rough_bound_is_close_where_the_plan_is_good(name: str, options: dict[str, Any]) -> None:
    """To less than one pass over the output."""
    workload, config = accel.conv2d(1, 64, 28, 28, 64, 1, **options), accel.machine(name).config
    shape, best = conv_shape(workload, config), candidates(workload, config)[0].plan
    quick = Sizes(shape, config, conv_table([best])).quick()[0]
    taken = as_it_is(workload, name).run(check=False).cycles
    assert shape.outputs / taken > 0.06
    assert quick == pytest.approx(taken, rel=0.055)


def test_sizes_that_are_given_are_kept() -> None:
    config = accel.machine("vta").config
    shape = conv_shape(LAYER, config)
    found = fitting(shape, config, 2, {"rows": 5, "depth": 99, "kernel_rows": 2})
    assert len(found.rows)
    assert set(found.rows) == {5}
    assert set(found.depth) == {shape.depth}
    assert set(found.kernel_rows) == {2}
    assert set(found.threads) == {2}
    assert (Sizes(shape, config, found).turns >= 2).all()


def test_several_numbers_of_threads_need_not_all_have_work() -> None:
    config = accel.machine("vta").config
    shape = conv_shape(accel.conv2d(1, 16, 6, 6, 48, 3), config)
    several = fitting(shape, config, (4,))
    assert (Sizes(shape, config, several).turns < 4).any()
    exactly = fitting(shape, config, 4)
    assert (Sizes(shape, config, exactly).turns >= 4).all()


@pytest.mark.parametrize("name", ["rows", "columns"])
def test_tiles_do_not_split_phases(name: str) -> None:
    config = accel.machine("vta").config
    shape = conv_shape(accel.conv2d_transpose(1, 16, 8, 8, 16, 4, stride=2, padding=1), config)
    assert len(fitting(shape, config, 1, {name: 4}).rows)
    assert len(fitting(shape, config, 1, {name: 16}).rows)
    message = f"a tile has 3 {name}; of this transposed convolution it must have a multiple of 2, or all 16"
    with refused(ScheduleError, message):
        fitting(shape, config, 1, {name: 3})
