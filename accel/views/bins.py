"""States by equal parts of a run: what a picture shows where single cycles are too narrow."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from accel.views.states import Span, State


def shares(spans: Sequence[Span], start: int, stop: int, bins: int) -> npt.NDArray[np.float64]:
    """How much of each part a unit spends in each state.

    Args:
        spans: of one unit; they cover ``[start, stop)`` without overlaps.
        start, stop: cycles, cut into ``bins`` equal parts.
        bins: how many.

    Returns:
        float64[bins][states]; each row adds up to 1.
    """
    edges = np.linspace(start, stop, bins + 1)
    bounds = np.array([span.start for span in spans] + [spans[-1].stop if spans else 0], dtype=np.float64)
    states = np.array([span.state for span in spans], dtype=np.intp)
    lengths = np.diff(bounds)
    found = np.zeros((bins, len(State)))
    for state in State:
        before = np.concatenate([[0.0], np.cumsum(np.where(states == state, lengths, 0.0))])
        found[:, state] = np.diff(np.interp(edges, bounds, before))
    return found * bins / max(1, stop - start)
