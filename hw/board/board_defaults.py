"""Defaults of the board, apart from the modules that build it, which are slow to import."""

CONFIG = "ecp5-int8"
RATE = 1_000_000
"""Bits per second."""
CLOCK_MHZ = 25.0
"""Frequency of the oscillator."""
SIMULATED = "simulated"
"""Port of the simulated board."""
