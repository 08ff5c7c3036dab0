"""Tensor expressions: what is computed, element by element."""

from accel.base.moved import reexport

__getattr__ = reexport(__name__, "accel.compiler.expr.scalar")
