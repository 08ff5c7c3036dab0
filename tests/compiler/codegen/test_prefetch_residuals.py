"""LOADs of residuals move ahead of the STOREs that add them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.compiler.codegen.prefetch_residuals import PrefetchResiduals
from accel.compiler.codegen.reorder_pass import EmittedProgram
from accel.compiler.target.emitter_registry import Emitted
from accel.compiler.target.machine import machine
from accel.core.config import Config
from accel.core.isa import LoadPar, LoadRes, SetOut, StoreAdd, StoreReq
from tests.compiler.running import as_it_is
from tests.strategies import examples

CONFIG = machine("tiny-int8", read_latency=10).config
"""RES holds 16 elements. Prefetching covers 28 cycles, 56 beats of 8 bytes, far more
than RES holds."""


def residuals_ahead(emitted: list[Emitted], config: Config) -> list[Emitted]:
    return list(PrefetchResiduals().run(EmittedProgram(emitted=emitted, config=config)).emitted)


def load(size: int, part: int = 1, *, at: int = 0) -> Emitted:
    return Emitted(LoadRes(dram_base=at, y_size=1, x_size=size, x_stride=size), part=part)


def add(size: int, part: int = 2, *, hold: bool = False) -> Emitted:
    return Emitted(StoreAdd(y_size=1, x_size=size, x_stride=size, hold=hold), part=part)


def names(emitted: list[Emitted]) -> str:
    return "".join("L" if isinstance(one.instruction, LoadRes) else "S" for one in emitted)


def held(emitted: list[Emitted]) -> list[int]:
    """Residuals in RES after each instruction."""
    sizes = [
        one.instruction.sram_elements * (1 if isinstance(one.instruction, LoadRes) else -1)
        for one in emitted
        if isinstance(one.instruction, LoadRes | StoreAdd)
    ]
    return [sum(sizes[: n + 1]) for n in range(len(sizes))]


def test_as_far_ahead_as_the_queue_holds_but_not_at_the_start() -> None:
    turns = [one for _ in range(5) for one in (load(5), add(5))]
    assert CONFIG.res_depth == 16
    assert names(residuals_ahead(turns, CONFIG)) == "LSLLLSLSSS"


def test_no_further_than_residuals_need_to_arrive() -> None:
    """87 cycles are 87 beats of 8 bytes, 44 elements of 16."""
    config = machine("vta-int8").config
    turns = [one for _ in range(5) for one in (load(50), add(50))]
    assert names(residuals_ahead(turns, config)) == "LSLLSLSLSS"


def test_several_for_one_store() -> None:
    assert names(residuals_ahead([load(3), load(4), add(7), load(2), add(2)], CONFIG)) == "LLSLS"


def test_a_store_that_holds_a_residual_takes_one() -> None:
    """RES has room for the factors of all STOREs, each of 10 elements."""
    turns = [one for _ in range(5) for one in (load(1), add(10, hold=True))]
    assert names(residuals_ahead(turns, CONFIG)) == "LLLLLSSSSS"


def test_loads_for_stores_that_hold_a_residual_are_merged() -> None:
    """One LOAD repeats an element for STOREs of one channel, or reads the elements of several channels."""
    config = machine("tiny-int8", read_latency=10, res_mul=1).config
    channels = [0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 4]
    first = [Emitted(LoadPar(y_size=1, x_size=1, x_stride=1), part=3), Emitted(SetOut())]
    turns = [one for channel in channels for one in (load(1, at=channel), add(10, hold=True))]
    found = residuals_ahead([*first, *turns], config)
    sizes = [
        (one.instruction.dram_base, one.instruction.y_size, one.instruction.x_size, one.instruction.x_stride)
        for one in found
        if isinstance(one.instruction, LoadRes)
    ]
    assert sizes == [(0, 4, 1, 0), (1, 4, 1, 0), (2, 1, 3, 3)]
    assert [type(one.instruction) for one in found[:5]] == [LoadPar, LoadRes, LoadRes, LoadRes, SetOut]


def test_residuals_that_the_program_stores_are_not_prefetched() -> None:
    turns = [add(5, part=1) if n % 2 else load(5) for n in range(6)]
    assert residuals_ahead(turns, CONFIG) == turns


@examples(200)
@given(st.lists(st.integers(1, 8), max_size=8), st.integers(0, 3))
def test_the_queue_never_runs_over_or_empty(sizes: list[int], others: int) -> None:
    request = Emitted(StoreReq(y_size=1, x_size=2, x_stride=2), part=2)
    turns = [one for size in sizes for one in (*[request] * others, load(size), add(size))]
    found = residuals_ahead(turns, CONFIG)
    assert all(0 <= n <= CONFIG.res_depth for n in held(found))
    for kind in (LoadRes, StoreReq):
        of_kind = [one for one in found if isinstance(one.instruction, kind)]
        assert of_kind == [one for one in turns if isinstance(one.instruction, kind)]


def programs(config: Config) -> list[accel.Program]:
    options = {"bias": True, "shift": 6, "clip": (0, 100)}
    return [
        as_it_is(accel.conv2d(1, 64, 20, 20, 64, 3, padding=1, residual=residual, **options), config)
        for residual in (False, True)
    ]


@pytest.mark.parametrize("name", ["vta-int8", "gemm8x8-int8"])
def test_residuals_cost_next_to_nothing(name: str) -> None:
    """Products take most of the time, so only the beats of the first residual add to the cycles."""
    without, added = (program.run(seed=1) for program in programs(machine(name).config))
    assert (without.mismatches, added.mismatches) == (0, 0)
    assert added.cycles < 1.01 * without.cycles
