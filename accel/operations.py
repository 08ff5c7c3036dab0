"""Declare operations of ALU, see :mod:`accel.core.alu_operations`."""

from accel.core.alu_operations import INT32_MAX, INT32_MIN, Operation, find_operation, register
from accel.core.lane_expressions import (
    Lane,
    absolute,
    bit_slice,
    equal,
    lane_maximum,
    lane_minimum,
    lane_sum,
    leading_zeros,
    lookup,
    maximum,
    minimum,
    rounded_shift,
    saturated,
    select,
    wrapped,
)

__all__ = [
    "INT32_MAX",
    "INT32_MIN",
    "Lane",
    "Operation",
    "absolute",
    "bit_slice",
    "equal",
    "find_operation",
    "lane_maximum",
    "lane_minimum",
    "lane_sum",
    "leading_zeros",
    "lookup",
    "maximum",
    "minimum",
    "register",
    "rounded_shift",
    "saturated",
    "select",
    "wrapped",
]
