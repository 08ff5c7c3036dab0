from accel.base.notices import notice
from accel.cli.shared_options import machine_text, parse_settings
from accel.cli.stdout import write
from accel.compiler.target.machine import machine
from accel.core.isa_c_header import isa_c_header
from accel.core.isa_manual import isa_manual


def isa(config: str, settings: tuple[str, ...], as_c: bool) -> None:
    target = machine(config, **parse_settings(settings))
    notice(f"the {'header' if as_c else 'manual'} of {machine_text(target.config)}")
    write(isa_c_header(target.config) if as_c else isa_manual(target.config))
