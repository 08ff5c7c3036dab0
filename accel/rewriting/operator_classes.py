"""Classes of operators in patterns."""

from accel.graph.elementwise_operators import (
    Add,
    Binary,
    Cast,
    Clip,
    Dequantize,
    Function,
    Mul,
    Quantize,
    Reinterpret,
    Requantize,
    Table,
)

UNARY = (Quantize, Dequantize, Requantize, Reinterpret, Cast, Clip, Function, Table)
"""With one scale, they compute all values alike, each from one value."""
BINARY = (Add, Mul, Binary)
"""With two operands, which broadcast."""
