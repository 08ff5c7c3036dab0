"""Programs whose parts lie elsewhere compute the same in as many cycles."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.base.errors import ProgramError
from accel.core.config import PAGE_BYTES
from accel.core.isa import Load, Memory, Store
from accel.image.image import ImageTensor
from accel.image.layout import blocked
from accel.image.relocation import Part, parts, relocated
from accel.run.program import Program, as_program
from tests.compiler.convs import convolutions
from tests.expect import refused
from tests.programs import TINY, gemm_program, handmade
from tests.strategies import examples


@examples(25)
@given(convolutions(TINY, 1), st.randoms(use_true_random=False))
def test_parts_in_any_order(workload: accel.Workload, random: st.DrawFn) -> None:
    program = accel.build(workload, TINY)
    own = list(parts(program))
    assert all(one.stop <= other.offset for one, other in pairwise(own))
    covered = {byte for start, stop in program.spans() for byte in (start, stop - 1)}
    assert all(any(one.offset <= byte < one.stop for one in own) for byte in covered)
    random.shuffle(own)  # type: ignore[attr-defined]
    places: dict[Part, int] = {}
    offset = 7 * PAGE_BYTES
    for part in own:
        places[part] = offset + part.offset % PAGE_BYTES
        offset = -(-(places[part] + part.nbytes) // PAGE_BYTES) * PAGE_BYTES
    moved = as_program(relocated(program, places))
    there, here = moved.run(), program.run()
    assert there.mismatches == 0
    assert there.cycles == here.cycles
    np.testing.assert_array_equal(there.outputs["out"], here.outputs["out"])
    moved.check().raise_if_bad()


def test_a_part_stays_where_it_is_in_its_page() -> None:
    program = gemm_program()
    first, *rest = parts(program)
    places = {part: part.offset for part in rest} | {first: first.offset + 16}
    message = (
        f"a part of the program is moved from {first.offset:#x} to {first.offset + 16:#x}; "
        f"it may move by multiples of {PAGE_BYTES} bytes"
    )
    with refused(ProgramError, message):
        relocated(program, places)


def _tensor(name: str, offset: int, role: str = "input") -> ImageTensor:
    layout = blocked((16,), ((0, 16),))
    return ImageTensor(name=name, role=role, dtype="int8", offset=offset, layout=layout)  # type: ignore[arg-type]


def _with(*tensors: ImageTensor) -> Program:
    size = TINY.inp_element_bytes
    load = Load(memory=Memory.INP, dram_base=0, x_size=PAGE_BYTES // size + 1, y_size=1, x_stride=1)
    return handmade(load, Store(x_size=0), tensors=tensors)


def test_a_transfer_of_two_parts() -> None:
    program = _with(_tensor("A", 0), _tensor("B", PAGE_BYTES // 2))
    places = {part: part.offset + PAGE_BYTES * (n + 1) for n, part in enumerate(parts(program))}
    with pytest.raises(
        ProgramError, match=r"LOAD.INP touches bytes 0x0\.\.0x1003, which belong to more than one"
    ):
        relocated(program, places)


def test_tensors_that_overlap() -> None:
    with refused(ProgramError, "the program cannot be moved in DRAM: its inputs and outputs overlap"):
        parts(_with(_tensor("A", 0), _tensor("B", 8)))
