"""A matrix product on the core's Verilog, in Icarus or Verilator, compared with numpy.

`accel verilog --config tiny -o accel.v` writes the core; `SIM=icarus pytest test_core.py` runs this.
"""

import os
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotb_tools.runner import get_runner
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam

import accel
from accel.core.registers import REGISTERS, word_writes

MEMORY_BYTES = 1 << 20


async def set_registers(port: AxiLiteMaster, /, **values: int) -> None:
    """Write registers by name."""
    for address, word in word_writes(values):
        await port.write_dword(address, word)


@cocotb.test()
async def product(dut: Any) -> None:
    """C = relu(A @ B)."""
    Clock(dut.clk, 10, unit="ns").start()
    memory = AxiRam(AxiBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, size=MEMORY_BYTES)
    control = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi"), dut.clk, dut.rst)
    dut.rst.value = 1
    await ClockCycles(dut.clk, 3)
    dut.rst.value = 0

    # the compiler's program and its operands, into memory
    program = accel.build(accel.gemm(5, 12, 7, relu=True), accel.machine("tiny"))
    inputs = program.random_inputs(seed=1)
    for address, page in program.dram().pages():
        memory.write(address, page.tobytes())
    for tensor in program.tensors:
        if tensor.role == "input":
            memory.write(tensor.offset, tensor.pack(inputs[tensor.name]).tobytes())

    # a run: settings, start, interrupt
    await set_registers(
        control,
        program_address=program.code_offset,
        program_length=len(program.instructions),
        mem_size=MEMORY_BYTES,
        interrupt_enable=1,
    )
    await set_registers(control, control=REGISTERS["control"].bit("start"))
    await with_timeout(RisingEdge(dut.irq), 1, "ms")
    assert await control.read_dword(REGISTERS["cause"].offset) == 0

    # the result, compared
    expected = program.reference(inputs)
    for tensor in program.tensors:
        if tensor.role == "output":
            raw = np.frombuffer(memory.read(tensor.offset, tensor.nbytes), dtype=np.uint8)
            assert np.array_equal(tensor.unpack(raw), expected[tensor.name])


def test_core() -> None:
    """Build the model and run all cocotb tests of this file."""
    simulator = os.environ.get("SIM", "icarus")
    runner = get_runner(simulator)
    runner.build(
        sources=["accel.v"],
        hdl_toplevel="accel",
        build_dir=f"build_{simulator}",
        build_args=["-Wno-fatal"] if simulator == "verilator" else [],
        timescale=("1ns", "1ps"),
    )
    runner.test(test_module="test_core", hdl_toplevel="accel")
