"""Operations of ALU that only tests declare, one for each kind of expression and number of stages."""

from accel.core.config import NAMED, Config
from accel.operations import (
    INT32_MAX,
    INT32_MIN,
    Operation,
    absolute,
    bit_slice,
    equal,
    lane_maximum,
    lane_minimum,
    lane_sum,
    leading_zeros,
    lookup,
    register,
    rounded_shift,
    saturated,
    select,
    wrapped,
)

OWN = tuple(
    register(one)
    for one in (
        Operation(name="t_gap", result=lambda x, y: wrapped(absolute(x - y)), text="|x - y|"),
        Operation(
            name="t_product",
            result=lambda x, y: saturated(rounded_shift(x * y, 31, "away"), INT32_MIN, INT32_MAX),
            stages=3,
        ),
        Operation(name="t_sum", result=lambda x, y: wrapped(lane_sum(x) - y), stages=1),
        Operation(name="t_zeros", result=lambda x, y: leading_zeros(bit_slice(x ^ y, 0, 31), 31)),
        Operation(
            name="t_table",
            result=lambda x, y: lookup([n * n * n - 700 for n in range(64)], bit_slice(x, 4, 10)) + (y > 0),
            stages=2,
        ),
        Operation(name="t_even", result=lambda x, y: rounded_shift(saturated(x & ~y, -999, 999), 3, "even")),
        Operation(
            name="t_nor",
            result=lambda x, y: ~(x | y),
            symbol="nor",
        ),
        Operation(
            name="t_saturate",
            result=lambda x, y: saturated(x + y, INT32_MIN, INT32_MAX),
            stages=1,
        ),
        Operation(
            name="t_range",
            result=lambda x, y: select(
                equal(y, 0), lane_maximum(x), wrapped(lane_maximum(x) - lane_minimum(x))
            ),
            stages=4,
        ),
        Operation(
            name="t_and",
            result=lambda x, y: x & y,
            symbol="&",
            is_associative=True,
            repeated=lambda immediate, times: immediate,
        ),
    )
)
"""Their numbers are 5 to 14 on a machine with all of them, so that the last seven are ALU_HIGH's."""
OWN_NAMES = "+" + ",".join(one.name for one in OWN)
MACHINE: Config = NAMED["tiny"].override({"block_out": 4, "alu_ops": OWN_NAMES})

ELEMENTWISE = tuple(one for one in OWN if not one.crosses_lanes)
