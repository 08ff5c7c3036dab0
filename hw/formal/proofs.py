"""All proofs."""

from accel.hw.formal import (
    bus,
    control,
    core,
    finite,
    lanes,
    loads,
    moves,
    progress,
    queues,
    residuals,
    tokens,
    transfers,
    watch,
    writes,
)

PROOFS = (
    *queues.PROOFS,
    *tokens.PROOFS,
    *bus.PROOFS,
    *watch.PROOFS,
    *control.PROOFS,
    *moves.PROOFS,
    *transfers.PROOFS,
    *loads.PROOFS,
    *writes.PROOFS,
    *residuals.PROOFS,
    *lanes.PROOFS,
    *finite.PROOFS,
    *progress.PROOFS,
    *core.PROOFS,
)
"""From the parts to the whole."""
