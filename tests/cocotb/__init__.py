"""The core in other people's simulators: Verilator and Icarus, driven by cocotb."""

CONFIG_VARIABLE = "ACCEL_BENCH_CONFIG"
"""Environment variable through which a bench gets the configuration, as JSON."""
