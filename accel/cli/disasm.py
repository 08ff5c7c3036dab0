from pathlib import Path

from accel.assembly import disassemble
from accel.cli.shared_options import load_program
from accel.cli.stdout import write


def disasm(file: Path, micro_ops: int) -> None:
    write(disassemble(load_program(file), micro_ops=micro_ops))
