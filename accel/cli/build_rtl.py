import time

from accel.base.notices import listening
from accel.cli.shared_options import machine_row, parse_settings
from accel.cli.terminal_output import FiguresTable, print_json, progress_bar, show
from accel.compiler.target.machine import machine
from accel.run.result import SCHEMA_VERSION


def build_rtl(config: str, settings: tuple[str, ...], engine: str | None, as_json: bool) -> int:
    from accel.hw.engines.open_engine import DEFAULT_ENGINE, open_engine  # slow to import

    target = machine(config, **parse_settings(settings))
    begin = time.perf_counter()
    with progress_bar("building the hardware model") as progress, listening(progress):
        open_engine(target.config, engine).close()
    seconds = time.perf_counter() - begin
    name = engine or DEFAULT_ENGINE
    if as_json:
        print_json(
            {
                "schema_version": SCHEMA_VERSION,
                "config": target.config.label,
                "engine": name,
                "seconds": seconds,
            }
        )
        return 0
    show(FiguresTable([machine_row(target.config), ("engine", name), ("ready in", f"{seconds:.1f} s")]))
    return 0
