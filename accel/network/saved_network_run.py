"""Saved runs of networks, in the format of a program's run."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from accel.base.errors import AccelError
from accel.base.records import field_names, replace
from accel.compiler.expr.compulsory_cost import bound_by
from accel.core.isa import Unit
from accel.network.network_result import NetworkResult
from accel.run.layer_record import Layer
from accel.views.analyzed_run import analyze_run
from accel.views.dram_traffic import INSTRUCTIONS, TensorTraffic, dram_traffic
from accel.views.run_sequence import RunSequence
from accel.views.saved_run import SavedRun, program_hash, state_thousandths


def whole_figures(result: NetworkResult) -> dict[str, Any]:
    """Sum up all programs, by the keys of :meth:`~accel.run.result.Result.to_dict`."""
    stalls: dict[str, Counter[str]] = {unit.label: Counter() for unit in Unit}
    for run in result.runs:
        for unit, states in (run.stalls or {}).items():
            stalls[unit].update(states.to_dict())
    busy = {unit: stalls[unit.label]["busy"] for unit in (Unit.COMPUTE, Unit.LOAD, Unit.STORE)}
    cycles = sum(run.cycles or 0 for run in result.runs)
    uops = [run.uops for run in result.runs]
    slots = None if None in uops else sum(count for count in uops if count is not None)
    bound = bound_by(cycles, compute=busy[Unit.COMPUTE], load=busy[Unit.LOAD], store=busy[Unit.STORE])
    return {
        "backend": result.backend,
        "config": result.config.label,
        "cycles": cycles,
        "instructions": sum(len(run.instructions) for run in result.runs),
        "uops": slots,
        "macs": result.macs - result.host_macs,
        "utilization": result.utilization,
        "roofline_fraction": None,
        "slot_utilization": None if slots is None or not cycles else slots / cycles,
        "load_bytes": sum(run.load_bytes for run in result.runs),
        "store_bytes": sum(run.store_bytes for run in result.runs),
        "bound_by": bound if cycles else None,
        "stalls": {unit: dict(found) for unit, found in stalls.items()},
    }


def saved_network(
    result: NetworkResult,
    *,
    name: str | None = None,
    overrides: Mapping[str, str] | None = None,
    seed: int | None = None,
) -> SavedRun:
    """Convert a result of ``run(record=True)``."""
    if not result.runs:
        raise AccelError(
            "no run of the machine was recorded; a saved run needs run(record=True) and layers on the machine"
        )
    sequence = RunSequence(tuple(map(analyze_run, result.runs)))
    digests = "".join(program_hash(run.image) for run in result.runs)
    return SavedRun(
        name=f"{name or result.graph.name} on {result.config.label}",
        program=hashlib.sha256(digests.encode()).hexdigest(),
        config=result.config,
        overrides=dict(overrides or {}),
        seed=seed,
        figures=whole_figures(result),
        critical=result.known_path or (),
        traffic=_total_traffic(one for run in sequence.runs for one in dram_traffic(run) if one.moved),
        states=state_thousandths(sequence.activity),
        layers=tuple(
            Layer(**{one: getattr(layer, one) for one in field_names(Layer)}) for layer in result.layers
        ),
    )


def _total_traffic(programs: Iterable[TensorTraffic]) -> tuple[TensorTraffic, ...]:
    """Programs share tensors, but not instructions."""
    found: dict[str, TensorTraffic] = {}
    for one in programs:
        known = found.get(one.name)
        if known is None:
            found[one.name] = replace(one)
            continue
        for key in ("read", "written", "bus", "bursts"):
            setattr(known, key, getattr(known, key) + getattr(one, key))
        sizes = (known.size or 0, one.size or 0)
        known.size = sum(sizes) if one.name == INSTRUCTIONS else max(sizes) or None
    return tuple(found.values())
