"""One sentence about a network's run."""

from accel.network.network_result import LayerResult, NetworkResult
from accel.run.critical_path import Share, shares
from accel.run.run_headline import Headline, is_computing


def network_headline(result: NetworkResult) -> Headline | None:
    """Return None for an incomplete run, or without a critical path."""
    path = result.known_path
    if not path or not result.cycles:
        return None
    most = shares(path)[0]
    nominal = round(sum(layer.nominal_cycles for layer in result.layers if layer.cycles is not None))
    ideal = f"the nominal MACs take {nominal:,} of the {result.cycles:,} cycles at full rate"
    if nominal > result.cycles:
        ideal = f"the nominal MACs would take {nominal:,} cycles, but zeros around pictures take none"
    return Headline.of(most, result.cycles, ideal=ideal, step=_step(result, most))


def _step(result: NetworkResult, most: Share) -> str:
    worst = max((one for one in result.layers if one.cycles), key=_unused_cycles)
    nominal = round(worst.nominal_cycles)
    where = (
        f"{worst.name} loses the most, {worst.cycles:,} cycles where its MACs take {nominal:,} at full rate"
    )
    if is_computing(most):
        return f"{where}; `--advise` names the fields that help"
    return f"{where}; `accel compile onnx --measure 3` compares schedules by simulation"


def _unused_cycles(layer: LayerResult) -> float:
    return (layer.cycles or 0) - layer.nominal_cycles
