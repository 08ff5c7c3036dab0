"""Tile sizes worth trying."""

from functools import lru_cache

import numpy as np

from accel.base.fast_unique import distinct


def spread_part_sizes(size: int, count: int) -> list[int]:
    """Return at most ``count`` of :func:`all_part_sizes`, spread by ratio, with 1 and ``size``."""
    every = list(all_part_sizes(size))
    if len(every) <= count:
        return every
    picked = distinct(np.geomspace(1, len(every), count).round().astype(int)) - 1
    return [every[i] for i in picked]


@lru_cache(maxsize=1 << 10)
def all_part_sizes(size: int) -> tuple[int, ...]:
    """Return the smallest part size for each number of parts of ``size``, ascending.

    For example, 10 divides into parts of 1, 2, 3, 4, 5 and 10: parts of 6 would be 2 parts as well.
    """
    found, parts = [], 1
    while True:
        part = -(-size // parts)
        found.append(part)
        if part == 1:
            return tuple(reversed(found))
        parts = -(-size // (part - 1))
