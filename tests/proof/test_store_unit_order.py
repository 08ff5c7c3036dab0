"""The store unit, which reads and writes DRAM, against itself: by hand, and against all orders."""

import collections
import time
from collections.abc import Callable, Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from accel.base.records import replace
from accel.core.config import NAMED, Config
from accel.core.fault_causes import residual_change, residual_fault
from accel.core.isa import (
    Finish,
    Gemm,
    Instruction,
    Load,
    LoadPar,
    LoadRes,
    LoadTab,
    Memory,
    SetOut,
    SetSum,
    Store,
    StoreAdd,
    StoreReq,
    Unit,
)
from accel.core.scratchpad_specs import TABLE_BYTES
from accel.image.dram import Dram
from accel.proof.token_check import TokenReport, check_tokens
from accel.sim.functional.scratchpads import Scratchpads
from tests.proof.orders import Orders, finishing_orders
from tests.reference import Reference
from tests.strategies import _flagged, examples, repaired, seeded

MICRO = Config(
    name="micro",
    batch=1,
    block_in=1,
    block_out=1,
    uop_bytes=8,
    inp_bytes=8,
    wgt_bytes=4,
    acc_bytes=32,
    post=1,
    par_bytes=32,
    res_bytes=4,
    res_mul=1,
    tab_bytes=512,
)
"""4 elements each of par, 8 bytes in DRAM, and of res, a byte; two tables."""


def check(program: Sequence[Instruction], config: Config = MICRO) -> TokenReport:
    return check_tokens(program, config, memory=Dram.of(config))


def found(*body: Instruction) -> list[tuple[int, int, tuple[bool, bool]]]:
    """The races of a program: two instructions, and which of them write."""
    report = check([*body, Finish()])
    assert not report.faults
    assert report.deadlock is None
    assert report.verdict == ("race" if report.races else "proven")
    return [(race.first, race.second, race.write) for race in report.races]


RAW, WAR = (True, False), (False, True)


# --- by hand -------------------------------------------------------------------------------------


def res(dram: int, count: int = 1, **flags: bool) -> LoadRes:
    return LoadRes(dram_base=dram, y_size=1, x_size=count, **flags)


def par(dram: int, sram: int = 0, **flags: bool) -> LoadPar:
    return LoadPar(dram_base=dram, sram_base=sram, y_size=1, x_size=1, **flags)


def tab(dram: int, sram: int = 0, **flags: bool) -> LoadTab:
    return LoadTab(dram_base=dram, sram_base=sram, y_size=1, x_size=1, **flags)


def add(dram: int, count: int = 1, **flags: bool) -> StoreAdd:
    return StoreAdd(dram_base=dram, y_size=1, x_size=count, **flags)


def req(dram: int, count: int = 1, place: int = 0, table: int = 0, **flags: bool) -> StoreReq:
    return StoreReq(dram_base=dram, y_size=1, x_size=count, par=place, table=table, **flags)


BACK = Gemm(pop_next=True, push_next=True)
"""Carries a token of the store unit back to it."""


def test_a_load_of_what_an_earlier_store_writes_is_a_race() -> None:
    for load in (res(17), par(2)):
        for store in (req(16, 4), Store(dram_base=17, y_size=1, x_size=1)):
            assert found(store, load) == [(0, 1, RAW)]
            assert found(store, SetOut(), load) == []
            assert found(store, SetSum(), load) == []
            assert found(replace(store, push_prev=True), BACK, replace(load, pop_prev=True)) == []
    assert found(req(16), res(17)) == []


def test_a_token_orders_what_is_behind_it_and_what_was_before_it() -> None:
    """Starts and retirements are in program order; but it must have been to the compute unit and back."""
    other = req(0)
    chain = [req(16), replace(other, push_prev=True), BACK, replace(other, pop_prev=True), res(16)]
    assert found(*chain) == []
    late = [replace(other, push_prev=True), req(16), BACK, replace(other, pop_prev=True), res(16)]
    assert found(*late) == [(1, 4, RAW)]
    early = [replace(req(16), push_prev=True), BACK, res(16), replace(other, pop_prev=True)]
    assert found(*early) == [(0, 2, RAW)]
    unrelated = [replace(req(16), push_prev=True), Gemm(push_next=True), Gemm(pop_next=True)]
    assert found(*unrelated, res(16, pop_prev=True)) == [(0, 3, RAW)]


