"""The token check against all orders that the tokens allow, each executed."""

import collections
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.base.errors import DeadlockError, MachineError, ProgramFault, RaceError
from accel.base.records import replace
from accel.core.config import NAMED, Config
from accel.core.fault_causes import Cause
from accel.core.isa import Alu, Finish, Gemm, Instruction, Load, Memory, Store, decode_uops, encode_uops
from accel.core.token_rules import Counter
from accel.image.dram import Dram
from accel.proof.token_check import MOST_REPORTED, TokenReport, Unwritten, check_tokens
from accel.sim.functional.scratchpads import Scratchpads
from tests.expect import refused
from tests.proof.orders import Orders, all_orders
from tests.reference import Reference
from tests.strategies import examples, programs

MICRO = Config(
    name="micro",
    batch=1,
    block_in=1,
    block_out=1,
    uop_bytes=8,
    inp_bytes=8,
    wgt_bytes=4,
    acc_bytes=32,
    token_bits=4,
)
"""Two micro-ops, 8 inp, 4 wgt and 8 acc elements of one number each."""
DRAM_BYTES = 32
LOAD_UOPS = Load(memory=Memory.UOP, y_size=1, x_size=2)

small_programs = programs(
    MICRO, first=[LOAD_UOPS], size=7, factor=1, dram_bytes=DRAM_BYTES, x_size=2, y_size=2, pad=1
)
seeds = st.integers(0, 999)
token_counts = st.tuples(*[st.sampled_from([0, 0, 0, 1, 2])] * 4)


def random_dram(seed: int) -> Dram:
    """Random bytes, whose first in each word is a micro-op with indices that are seldom out of range."""
    dram = Dram.of(MICRO)
    data = np.random.default_rng(seed).integers(1, 256, DRAM_BYTES, dtype=np.uint8)
    data[::4] &= 0b01_011_011
    dram.write(0, data)
    return dram


def check(
    program: Sequence[Instruction],
    seed: int = 0,
    config: Config = MICRO,
    tokens: Sequence[int] = (0, 0, 0, 0),
) -> TokenReport:
    return check_tokens(program, config, memory=random_dram(seed), tokens=tokens)


def orders(
    program: Sequence[Instruction],
    seed: int = 0,
    config: Config = MICRO,
    tokens: Sequence[int] = (0, 0, 0, 0),
    bounded: bool = False,
) -> Orders:
    start = Reference(config, Scratchpads.random(config, seed), random_dram(seed))
    return all_orders(program, config, start, tokens, bounded=bounded)


# --- random programs -----------------------------------------------------------------------------


def test_a_program_is_proven_if_and_only_if_all_orders_agree() -> None:
    """Proven: no unordered accesses in any order, and one result. Refuted for a race: there is one, and
    as a rule the results differ."""
    tally = collections.Counter[str]()

    @examples(500, least=100)
    @given(small_programs, seeds, token_counts)
    def compare(program: list[Instruction], seed: int, tokens: tuple[int, ...]) -> None:
        report, every = check(program, seed, tokens=tokens), orders(program, seed, tokens=tokens)
        if report.ok:
            tally["proven"] += 1
            assert len(every.results) == 1
            assert not every.faults
            assert not every.races()
            assert not every.stuck
        elif report.race_count:
            tally["race"] += 1
            tally["race shows"] += len(every.results | every.faults) > 1 or bool(every.stuck)
            assert every.races() or report.unknown_uops
        elif not (report.faults or report.unknown_uops):
            assert report.deadlock is not None
            tally["deadlock"] += 1
            assert every.stuck
        if len(every.results | every.faults) > 1:
            assert not report.ok
        if every.races() and not (report.faults or report.unknown_uops):
            assert report.race_count

    compare()
    assert tally["race shows"] > 0.7 * tally["race"]
    assert min(tally["proven"], tally["race"], 16 * tally["deadlock"]) > 40 * sum(tally.values()) / 500


