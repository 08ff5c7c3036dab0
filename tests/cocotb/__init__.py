"""The core in Verilator and Icarus, driven by cocotb."""

CONFIG_VARIABLE = "ACCEL_BENCH_CONFIG"
"""Environment variable that passes the configuration to a bench, as JSON."""
