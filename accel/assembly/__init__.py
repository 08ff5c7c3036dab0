"""Programs as text: a readable listing that assembles back bit for bit, and whole tests in one file.

``docs/reference/assembly.md`` describes the language.
"""

from accel.assembly.assembler import assemble, load_assembly
from accel.assembly.disassembler import code_lines, disassemble
from accel.assembly.instruction_comments import Annotator
from accel.assembly.symbolic_names import PlaceNames, places, stage_label, token_label

__all__ = [
    "Annotator",
    "PlaceNames",
    "assemble",
    "code_lines",
    "disassemble",
    "load_assembly",
    "places",
    "stage_label",
    "token_label",
]
