"""Repetitions are found, and skipped periods have the same cycles as simulated ones."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.core.config import NAMED
from accel.core.isa import (
    Finish,
    Gemm,
    Instruction,
    Load,
    LoadPar,
    LoadRes,
    Memory,
    Store,
    StoreAdd,
    StoreReq,
    Unit,
)
from accel.sim.timing import fast_forward
from accel.sim.timing.fast_forward import Repetition, find_repetitions
from accel.sim.timing.timing_model import simulate_timing
from accel.sim.timing.timing_run import TimingRun
from tests.lockstep.cases import Case, cases
from tests.strategies import examples


def test_repetitions_of_a_sequence_are_found() -> None:
    kinds = np.array([9, 8, *[1, 2, 3] * 6, 7, 6, *[4, 5] * 9, 1])
    assert find_repetitions(kinds) == [Repetition(5, 20, 3), Repetition(24, 40, 2)]
    assert find_repetitions(np.arange(50)) == find_repetitions(kinds[:7]) == find_repetitions(kinds[:0]) == []
    assert find_repetitions(np.zeros(30, dtype=np.int64)) == [Repetition(1, 30, 1)]


def facts(run: TimingRun) -> list[Any]:
    cycles = [column.tolist() for column in run.columns]
    writes = [run.writes(unit).tolist() for unit in Unit]
    return [run.cycles, run.stop, cycles, run.bursts, writes, run.unit_cycles]


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Simulate with and without fast-forward, and compare. Returns how many times periods were skipped."""
    gone = 0
    before = fast_forward.FastForward._skip_periods

    def counted(self: fast_forward.FastForward, *arguments: Any) -> None:
        nonlocal gone
        granted = self._fetch.granted
        before(self, *arguments)
        gone += self._fetch.granted > granted

    def compare(program: list[Instruction], config: Any, **options: Any) -> int:
        nonlocal gone
        gone = 0
        with monkeypatch.context() as patch:
            patch.setattr(fast_forward.FastForward, "_skip_periods", counted)
            found = simulate_timing(program, config, **options)
            patch.setattr(fast_forward, "find_repetitions", lambda kinds: [])
            assert facts(found) == facts(simulate_timing(program, config, **options))
        return gone

    return compare


def test_skipped_periods_equal_simulated_ones(both: Callable[..., int]) -> None:
    @examples(25)
    @given(cases(), st.integers(8, 60), st.integers(0, 3), st.sampled_from((1 << 30, 1 << 30, 700)))
    def compare(case: Case, times: int, other: int, limit: int) -> None:
        body = list(case.body[:-1])
        program = [*body[:other], *body * times, *body[:other:-1], Finish()]
        address = case.config.mem_base + case.program.code_offset
        tokens = tuple(case.seed >> n & 1 for n in range(4))
        both(program, case.config, address=address, max_cycles=limit, tokens=tokens)

    compare()


@pytest.mark.parametrize("options", [{}, {"read_latency": 300}, {"outstanding": 1, "loads_in_flight": 1}])
@pytest.mark.parametrize("offset", [0, 48])
def test_many_small_instructions(both: Callable[..., int], options: dict[str, int], offset: int) -> None:
    """Most of a product in the smallest possible steps is skipped."""
    inp = Load(memory=Memory.INP, y_size=1, x_size=1, pop_next=True)
    wgt = Load(memory=Memory.WGT, y_size=1, x_size=1, push_next=True)
    product = Gemm(uop_end=1, pop_prev=True, push_prev=True)
    store = Store(y_size=1, x_size=1, pop_prev=True, push_prev=True)
    tile = [inp, wgt, product] * 4 + [Gemm(uop_end=0, push_next=True, pop_next=True), store]
    config = NAMED["gemm8x8"].override(options)
    tokens = (0, 1, 0, 1)
    gone = both([*tile * 80, Finish()], config, address=offset, tokens=tokens)
    assert gone or offset  # pages split bursts, so that bursts are alike only from page to page


def test_residuals_and_scales_repeat_too(both: Callable[..., int]) -> None:
    """The store unit's own memories are part of the state."""
    loads = [LoadPar(y_size=1, x_size=2), LoadRes(y_size=1, x_size=3)]
    store = StoreAdd(y_size=1, x_size=3, par=1)
    plain = StoreReq(y_size=1, x_size=2, sram_base=4)
    config = NAMED["tiny-int8"]
    for tile in ([*loads, store, plain], [loads[1], loads[1], store, plain, store], [loads[0], plain]):
        assert both([loads[0], *tile * 120, Finish()], config, address=0)