def test_retirement_in_order_does_not_order_a_load_before_a_store() -> None:
    """Neither does that the STORE takes or uses something else."""
    assert found(res(16), req(16)) == [(0, 1, WAR)]
    assert found(par(2, 1), req(16)) == [(0, 1, WAR)]
    assert found(res(0), res(16), add(16)) == [(1, 2, WAR)]
    assert found(par(0), par(2, 1), req(16)) == [(1, 2, WAR)]
    assert found(tab(0), req(16)) == found(tab(0), req(16, table=2)) == [(0, 1, WAR)]
    assert found(res(16, push_prev=True), BACK, req(16, pop_prev=True)) == []
    assert found(res(16), SetOut(), req(16)) == []


def test_a_store_that_waits_for_what_a_load_brings_may_overwrite_it() -> None:
    """The sum overwrites the residual, after earlier LOADs have read it."""
    assert found(res(16, 4), add(16, 4)) == []
    assert found(res(16, 2), add(16)) == []
    assert found(par(2, 1), req(16, place=1)) == []
    assert found(tab(0, 1), req(16, table=2)) == found(tab(0), tab(1, 1), req(16, table=2)) == []
    assert found(res(16), res(0), add(8, 2), req(16)) == []
    assert found(par(2, 1), res(0), add(16)) == []
    assert found(res(16), par(0), req(16)) == []
    assert found(res(0), add(8), res(16), add(16)) == []
    # elements of one LOAD that come from before another
    assert found(res(0, 2), res(16, 2), add(16, 2)) == [(1, 2, WAR)]
    assert found(res(0, 2), res(16, 2), add(16, 3)) == []


def test_a_store_that_holds_a_residual_waits_for_one() -> None:
    """It may overwrite what the LOAD of its residual has read, but not what the next LOAD reads."""
    assert found(res(16, 2), add(16, 2, hold=True)) == []
    assert found(res(0), res(16), add(16, 2, hold=True)) == [(1, 2, WAR)]
    assert found(res(0), res(16), add(8, 2, hold=True), add(16, 2, hold=True)) == []


def test_a_store_of_no_elements_waits_for_nothing() -> None:
    empty = StoreAdd(x_size=1), StoreAdd(y_size=1)
    for one in empty:
        assert found(res(16), one, req(16)) == [(0, 2, WAR)]
    assert found(par(2), StoreReq(x_size=1), Store(dram_base=16, y_size=1, x_size=1)) == [(0, 2, WAR)]


def test_other_units_are_as_they_were() -> None:
    """A LOAD of the load unit reads what a STORE.ADD writes; the mirror of accumulators is overwritten."""
    load = Load(memory=Memory.INP, dram_base=16, y_size=1, x_size=1)
    assert found(req(16), load) == [(0, 1, RAW)]
    assert found(load, res(16)) == []
    assert found(Load(memory=Memory.ACC, dram_base=0, y_size=1, x_size=1), req(16)) == [(0, 1, RAW)]


def test_par_and_res_are_no_races_of_their_unit_and_what_nobody_has_written_is_told() -> None:
    report = check([par(0), req(16), par(0), par(0), req(18, place=1), Finish()])
    assert report.ok
    assert [(one.index, one.memory, one.where) for one in report.unwritten if one.memory == "par"] == [
        (4, "par", (1, 1))
    ]


def test_a_race_in_words() -> None:
    report = check([req(16, 4), res(17, 2), Finish()])
    assert str(report.races[0]) == (
        "instruction 0 writes and instruction 1 reads dram bytes 0x11..0x12, and no token orders them"
    )


# --- against all orders --------------------------------------------------------------------------


