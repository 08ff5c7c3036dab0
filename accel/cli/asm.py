"""``accel asm``: assembly text to a program file."""

from pathlib import Path

import click

from accel.assembly import load_assembly
from accel.base.atomic_files import check_targets
from accel.cli.shared_options import figures_table, json_option, print_json, show
from accel.cli.stdout import wrote
from accel.run.result import SCHEMA_VERSION


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The program file.")
@json_option
def asm(file: Path, output: Path, as_json: bool) -> None:
    """Assemble a text into a program file.

    'accel disasm' prints the same language, which docs/reference/assembly.md describes. The program file
    also contains the initial state and the expected results of a test.

    \b
    Example:
      accel asm test.s -o test.accel
    """
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
    show(figures_table(rows))
    wrote(output)
