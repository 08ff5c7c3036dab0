import click

from accel.cli.command_groups import runs
from accel.cli.declared_options import config_option, engine_option, json_option, set_option


@click.command("build-rtl")
@config_option("vta")
@set_option("geometry or timing")
@engine_option("What simulates the hardware.")
@json_option
@runs("accel.cli.build_rtl:build_rtl")
def build_rtl() -> None:
    """Build the hardware model of a machine ahead.

    'accel run --backend rtl' and 'accel lockstep' build it when they first need it, which takes about half a
    minute, and keep it. This command does so before, for example in the set-up of a CI job.

    \b
    Example:
      accel build-rtl --config tiny
    """
