"""The strategies of a chain's tokens share instructions with flags, and each is timed once."""

from typing import Any

import pytest

from accel.network import chain_waits
from accel.network.digits import digits_network
from accel.sim.timing import timed_program


def test_an_instruction_is_timed_once_for_all_strategies(monkeypatch: pytest.MonkeyPatch) -> None:
    programs: list[list[object]] = []
    timed: list[object] = []
    simulate, timing_of = chain_waits.simulate_timing, timed_program._timing_of

    def simulated(program: Any, *arguments: Any, **options: Any) -> Any:
        programs.append(list(program))
        return simulate(program, *arguments, **options)

    def counted(instruction: Any, *arguments: Any, **options: Any) -> Any:
        timed.append(instruction)
        return timing_of(instruction, *arguments, **options)

    monkeypatch.setattr(chain_waits, "simulate_timing", simulated)
    monkeypatch.setattr(timed_program, "_timing_of", counted)
    digits_network().build("vta-int8")
    assert len(programs) >= 2
    distinct = [len({id(one) for one in program}) for program in programs]
    together = len({id(one) for program in programs for one in program})
    assert together < sum(distinct), "strategies differ in few flags only"
    assert len(timed) == len({id(one) for one in timed}) == together
