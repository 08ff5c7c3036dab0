"""The token check of a program."""

from collections.abc import Sequence

from accel.core.isa import Instruction
from accel.image.image import Image
from accel.proof.token_check import TokenReport, check_tokens


def check_program(program: Image, instructions: Sequence[Instruction] | None = None) -> TokenReport:
    begin = program.config.mem_base + program.code_offset
    return check_tokens(
        program.instructions if instructions is None else instructions,
        program.config,
        memory=program.dram(),
        program_span=(begin, begin + len(program.code)),
        tokens=program.start.tokens,
        contents=program.start.contents,
    )
