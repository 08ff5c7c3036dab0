"""The hardware as Verilog, for other simulators and for synthesis."""

from pathlib import Path
from typing import Any, Literal

from amaranth.hdl import ClockSignal, Instance
from amaranth.lib.memory import Memory

from accel.core.config import Config
from accel.hw.core import Core
from accel.hw.datapath.word_layouts import bits_for_depth
from accel.hw.export.chip_border import Bordered
from accel.hw.export.yosys import rtlil_text, yosys

TOP = "accel"
"""Name of the exported core."""
MEMORY = "accel_memory"
"""Module that a black box instantiates."""
MEMORY_MODEL = Path(__file__).with_name(f"{MEMORY}.v")
"""A model of that module."""
HAS_MEMORY = "ACCEL_MEMORY"
"""Macro that is defined if the module comes from elsewhere."""

Memories = Literal["inline", "blackbox"]
"""Scratchpad memories in an export: as arrays, or as instances of a module of the user's."""

LOWERED = ("proc -norom", "memory_collect")
"""Yosys passes before export: processes become multiplexers, accesses to a memory one cell."""

_ATTRIBUTES = ("generator", "top", "src", "amaranth.hierarchy", "amaranth.decoding")
_STYLE = ("WIDTH", "CASEOVERLAP", "CMPCONST", "UNSIGNED", "UNOPTFLAT")
"""Verilator warnings that are harmless in generated code: intended or constant expressions, and loops that
are none."""
_DECLARATION = f"""\
// A memory of a scratchpad. Define {HAS_MEMORY} to bring your own: docs/how-to/simulate-the-core-in-ci.md.
`ifndef {HAS_MEMORY}
/* verilator lint_off UNUSED */
/* verilator lint_off UNDRIVEN */
(* blackbox *)
module {MEMORY} #(
    parameter WIDTH = 8,
    parameter DEPTH = 2,
    parameter GRAIN = 8,
    parameter ADDRESS = 1
) (
    input clk,
    input [WIDTH / GRAIN - 1:0] write_enable,
    input [ADDRESS - 1:0] write_address,
    input [WIDTH - 1:0] write_data,
    input read_enable,
    input [ADDRESS - 1:0] read_address,
    output [WIDTH - 1:0] read_data
);
endmodule
/* verilator lint_on UNDRIVEN */
/* verilator lint_on UNUSED */
`endif
"""


class BlackBoxes:
    """A platform on which memories with a clocked read port become instances of ``accel_memory``. Queues,
    which are read combinationally, stay arrays."""

    def get_memory(self, memory: Memory) -> Any:
        (write,) = memory.write_ports
        (read,) = memory.read_ports
        if read.domain == "comb":
            return memory.elaborate(None)  # as without a platform
        width = len(write.data)
        return Instance(
            MEMORY,
            p_WIDTH=width,
            p_DEPTH=memory.depth,
            p_GRAIN=width // len(write.en),
            p_ADDRESS=bits_for_depth(memory.depth).width,
            i_clk=ClockSignal(),
            i_write_enable=write.en,
            i_write_address=write.addr,
            i_write_data=write.data,
            i_read_enable=read.en,
            i_read_address=read.addr,
            o_read_data=read.data,
        )


def verilog_text(design: Any, name: str, *, memories: Memories = "inline") -> str:
    """Return a component as Verilog that Verilator, Icarus and synthesis tools accept.

    Processes become multiplexers: Icarus does not run ``always @*`` at time 0, and runs ``always_comb``
    forever if it reads and writes parts of one vector. Wires without bits, which Verilog would widen to two,
    are removed.

    Raises:
        EngineError: Yosys is not installed or fails.
    """
    removed = " ".join(f"-remove {attribute}" for attribute in _ATTRIBUTES)
    boxed = memories == "blackbox"
    text = yosys(
        rtlil_text(design, name, BlackBoxes() if boxed else None),
        [
            *LOWERED,
            f"attrmap {removed}",
            f"attrmap -modattr {removed}",
            "clean",
            "write_verilog -sv",
        ],
    )
    return f"{text}\n{_DECLARATION}" if boxed else text


def core_verilog(
    config: Config, *, memories: Memories = "inline", slices: bool = False, aresetn: bool = False
) -> str:
    """Return a machine's core as module ``accel``. The first lines name the configuration.

    Args:
        slices, aresetn: see :class:`~accel.hw.export.chip_border.Bordered`.

    Raises:
        EngineError: Yosys is not installed or fails.
    """
    settings = " ".join(
        f"{name}={value}" for name, value in config.hardware.to_dict().items() if name != "name"
    )
    head = [f"// {TOP}: the core of configuration {config.label}", f"// {settings}"]
    head += [f"/* verilator lint_off {warning} */" for warning in _STYLE]
    design = Bordered(Core(config), slices=slices, aresetn=aresetn) if slices or aresetn else Core(config)
    return "\n".join(head) + "\n" + verilog_text(design, TOP, memories=memories)
