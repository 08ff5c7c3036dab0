"""Ticks of axes."""

from itertools import count

_MAX_POWER_TICKS = 8
_EXPONENTS = range(-40, 60)


def tick_step(length: float, max_steps: int) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, ... with at most ``max_steps`` steps.

    For example, 900 cycles with at most 5 steps have ticks every 200.
    """
    power = 1
    while True:
        for factor in (1, 2, 5):
            if length <= factor * power * max_steps:
                return factor * power
        power *= 10


def power_ticks(low: float, high: float) -> list[float]:
    """Return the powers of two in ``low..high``, or of 4, 8, ... if more than eight."""
    step = next(
        step
        for step in count(1)
        if sum(low <= 2.0**exponent <= high for exponent in _EXPONENTS[::step]) <= _MAX_POWER_TICKS
    )
    return [2.0**exponent for exponent in _EXPONENTS[::step] if low <= 2.0**exponent <= high]


def tick_text(value: float) -> str:
    """For example, 0.25 is ``1/4``."""
    return f"{value:,.0f}" if value >= 1 else f"1/{1 / value:.0f}"
