from pathlib import Path
from typing import Literal

from accel.base.atomic_files import check_targets, write_atomically
from accel.cli.shared_options import config_file, machine_row, parse_settings
from accel.cli.stdout import wrote
from accel.cli.terminal_output import FiguresTable, busy, print_json, show
from accel.core.config import load_config
from accel.core.isa import check_encodable
from accel.run.result import SCHEMA_VERSION


def verilog(
    config: str,
    settings: tuple[str, ...],
    output: Path,
    memories: str,
    slices: bool,
    aresetn: bool,
    as_json: bool,
) -> None:
    from accel.hw.export.verilog import core_verilog  # Amaranth takes a while to import

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
        machine_row(machine),
        ("module", "accel"),
        ("memories", memories),
        *([("slices", "in every channel")] if slices else []),
        *([("reset", "aresetn")] if aresetn else []),
        ("lines", f"{figures['lines']:,}"),
    ]
    show(FiguresTable(rows))
    wrote(output)
