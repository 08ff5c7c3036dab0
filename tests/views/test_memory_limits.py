"""Small programs with huge sizes: records of a run and its pictures use a bounded amount
of memory."""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from accel.base.errors import AccelError, LimitExceeded
from accel.core import instruction_access
from accel.core.config import NAMED, Config
from accel.core.instruction_access import AccessSets
from accel.core.isa import Gemm, Instruction, Load, Memory, StoreReq
from accel.debug import Debugger
from accel.proof import vectorized_proof
from accel.run import critical_path
from accel.run.program import Program
from accel.run.result import Result
from accel.sim.timing import timed_program, timing_model, timing_run
from accel.views import analyzed_run
from accel.views.analyzed_run import AnalyzedRun, analyze_run
from accel.views.run_report import report_html
from accel.views.scratchpad_occupancy import occupancy
from tests.programs import handmade

MEBIBYTE = 1 << 20
VTA = NAMED["vta"]
DEEP = VTA.override({"inp_bytes": MEBIBYTE, "acc_bytes": 1 << 14, "wgt_bytes": 1 << 15, "uop_bytes": 256})
"""A machine with 65,536 elements of inp."""
SLOW = NAMED["vta-int8"].override({"post_lanes": 1})
"""A machine on which a beat of STORE.REQ takes 8 cycles."""
SLOW_BEATS = SLOW.acc_depth * SLOW.out_element_bytes // SLOW.bus_bytes
UOP = Load(memory=Memory.UOP, y_size=1, x_size=1, x_stride=1)


def windows(count: int) -> list[Instruction]:
    """GEMMs that read ``count`` different sets of inp elements, each with gaps."""
    steps = {"src_factor_out": 64, "src_factor_in": 3, "iter_in": 20}
    return [UOP, *(Gemm(uop_end=1, iter_out=1000 - n, **steps) for n in range(count))]


BOMBS: dict[str, tuple[list[Instruction], Config]] = {
    "bursts": ([Load(memory=Memory.INP, y_size=2048, x_size=1, x_stride=1)] * 12, VTA),
    "sets of elements": (windows(200), DEEP),
    "slow beats": ([StoreReq(y_size=1, x_size=SLOW.acc_depth, x_stride=1)] * 8, SLOW),
}


def bomb(name: str) -> Program:
    """A short program that makes a run of many records, large sets of elements, or many slow beats."""
    instructions, config = BOMBS[name]
    return handmade(*instructions, config=config, segments=((0, bytes(64)),))


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Replaces the limits by a small one, so that tests stay small."""

    def set_limit(most: int) -> None:
        for module in (timing_run, critical_path, analyzed_run):
            monkeypatch.setattr(module, "MAX_RECORDS", most)
        for module in (instruction_access, vectorized_proof, analyzed_run):
            monkeypatch.setattr(module, "MAX_CACHED_INDICES", most)

    return set_limit


def peak(action: Callable[[], object]) -> int:
    """The most bytes that an action has allocated at one time."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def drawn(result: Result) -> str:
    """The report of a run, or why there is none."""
    try:
        return report_html(analyze_run(result))
    except AccelError as error:
        return str(error)


@pytest.mark.parametrize("name", BOMBS)
def test_a_report_takes_bounded_memory(name: str, limit: Callable[[int], None]) -> None:
    result = bomb(name).run(check=False)
    unlimited = peak(lambda: drawn(result))
    limit(1 << 13)
    result = bomb(name).run(check=False)
    assert peak(lambda: drawn(result)) < min(12 * MEBIBYTE, unlimited / 2)


def test_a_report_says_why_it_is_missing_or_coarse(limit: Callable[[int], None]) -> None:
    limit(1 << 13)
    told = {name: drawn(bomb(name).run(check=False)) for name in BOMBS}
    assert told["bursts"].startswith("the run has 49,193 records; events are listed of at most")
    assert f"the run requantizes {8 * SLOW_BEATS:,} slow beats" in told["slow beats"]
    assert "since the exact sets would take too much memory" in told["sets of elements"]


