"""accel: an open tensor accelerator. Compile loop nests onto it, check, simulate, measure."""

from accel import te
from accel.base.errors import (
    AccelError,
    ConfigError,
    DeadlockError,
    LimitExceeded,
    MachineError,
    MismatchError,
    ProgramError,
    ProgramFault,
    RaceError,
    ScheduleError,
    ShapeError,
    SweepError,
    TensorizeError,
)
from accel.base.moved import install
from accel.base.version import __version__
from accel.compiler.ops.conv import conv2d
from accel.compiler.ops.conv_transpose import conv2d_transpose
from accel.compiler.ops.pool import avg_pool2d, global_avg_pool2d, max_pool2d
from accel.compiler.ops.workload import Workload, dense, gemm
from accel.compiler.target.machine import Machine, machine
from accel.core.config import Config
from accel.core.events import Event, EventKind, UnitCycles
from accel.proof.check import TokenReport
from accel.run.program import Program, build
from accel.run.result import Result
from accel.run.session import Session, SessionTensor
from accel.sweeps import sweep

install()

__all__ = [
    "AccelError",
    "Config",
    "ConfigError",
    "DeadlockError",
    "Event",
    "EventKind",
    "LimitExceeded",
    "Machine",
    "MachineError",
    "MismatchError",
    "Program",
    "ProgramError",
    "ProgramFault",
    "RaceError",
    "Result",
    "ScheduleError",
    "Session",
    "SessionTensor",
    "ShapeError",
    "SweepError",
    "TensorizeError",
    "TokenReport",
    "UnitCycles",
    "Workload",
    "__version__",
    "avg_pool2d",
    "build",
    "conv2d",
    "conv2d_transpose",
    "dense",
    "gemm",
    "global_avg_pool2d",
    "machine",
    "max_pool2d",
    "sweep",
    "te",
]
