from accel.base.deprecated_modules import reexport

__getattr__ = reexport(__name__, "accel.compiler.expr.scalar_expressions")
