"""Programs in which the store unit finishes outputs: every order and every timing gives the same."""

from random import Random

import numpy as np
import pytest

from accel.base.records import replace
from accel.core.config import NAMED
from accel.core.fault_causes import Cause
from accel.core.isa import LoadRes, SetOut, SetSum, StoreAdd, StoreMul, StoreReq
from accel.image.dram import Dram
from accel.run.program import Program
from accel.sim.functional.scratchpads import Scratchpads
from tests.finishing import finishing_program
from tests.programs import handmade
from tests.strategies import random_timing

SECOND = {name: config for name, config in NAMED.items() if config.post}
THIRD = NAMED["tiny-npu"]


def ends(program: Program, **options: object) -> tuple[Dram, Scratchpads]:
    """Memory after a run that ends well."""
    dram, pads = program.dram(), Scratchpads.zeros(program.config)
    found = program.execute(dram, pads, **options)  # type: ignore[arg-type]
    assert found.error is None, found.error
    return dram, pads


@pytest.mark.parametrize("name", SECOND)
@pytest.mark.parametrize("seed", range(4))
def test_any_order_and_any_timing_will_do(name: str, seed: int) -> None:
    program = finishing_program(SECOND[name], seed)
    assert program.check().ok
    expected, pads = ends(program, backend="functional")
    others = [ends(program, backend="functional", order="random", seed=n) for n in range(3)]
    others.append(ends(program, backend="sim"))
    rng = Random(seed)
    for _ in range(3):
        timing = replace(random_timing(rng, program.config), post_lanes=0, token_bits=8)
        others.append(ends(program.with_timing(timing), backend="sim"))
    for dram, others_pads in others:
        assert dram == expected
        for pad in pads.present:
            np.testing.assert_array_equal(others_pads.of(pad), pads.of(pad), err_msg=pad.name)


def test_they_have_everything_in_them() -> None:
    """In-place additions to the result of the previous layer, around the end of RES."""
    programs = [finishing_program(NAMED["tiny-int8"], seed) for seed in range(8)]
    instructions = [one for program in programs for one in program.instructions]
    for cls in (StoreReq, StoreAdd, LoadRes, SetSum):
        assert sum(type(one) is cls for one in instructions) > 8
    stored = {one.dram_base for one in instructions if type(one) is StoreAdd}
    assert stored & {one.dram_base for one in instructions if type(one) is LoadRes}
    loaded = [sum(one.x_size for one in program.instructions if type(one) is LoadRes) for program in programs]
    assert max(loaded) > NAMED["tiny-int8"].res_depth
    assert {(one.par_y, one.par_x) for one in instructions if isinstance(one, StoreReq)} == {
        (False, False),
        (True, False),
        (False, True),
    }


def test_products_held_residuals_and_tables_are_there() -> None:
    instructions = [one for seed in range(8) for one in finishing_program(THIRD, seed).instructions]
    seen = {(type(one), one.hold) for one in instructions if isinstance(one, StoreAdd)}
    assert seen == {(cls, hold) for cls in (StoreAdd, StoreMul) for hold in (False, True)}
    used = {(type(one), one.table) for one in instructions if isinstance(one, StoreReq)}
    assert {table for _, table in used} == set(range(THIRD.tab_depth + 1))
    assert {cls for cls, table in used if table} == {StoreReq, StoreAdd, StoreMul}


@pytest.mark.parametrize("backend", ["functional", "sim"])
def test_equal_instructions_may_be_at_fault_here_and_not_there(backend: str) -> None:
    """Decoded, equal words are one object."""
    load, add = LoadRes(y_size=1, x_size=9), StoreAdd(y_size=1, x_size=9, dram_base=64)
    for body, at, cause in (
        ([load, add, add], 2, Cause.RESIDUAL_EMPTY),
        ([load, load], 1, Cause.RESIDUAL_FULL),
        ([add, load], 0, Cause.RESIDUAL_EMPTY),
    ):
        program = handmade(SetOut(), *body, config=NAMED["tiny-int8"])
        found = program.execute(program.dram(), Scratchpads.zeros(program.config), backend=backend)
        assert found.error is not None
        assert (found.error.cause, found.error.index) == (cause, at + 1)
