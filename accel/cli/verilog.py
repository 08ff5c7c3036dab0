"""``accel verilog``: the hardware as Verilog."""

from pathlib import Path
from typing import Literal

import click

from accel.base.atomic_files import check_targets, write_atomically
from accel.cli.shared_options import (
    busy,
    config_file,
    config_option,
    figures_table,
    json_option,
    parse_settings,
    print_json,
    set_option,
    show,
)
from accel.cli.stdout import wrote
from accel.core.config import load_config
from accel.core.isa import check_encodable
from accel.run.result import SCHEMA_VERSION


@click.command()
@config_option("vta")
@set_option("geometry or timing")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The Verilog file.")
@click.option(
    "--memories",
    type=click.Choice(["inline", "blackbox"]),
    default="inline",
    show_default=True,
    help="Scratchpads as arrays, or as instances of your own module 'accel_memory'.",
)
@click.option("--slices", is_flag=True, help="Add a register slice to every channel of both buses.")
@click.option(
    "--aresetn", is_flag=True, help="Name clock and reset as in AXI: aclk and aresetn (active low)."
)
@json_option
def verilog(
    config: str,
    settings: tuple[str, ...],
    output: Path,
    memories: str,
    slices: bool,
    aresetn: bool,
    as_json: bool,
) -> None:
    """Write the core as Verilog, for simulation and synthesis.

    The module 'accel' has a clock, a synchronous reset, an AXI4 manager, an AXI4-Lite subordinate and an
    interrupt. docs/how-to/simulate-the-core-in-ci.md shows how to simulate it.

    \b
    Example:
      accel verilog --config ecp5 -o accel.v
      accel verilog --config vta --set bus_bits=128 --memories blackbox -o accel.v
      accel verilog --config ecp5 --slices --aresetn -o accel.v
    """
    from accel.hw.export.verilog import core_verilog  # noqa: PLC0415  # Amaranth takes a while to import

    check_targets({"-o": output}, config_file(config))
    machine = load_config(config).variant(parse_settings(settings))
    check_encodable(machine)
    with busy("writing Verilog"):
        boxed: Literal["blackbox", "inline"] = "blackbox" if memories == "blackbox" else "inline"
        text = core_verilog(machine, memories=boxed, slices=slices, aresetn=aresetn)
    write_atomically(output, text.encode())
    figures = {
        "schema_version": SCHEMA_VERSION,
        "config": machine.name,
        "module": "accel",
        "memories": memories,
        "slices": slices,
        "aresetn": aresetn,
        "lines": len(text.splitlines()),
        "output": str(output),
    }
    if as_json:
        print_json(figures)
        return
    rows = [
        ("machine", str(machine)),
        ("module", "accel"),
        ("memories", memories),
        *([("slices", "in every channel")] if slices else []),
        *([("reset", "aresetn")] if aresetn else []),
        ("lines", f"{figures['lines']:,}"),
    ]
    show(figures_table(rows))
    wrote(output)
