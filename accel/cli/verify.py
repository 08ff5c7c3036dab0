import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel.base.forked_tasks import default_jobs
from accel.base.records import as_dict
from accel.cli.npy_files import input_files, read_arrays
from accel.cli.rewrite_request import RewriteRequest
from accel.cli.shared_options import machine_text, parse_shapes
from accel.cli.terminal_output import busy, print_json, show, text_table
from accel.compiler.target.machine import machine
from accel.formats.compare_with_original import ModeDifference
from accel.formats.compare_with_runtime import Comparison, TensorDifference, random_inputs
from accel.network.network import read_network
from accel.network.network_cache import build_or_read
from accel.network.verify_network import verify_graph
from accel.run.result import SCHEMA_VERSION

if TYPE_CHECKING:
    from rich.table import Table


def verify(
    file: Path,
    inputs: tuple[str, ...],
    batch: int | None,
    shapes: tuple[str, ...],
    backend: str | None,
    config: str,
    seed: int,
    as_json: bool,
    **rewriting: Any,
) -> int:
    request = RewriteRequest(**rewriting)
    if backend is None:
        request.check_unused("--backend is not; only with it the network is compiled")
    network = read_network(file, batch=batch, shapes=parse_shapes(shapes))
    graph = network.graph
    files = input_files(inputs, graph.inputs)
    graph.check_names(inputs=files)
    values = random_inputs(graph, seed) | read_arrays(files)
    with busy("comparing"):
        found = verify_graph(graph, file, values)
    comparison, original = found.operators, found.original
    compared = [one for one in (comparison, original) if one is not None]
    result = rewritten = None
    if backend is not None:
        with busy("running"):
            program = build_or_read(
                network, machine(config), jobs=default_jobs(), keep=True, **request.build_options
            )
            result, rewritten = program.run(values, backend=backend), program.rewriting
    if as_json:
        ok = found.ok and not (result and result.wrong)
        ran = {"backend": result.backend, "mismatches": result.wrong} if result is not None else {}
        found_graph = {} if rewritten is None else {"rewriting": rewritten.to_dict()}
        print_json(
            {
                "schema_version": SCHEMA_VERSION,
                "ok": ok,
                **_as_data(comparison),
                "original": None if original is None else _as_data(original),
                "modes": [_difference_as_data(one) for one in found.modes],
                **ran,
                **found_graph,
            }
        )
        return 0 if ok else 1
    show(_table(comparison))
    show(_summary(comparison, "operators of the network"))
    if original is not None:
        show(_summary(original, "original file, all optimizations of ONNX Runtime"))
    for mode in found.modes:
        show(mode.describe())
    if rewritten is not None:
        show(f"rewritten: {rewritten.describe()}")
    if result is not None:
        counted = f"{len(result.tensors)} tensors of backend {backend}: {result.wrong} mismatches with numpy"
        show(f"{counted}, on {machine_text(result.config)}")
    for one in compared:
        one.raise_if_bad()
    if result is not None:
        result.raise_if_wrong()
    return 0


def _as_data(comparison: Comparison) -> dict[str, object]:
    return {
        "values": comparison.values,
        "differing": sum(one.differing for one in comparison.tensors),
        "reordered": comparison.reordered,
        "first": None if comparison.first is None else comparison.first.name,
        "tensors": [_difference_as_data(one) for one in comparison.tensors],
    }


def _difference_as_data(one: TensorDifference | ModeDifference) -> dict[str, object]:
    """JSON has no infinity."""
    return as_dict(one) | {"largest": one.largest if math.isfinite(one.largest) else None}


def _table(comparison: Comparison) -> "Table":
    table = text_table()
    for heading in ("tensor", "operator"):
        table.add_column(heading)
    for heading in ("values", "differing", "by order", "largest difference"):
        table.add_column(heading, justify="right")
    for one in comparison.tensors:
        numbers = (one.values, one.differing, one.reordered)
        table.add_row(one.name, one.operator, *(f"{n:,}" for n in numbers), f"{one.largest:g}")
    return table


def _summary(comparison: Comparison, subject: str) -> str:
    equal = sum(not one.differing for one in comparison.tensors)
    text = f"{subject}: {equal} of {len(comparison.tensors)} tensors equal, {comparison.values:,} values"
    if comparison.reordered:
        text += f"; {comparison.reordered:,} differ by the order of multiply-adds alone"
    return text
