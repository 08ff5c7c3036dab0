"""Defaults of the board, apart from the modules that build it, which are slow to import."""

CONFIG = "ecp5-int8"
"""The machine."""
RATE = 1_000_000
"""Bits per second on the serial line."""
CLOCK_MHZ = 25.0
"""Frequency of the board's oscillator."""
SIMULATED = "simulated"
"""Port name that selects the simulated board."""
