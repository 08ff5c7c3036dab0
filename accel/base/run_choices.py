"""Choices and limits in help texts, apart from the modules that use them, which are slow to import."""

from typing import Literal

TIMED = "sim"
UNTIMED = "functional"
SIMULATORS = (TIMED, UNTIMED)
RTL = "rtl"
BACKENDS = (*SIMULATORS, RTL)
"""Cycle-level simulator, functional simulator, and the simulated hardware."""
ENGINE_NAMES = ("verilator", "cxxrtl", "pysim")
"""Simulators of the hardware, the fastest first, which is the default."""
PROGRAM_STAGES = ("nest", "scheduled", "tensorized", "folded", "threads", "passes", "streams", "asm")
"""Of a program, for ``accel show``, in order."""
NETWORK_STAGES = ("graph", "fused", "placed", "memory")
EXHAUSTIVE = "exhaustive"
SAMPLERS = ("nsga2", "tpe", "random", "grid", EXHAUSTIVE)
"""They propose the points of an exploration."""
WITH_RECORDS = "+records"
EXPLORERS = (
    *("random", "exhaustive", "model", "annealing", "evolution"),
    *(f"annealing{WITH_RECORDS}", f"evolution{WITH_RECORDS}"),
)
"""They explore schedules. Those with ``+records`` know trials of other computations."""
DEFAULT_EXPLORER = "model"
DEFAULT_TRIALS = 64
"""Points that ``accel tune`` measures."""
BENCHMARKS = (
    *("resnet18", "mobilenet", "gemm", "resnet18-first", "resnet50", "mobilenet-v2"),
    *("bert-base", "pools", "resnet18-whole"),
)
"""Networks of ``accel bench``."""
Epilogue = Literal["scale", "shift"]
EPILOGUES: tuple[Epilogue, ...] = ("scale", "shift")
"""Of layers in benchmarks."""
EXECUTORS = ("processes", "dask")
"""They measure points of sweeps and explorations."""
DEFAULT_MAX_CYCLES = 10**10
DEFAULT_MAX_UOPS = 10**10
DIGITS = 100
"""Pictures of digits in the package."""
CONFIG_SUFFIXES = (".toml", ".json")
"""``--config`` with such a suffix is a file, even if none exists."""
MAX_BATCH = 1 << 16
"""Of a network."""
