"""How the vector ALU finishes sums: what a pass can do, and how the first two become one.

Once a tile has been clipped to ``low - D .. high - D``, its accumulators are all above
``T = bias - (D << shift)``, so ``acc = min(acc, T)`` sets them to T whatever they hold. The next tile's
sums then start from the bias less an offset that the shift turns into D; where D is a multiple of 256, it
vanishes in the low byte that STORE writes.
"""

from accel.compiler.expr.scalar import INT32_MAX, INT32_MIN
from accel.core.isa.instructions import IMMEDIATE_BITS
from accel.image.layout import Preparation

IMMEDIATE_LOW, IMMEDIATE_HIGH = -(1 << (IMMEDIATE_BITS - 1)), (1 << (IMMEDIATE_BITS - 1)) - 1
"""Constants that a pass can take."""
BYTE = 256
"""Offsets that are multiples of this vanish in the low byte."""


def preparation_for(
    low: int, high: int, shift: int, sum_limit: int, between: tuple[int, int] = (0, 0)
) -> tuple[Preparation, int] | None:
    """How the bias must be changed, and by how much the clip is lowered; None if it cannot be done.

    Args:
        low, high: the clip's bounds.
        shift: how far sums are shifted right before it.
        sum_limit: the largest magnitude of a sum without bias.
        between: the least and the largest value that is added between shift and clip.
    """
    lowered = (low - IMMEDIATE_LOW) // BYTE * BYTE
    while lowered > 0 and lowered << shift > INT32_MAX // 2:
        lowered -= BYTE
    if shift < 1 or lowered < BYTE or low > high:
        return None
    offset = lowered << shift
    least, most = INT32_MIN + sum_limit, INT32_MAX - sum_limit
    saturated_low = ((low - 1 - between[1]) << shift) - sum_limit
    saturated_high = ((high + 1 - between[0]) << shift) + sum_limit
    largest = low - lowered + offset
    """The largest bias that is still below every accumulator once the offset is off."""
    smallest = INT32_MIN + offset + sum_limit
    """The smallest bias from which offset and sums can be taken without overflow."""
    bounds = (max(saturated_low, INT32_MIN), min(saturated_high, INT32_MAX))
    if bounds[1] < smallest or bounds[0] > largest:
        return None
    accepted = (
        least if bounds[0] >= smallest else max(least, smallest),
        most if bounds[1] <= largest else min(most, largest),
    )
    if accepted[0] >= accepted[1] or not accepted[0] <= 0 <= accepted[1]:
        return None
    return Preparation(accepted=accepted, bounds=bounds, offset=-offset), lowered
