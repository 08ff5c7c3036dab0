"""Errors: exit codes, nearest names, and errors that travel between processes."""

import pickle

import pytest

from accel.base.errors import (
    AccelError,
    ConfigError,
    DeadlockError,
    LimitExceeded,
    MachineError,
    MismatchError,
    ProgramError,
    ProgramFault,
    RaceError,
    ScheduleError,
    ShapeError,
    TensorizeError,
    nearest,
)
from accel.core.fault_causes import Cause


@pytest.mark.parametrize("kind", [ConfigError, ShapeError, ScheduleError, TensorizeError, ProgramError])
def test_bad_input_exits_with_2(kind: type[AccelError]) -> None:
    assert kind.exit_code == 2


@pytest.mark.parametrize("kind", [MachineError, DeadlockError, LimitExceeded, RaceError, MismatchError])
def test_a_program_at_fault_exits_with_1(kind: type[AccelError]) -> None:
    assert kind.exit_code == 1
    assert issubclass(kind, ProgramFault)


@pytest.mark.parametrize("kind", [MachineError, DeadlockError, LimitExceeded])
def test_machine_errors_are_pickled_with_all_they_carry(kind: type[MachineError]) -> None:
    error = pickle.loads(pickle.dumps(kind("why", cause=Cause.LIMIT, index=3, cycle=9)))
    assert type(error) is kind
    assert (str(error), error.cause, error.index, error.cycle) == ("why", Cause.LIMIT, 3, 9)


def test_the_nearest_name_or_all() -> None:
    assert nearest("batsh", ["block", "batch"]) == "did you mean 'batch'?"
    assert nearest("xyz", ["b", "a"]) == "valid are a, b"


def test_a_list_is_cut_only_where_that_spares_the_reader_something() -> None:
    names = [f"n{index:02}" for index in range(40)]
    assert nearest("xyz", names[:28]) == "valid are " + ", ".join(names[:28])
    assert nearest("xyz", names) == "valid are " + ", ".join(names[:24]) + ", and 16 more"
