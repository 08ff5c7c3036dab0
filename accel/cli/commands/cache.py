import click

from accel.cli.command_groups import runs
from accel.cli.declared_options import json_option


@click.command("cache")
@click.option("--clear", is_flag=True, help="Delete all entries.")
@json_option
@runs("accel.cli.cache:cache")
def cache() -> None:
    """Show or clear the cache of plans, networks and placements.

    The compiler keeps the plans that it has chosen, and 'accel compile' and 'accel run' whole networks, so
    that compiling again is reading. Such an entry counts only for the source files that wrote it. 'accel
    explore' keeps placements of cores, by hardware, seed and versions of the tools. The folder is
    accel/results in $XDG_CACHE_HOME or ~/.cache, or $ACCEL_CACHE. ACCEL_CACHE=off and 'accel --no-cache
    COMMAND' turn the cache off.

    \b
    Example:
      accel cache
      accel cache --clear
    """
