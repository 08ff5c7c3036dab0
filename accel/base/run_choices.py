"""Choices and limits that a command's help shows, apart from the modules that use them, which are slow to
import."""

TIMED = "sim"
UNTIMED = "functional"
SIMULATORS = (TIMED, UNTIMED)
RTL = "rtl"
BACKENDS = (*SIMULATORS, RTL)
"""Cycle-level simulator, functional simulator, and the hardware in simulation."""
ENGINE_NAMES = ("verilator", "cxxrtl", "pysim")
"""Simulators of the hardware, the fastest first, which is the default."""
DEFAULT_MAX_CYCLES = 10**10
"""Default limit on the cycles of a run."""
DEFAULT_MAX_UOPS = 10**10
"""Default limit on the micro-ops of a run."""
DIGITS = 100
"""Number of pictures of digits that come with accel."""
MAX_BATCH = 1 << 16
"""Largest batch of a network."""