@examples(300)
@given(small_programs, seeds)
def test_reported_races_name_instructions_and_memory_that_conflict(
    program: list[Instruction], seed: int
) -> None:
    report, every = check(program, seed), orders(program, seed)
    if report.faults or report.unknown_uops:
        return
    for race in report.races:
        assert (race.first, race.second) in every.races() | {(j, i) for i, j in every.races()}
        first, second = every.accesses[race.first], every.accesses[race.second]
        for element in race.where if race.memory == "dram" else race.where[:1]:
            assert (race.memory, race.write[1], element) in second
        assert (race.memory, race.write[0], race.where[0]) in first


@examples(300)
@given(
    small_programs,
    st.tuples(*[st.integers(1, 2)] * 3),
    token_counts,
    st.booleans(),
)
def test_a_deadlock_is_one_in_every_order(
    program: list[Instruction], depths: tuple[int, ...], tokens: tuple[int, ...], serial: bool
) -> None:
    """With bounded queues and in serial mode, too."""
    load, compute, store = depths
    config = replace(MICRO, serial=int(serial), load_queue=load, compute_queue=compute, store_queue=store)
    report = check(program, 0, config, tokens)
    every = orders(program, 0, config, tokens, bounded=True)
    if report.faults:
        return
    assert bool(every.left_over) != bool(every.stuck)
    assert (report.deadlock is not None) == bool(every.stuck)
    if not every.stuck:
        assert every.left_over == {report.left_over}


@examples(300)
@given(small_programs, token_counts, st.integers(1, 2))
def test_counters_reach_their_peak_in_some_order_and_no_more(
    program: list[Instruction], tokens: tuple[int, ...], token_bits: int
) -> None:
    report, every = check(program, tokens=tokens), orders(program, tokens=tokens)
    if report.deadlock is not None or report.faults:
        return
    assert report.peak == every.peak
    limit = (1 << token_bits) - 1
    if max(tokens) > limit:
        return
    narrow = check(program, 0, replace(MICRO, token_bits=token_bits), tokens)
    full = [counter for counter in Counter if every.peak[counter] > limit]
    assert [fault.cause for _, fault in narrow.faults] == [Cause.TOKEN_OVERFLOW] * bool(full)
    if full:
        assert narrow.faults[0][1].message.startswith(
            f"up to {every.peak[full[0]]} tokens from {full[0].label} may be waiting at once; "
        )


@examples(100)
@given(small_programs, st.integers(0, 28), st.integers(1, 8))
def test_a_write_to_the_program_itself_is_a_race(program: list[Instruction], start: int, length: int) -> None:
    span = (start, start + length)
    plain, report = check(program), check_tokens(program, MICRO, memory=random_dram(0), program_span=span)
    if plain.faults or plain.deadlock is not None or plain.unknown_uops:
        return
    written = {
        index
        for index, accesses in orders(program).accesses.items()
        if any(("dram", True, address) in accesses for address in range(*span))
    }
    assert {race.second for race in report.races if race.first < 0} == written
    assert report.race_count == plain.race_count + len(written)


# --- reports -------------------------------------------------------------------------------------

LOAD = Load(memory=Memory.INP, y_size=1, x_size=4, push_next=True)
GEMM = Gemm(pop_prev=True, push_next=True, uop_end=1)
STORE = Store(pop_prev=True, y_size=1, x_size=1, dram_base=16)


def without(program: list[Instruction], index: int, **flags: bool) -> list[Instruction]:
    return [*program[:index], replace(program[index], **flags), *program[index + 1 :]]


def test_a_proven_program() -> None:
    report = check([LOAD_UOPS, LOAD, GEMM, STORE, Finish()])
    assert report.ok
    report.raise_if_bad()
    acc, _, wgt = decode_uops(random_dram(0).read(0, 4).view("<u4"), MICRO)[0].tolist()
    assert report == TokenReport(
        instructions=5,
        races=(),
        race_count=0,
        deadlock=None,
        faults=(),
        left_over=(0, 0, 0, 0),
        peak=(1, 0, 1, 0),
        unknown_uops=(),
        unwritten=(
            Unwritten(index=2, memory="acc", where=(acc, acc)),
            Unwritten(index=2, memory="wgt", where=(wgt, wgt)),
            Unwritten(index=3, memory="acc", where=(0, 0)),
        ),
        unwritten_count=3,
    )


