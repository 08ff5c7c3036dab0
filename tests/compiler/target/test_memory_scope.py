"""Memory scopes: names of scratchpads, with the facts that the memory declarations state."""

import numpy as np
import pytest

import accel
from accel.base.errors import ScheduleError
from accel.compiler.target.memory_scope import check_scope, scopes
from accel.core.config import NAMED
from accel.core.isa import Memory
from accel.core.scratchpad_specs import INP, WGT
from accel.sim.functional.scratchpads import Scratchpads
from tests.expect import refused


def test_the_scopes_of_a_machine() -> None:
    named = scopes(NAMED["vta"])
    found = {name: (scope.memory, scope.element, scope.dtype, scope.depth) for name, scope in named.items()}
    assert found == {
        "inp_buffer": (Memory.INP, (1, 16), "int8", 2048),
        "wgt_buffer": (Memory.WGT, (16, 16), "int8", 1024),
        "acc_buffer": (Memory.ACC, (1, 16), "int32", 2048),
    }
    assert [str(scope) for scope in named.values()] == list(named)


@pytest.mark.parametrize("name", NAMED)
def test_scopes_equal_the_simulators_scratchpads(name: str) -> None:
    config = NAMED[name]
    pads = Scratchpads.zeros(config)
    for scope in scopes(config).values():
        array = pads.of(scope.scratchpad)
        held = np.dtype(scope.scratchpad.held_dtype(config))
        assert (array.shape, array.dtype) == ((scope.depth, *scope.element), held)
        wide = {INP: config.post, WGT: config.wgt_zero}.get(scope.scratchpad, 0)
        assert held == np.dtype(scope.dtype) or wide


def test_invalid_scopes_are_refused() -> None:
    scope = accel.machine("tiny").acc_buffer
    assert check_scope(scope) is scope
    with refused(ScheduleError, "'acc' is not a memory scope; take a machine's, as machine.acc_buffer"):
        check_scope("acc")
