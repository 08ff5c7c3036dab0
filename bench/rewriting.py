"""Compare searches over rewritten graphs on networks with branches.

    python bench/rewriting.py [NETWORK|MODEL.onnx ...] [--machine NAME] [--search NAME ...]
        [--seconds N] [--json]

Networks are those of ``bench/branching_networks.py`` with random weights, quantized by ``accel quantize``, or
files. For each search the table has the cycles that it predicts, the simulated cycles of all programs, the
number of programs, the seconds of the search alone and of the whole compilation, the rules that lead to its
graph, and which graph was kept: that of the search, or the one without it. All outputs are compared with
those of the imported graph.
"""

import argparse
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from branching_networks import NETWORKS
from rich.console import Console
from rich.table import Table

import accel
from accel.base.rewrite_choices import SEARCHES, SECONDS, Search
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import random_values
from accel.rewriting.search_result import SearchLimits, SearchResult

SAMPLES = 4
"""Random inputs that the quantizer sees."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """The figures of one network and one search. ``predicted`` is None where nothing was searched."""

    network: str
    search: str
    predicted: int | None
    cycles: int
    programs: int
    search_seconds: float
    compile_seconds: float
    rules: dict[str, int]
    kept: str
    ended_by: str


def read(name: str, folder: Path) -> accel.Network:
    """Load a file, or make and quantize a network."""
    if name not in NETWORKS:
        return accel.load_onnx(name)
    path = folder / f"{name}.onnx"
    model = NETWORKS[name]()
    onnx.save(model, path)
    given = model.graph.input[0]
    sizes = [dim.dim_value for dim in given.type.tensor_type.shape.dim]
    samples = np.random.default_rng(0).normal(size=(SAMPLES, *sizes)).astype(np.float32)
    path.write_bytes(accel.quantize(path, {given.name: samples}).content)
    return accel.load_onnx(path)


def measure(name: str, network: accel.Network, machine: str, search: Search, seconds: float) -> Row:
    """Compile, run, and compare.

    Raises:
        MismatchError: an output differs from that of the imported graph.
    """
    begin = time.process_time()
    program = network.build(machine, rewrite=search, limits=SearchLimits(seconds=seconds))
    compile_seconds = time.process_time() - begin
    graph, rng = network.graph, np.random.default_rng(0)
    inputs = {one: random_values(rng, graph.tensors[one]) for one in graph.inputs}
    result, expected = program.run(inputs, check=False), evaluate(graph, inputs)
    for output in graph.outputs:
        if not np.array_equal(result.outputs[output], expected[output]):
            raise accel.MismatchError(f"{name}, {search}: {output!r} differs from the imported graph's")
    found = program.rewriting
    return Row(
        network=name,
        search=search,
        predicted=None if found is None else found.cycles_after,
        cycles=result.cycles,
        programs=len(program.chains),
        search_seconds=0.0 if found is None else found.seconds,
        compile_seconds=compile_seconds,
        rules={} if found is None else dict(found.rules),
        kept=_kept(found),
        ended_by="" if found is None else found.ended_by,
    )


def _kept(found: SearchResult | None) -> str:
    if found is None or found.compiled is None:
        return ""  # there is only one graph
    return "search" if found.compiled.keeps_search else "greedy"


def table(rows: list[Row], machine: str) -> Table:
    shown = Table(title=f"Searches on {machine}")
    for column in (
        "network",
        "search",
        "predicted",
        "cycles",
        "ratio",
        "programs",
        "search s",
        "compile s",
        "kept",
        "rules",
    ):
        is_text = column in {"network", "search", "kept", "rules"}
        shown.add_column(column, justify="left" if is_text else "right")
    first: dict[str, int] = {}
    for row in rows:
        reference = first.setdefault(row.network, row.cycles)
        shown.add_row(
            row.network,
            row.search,
            "" if row.predicted is None else f"{row.predicted:,}",
            f"{row.cycles:,}",
            f"{row.cycles / reference:.3f}",
            str(row.programs),
            f"{row.search_seconds:.1f} {row.ended_by}",
            f"{row.compile_seconds:.1f}",
            row.kept,
            ", ".join(f"{rule} {count}" for rule, count in row.rules.items()),
        )
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("networks", nargs="*", default=list(NETWORKS), metavar="NETWORK|MODEL.onnx")
    parser.add_argument("--machine", default="vta-npu")
    parser.add_argument("--search", nargs="+", choices=SEARCHES, default=list(SEARCHES))
    parser.add_argument("--seconds", type=float, default=SECONDS, help="limit of each search")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object for each row instead of a table"
    )
    chosen = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen.networks:
            network = read(name, Path(folder))
            for search in chosen.search:
                rows.append(measure(Path(name).stem, network, chosen.machine, search, chosen.seconds))
                if chosen.json:
                    print(json.dumps(vars(rows[-1])), flush=True)
    if not chosen.json:
        Console(width=180).print(table(rows, chosen.machine))


if __name__ == "__main__":
    main()