def test_too_many_records_leave_cycles_and_counters(limit: Callable[[int], None]) -> None:
    program = bomb("bursts")
    exact = program.run(check=False)
    events, path = exact.events or [], exact.critical_path()
    limit(1 << 13)
    result = program.run(check=False)
    assert (result.cycles, result.stalls) == (exact.cycles, exact.stalls)
    assert (result.events, result.events_table(), result.known_path) == (None, None, None)
    assert len(events) > 1 << 13
    assert path
    assert "start" not in result.instructions_table().columns
    with pytest.raises(AccelError, match="at most"):
        Debugger(program)


def test_a_part_of_a_run_can_be_drawn(limit: Callable[[int], None]) -> None:
    limit(1 << 13)
    with pytest.raises(LimitExceeded) as stopped:
        bomb("bursts").run(check=False, max_cycles=2000)
    assert isinstance(stopped.value.result, Result)
    assert "<svg" in drawn(stopped.value.result)


def test_coarse_sets_hold_the_exact_ones(limit: Callable[[int], None]) -> None:
    def seen() -> AnalyzedRun:
        found = analyze_run(bomb("sets of elements").run(check=False))
        assert found.touches
        return found

    exact, depth = seen(), DEEP.inp_depth
    limit(1 << 13)
    coarse = seen()
    assert (exact.is_coarse, coarse.is_coarse) == (False, True)
    for few, more in zip(exact.touches, coarse.touches, strict=True):
        for one, other in zip(few, more, strict=True):
            inside = np.zeros(depth, dtype=bool)
            inside[other.elements] = True
            assert one[:2] == other[:2]
            assert inside[one.elements].all()
    levels = [
        max(n for _, n in occupancy(one.touches, one.activity.slices, DEEP)["inp"]) for one in (exact, coarse)
    ]
    assert levels[0] < levels[1] <= depth


# --- the simulator itself --------------------------------------------------------------------------


def test_the_simulator_refuses_more_bursts_than_it_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed_program, "MAX_BUS_INTERVALS", 5000)
    monkeypatch.setattr(timing_model, "MAX_BUS_INTERVALS", 5000)
    with pytest.raises(
        LimitExceeded, match=r"instruction 2: with LOAD.INP .* more than 5,000 bursts"
    ) as error:
        bomb("bursts").run(check=False)
    assert error.value.index == 2
    assert bomb("bursts").run(check=False, backend="functional").cycles is None
    with pytest.raises(LimitExceeded, match="more than 2000 cycles"):
        bomb("bursts").run(check=False, max_cycles=2000)


def test_bursts_of_different_instructions_are_refused_before_they_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timed_program, "MAX_BUS_INTERVALS", 5000)
    loads = [Load(memory=Memory.INP, y_size=2048, x_size=1, x_stride=n) for n in range(1, 50)]
    with pytest.raises(LimitExceeded, match="instruction 2"):
        handmade(*loads, config=VTA).run(check=False, max_cycles=2000)


def test_slow_beats_count_as_bursts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed_program, "MAX_BUS_INTERVALS", 5000)
    monkeypatch.setattr(timing_model, "MAX_BUS_INTERVALS", 5000)
    with pytest.raises(LimitExceeded, match=r"with STORE\.REQ"):
        bomb("slow beats").run(check=False)


def test_the_elements_of_maximal_loops_take_the_memory_of_the_scratchpad() -> None:
    """268 million micro-ops whose indices overlap, in 65,536 elements."""
    loops = Gemm(uop_end=1, iter_out=16383, iter_in=16383, src_factor_out=1, src_factor_in=2)
    sets = AccessSets(DEEP)
    words = np.zeros(1, dtype=np.uint32)
    found = {touch.memory: touch.elements for touch in sets.loops(loops, words).touches}
    assert found["inp"] == slice(0, 3 * 16382 + 1)
    assert peak(lambda: AccessSets(DEEP).loops(loops, words)) < 2 * MEBIBYTE


def test_the_token_check_takes_bounded_memory(limit: Callable[[int], None]) -> None:
    unlimited, report = peak(bomb("sets of elements").check), bomb("sets of elements").check()
    limit(1 << 13)
    assert peak(bomb("sets of elements").check) < unlimited / 4
    assert bomb("sets of elements").check() == report
