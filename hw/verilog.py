"""The machine as Verilog, for other simulators and for synthesis."""

from typing import Any

from accel.hw.hdl import rtlil_text, yosys

_ATTRIBUTES = ("generator", "top", "src", "amaranth.hierarchy", "amaranth.decoding")


def verilog_text(design: Any, name: str) -> str:
    """A component as Verilog that Verilator, Icarus and synthesis tools take.

    Processes are kept as multiplexers free of ``always @*``, which some simulators would not run at time 0.
    """
    removed = " ".join(f"-remove {attribute}" for attribute in _ATTRIBUTES)
    return yosys(
        rtlil_text(design, name),
        [
            "proc -nomux -norom",
            "memory_collect",
            f"attrmap {removed}",
            f"attrmap -modattr {removed}",
            "write_verilog -sv -norename",
        ],
    )
