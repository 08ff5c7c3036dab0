"""Measure the layers of a network in three modes.

``chosen`` is the default schedule. ``v1`` has one virtual thread, so one buffer set. ``serial`` runs the
program of ``v1`` in serial mode.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from accel.base.errors import AccelError, ProgramFault
from accel.base.run_choices import Epilogue
from accel.benchmarks.benchmark_networks import Layer
from accel.compiler.mappings.mapping import AUTO, PLAIN
from accel.compiler.mappings.mapping_choice import MappingChoice, choose_mapping
from accel.compiler.target.machine import Machine
from accel.core.config import Config
from accel.energy import AccessCounts, EnergyReport, energy_of
from accel.run.build_program import build
from accel.run.program import Program
from accel.run.result import RESULT_KEYS, Result, error_dict

Row = dict[str, Any]
ROW_KEYS = (
    "name",
    "repeats",
    "operator",
    "parameters",
    "vthreads",
    "moved_bytes",
    "compulsory_bytes",
    "gemm_uops",
    "accesses",
    "modes",
    *RESULT_KEYS,
)


class Task(Struct, frozen=True, kw_only=True):
    """A layer on a machine.

    Attributes:
        mapping: None chooses as in a network: for input from the host ``auto`` with the output's layout,
            otherwise ``plain``.
    """

    layer: Layer
    config: Config
    seed: int = 0
    mapping: str | None = None

    def build(self, vthreads: int | None = None, mapping: str | None = None) -> Program:
        return build(
            self.layer.workload(),
            Machine(self.config),
            vthreads=vthreads,
            mapping=mapping or self._default_mapping,
            keep_results=self.mapping is None,
        )

    def choice(self, *, quick: bool = False) -> MappingChoice:
        """Return the mapping and plans of :meth:`build`, or of a short search with ``quick``."""
        return choose_mapping(
            self.layer.workload(),
            self.config,
            mapping=self._default_mapping,
            keep_results=self.mapping is None,
            quick=quick,
        )

    @property
    def _default_mapping(self) -> str:
        return self.mapping or (AUTO if self.layer.entry else PLAIN)


def measure(task: Task) -> Row:
    """Return the figures of a layer.

    ``accesses`` has the counts of :class:`~accel.energy.access_counts.AccessCounts`. ``modes`` has cycles,
    utilization and mismatches by mode. Other keys are those of :meth:`~accel.run.result.Result.to_dict`, for
    ``chosen``. ``error`` is set if any mode fails.
    """
    layer = task.layer
    row: Row = dict.fromkeys(ROW_KEYS) | {
        "name": layer.name,
        "repeats": layer.repeats,
        "operator": layer.operator,
        "parameters": layer.all_parameters,
    }
    try:
        chosen = task.build()
        single = chosen if chosen.vthreads == 1 else task.build(vthreads=1, mapping=chosen.mapping)
        serial = single.with_timing(task.config.override({"serial": 1}))
        programs: dict[str, Program] = {"serial": serial, "v1": single, "chosen": chosen}
        results = {mode: program.run(seed=task.seed) for mode, program in programs.items()}
    except ProgramFault as error:
        return row | {"error": error_dict(error)}
    except AccelError as error:
        raise type(error)(f"{layer.name}: {error}") from None
    return row | _figures(results) | {"vthreads": chosen.vthreads}


def _figures(results: Mapping[str, Result]) -> Row:
    result = results["chosen"]
    figures = result.to_dict()
    errors = [one.to_dict()["error"] for one in results.values() if one.mismatches]
    compulsory = result.compulsory
    return figures | {
        "moved_bytes": sum(result.bytes_by_kind.values()),
        "compulsory_bytes": None if compulsory is None else compulsory.read_bytes + compulsory.write_bytes,
        "gemm_uops": result.gemm_uops,
        "accesses": result.energy().counts.to_dict(),
        "modes": {
            mode: {"cycles": one.cycles, "utilization": one.utilization, "mismatches": one.mismatches}
            for mode, one in results.items()
        },
        "error": errors[0] if errors else None,
    }


def total(rows: Sequence[Row], key: str) -> Any:
    """Sum a figure over a network, with repetitions. Return None if a layer lacks it."""
    if any(row[key] is None for row in rows):
        return None
    return sum(row["repeats"] * row[key] for row in rows)


def network_energy(rows: Sequence[Row], config: Config) -> EnergyReport:
    """Return the energy of a network with repetitions. Its parts are layers, run once."""
    parts = [(row["name"], AccessCounts(config, row["accesses"])) for row in rows]
    counts = AccessCounts(config)
    for row, (_, one) in zip(rows, parts, strict=True):
        counts += one * row["repeats"]
    return energy_of(counts, parts)


def report(
    network: str, config: Config, rows: Sequence[Row], *, epilogue: Epilogue = "shift"
) -> dict[str, Any]:
    return {
        "network": network,
        "config": config.label,
        "epilogue": epilogue,
        "total_cycles": total(rows, "cycles"),
        "layers": list(rows),
    }
