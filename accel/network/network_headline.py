"""One sentence about a network's run."""

from accel.network.network_result import NetworkResult
from accel.run.critical_path import Share, shares
from accel.run.run_headline import Headline, is_computing


def network_headline(result: NetworkResult) -> Headline | None:
    """Return the headline of a complete run, or None without a critical path."""
    path = result.known_path
    if not path or not result.cycles:
        return None
    most = shares(path)[0]
    macs = sum(layer.macs for layer in result.layers if layer.cycles is not None)
    ideal = f"{round(macs / result.config.macs_per_cycle):,} cycles of full products would be ideal"
    return Headline.of(most, result.cycles, ideal=ideal, step=_step(result, most))


def _step(result: NetworkResult, most: Share) -> str:
    largest = max((one for one in result.layers if one.cycles), key=lambda one: one.cycles or 0)
    where = f"{largest.name} takes the most cycles, {largest.cycles:,}"
    if is_computing(most):
        return f"{where}; `--advise` names the fields that help"
    return f"{where}; `accel compile onnx --measure 3` compares schedules by simulation"
