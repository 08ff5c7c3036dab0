"""``accel build-rtl``: build the hardware model before it is needed."""

import time

import click

from accel.cli.shared_options import (
    busy,
    config_option,
    engine_option,
    figures_table,
    json_option,
    machine_row,
    parse_settings,
    print_json,
    set_option,
    show,
)
from accel.compiler.target.machine import machine
from accel.run.result import SCHEMA_VERSION


@click.command("build-rtl")
@config_option("vta")
@set_option("geometry or timing")
@engine_option("What simulates the hardware.")
@json_option
def build_rtl(config: str, settings: tuple[str, ...], engine: str | None, as_json: bool) -> int:
    """Build the hardware model of a machine ahead.

    'accel run --backend rtl' and 'accel lockstep' build it when they first need it, which takes about half a
    minute, and keep it. This command does so before, for example in the set-up of a CI job.

    \b
    Example:
      accel build-rtl --config tiny
    """
    from accel.hw.engines.open_engine import DEFAULT_ENGINE, open_engine  # noqa: PLC0415  # slow to import

    target = machine(config, **parse_settings(settings))
    begin = time.perf_counter()
    with busy("building the hardware model"):
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
    show(figures_table([machine_row(target.config), ("engine", name), ("ready in", f"{seconds:.1f} s")]))
    return 0
