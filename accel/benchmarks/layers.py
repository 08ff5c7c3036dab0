"""What a machine does on the layers of a network: each compiled, run in three ways, compared with numpy.

*serial* hands out an instruction when the one before has retired, *V = 1* is decoupled with one set of
buffers, and the third is the default schedule, with the number of virtual threads that the model chose.
Serial takes the program for V = 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accel.base.errors import AccelError, ProgramFault
from accel.benchmarks.networks import Epilogue, Layer
from accel.compiler.mappings.mapping import AUTO, PLAIN
from accel.compiler.target.machine import Machine
from accel.core.config import Config
from accel.run.build import build
from accel.run.program import Program
from accel.run.result import RESULT_KEYS, Result, error_dict

Row = dict[str, Any]
"""The figures of one layer as plain data; see :func:`measure`."""

ROW_KEYS = (
    "name",
    "repeats",
    "operator",
    "parameters",
    "vthreads",
    "moved_bytes",
    "compulsory_bytes",
    "gemm_uops",
    "modes",
    *RESULT_KEYS,
)
"""The keys of a row, in order."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A layer on a machine.

    Attributes:
        layer: which.
        config: the machine.
        seed: of the inputs.
        mapping: as which operator it is computed; if None, as in a network: ``auto`` where its input enters
            from the host, with its result as without a mapping, and ``plain`` elsewhere.
    """

    layer: Layer
    config: Config
    seed: int = 0
    mapping: str | None = None

    def build(self, vthreads: int | None = None, mapping: str | None = None) -> Program:
        """The layer's program.

        Args:
            vthreads: virtual threads; what is best if not given.
            mapping: in place of that which the task says.
        """
        usual = self.mapping or (AUTO if self.layer.entry else PLAIN)
        return build(
            self.layer.workload(),
            Machine(self.config),
            vthreads=vthreads,
            mapping=mapping or usual,
            keep_results=self.mapping is None,
        )


def measure(task: Task) -> Row:
    """The figures of a layer.

    ``modes`` holds cycles, utilization and mismatches of each mode, ``serial``, ``v1`` and ``chosen``; all
    else is that of the chosen schedule, with the keys of :meth:`~accel.run.result.Result.to_dict`. Of a
    program that is at fault, or wrong in any mode, ``error`` says so.

    Raises:
        AccelError: the layer does not fit the machine.
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
        alone = chosen if chosen.vthreads == 1 else task.build(vthreads=1, mapping=chosen.mapping)
        serial = alone.with_timing(task.config.override({"serial": 1}))
        programs: dict[str, Program] = {"serial": serial, "v1": alone, "chosen": chosen}
        results = {mode: program.run(seed=task.seed) for mode, program in programs.items()}
    except ProgramFault as error:
        return row | {"error": error_dict(error)}
    except AccelError as error:
        raise type(error)(f"{layer.name}: {error}") from None
    return row | _figures(results) | {"vthreads": chosen.vthreads}


def _figures(results: Mapping[str, Result]) -> Row:
    result = results["chosen"]
    figures = result.to_dict()
    wrong = [done.to_dict()["error"] for done in results.values() if done.mismatches]
    least = result.compulsory
    return figures | {
        "moved_bytes": sum(result.bytes_by_kind.values()),
        "compulsory_bytes": None if least is None else least.read_bytes + least.write_bytes,
        "gemm_uops": result.gemm_uops,
        "modes": {
            mode: {"cycles": done.cycles, "utilization": done.utilization, "mismatches": done.mismatches}
            for mode, done in results.items()
        },
        "error": wrong[0] if wrong else None,
    }


def total(rows: Sequence[Row], key: str) -> Any:
    """The sum of a figure over a network, each layer as often as it occurs; None if one has none."""
    if any(row[key] is None for row in rows):
        return None
    return sum(row["repeats"] * row[key] for row in rows)


def report(
    network: str, config: Config, rows: Sequence[Row], *, epilogue: Epilogue = "shift"
) -> dict[str, Any]:
    """All of a network, whose layers end with an epilogue, as plain data."""
    return {
        "network": network,
        "config": config.label,
        "epilogue": epilogue,
        "total_cycles": total(rows, "cycles"),
        "layers": list(rows),
    }
