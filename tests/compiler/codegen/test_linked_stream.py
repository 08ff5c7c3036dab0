"""From emitted instructions to an encoded program: references, addresses, and
dependences through DRAM."""

from itertools import pairwise

import pytest

import accel
from accel import te
from accel.base.errors import ScheduleError
from accel.compiler.codegen.linked_stream import Stream, linked_stream
from accel.compiler.codegen.nest_emission import Emission
from accel.compiler.codegen.reorder_passes import reorder
from accel.compiler.codegen.statement_origins import Origins
from accel.core.config import PAGE_BYTES, Config
from accel.core.instruction_access import dram_rows
from accel.core.isa import Finish, Load, Memory, decode, encode, encode_uops
from tests.compiler import gemms
from tests.expect import refused

M = accel.machine("gemm8x8")


def stream(schedule: te.Schedule, config: Config = M.config) -> tuple[Emission, Stream]:
    nest = te.tensorize(schedule)
    emission = Emission(nest, config)
    return emission, linked_stream(emission, reorder(emission.program()), Origins(nest, schedule.steps))


def two_stages() -> te.Schedule:
    return gemms.two_stages(M, 8, 12, 40, 24, early=True)


def test_each_part_starts_on_its_own_page() -> None:
    """The order is: tensors by first use, micro-ops, code."""
    emission, found = stream(two_stages())
    parts = found.references.parts
    assert parts == tuple(emission.dram.parts)
    assert [part.name for part in parts[-2:]] == ["micro_ops", "code"]
    assert all(one.stop <= other.offset for one, other in pairwise(parts))
    assert all(part.offset % PAGE_BYTES == 0 for part in parts)
    assert (found.uop_offset, len(found.uops)) == (parts[-2].offset, parts[-2].nbytes)
    assert (found.code_offset, len(found.code)) == (parts[-1].offset, parts[-1].nbytes)


def test_addresses_are_a_parts_base_plus_the_emitted_offset() -> None:
    emission, found = stream(two_stages())
    emitted = [one for one in emission.program().emitted if one.part >= 0]
    program = decode(found.code, M.config)
    touching = []
    for index, one in enumerate(program):
        rows, part = dram_rows(one, M.config), found.references.part(index)
        assert (rows is None) == (part is None)
        if rows is not None and part is not None and part.name != "micro_ops":
            touching.append((one.mnemonic, part.name, rows.start - part.offset))
    assert touching == [
        (
            one.instruction.mnemonic,
            emission.dram.parts[one.part].name,
            0 if rows is None else rows.start,
        )
        for one in emitted
        for rows in [dram_rows(one.instruction, M.config)]
    ]


def test_micro_ops_are_loaded_from_their_part() -> None:
    emission, found = stream(two_stages())
    program = decode(found.code, M.config)
    (load,) = (one for one in program if isinstance(one, Load) and one.memory == Memory.UOP)
    rows = dram_rows(load, M.config)
    assert rows is not None
    assert (rows.start, rows.rows * rows.row_bytes) == (found.uop_offset, len(found.uops))
    lists = [encode_uops(one.uops, M.config).tobytes() for one in emission.program().emitted if len(one.uops)]
    assert all(one in found.uops for one in lists)


def test_the_program_ends_with_finish_and_code_encodes_its_instructions() -> None:
    _, found = stream(two_stages())
    program = decode(found.code, M.config)
    assert program[-1] == Finish()
    assert encode(program, M.config) == found.code
    assert len(found.references.of) == len(found.provenance) == len(program)


@pytest.mark.parametrize("missing", [1, PAGE_BYTES])
def test_no_room_for_the_code(missing: int) -> None:
    _, found = stream(two_stages())
    need = found.code_offset + len(found.code)
    config = M.config.override({"mem_size": need - missing})
    with refused(
        ScheduleError,
        f"the program's tensors need {need} bytes of DRAM; the window has mem_size={need - missing}",
    ):
        stream(two_stages(), config)
