"""Programs in a session's DRAM: linked once, and freed with their last user."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import accel
from accel.base.errors import ProgramError
from accel.base.records import replace
from accel.image.linker import Linker
from accel.run.program import Program
from accel.run.session import Session
from tests.expect import refused
from tests.programs import TINY, gemm_program

SMALL = TINY.override({"mem_size": 1 << 20})


def another(program: Program, config: accel.Config = SMALL) -> Program:
    return program.with_timing(config)


@pytest.fixture
def placements(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A list with an entry for every time that a program is linked."""
    seen: list[Any] = []
    linked: Callable[..., Any] = Linker.linked

    def noted(*args: Any) -> Any:
        seen.append(args)
        return linked(*args)

    monkeypatch.setattr(Linker, "linked", noted)
    return seen


def test_a_program_is_linked_once_if_its_tensors_stay(placements: list[Any]) -> None:
    session, program = Session(TINY), gemm_program(bias=True)
    inputs = {name: session.tensor(value) for name, value in program.random_inputs(0).items()}
    for _ in range(5):
        session.run(program, inputs)
    assert len(placements) == 1


def test_a_program_that_reads_its_own_output_is_linked_twice(placements: list[Any]) -> None:
    square = TINY.override({"block_in": 4, "block_out": 4})
    session, program = Session(square), gemm_program(8, 8, 8, config=square, shift=5)
    given = program.random_inputs(0)
    x: Any = session.tensor(given["A"])
    weight = session.tensor(given["B"])
    right = given["A"]
    for _ in range(7):
        x = session.run(program, {"A": x, "B": weight})["C"]
        right = program.reference({"A": right, "B": given["B"]})["C"]
    np.testing.assert_array_equal(x.numpy(), right)
    assert len(placements) <= 4
    assert session.packing.packed == 2


def test_deleted_programs_do_not_fill_the_window() -> None:
    program, session = gemm_program(), Session(SMALL)
    for _ in range(300):
        session.run(another(program), check=False)
    assert len(session._programs) <= 1


def test_programs_in_use_stay() -> None:
    program, session = gemm_program(), Session(TINY.override({"mem_size": 1 << 15}))
    held = [another(program, session.config)]

    def fill() -> None:
        while True:
            session.run(held[-1], check=False)
            held.append(another(program, session.config))

    with pytest.raises(ProgramError, match="the session needs"):
        fill()
    assert len(held) > 2
    del held[1:]
    session.run(another(program, session.config))


def test_session_and_program_do_not_keep_each_other_alive() -> None:
    program = another(gemm_program())
    session = Session(SMALL)
    session.run(program)
    result = session.results[-1]
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is None
    assert result.image.instructions
    kept = another(gemm_program())
    session.run(kept)
    over = weakref.ref(session)
    del session
    gc.collect()
    assert over() is None
    assert kept.run().mismatches == 0


def test_a_closed_session_holds_no_programs() -> None:
    program, session = gemm_program(), Session(TINY)
    session.run(program)
    session.close()
    assert len(session._programs) == 0
    assert not list(session._dram.pages())


@pytest.mark.parametrize("name", ["A", "C"])
@pytest.mark.parametrize("symbolic", [True, False])
def test_data_in_a_tensor_is_refused(name: str, symbolic: bool) -> None:
    program = gemm_program()
    tensor = next(t for t in program.tensors if t.name == name)
    held = replace(
        program,
        segments=(*program.segments, (tensor.offset, b"abc")),
        references=program.references if symbolic else None,
    )
    with refused(
        ProgramError,
        f"the program holds data at {tensor.offset:#x}, in an input or output; "
        f"in a session these hold the session's tensors",
    ):
        Session(TINY).run(held)
