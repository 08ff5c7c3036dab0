"""The machine as Verilog, for other simulators and for synthesis."""

from typing import Any

from accel.hw.hdl import rtlil_text, yosys

_ATTRIBUTES = ("generator", "top", "src", "amaranth.hierarchy", "amaranth.decoding")


def verilog_text(design: Any, name: str) -> str:
    """A component as Verilog that Verilator, Icarus and synthesis tools take.

    Processes become multiplexers, free of ``always @*`` and ``always_comb``: Icarus does not run the one at
    time 0, and runs the other for ever where it writes and reads parts of one vector. Wires without bits,
    which Verilog would take for two, are dropped.
    """
    removed = " ".join(f"-remove {attribute}" for attribute in _ATTRIBUTES)
    return yosys(
        rtlil_text(design, name),
        [
            "proc -norom",
            "memory_collect",
            f"attrmap {removed}",
            f"attrmap -modattr {removed}",
            "clean",
            "write_verilog -sv",
        ],
    )
