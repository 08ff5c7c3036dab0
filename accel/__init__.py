"""accel: an open tensor accelerator. Compile loop nests onto it, check, simulate and measure them.

Example::

    import numpy as np
    import accel

    program = accel.build(accel.gemm(64, 64, 64, shift=7), "vta")
    result = program.run(A=np.ones((64, 64), np.int8))
    print(result.cycles, result.outputs["C"][0, :4])

``help(accel.build)`` describes one name:

==========  ==============================================================
workloads   gemm, dense, conv2d, conv2d_transpose, max_pool2d, avg_pool2d,
            global_avg_pool2d, Workload, Quantized, QuantizedResidual,
            QuantizedTable; te writes others as tensor expressions
machines    machines, machine, Machine, Config, predict_area; Operation and register
            add ALU operations
programs    build, Program (run, save, show), Result; check, TokenReport;
            Session and SessionTensor run several calls
networks    load_onnx, load_tflite, Network, NetworkProgram, NetworkResult,
            NetworkSession, quantize, rewrite, verify, package, save_network,
            load_network
questions   advise, diff, lockstep, sweep, tune; Event, EventKind, UnitCycles
errors      AccelError, and below it: ConfigError, GraphError, ProgramError,
            ScheduleError, TensorizeError, ShapeError, SweepError, TuningError,
            ProgramFault, MismatchError, RaceError, MachineError, BusTimeout,
            DeadlockError, LimitExceeded, RunStopped
modules     te, views, debug, sweeps, operations, benchmarks
==========  ==============================================================

The command line has the same functions: ``accel --help``.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from accel.base.deprecated_modules import install
from accel.base.version import __version__

if TYPE_CHECKING:
    from accel import te
    from accel.base.errors import (
        AccelError,
        BusTimeout,
        ConfigError,
        DeadlockError,
        GraphError,
        LimitExceeded,
        MachineError,
        MismatchError,
        ProgramError,
        ProgramFault,
        RaceError,
        RunStopped,
        ScheduleError,
        ShapeError,
        SweepError,
        TensorizeError,
        TuningError,
    )
    from accel.command_functions import (
        check,
        diff,
        lockstep,
        machines,
        package,
        predict_area,
        quantize,
        verify,
    )
    from accel.compiler.ops.conv2d import conv2d
    from accel.compiler.ops.conv2d_transpose import conv2d_transpose
    from accel.compiler.ops.pool2d import avg_pool2d, global_avg_pool2d, max_pool2d
    from accel.compiler.ops.quantized_layers import Quantized, QuantizedResidual, QuantizedTable
    from accel.compiler.ops.workload import Workload, dense, gemm
    from accel.compiler.target.machine import Machine, machine
    from accel.core.alu_operations import Operation, register
    from accel.core.config import Config
    from accel.core.events import Event, EventKind, UnitCycles
    from accel.network.network import Network, load_onnx, load_tflite
    from accel.network.network_file import load_network, save_network
    from accel.network.network_program import NetworkProgram
    from accel.network.network_result import NetworkResult
    from accel.network.network_rewriting import rewrite
    from accel.network.network_session import NetworkSession
    from accel.proof.token_check import TokenReport
    from accel.run.build_program import build
    from accel.run.machine_advice import advise
    from accel.run.program import Program
    from accel.run.result import Result
    from accel.run.session import Session, SessionTensor
    from accel.sweeps import sweep
    from accel.tuning import tune

install()

__all__ = [
    "AccelError",
    "BusTimeout",
    "Config",
    "ConfigError",
    "DeadlockError",
    "Event",
    "EventKind",
    "GraphError",
    "LimitExceeded",
    "Machine",
    "MachineError",
    "MismatchError",
    "Network",
    "NetworkProgram",
    "NetworkResult",
    "NetworkSession",
    "Operation",
    "Program",
    "ProgramError",
    "ProgramFault",
    "Quantized",
    "QuantizedResidual",
    "QuantizedTable",
    "RaceError",
    "Result",
    "RunStopped",
    "ScheduleError",
    "Session",
    "SessionTensor",
    "ShapeError",
    "SweepError",
    "TensorizeError",
    "TokenReport",
    "TuningError",
    "UnitCycles",
    "Workload",
    "__version__",
    "advise",
    "avg_pool2d",
    "build",
    "check",
    "conv2d",
    "conv2d_transpose",
    "dense",
    "diff",
    "gemm",
    "global_avg_pool2d",
    "load_network",
    "load_onnx",
    "load_tflite",
    "lockstep",
    "machine",
    "machines",
    "max_pool2d",
    "package",
    "predict_area",
    "quantize",
    "register",
    "rewrite",
    "save_network",
    "sweep",
    "te",
    "tune",
    "verify",
]

_NAMES = {
    "accel.base.errors": (
        "AccelError",
        "BusTimeout",
        "ConfigError",
        "DeadlockError",
        "GraphError",
        "LimitExceeded",
        "MachineError",
        "MismatchError",
        "ProgramError",
        "ProgramFault",
        "RaceError",
        "RunStopped",
        "ScheduleError",
        "ShapeError",
        "SweepError",
        "TensorizeError",
        "TuningError",
    ),
    "accel.command_functions": (
        "check",
        "diff",
        "lockstep",
        "machines",
        "package",
        "predict_area",
        "quantize",
        "verify",
    ),
    "accel.compiler.ops.conv2d": ("conv2d",),
    "accel.compiler.ops.conv2d_transpose": ("conv2d_transpose",),
    "accel.compiler.ops.quantized_layers": ("Quantized", "QuantizedResidual", "QuantizedTable"),
    "accel.compiler.ops.pool2d": ("avg_pool2d", "global_avg_pool2d", "max_pool2d"),
    "accel.compiler.ops.workload": ("Workload", "dense", "gemm"),
    "accel.compiler.target.machine": ("Machine", "machine"),
    "accel.core.alu_operations": ("Operation", "register"),
    "accel.core.config": ("Config",),
    "accel.core.events": ("Event", "EventKind", "UnitCycles"),
    "accel.network.network_file": ("load_network", "save_network"),
    "accel.network.network": ("Network", "load_onnx", "load_tflite"),
    "accel.network.network_program": ("NetworkProgram",),
    "accel.network.network_result": ("NetworkResult",),
    "accel.network.network_rewriting": ("rewrite",),
    "accel.network.network_session": ("NetworkSession",),
    "accel.proof.token_check": ("TokenReport",),
    "accel.run.build_program": ("build",),
    "accel.run.machine_advice": ("advise",),
    "accel.run.program": ("Program",),
    "accel.run.result": ("Result",),
    "accel.run.session": ("Session", "SessionTensor"),
    "accel.sweeps": ("sweep",),
    "accel.tuning": ("tune",),
}
"""The names of this package by module."""
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = ("benchmarks", "debug", "operations", "sweeps", "te", "views")
"""Modules that need no import of their own."""
_HELP_FRAMES = 3
"""pydoc is the third caller of ``dir``, after two functions of inspect."""

if not TYPE_CHECKING:  # or checkers would take any name

    def __getattr__(name: str) -> object:
        """Import a name on its first use."""
        if name in _MODULES:
            return import_module(f"accel.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'accel' has no attribute {name!r}")
        found = getattr(import_module(_HOMES[name]), name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        """Return the API, but nothing for ``help(accel)``, which would print 4,000 lines."""
        return [] if _is_called_by_help() else sorted({*__all__, *_MODULES})

    def _is_called_by_help() -> bool:
        """pydoc calls ``inspect.getmembers``, which calls ``dir``."""
        frame = sys._getframe(2)  # of the caller of __dir__
        for _ in range(_HELP_FRAMES):
            if frame is None:
                break
            if frame.f_globals.get("__name__") == "pydoc":
                return True
            frame = frame.f_back
        return False
