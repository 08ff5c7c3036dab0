"""The fused multiply-add against exact fractions."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from accel.base.fma import fma

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
LARGEST = Fraction(float(np.finfo(np.float32).max))


def nearest(value: Fraction) -> np.float32:
    """The nearest float32 of a number within its range, half to even."""
    near = np.float32(float(value))
    around = (near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf)))

    def distance(one: np.float32) -> tuple[Fraction, int]:
        return abs(Fraction(float(one)) - value), int(one.view(np.uint32)) & 1

    return min((one for one in around if np.isfinite(one)), key=distance)


@given(a=FLOATS, b=FLOATS, c=FLOATS)
def test_it_rounds_once(a: float, b: float, c: float) -> None:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if abs(exact) <= LARGEST:
        assert fma(a, b, c) == nearest(exact)


def test_where_two_roundings_go_wrong() -> None:
    rng = np.random.default_rng(0)
    single, double = 0, 0
    for _ in range(2000):
        x, y = (np.float32(v) for v in rng.uniform(1, 2, 2))
        z = np.float32(rng.integers(1 << 23, 1 << 24) * 2.0 ** int(rng.integers(-23, 30)))
        wanted = nearest(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)))
        assert fma(x, y, z) == wanted
        single += wanted != np.float32(x * y) + z
    assert single
    for place in range(1, 24):
        # 1 + 2**-24 is the middle of two float32; a little below it in float64 is the middle itself
        x, y, z = np.float32(1 - 2**-place), np.float32(2.0**-24 * (1 + 2**-place)), np.float32(1)
        wanted = nearest(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)))
        assert fma(x, y, z) == wanted == 1
        negative = nearest(-Fraction(float(x)) * Fraction(float(y)) + Fraction(1 + 2**-22))
        assert fma(-x, y, np.float32(1 + 2**-22)) == negative
        double += np.float32(float(x) * float(y) + 1 + 2**-22) != fma(x, y, np.float32(1 + 2**-22))
        double += np.float32(float(-x) * float(y) + 1 + 2**-23) != fma(-x, y, np.float32(1 + 2**-23))
    assert double


def test_shapes_broadcast() -> None:
    assert fma(np.ones((2, 1), np.float32), np.ones(3, np.float32), 1).tolist() == [[2, 2, 2]] * 2
