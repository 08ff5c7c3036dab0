"""The machine for other tools: Verilog, and what it takes of an FPGA."""
