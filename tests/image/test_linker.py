"""Moved programs compute the same in the same number of cycles."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.base.errors import ProgramError
from accel.base.records import replace
from accel.core.config import PAGE_BYTES
from accel.core.isa import Load, Memory, Store, Transfer
from accel.image.dram_references import NO_PART, Part, References
from accel.image.image import ImageTensor, check_image
from accel.image.linker import alignment, linked, parts
from accel.image.packed_layout import blocked
from accel.image.test_scenario import Expected
from accel.run.program import Program
from tests.compiler.convs import convolutions
from tests.expect import refused
from tests.programs import TINY, gemm_program, handmade
from tests.strategies import examples


def shuffled(program: Program, random: Random, first: int = 7 * PAGE_BYTES) -> dict[Part, int]:
    """Return new offsets for the parts, which follow one another in another order."""
    own = list(parts(program))
    random.shuffle(own)
    step = alignment(program.config)
    places: dict[Part, int] = {}
    offset = -(-first // step) * step
    for part in own:
        places[part] = offset + part.offset % step
        offset = -(-(places[part] + part.nbytes) // step) * step
    return places


@examples(25)
@given(convolutions(TINY, 1), st.randoms(use_true_random=False), st.booleans())
def test_parts_in_any_order(workload: accel.Workload, random: Random, symbolic: bool) -> None:
    """References from the compiler, and references derived from addresses."""
    program = accel.build(workload, TINY)
    if not symbolic:
        program = replace(program, references=None)
    own = parts(program)
    assert all(one.stop <= other.offset for one, other in pairwise(own))
    covered = {byte for start, stop in program.spans() if start < stop for byte in (start, stop - 1)}
    assert all(any(one.offset <= byte < one.stop for one in own) for byte in covered)
    moved = linked(program, shuffled(program, random))
    there, here = moved.run(), program.run()
    assert there.mismatches == 0
    assert there.cycles == here.cycles
    np.testing.assert_array_equal(there.outputs["out"], here.outputs["out"])
    moved.check().raise_if_bad()
    check_image(moved)
    there_again = linked(moved, shuffled(moved, random, PAGE_BYTES))
    home = zip(_parts_of(there_again), _parts_of(linked(program, {})), strict=True)
    back = linked(there_again, {part: old.offset for part, old in home})
    assert back == replace(program, references=back.references)


def _parts_of(program: Program) -> tuple[Part, ...]:
    """As references number them."""
    assert program.references is not None
    return program.references.parts


def test_instructions_refer_to_parts_by_name() -> None:
    program = gemm_program(bias=True)
    found = program.references
    assert found is not None
    names = {
        (one.mnemonic, part.name)
        for n, one in enumerate(program.instructions)
        if (part := found.part(n)) is not None
    }
    assert names == {
        ("LOAD.UOP", "micro_ops"),
        ("LOAD.ACC", "bias"),
        ("LOAD.INP", "A"),
        ("LOAD.WGT", "B"),
        ("STORE.OUT", "C"),
    }
    assert [part.name for part in found.parts if part.name not in ("A", "B", "C", "bias")] == [
        "micro_ops",
        "code",
    ]
    places = {tensor.name: (tensor.offset, tensor.nbytes) for tensor in program.tensors}
    assert {p.name: (p.offset, p.nbytes) for p in found.parts if p.name in places} == places


def test_only_addresses_change() -> None:
    program = gemm_program(bias=True)
    moved = linked(program, {part: part.offset + 5 * PAGE_BYTES for part in parts(program)})
    assert moved.code != program.code
    for one, other in zip(program.instructions, moved.instructions, strict=True):
        assert other == (replace(one, dram_base=other.dram_base) if isinstance(one, Transfer) else one)


def test_a_part_stays_where_it_is_in_its_page() -> None:
    program = gemm_program()
    first, *rest = parts(program)
    places = {part: part.offset for part in rest} | {first: first.offset + 16}
    message = (
        f"a part of the program is moved from {first.offset:#x} to {first.offset + 16:#x}; "
        f"it may move by multiples of {PAGE_BYTES} bytes"
    )
    with refused(ProgramError, message):
        linked(program, places)


def _tensor(name: str, offset: int, role: str = "input") -> ImageTensor:
    layout = blocked((16,), ((0, 16),))
    return ImageTensor(name=name, role=role, dtype="int8", offset=offset, layout=layout)  # type: ignore[arg-type]


def _with(*tensors: ImageTensor) -> Program:
    size = TINY.inp_element_bytes
    load = Load(memory=Memory.INP, dram_base=0, x_size=PAGE_BYTES // size, y_size=1, x_stride=1)
    return handmade(load, Store(x_size=0), tensors=tensors)


def test_a_transfer_of_two_parts() -> None:
    program = _with(_tensor("A", 0), _tensor("B", PAGE_BYTES // 2))
    with pytest.raises(
        ProgramError, match=r"LOAD.INP touches bytes 0x0\.\.0xfff, which belong to no one of its parts"
    ):
        linked(program, {})


def test_tensors_that_overlap() -> None:
    with refused(ProgramError, "the program cannot be moved in DRAM: its inputs and outputs overlap"):
        parts(_with(_tensor("A", 0), _tensor("B", 8)))


def test_a_program_that_reads_its_own_instructions() -> None:
    program = handmade(
        Load(memory=Memory.INP, dram_base=PAGE_BYTES // TINY.inp_element_bytes, x_size=1, y_size=1)
    )
    with refused(
        ProgramError,
        "the program cannot be moved in DRAM: instruction 0, LOAD.INP, touches bytes 0x1000..0x1003, "
        "which hold the instructions, and so addresses that would change",
    ):
        parts(program)


def test_a_part_stays_in_the_window() -> None:
    program = gemm_program()
    first, *_ = parts(program)
    with refused(
        ProgramError,
        f"a part of {first.nbytes} bytes is moved to {TINY.mem_size:#x}; "
        f"the window has mem_size={TINY.mem_size}",
    ):
        linked(program, {first: TINY.mem_size})


def test_references_that_addresses_belie() -> None:
    program = gemm_program()
    found = program.references
    assert found is not None
    index = next(n for n, one in enumerate(program.instructions) if isinstance(one, Store))
    wrong = found.of.copy()
    for number, what in ((0, f"{found.parts[0].offset:#x}..{found.parts[0].stop - 1:#x}"), (NO_PART, "none")):
        wrong[index] = number
        with pytest.raises(ProgramError, match=f"and the part that it refers to is {what}$"):
            linked(replace(program, references=replace(found, of=wrong)), {})


def test_what_is_expected_moves_along() -> None:
    program = handmade(tensors=(_tensor("A", 0),), expected=Expected(memory=((8, b"abc"),)))
    (first, *_) = parts(program)
    assert first.offset == 0
    moved = linked(program, {first: 3 * PAGE_BYTES})
    assert moved.expected == Expected(memory=((3 * PAGE_BYTES + 8, b"abc"),))


def test_what_lies_in_no_part() -> None:
    """As a file may say that others have written."""
    program = gemm_program()
    found = program.references
    assert found is not None
    nothing = np.full(len(found.of), NO_PART, dtype=np.int32)
    bare = handmade(references=References(parts=(), of=nothing[:1]))
    with refused(
        ProgramError,
        "the program cannot be moved in DRAM: its content touches bytes 0x1000..0x100f, "
        "which belong to no one of its parts",
    ):
        parts(bare)
    tensor = program.tensors[0]
    short = replace(found, parts=tuple(p for p in found.parts if p.name != tensor.name), of=found.of)
    with pytest.raises(ProgramError, match="the program cannot be moved in DRAM"):
        parts(replace(program, references=replace(short, of=np.minimum(found.of, len(short.parts) - 1))))
