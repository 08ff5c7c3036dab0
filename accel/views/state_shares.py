"""Shares of a unit's states."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from accel.core.unit_states import State
from accel.views.activity_records import StateSpan


def state_shares(spans: Sequence[StateSpan], start: int, stop: int, bins: int) -> npt.NDArray[np.float64]:
    """Return the share of each state in equal parts of a run.

    For example, busy cycles 0 to 2 and an idle cycle 3 give 0.75 and 0.25.

    Returns:
        float64[bins][states]. Each row sums up to 1.
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
