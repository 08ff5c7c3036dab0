"""Tensor expressions, schedules and intrinsic declarations, under the names that TVM's users know."""

from accel.compiler.expr.reference import evaluate
from accel.compiler.expr.scalar import IterVar, cast, clip
from accel.compiler.expr.scalar import maximum as max
from accel.compiler.expr.scalar import minimum as min
from accel.compiler.expr.tensor import Tensor, compute, pad, placeholder, reduce_axis, sum
from accel.compiler.nest.interpret import interpret
from accel.compiler.nest.lower import lower
from accel.compiler.nest.nest import Nest
from accel.compiler.nest.tensorize import tensorize
from accel.compiler.nest.text import format_nest
from accel.compiler.schedule.loops import thread_axis
from accel.compiler.schedule.schedule import Schedule, Stage, create_schedule
from accel.compiler.target.emitters import emit_loops
from accel.compiler.target.intrin import TensorIntrin, decl_tensor_intrin, hardware_intrin
from accel.compiler.target.registry import AccessPtr, Emitted, Target, register_emitter

__all__ = [
    "AccessPtr",
    "Emitted",
    "IterVar",
    "Nest",
    "Schedule",
    "Stage",
    "Target",
    "Tensor",
    "TensorIntrin",
    "cast",
    "clip",
    "compute",
    "create_schedule",
    "decl_tensor_intrin",
    "emit_loops",
    "evaluate",
    "format_nest",
    "hardware_intrin",
    "interpret",
    "lower",
    "max",
    "min",
    "pad",
    "placeholder",
    "reduce_axis",
    "register_emitter",
    "sum",
    "tensorize",
    "thread_axis",
]
