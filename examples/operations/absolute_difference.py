"""ALU.ABSDIFF: the absolute difference of two accumulators, for example 7 for 3 and -4."""

from accel.operations import Operation, absolute, register, wrapped

ABSDIFF = register(
    Operation(
        name="absdiff",
        result=lambda x, y: wrapped(absolute(x - y)),
        text="|x - y|",
    )
)
