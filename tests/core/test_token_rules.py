"""Token rules: the counters that each flag changes, the instructions that may run next, and deadlock
messages."""

from itertools import product

import pytest

from accel.core.config import NAMED
from accel.core.isa import Alu, Finish, Gemm, Instruction, Load, Memory, Store, Unit
from accel.core.token_rules import Counter, Stepper, Waiting, explain_deadlock, pops, pushes, queue_depth

TINY = NAMED["tiny"]
LOAD = Load(memory=Memory.INP)
FLAGS = ("pop_prev", "pop_next", "push_prev", "push_next")
L_C, C_L, C_S, S_C = Counter


def with_flags(cls: type[Instruction], **values: object) -> list[Instruction]:
    return [
        cls(**dict(zip(FLAGS, flags, strict=True)), **values)  # type: ignore[arg-type]
        for flags in product((False, True), repeat=4)
    ]


def test_flags_name_the_counters_toward_the_neighbours() -> None:
    for load in with_flags(Load, memory=Memory.WGT):
        assert pops(load) == (C_L,) * load.pop_next
        assert pushes(load) == (L_C,) * load.push_next
    for compute in with_flags(Gemm) + with_flags(Finish) + with_flags(Load, memory=Memory.ACC):
        assert pops(compute) == (L_C,) * compute.pop_prev + (S_C,) * compute.pop_next
        assert pushes(compute) == (C_L,) * compute.push_prev + (C_S,) * compute.push_next
    for store in with_flags(Store):
        assert pops(store) == (C_S,) * store.pop_prev
        assert pushes(store) == (S_C,) * store.push_prev


def test_names_of_counters() -> None:
    assert [c.label for c in Counter] == [
        "load to compute",
        "compute to load",
        "compute to store",
        "store to compute",
    ]
    assert [(c.source, c.target) for c in Counter] == [
        (Unit.LOAD, Unit.COMPUTE),
        (Unit.COMPUTE, Unit.LOAD),
        (Unit.COMPUTE, Unit.STORE),
        (Unit.STORE, Unit.COMPUTE),
    ]


def test_queue_depths_are_the_configurations() -> None:
    config = TINY.override({"load_queue": 3, "compute_queue": 4, "store_queue": 5})
    assert [queue_depth(unit, config) for unit in (Unit.LOAD, Unit.COMPUTE, Unit.STORE)] == [3, 4, 5]


def test_one_head_per_unit_in_program_order() -> None:
    stepper = Stepper([Store(), LOAD, LOAD, Alu(), Alu(), Finish()], TINY)
    assert stepper.heads() == [0, 1, 3]
    assert stepper.first() == 0
    stepper.run(3)
    assert stepper.heads() == [0, 1, 4]
    stepper.run(0)
    assert stepper.heads() == [1, 4]
    for index in (1, 2, 4, 5):
        assert not stepper.done
        stepper.run(index)
    assert stepper.done
    assert stepper.heads() == []
    assert stepper.first() is None


def test_tokens_gate_heads() -> None:
    program = [
        Load(memory=Memory.INP, push_next=True),
        Alu(pop_prev=True, push_next=True),
        Store(pop_prev=True),
        Finish(),
    ]
    stepper = Stepper(program, TINY)
    for heads in ([0], [1], [2, 3]):
        assert stepper.heads() == heads
        stepper.run(heads[0])
    assert stepper.heads() == [3]
    assert stepper.tokens == [0, 0, 0, 0]
    assert Stepper(program, TINY, tokens=(1, 0, 1, 0)).heads() == [0, 1, 2]


def test_an_instruction_may_need_tokens_of_both_neighbours() -> None:
    for tokens in product((0, 1), repeat=4):
        stepper = Stepper([Alu(pop_prev=True, pop_next=True), Finish()], TINY, tokens=tokens)
        lacking = [counter for counter in (L_C, S_C) if not tokens[counter]]
        assert stepper.heads() == ([] if lacking else [0])
        assert [waiting.counter for waiting in stepper.waiting()] == lacking


def test_fetch_is_in_order_and_queues_are_bounded() -> None:
    program = [LOAD, LOAD, LOAD, Store(), Finish()]
    config = TINY.override({"load_queue": 2})
    stepper = Stepper(program, config)
    assert stepper.heads() == [0]
    stepper.run(0)
    assert stepper.heads() == [1, 3, 4]
    assert Stepper(program, config, bounded=False).heads() == [0, 3, 4]


def test_serial_mode_hands_out_one_at_a_time() -> None:
    program = [LOAD, Store(), Alu(), Finish()]
    stepper = Stepper(program, TINY.override({"serial": 1}))
    for index in range(4):
        assert stepper.heads() == [index]
        stepper.run(index)
    assert stepper.done
    assert Stepper(program, TINY.override({"serial": 1}), bounded=False).heads() == [0, 1, 2]


def test_a_blocked_unit_runs_no_further_instruction() -> None:
    stepper = Stepper([LOAD, Store(), Finish()], TINY)
    stepper.block(Unit.LOAD)
    assert stepper.heads() == [1, 2]
    assert stepper.first() == 1


def test_copies_are_independent() -> None:
    stepper = Stepper([LOAD, LOAD, Finish()], TINY)
    twin = stepper.copy()
    twin.run(0)
    twin.block(Unit.COMPUTE)
    assert (stepper.heads(), twin.heads()) == ([0, 2], [1])
    assert (stepper.executed, twin.executed) == (0, 1)


def test_waiting_units_and_their_tokens() -> None:
    program = [
        Load(memory=Memory.INP, pop_next=True, push_next=True),
        Alu(pop_prev=True, pop_next=True, push_prev=True),
        Store(pop_prev=True),
        Finish(),
    ]
    waiting = Stepper(program, TINY).waiting()
    assert waiting == [
        Waiting(unit=Unit.LOAD, index=0, counter=C_L, pusher=1),
        Waiting(unit=Unit.COMPUTE, index=1, counter=L_C, pusher=0),
        Waiting(unit=Unit.COMPUTE, index=1, counter=S_C, pusher=None),
        Waiting(unit=Unit.STORE, index=2, counter=C_S, pusher=None),
    ]
    assert explain_deadlock(waiting[:3]) == (
        "deadlock: load waits at instruction 0 for a token from compute; the next to push one is "
        "instruction 1, which cannot run; compute waits at instruction 1 for a token from load; the next "
        "to push one is instruction 0, which cannot run; compute waits at instruction 1 for a token from "
        "store; no instruction left in the store unit pushes one"
    )


def test_a_pushing_instruction_that_fetch_cannot_reach_is_named() -> None:
    """The compute queue is full of instructions that wait for a later one."""
    program = [Alu(pop_prev=True), Alu(), Load(memory=Memory.INP, push_next=True), Finish()]
    stepper = Stepper(program, TINY.override({"compute_queue": 1}))
    assert stepper.heads() == []
    assert stepper.waiting() == [Waiting(unit=Unit.COMPUTE, index=0, counter=L_C, pusher=2)]
    assert Stepper(program, TINY).heads() == [2]


@pytest.mark.parametrize("tokens", [(0, 0, 0, 0), (1, 0, 0, 0)])
def test_a_deadlock_without_anybody_waiting_for_tokens_has_words_too(tokens: tuple[int, ...]) -> None:
    assert Stepper([LOAD, Finish()], TINY, tokens=tokens).waiting() == []
    assert explain_deadlock([]) == (
        "deadlock: fetch cannot hand out the next instruction and no unit has work"
    )
