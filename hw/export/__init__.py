"""The hardware for other tools: Verilog, and its area and frequency on an FPGA."""
