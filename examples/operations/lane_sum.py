"""ALU.LANESUM: the sum over the lanes of a row of an element, in each of its lanes, added to y.

For example, x = 1, 2, 3, 4 and y = 0 give 10, 10, 10, 10. Sums wrap at 32 bits.
"""

from accel.operations import Operation, lane_sum, register, wrapped

LANE_SUM = register(
    Operation(
        name="lanesum",
        result=lambda x, y: wrapped(lane_sum(x) + y),
        text="the sum of x over the lanes of a row, plus y",
        stages=1,
    )
)
