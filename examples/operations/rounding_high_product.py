"""ALU.MULHR: the upper bits of a product, rounded: ``(x * y + 2**30) >> 31``.

Fixed-point scales are applied this way. For example, y = 2**30 halves x: 101 becomes 51. The only product
that leaves int32, of -2**31 with itself, saturates.
"""

from accel.operations import INT32_MAX, INT32_MIN, Operation, register, rounded_shift, saturated

MULHR = register(
    Operation(
        name="mulhr",
        result=lambda x, y: saturated(rounded_shift(x * y, 31), INT32_MIN, INT32_MAX),
        text="(x * y + 2**30) >> 31, saturated",
        stages=2,
    )
)
