"""Programs by their distinct instructions, and properties of the whole program."""

import numpy as np
from hypothesis import given

from accel.base.interned_sequence import Distinct
from accel.core.config import NAMED
from accel.core.fault_causes import fetch_fault, fetch_faults
from accel.core.isa import Finish, Gemm, Instruction, Load, Memory, Store, Unknown
from accel.core.token_rules import Counter, Stepper, TokenFlow
from tests.strategies import examples, programs

TINY = NAMED["tiny"]


def test_each_object_once_in_order_of_appearance() -> None:
    load, gemm = Load(memory=Memory.INP), Gemm()
    program = Distinct([load, gemm, load, load])
    assert (program.every, program.places.tolist(), len(program)) == ([load, gemm], [0, 1, 0, 0], 4)
    assert program.column(lambda one: int(one.unit)).tolist() == [1, 2, 1, 1]
    assert program.where(lambda one: isinstance(one, Load)).tolist() == [0, 2, 3]
    assert (Distinct([]).every, len(Distinct([]))) == ([], 0)


def test_chosen_items_are_in_order_of_appearance() -> None:
    found = Distinct.chosen("abcd", np.array([3, 1, 3, 0]))
    assert (found.every, found.places.tolist(), [*found]) == (["d", "b", "a"], [0, 1, 0, 2], [*"dbda"])
    longer = found.followed_by("e")
    assert ([*longer], longer.every) == ([*"dbdae"], [*"dbae"])
    assert Distinct.of(longer) is longer
    assert [*Distinct.chosen("", np.zeros(0, dtype=np.intp))] == []


def test_faults_of_fetch_are_those_of_each_instruction() -> None:
    for body in ([Gemm(), Finish(), Unknown(opcode=7), Store()], [Finish()], [], [Unknown(opcode=6)]):
        program: list[Instruction] = list(body)
        each = {n: fetch_fault(one, n, len(program), TINY) for n, one in enumerate(program)}
        found = fetch_faults(Distinct(program), TINY)
        assert found == {n: fault for n, fault in each.items() if fault is not None}


@examples(200)
@given(programs(TINY, wild=True, size=12))
def test_what_runs_as_it_is_written_is_run_so(program: list[Instruction]) -> None:
    """The token machine, from which the earliest instruction that may run is taken, walks the same way."""
    program = [one for one in program if not isinstance(one, Unknown)]
    tokens = (1, 0, 2, 1)
    flow = TokenFlow(Distinct(program), tokens)
    stepper = Stepper(program, TINY, tokens=tokens)
    highest = dict.fromkeys(Counter, 0)
    order = []
    while (index := stepper.first()) is not None:
        stepper.run(index)
        order.append(index)
        for counter in stepper.pushes[index]:
            highest[counter] = max(highest[counter], stepper.tokens[counter])
    assert flow.in_order == (order == list(range(len(program))))
    if flow.in_order:
        assert list(flow.left_over) == stepper.tokens
        assert {counter: flow.highest(counter) for counter in Counter} == highest
