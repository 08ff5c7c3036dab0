from pathlib import Path

from accel.assembly import load_assembly
from accel.base.atomic_files import check_targets
from accel.cli.stdout import wrote
from accel.cli.terminal_output import FiguresTable, print_json, show
from accel.run.result import SCHEMA_VERSION


def asm(file: Path, output: Path, as_json: bool) -> None:
    check_targets({"-o": output}, {"FILE": file})
    image = load_assembly(file)
    image.save(output)
    figures = {
        "schema_version": SCHEMA_VERSION,
        "config": image.config.label,
        "instructions": len(image.instructions),
        "data_bytes": sum(len(content) for _, content in image.segments),
        "dram_bytes": image.size,
        "test": image.expected is not None,
        "output": str(output),
    }
    if as_json:
        print_json(figures)
        return
    expected = image.expected
    checks = 0 if expected is None else len(expected.memory) + len(expected.contents) + 1
    rows = [
        ("machine", str(image.config)),
        ("instructions", f"{figures['instructions']:,}"),
        ("data", f"{figures['data_bytes']:,} bytes"),
        ("expectations", f"{checks:,}" if checks else "none"),
    ]
    show(FiguresTable(rows))
    wrote(output)
