"""Compile and run ONNX or TensorFlow Lite models, and print one row of a table for each.

    python bench/models.py MODEL... [--machine vta-npu] [--no-run] [--cuts] [--json]

Inputs are random: float32 from -1 to 1, indices 0 or 1. The columns:

- equal: whether all outputs equal ONNX Runtime's with all optimizations, and otherwise the largest difference
  relative to the largest value and that between ONNX Runtime's own modes.
- programs, and the MACs on the machine and on the host.
- cycles: simulated, of all programs.
- busy: of each layer the cycles of its compute slots, of its reads or of its writes, whichever are most. The
  sum over all layers, divided by the cycles. For example, 0.85: 15 % of the cycles are latency.
- seconds to compile.

``--cuts`` adds a list of the host operators between layers of the machine. ``bench/package_networks.py``
makes models for it.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import track

from accel.base.errors import AccelError
from accel.base.records import as_dict
from accel.core.config import Config, load_config
from accel.formats.onnx_runtime import run_onnx_runtime, run_optimized
from accel.network.model_files import DEFAULT_MACHINE, is_tflite
from accel.network.network import read_network
from accel.network.network_cuts import network_cuts
from accel.network.network_program import NetworkProgram

Arrays = Mapping[str, npt.NDArray[Any]]


def distance(found: Arrays, wanted: Arrays) -> float:
    """Return the largest difference of an output, relative to its largest value."""
    most = 0.0
    for name, values in wanted.items():
        exact = values.astype(np.float64)
        difference = np.abs(found[name].astype(np.float64) - exact).max(initial=0)
        most = max(most, float(difference / max(np.abs(exact).max(initial=0), 1e-30)))
    return most


def measure(path: Path, config: Config, *, run: bool) -> dict[str, Any]:
    """Return the figures of a model."""
    program = read_network(path).build(config)
    row: dict[str, Any] = {
        "model": path.stem,
        "machine": config.label,
        "programs": len(program.chains),
        "layers": sum(part.on_machine for part in program.parts),
        "host_nodes": sum(not part.on_machine for part in program.parts),
        "macs": program.macs,
        "host_macs": program.host_macs,
        "machine_share": program.machine_share,
        "compile_seconds": program.compile_seconds,
        "cuts": [as_dict(cut) for cut in network_cuts(program)],
    }
    return row | (_run(path, program) if run else {})


def _run(path: Path, program: NetworkProgram) -> dict[str, Any]:
    inputs = program.random_inputs()
    result = program.run(inputs)
    row = {"cycles": result.cycles, "busy_share": result.busy_share, "wrong": result.wrong}
    if is_tflite(path):
        return row
    content, names = path.read_bytes(), list(result.outputs)
    wanted, _ = run_optimized(content, inputs, names)
    difference = distance(result.outputs, wanted)
    modes = distance(run_onnx_runtime(content, inputs, names), wanted)
    return row | {"difference": difference, "difference_of_modes": modes}


def as_row(found: Mapping[str, Any]) -> str:
    """Return a row of the table."""
    if "error" in found:
        return f"| {found['model']} | {found['error']} | | | | | | |"
    difference = found.get("difference")
    equal = "not compared"
    if difference is not None:
        modes = found["difference_of_modes"]
        equal = f"within {difference:.1g} ({modes:.1g})" if difference else "yes"
    if found.get("wrong"):
        equal += f", {found['wrong']} values wrong"
    cycles = "" if found.get("cycles") is None else f"{found['cycles']:,}"
    busy = "" if found.get("busy_share") is None else f"{found['busy_share']:.3f}"
    cells = [
        *(found["model"], equal, str(found["programs"])),
        *(f"{found['machine_share']:.2%} of {found['macs']:,}", f"{found['host_macs']:,}"),
        *(cycles, busy, f"{found['compile_seconds'] or 0:.1f}"),
    ]
    return f"| {' | '.join(cells)} |"


def table(rows: list[dict[str, Any]], *, cuts: bool) -> str:
    lines = [
        "| model | equal | programs | MACs on the machine | MACs on the host | cycles | busy | seconds |",
        "|---|---|---|---|---|---|---|---|",
        *map(as_row, rows),
    ]
    for found in rows if cuts else ():
        listed = ", ".join(f"{cut['nodes']} {cut['operator']}" for cut in found.get("cuts", ()))
        lines += ["", f"{found['model']}: {listed or 'no cuts'}"]
        lines += [f"  {cut['operator']}: {cut['reason']}" for cut in found.get("cuts", ())]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--machine", default=DEFAULT_MACHINE)
    parser.add_argument("--no-run", action="store_true", help="compile only")
    parser.add_argument("--cuts", action="store_true", help="list the host operators between layers")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    rows: list[dict[str, Any]] = []
    try:
        config = load_config(chosen.machine)
    except AccelError as error:
        parser.error(str(error))
    for path in track(chosen.models, "models", console=Console(stderr=True)):
        try:
            rows.append(measure(path, config, run=not chosen.no_run))
        except AccelError as error:
            rows.append({"model": path.stem, "error": str(error)})
    print(json.dumps({"rows": rows}, indent=2) if chosen.json else table(rows, cuts=chosen.cuts))


if __name__ == "__main__":
    main()
