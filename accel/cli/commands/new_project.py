from pathlib import Path

import click

from accel.cli.command_groups import runs
from accel.cli.declared_options import json_option


@click.command("new-project")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@json_option
@runs("accel.cli.new_project:new_project")
def new_project() -> None:
    """Write a project with a schedule, its tests and a CI workflow.

    DIR is created. It gets a matrix product with a schedule to change, a test on the simulator, a cocotb test
    on the core's Verilog, and a GitHub Actions workflow that runs both. The tests pass as they are.

    \b
    Example:
      accel new-project my-core
      cd my-core
      pytest test_schedule.py
    """
