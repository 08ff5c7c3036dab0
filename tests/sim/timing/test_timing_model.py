"""The event-driven model compared with the cycle-stepped machine."""

import collections
from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.base.records import replace
from accel.core.config import NAMED, Config
from accel.core.fault_causes import Cause, Fault
from accel.core.isa import Instruction, Load, Loops, Memory
from accel.core.timing_rules import beat_cycles, store_depth
from accel.image.dram import Dram
from accel.proof.token_check import check_tokens
from accel.sim.functional.executor import Executor, run_functional
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.timing.timing_model import simulate_timing
from tests.proof.orders import conflict
from tests.reference import Reference
from tests.sim.timing.cycle_stepped_machine import assert_same, step_by_step
from tests.strategies import examples, programs, timings
from tests.thorough import also

MACHINES = NAMED["tiny"], NAMED["tiny-int8"], NAMED["tiny-int8"].override({"res_mul": 1, "tab_bytes": 512})
Case = tuple[list[Instruction], Config, dict[str, Any]]


@st.composite
def cases(draw: st.DrawFn, /, **options: Any) -> Case:
    """Draw a program, a machine and the other arguments of :func:`simulate_timing`."""
    config = replace(draw(st.sampled_from(MACHINES).flatmap(timings)), mem_base=4096, mem_size=16200)
    program = draw(programs(config, wild=True, finishing=True, pad=3, dram_bytes=1 << 14, **options))
    rng = draw(st.randoms(use_true_random=True))
    faults = {}
    suspects = {n: i.uop_count for n, i in enumerate(program) if isinstance(i, Loops) and i.uop_count}
    if suspects and rng.randint(0, 7) == 0:
        index, count = rng.choice(list(suspects.items()))
        position = rng.choice([0, count - 1, rng.randrange(count)])
        faults[index] = position, Fault(cause=Cause.DST_INDEX, message="an index is out of range")
    arguments = {
        "address": 16 * rng.randint(0, 512),
        "faults": faults,
        "tokens": tuple(min(config.token_limit, rng.choice((0, 0, 0, 1, 2))) for _ in range(4)),
    }
    return program, config, arguments


@pytest.mark.parametrize(
    "sizes",
    [
        {"size": 10, "x_size": 12, "y_size": 3},
        also({"size": 40, "x_size": 2, "y_size": 2}),
        also({"size": 5, "x_size": 100, "y_size": 2}),
    ],
    ids=["mixed", "many instructions", "long rows"],
)
def test_every_event_is_in_the_same_cycle(sizes: dict[str, int]) -> None:
    tally = collections.Counter[Cause]()

    @examples(400, least=200)
    @given(cases(**sizes))
    def compare(case: Case) -> None:
        program, config, arguments = case
        run = simulate_timing(program, config, **arguments)
        assert_same(run, step_by_step(program, config, **arguments))
        tally[Cause.NONE if run.stop is None else run.stop.fault.cause] += 1

    compare()
    assert tally[Cause.NONE] > 0.2 * tally.total()
    assert tally[Cause.DEADLOCK]
    assert len(tally) > 5


@examples(400)
@given(cases(size=6, x_size=4, y_size=2), st.integers(0, 300))
def test_a_run_ends_at_its_limit(case: Case, limit: int) -> None:
    program, config, arguments = case
    run = simulate_timing(program, config, max_cycles=limit, **arguments)
    assert_same(run, step_by_step(program, config, max_cycles=limit, **arguments))


@examples(150)
@given(cases(size=10, x_size=30, y_size=3))
def test_bursts_obey_the_recurrences(case: Case) -> None:
    program, config, arguments = case
    bursts = simulate_timing(program, config, **arguments).bursts
    reads = sorted((b for b in bursts if not b.writes), key=lambda b: b.grant)
    writes = [b for b in bursts if b.writes]
    for part in (reads, writes):
        for before, burst in pairwise(part):
            assert burst.grant > before.grant
        for early, burst in zip(part, part[config.outstanding :], strict=False):
            assert burst.grant > early.response
    for last, burst in zip([-1, *(b.last for b in reads)], reads, strict=False):
        assert burst.first == max(burst.grant + config.read_latency, last + 1)
        assert burst.response == burst.last
    for last, burst in zip([-1, *(b.last for b in writes)], writes, strict=False):
        assert burst.first == burst.grant + store_depth(config) > last
        assert burst.last == burst.first + burst.beats * beat_cycles(program[burst.instruction], config) - 1
        assert burst.response == burst.last + config.write_latency


@examples(150)
@given(
    st.sampled_from(MACHINES)
    .flatmap(timings)
    .flatmap(lambda c: st.tuples(st.just(c), programs(c, dram_bytes=512)))
)
def test_instructions_that_the_token_check_orders_never_overlap_in_time(
    case: tuple[Config, list[Instruction]],
) -> None:
    """Of two conflicting instructions in different units, one has retired before the other starts."""
    config, program = case
    program = [Load(memory=Memory.UOP, y_size=2, x_size=128, x_stride=128), *program]
    if not check_tokens(program, config, memory=Dram.of(config)).ok:
        return
    reference = Reference(config, Scratchpads.zeros(config), Dram.of(config))
    steps = simulate_timing(program, config, address=0).instruction_runs
    accesses = []
    for index in run_functional(program, Executor(config, Dram.of(config), Scratchpads.zeros(config))).order:
        reference.seen = set()
        assert reference.execute(program[index]) is None
        accesses.append((steps[index], reference.seen))
    for (first, mine), (second, others) in combinations(accesses, 2):
        if first.unit is not second.unit and conflict(mine, others):
            assert first.retire is not None
            assert second.start is not None
            assert first.retire < second.start
