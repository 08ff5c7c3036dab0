"""Programs as text that assembles back bit for bit, see ``docs/reference/assembly.md``."""

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
