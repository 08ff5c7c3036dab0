"""ALU.LANESUM: add the sum over the lanes of a row of an element to all lanes of another, or of itself.

For example, y = 1, 2, 3, 4 adds 10 to each lane of x. Sums wrap at 32 bits.
"""

from accel.operations import Operation, lane_sum, register, wrapped

LANE_SUM = register(
    Operation(
        name="lanesum",
        result=lambda x, y: wrapped(x + lane_sum(y)),
        text="x plus the sum of y over the lanes of a row",
        stages=2,
    )
)