def random_program(rng: Random) -> list[Instruction]:
    """Return a program without faults. It respects the content of RES, and its DRAM is so small that
    accesses overlap."""
    body: list[Instruction] = []
    held = 0
    while len(body) < 6:
        choices: list[Callable[[], Instruction]] = [
            lambda: res(rng.randint(0, 4), rng.randint(1, 2)),
            lambda: par(0, rng.randint(0, 1)),
            lambda: tab(rng.choice((0, 1, 1, 2)), rng.randint(0, 1)),
            lambda: add(rng.randint(0, 8), rng.randint(1, 2), hold=rng.random() < 0.5),
            lambda: req(rng.randint(0, 8), rng.randint(1, 2), rng.randint(0, 1), rng.randint(0, 2)),
            lambda: Store(dram_base=rng.randint(0, 8), y_size=1, x_size=1),
            lambda: Load(memory=Memory.INP, dram_base=rng.randint(0, 4), y_size=1, x_size=1),
            lambda: SetOut(high=99) if rng.random() < 0.3 else Gemm(),
            Gemm,
            Gemm,
        ]
        one = rng.choice(choices)()
        if residual_fault(one, held, MICRO) is None:
            held += residual_change(one)
            body.append(_flagged(rng, one))
    return repaired([*body, Finish()])


def orders(program: Sequence[Instruction], *, waits: bool) -> Orders:
    memory = Dram.of(MICRO)
    memory.write(0, bytes(range(1, 33)))
    memory.write(TABLE_BYTES, bytes(range(256)) + bytes(range(255, -1, -1)))
    start = Reference(MICRO, Scratchpads.random(MICRO, 1), memory)
    found = finishing_orders(program, MICRO, start, waits=waits)
    for index, seen in found.accesses.items():  # only this unit uses them
        found.accesses[index] = {one for one in seen if one[0] not in ("par", "tab")}
    return found


def test_a_program_is_proven_if_and_only_if_all_orders_of_the_store_unit_agree() -> None:
    """Proven: one result in every order of the machine. Refuted: two that conflict may come in either order,
    were it not for LOADs that happen to wait until par or res may be overwritten."""
    tally = collections.Counter[str]()

    @examples(300, least=60)
    @given(seeded(random_program), st.none())
    def compare(program: list[Instruction], _: None) -> None:
        report = check(program)
        assert not report.faults
        every = orders(program, waits=True)
        tally[report.verdict] += 1
        own = {(race.first, race.second) for race in report.races}
        own = {pair for pair in own if all(program[n].unit is Unit.STORE for n in pair)}
        tally["own"] += bool(own)
        if report.ok:
            assert len(every.results) == 1
            assert not every.stuck
        if len(every.results) > 1:
            assert report.race_count
        if every.races():
            assert report.race_count
        if report.race_count:
            loose = orders(program, waits=False).races()
            assert {(min(pair), max(pair)) for pair in own} <= loose
            assert loose
        assert (report.deadlock is not None) == bool(every.stuck)

    compare()
    assert min(tally["proven"], tally["own"]) > 0.1 * sum(tally.values())


# --- cost ----------------------------------------------------------------------------------------


def test_the_cost_grows_with_the_program() -> None:
    """In-place additions and rows of parameters as in a network: sixteen times more take about sixteen
    times longer."""
    config = NAMED["vta-int8"]

    def seconds(count: int) -> float:
        program: list[Instruction] = [SetOut(), SetSum()]
        for n in range(count):
            at = n * 8
            program += [
                LoadPar(dram_base=1 << 18, sram_base=n % 128, y_size=1, x_size=1),
                LoadRes(dram_base=at, y_size=2, x_size=4, x_stride=4),
                StoreAdd(dram_base=at, y_size=2, x_size=4, x_stride=4, par=n % 128),
            ]
        program.append(Finish())
        begin = time.process_time()
        assert check(program, config).ok
        return time.process_time() - begin

    seconds(100)
    few = min(seconds(500) for _ in range(3))
    assert seconds(8000) < 40 * few
