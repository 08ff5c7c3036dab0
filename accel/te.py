"""Tensor expressions, schedules and intrinsic declarations, under TVM's names."""

from accel.compiler.expr.applied_operations import apply
from accel.compiler.expr.numpy_reference import evaluate
from accel.compiler.expr.scalar_expressions import IterVar, cast, clip
from accel.compiler.expr.scalar_expressions import maximum as max
from accel.compiler.expr.scalar_expressions import minimum as min
from accel.compiler.expr.tensor_expressions import Tensor, compute, pad, placeholder, reduce_axis, sum
from accel.compiler.nest.loop_nest_lowering import lower
from accel.compiler.nest.nest import Nest
from accel.compiler.nest.nest_interpreter import interpret
from accel.compiler.nest.nest_text import format_nest
from accel.compiler.nest.tensorize import tensorize
from accel.compiler.schedule.knobs import knob, knob_order, require
from accel.compiler.schedule.schedule import Schedule, Stage, create_schedule
from accel.compiler.schedule.stage_splits import thread_axis
from accel.compiler.target.builtin_emitters import emit_loops
from accel.compiler.target.emitter_registry import AccessPtr, Emitted, Target, register_emitter
from accel.compiler.target.intrinsic_declaration import TensorIntrin, decl_tensor_intrin, hardware_intrin

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
    "apply",
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
    "knob",
    "knob_order",
    "lower",
    "max",
    "min",
    "pad",
    "placeholder",
    "reduce_axis",
    "register_emitter",
    "require",
    "sum",
    "tensorize",
    "thread_axis",
]
