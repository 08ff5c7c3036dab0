"""The machine as Verilog, for other simulators and for synthesis."""

from pathlib import Path
from typing import Any, Literal

from amaranth.hdl import ClockSignal, Instance
from amaranth.lib.memory import Memory

from accel.core.config import Config
from accel.hw.core import Core
from accel.hw.datapath.layouts import bits_for_depth
from accel.hw.export.bordered import Bordered
from accel.hw.export.hdl import rtlil_text, yosys

TOP = "accel"
"""Name of the exported core."""
MEMORY = "accel_memory"
"""Name of the module that a black box stands for."""
MEMORY_MODEL = Path(__file__).with_name(f"{MEMORY}.v")
"""What it does."""
HAS_MEMORY = "ACCEL_MEMORY"
"""What is defined where the module comes from elsewhere."""

Memories = Literal["inline", "blackbox"]
"""How an export has the scratchpads' memories: as arrays, or as instances of a module of one's own."""

LOWERED = ("proc -norom", "memory_collect")
"""What Yosys does before it writes a design: processes become multiplexers, accesses to a memory one cell."""

_ATTRIBUTES = ("generator", "top", "src", "amaranth.hierarchy", "amaranth.decoding")
_STYLE = ("WIDTH", "CASEOVERLAP", "CMPCONST", "UNSIGNED", "UNOPTFLAT")
"""What Verilator warns of in generated code: what is meant or constant, loops that are none."""
_DECLARATION = f"""\
// A memory of a scratchpad; docs/simulation.md says what it does. Define {HAS_MEMORY} to bring your own.
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
    """A platform on which memories with a clocked read port are instances of ``accel_memory``; queues, which
    are read at once, stay as they are."""

    def get_memory(self, memory: Memory) -> Any:
        """What stands for a memory."""
        (write,) = memory.write_ports
        (read,) = memory.read_ports
        if read.domain == "comb":
            return memory.elaborate(None)  # as on no platform at all
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
    """A component as Verilog that Verilator, Icarus and synthesis tools take.

    Processes become multiplexers, free of ``always @*`` and ``always_comb``: Icarus does not run the one at
    time 0, and runs the other for ever where it writes and reads parts of one vector. Wires without bits,
    which Verilog would take for two, are dropped.

    Raises:
        EngineError: Yosys is not installed, or fails.
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
    """The core of a machine, as module ``accel``, with what it was made for in its first lines.

    Args:
        config: the machine.
        memories: how the scratchpads' memories are written.
        slices, aresetn: what is at its border, see :class:`~accel.hw.export.bordered.Bordered`.

    Raises:
        EngineError: Yosys is not installed, or fails.
    """
    settings = " ".join(
        f"{name}={value}" for name, value in config.hardware.to_dict().items() if name != "name"
    )
    head = [f"// {TOP}: the core of configuration {config.label}", f"// {settings}"]
    head += [f"/* verilator lint_off {warning} */" for warning in _STYLE]
    design = Bordered(Core(config), slices=slices, aresetn=aresetn) if slices or aresetn else Core(config)
    return "\n".join(head) + "\n" + verilog_text(design, TOP, memories=memories)
