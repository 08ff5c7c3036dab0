"""Classes of operators that patterns name."""

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
"""Operators that compute each value from one value, all in the same way if there is one scale."""
BINARY = (Add, Mul, Binary)
"""Operators of two operands with broadcasting."""