def test_a_read_of_which_only_a_part_was_written() -> None:
    load = Load(memory=Memory.ACC, sram_base=2, dram_base=0, y_size=1, x_size=2, push_next=True)
    store = Store(memory=Memory.OUT, sram_base=1, dram_base=16, y_size=1, x_size=4, x_stride=4, pop_prev=True)
    report = check([load, store, Finish()])
    assert report.ok
    assert report.unwritten == (Unwritten(index=1, memory="acc", where=(1, 4)),)
    assert report.unwritten_count == 1
    whole = replace(store, sram_base=2, x_size=2)
    assert check([load, whole, Finish()]).unwritten == ()


def test_what_one_token_has_ordered_a_token_of_the_other_side_does_not_undo() -> None:
    """The compute unit hears of the STORE, then of the LOAD, and the other way round."""
    store, load = replace(STORE, pop_prev=False, push_prev=True), LOAD
    for first, second in ((store, load), (load, store)):
        hear_store = {"pop_next": first is store}
        waits = replace(LOAD_UOPS, pop_prev=first is load, **hear_store)
        gemm = Gemm(uop_end=1, iter_in=8, dst_factor_in=1, pop_prev=second is load, pop_next=second is store)
        dram = Dram.of(MICRO)
        report = check_tokens([first, second, waits, gemm, Finish()], MICRO, memory=dram)
        assert report.ok


def test_tokens_left_over_are_legal() -> None:
    program = [LOAD_UOPS, LOAD, GEMM, replace(STORE, push_prev=True), replace(Finish(), push_prev=True)]
    report = check(program, tokens=(0, 0, 0, 2))
    assert report.ok
    assert report.left_over == (0, 1, 0, 3)
    assert report.peak == (1, 1, 1, 3)


def test_races_in_words() -> None:
    program = [LOAD_UOPS, replace(LOAD, push_next=False), replace(GEMM, pop_prev=False), STORE, Finish()]
    report = check(program)
    [race] = report.races
    inp = source_index(random_dram(0))
    assert str(race) == (
        f"instruction 1 writes and instruction 2 reads inp elements {inp}..{inp}, and no token orders them"
    )
    with refused(RaceError, f"race: {race}"):
        report.raise_if_bad()


def source_index(dram: Dram) -> int:
    """src of the first micro-op."""
    return (int(dram.read(0, 1)[0]) >> 3) & 7


def test_races_in_dram_in_words() -> None:
    program = [
        Load(memory=Memory.INP, dram_base=4, y_size=1, x_size=4),
        replace(STORE, pop_prev=False, dram_base=6),
        Finish(),
    ]
    report = check(program)
    with refused(
        RaceError,
        "race: instruction 0 reads and instruction 1 writes dram bytes 0x6..0x6, and no token orders them",
    ):
        report.raise_if_bad()


def test_a_write_to_the_program_in_words() -> None:
    store = Store(dram_base=18, y_size=1, x_size=4)
    report = check_tokens([store, Finish()], MICRO, memory=Dram.of(MICRO), program_span=(16, 48))
    assert not report.ok
    with refused(RaceError, "race: instruction 0 writes dram bytes 0x12..0x15, which hold the program"):
        report.raise_if_bad()


def test_many_races_are_counted_and_few_named() -> None:
    program = [
        *[Load(memory=Memory.ACC, y_size=1, x_size=1), Store(y_size=1, x_size=1, dram_base=16)] * 20,
        Finish(),
    ]
    report = check(program)
    assert report.race_count == 39
    assert len(report.races) == MOST_REPORTED
    with pytest.raises(RaceError, match=r" \(38 more\)$"):
        report.raise_if_bad()


def test_a_deadlock_of_a_full_queue() -> None:
    """GEMM's token comes from a LOAD that fetch cannot reach, the compute queue being full."""
    program = [LOAD_UOPS, GEMM, Gemm(), Gemm(), LOAD, STORE, Finish()]
    assert check(program).ok
    report = check(program, config=replace(MICRO, compute_queue=2))
    assert report.deadlock is not None
    assert not report.ok
    with refused(
        DeadlockError,
        "deadlock: compute waits at instruction 1 for a token from load; the next to push one is "
        "instruction 4, which cannot run",
    ):
        report.raise_if_bad()


