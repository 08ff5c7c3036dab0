"""A network's run as a whole: figures as a program's run has them, and what is kept of it."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from accel.base.errors import AccelError
from accel.compiler.expr.metrics import bound_by
from accel.core.isa import Unit
from accel.network.result import NetworkResult
from accel.run.layers import Layer
from accel.views.saved import SavedRun, program_hash, states_of
from accel.views.scene import scene
from accel.views.scenes import Scenes
from accel.views.traffic import INSTRUCTIONS, Traffic, traffic


def whole_figures(result: NetworkResult) -> dict[str, Any]:
    """The figures of all programs together, by the keys of :meth:`~accel.run.result.Result.to_dict`; what
    does not apply to a network is None.

    Args:
        result: of a run of which all that happened was kept.
    """
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
    """What is kept of a network's run.

    Args:
        result: of a run of which all that happened was kept (``run(record=True)``).
        name: of the network, for the title; the graph's if not given.
        overrides: fields of the machine that were set for this run.
        seed: of what was random.

    Raises:
        AccelError: nothing ran on the machine, or nothing is known of when things happened.
    """
    if not result.runs:
        raise AccelError("no run of the machine was recorded; there is nothing to keep of the network's")
    scenes = Scenes(tuple(map(scene, result.runs)))
    digests = "".join(program_hash(run.image) for run in result.runs)
    return SavedRun(
        name=f"{name or result.graph.name} on {result.config.label}",
        program=hashlib.sha256(digests.encode()).hexdigest(),
        config=result.config,
        overrides=dict(overrides or {}),
        seed=seed,
        figures=whole_figures(result),
        critical=result.critical_path() or (),
        traffic=_together(one for picture in scenes.parts for one in traffic(picture) if one.moved),
        states=states_of(scenes.seen),
        layers=tuple(
            Layer(**{one.name: getattr(layer, one.name) for one in fields(Layer)}) for layer in result.layers
        ),
    )


def _together(every: Iterable[Traffic]) -> tuple[Traffic, ...]:
    """What several programs move, by name; programs have instructions of their own, and tensors in common."""
    found: dict[str, Traffic] = {}
    for one in every:
        known = found.get(one.name)
        if known is None:
            found[one.name] = replace(one)
            continue
        for key in ("read", "written", "bus", "bursts"):
            setattr(known, key, getattr(known, key) + getattr(one, key))
        sizes = (known.size or 0, one.size or 0)
        known.size = sum(sizes) if one.name == INSTRUCTIONS else max(sizes) or None
    return tuple(found.values())
