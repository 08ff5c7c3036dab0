"""Choices and limits that a command's help shows, apart from the modules that use them, which are slow to
import."""

from typing import Literal

TIMED = "sim"
UNTIMED = "functional"
SIMULATORS = (TIMED, UNTIMED)
RTL = "rtl"
BACKENDS = (*SIMULATORS, RTL)
"""Cycle-level simulator, functional simulator, and the hardware in simulation."""
ENGINE_NAMES = ("verilator", "cxxrtl", "pysim")
"""Simulators of the hardware, the fastest first, which is the default."""
PROGRAM_STAGES = ("nest", "scheduled", "tensorized", "folded", "threads", "passes", "streams", "asm")
"""Stages of a program that ``accel show`` prints, in order."""
NETWORK_STAGES = ("graph", "fused", "placed", "memory")
"""The same of a network."""
EXHAUSTIVE = "exhaustive"
SAMPLERS = ("nsga2", "tpe", "random", "grid", EXHAUSTIVE)
"""What proposes the points of an exploration."""
WITH_RECORDS = "+records"
EXPLORERS = (
    *("random", "exhaustive", "model", "annealing", "evolution"),
    *(f"annealing{WITH_RECORDS}", f"evolution{WITH_RECORDS}"),
)
"""Explorers of spaces of schedules. Those with ``+records`` know trials of other computations."""
DEFAULT_EXPLORER = "model"
DEFAULT_TRIALS = 64
"""Number of points that ``accel tune`` measures by default."""
BENCHMARKS = (
    *("resnet18", "mobilenet", "gemm", "resnet18-first", "resnet50", "mobilenet-v2"),
    *("bert-base", "pools", "resnet18-whole"),
)
"""Networks of ``accel bench``, by name."""
Epilogue = Literal["scale", "shift"]
EPILOGUES: tuple[Epilogue, ...] = ("scale", "shift")
"""Ends of a layer in benchmarks."""
EXECUTORS = ("processes", "dask")
"""Where points of sweeps and explorations are measured."""
DEFAULT_MAX_CYCLES = 10**10
"""Default limit on the cycles of a run."""
DEFAULT_MAX_UOPS = 10**10
"""Default limit on the micro-ops of a run."""
DIGITS = 100
"""Number of pictures of digits that come with accel."""
CONFIG_SUFFIXES = (".toml", ".json")
"""Suffixes of configuration files. ``--config`` with such a suffix is a file, even if none exists."""
MAX_BATCH = 1 << 16
"""Largest batch of a network."""
