from accel.cli.stdout import write
from accel.core.register_manual import c_header, registers_manual


def registers(as_c: bool) -> None:
    write(c_header() if as_c else registers_manual())