def test_a_deadlock_of_serial_mode() -> None:
    program = [LOAD_UOPS, GEMM, LOAD, STORE, Finish()]
    assert check(program).ok
    report = check(program, config=replace(MICRO, serial=1))
    assert [waiting.index for waiting in report.deadlock or ()] == [1]


def test_order_that_only_a_full_queue_gives_does_not_count() -> None:
    """In serial mode nothing overlaps, yet the missing token is a race."""
    program = [LOAD_UOPS, replace(LOAD, push_next=False), replace(GEMM, pop_prev=False), STORE, Finish()]
    report = check(program, config=replace(MICRO, serial=1, load_queue=1, compute_queue=1))
    assert report.race_count == 1


def test_an_overflow_in_words() -> None:
    program = [*[replace(LOAD, x_size=0)] * 3, *[replace(GEMM, uop_end=0, push_next=False)] * 3, Finish()]
    report = check(program, config=replace(MICRO, token_bits=1))
    assert report.peak == (3, 0, 0, 0)
    with refused(
        MachineError,
        "instruction 1: up to 3 tokens from load to compute may be waiting at once; "
        "a counter of token_bits=1 holds 1",
    ):
        report.raise_if_bad()


def test_micro_ops_that_a_store_may_have_changed_are_not_known() -> None:
    store = Store(dram_base=2, y_size=1, x_size=1, push_prev=True)
    reload = replace(LOAD_UOPS, pop_next=True)
    gemm = Gemm(uop_end=1, reset=True)
    report = check([store, reload, gemm, Finish()])
    assert (report.unknown_uops, report.race_count, report.ok) == ((2,), 0, False)
    with refused(
        ProgramFault,
        "instruction 2 runs micro-ops that are not known before the run; nothing can be proven of it",
    ):
        report.raise_if_bad()
    elsewhere = replace(store, dram_base=9)
    assert check([elsewhere, reload, gemm, Finish()]).ok
    assert check([gemm, Finish()]).unknown_uops == (0,)


def test_micro_ops_of_pads_are_known() -> None:
    pads = Load(memory=Memory.UOP, y_size=0, x_size=1, y_pad_0=1)
    report = check([pads, Gemm(uop_end=1, iter_in=9, dst_factor_in=1, reset=True), Finish()])
    assert [fault.message for _, fault in report.faults] == [
        "GEMM has dst index 8 in micro-op 8 of its 9; that scratchpad has 8 elements"
    ]


def test_a_fault_found_on_the_way_ends_the_check() -> None:
    """Instructions after FINISH cause neither a deadlock nor an overflow."""
    push = replace(LOAD, x_size=0)
    program = [
        LOAD_UOPS,
        push,
        push,
        Gemm(uop_end=1, iter_in=9, dst_factor_in=7),
        Alu(pop_next=True),
        Finish(),
    ]
    report = check(program, config=replace(MICRO, token_bits=1))
    assert [(index, fault.cause) for index, fault in report.faults] == [(3, Cause.DST_INDEX)]
    assert report.deadlock is None
    assert not report.ok


def test_faults_of_single_instructions_are_all_found_at_once() -> None:
    bad = Store(x_size=9, y_size=1)
    report = check([Finish(), bad, LOAD])
    assert [(index, fault.cause) for index, fault in report.faults] == [
        (0, Cause.EARLY_FINISH),
        (1, Cause.SRAM_RANGE),
        (2, Cause.NO_FINISH),
    ]
    with refused(MachineError, "instruction 0: FINISH is instruction 0 of 3; it must be the last"):
        report.raise_if_bad()
    assert len(check([bad] * 99).faults) == MOST_REPORTED


def test_an_empty_program() -> None:
    with refused(MachineError, "instruction 0: the program is empty; it must end with FINISH"):
        check([]).raise_if_bad()


def test_checking_cost_does_not_follow_iterations() -> None:
    """2 * 16383**2 micro-ops, a thousand times."""
    vta = NAMED["vta"]
    dram = Dram.of(vta)
    dram.write(0, encode_uops([(1, 2, 3), (4, 5, 6)], vta).tobytes())
    gemm = Gemm(uop_end=2, iter_out=16383, iter_in=16383)
    program = [replace(LOAD_UOPS, x_size=2), *[gemm] * 1000, Finish()]
    assert check_tokens(program, vta, memory=dram).ok
