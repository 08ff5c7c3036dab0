"""``accel verify``: comparison of a network with ONNX Runtime."""

import math
from dataclasses import asdict
from pathlib import Path

import click
from rich.table import Table

from accel.base.run_choices import BACKENDS, MAX_BATCH
from accel.cli.npy_files import input_files, read_arrays
from accel.cli.shared_options import (
    busy,
    config_option,
    json_option,
    parse_shapes,
    print_json,
    seed_option,
    shape_option,
    show,
)
from accel.formats.compare_with_original import ModeDifference
from accel.formats.compare_with_runtime import Comparison, TensorDifference, random_inputs
from accel.network.model_files import DEFAULT_MACHINE
from accel.network.network import read_network
from accel.network.verify_network import verify_graph
from accel.run.result import SCHEMA_VERSION


@click.command()
@click.argument("file", metavar="MODEL", type=click.Path(path_type=Path))
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help="Value for an input tensor.")
@click.option(
    "--batch",
    type=click.IntRange(1, MAX_BATCH),
    help="Batch size, if it is open in the model.  [default: 1]",
)
@shape_option
@click.option(
    "--backend",
    type=click.Choice(BACKENDS),
    help="Also compile and run the network, and compare all tensors with numpy.",
)
@config_option(DEFAULT_MACHINE)
@seed_option
@json_option
def verify(
    file: Path,
    inputs: tuple[str, ...],
    batch: int | None,
    shapes: tuple[str, ...],
    backend: str | None,
    config: str,
    seed: int,
    as_json: bool,
) -> int:
    """Compare a network with ONNX Runtime, tensor by tensor.

    MODEL is an ONNX or TensorFlow Lite (.tflite) file. It is imported as for compilation and compared twice:

    \b
    1. Operator by operator. The imported network is written as a QOperator model
       whose outputs are all tensors, and ONNX Runtime runs it without
       optimizations. Each operator is evaluated on ONNX Runtime's operands.
    2. With the original file, if it is an ONNX file. ONNX Runtime runs it with
       all optimizations and session.qdqisint8allowed=1. Each tensor that the
       file quantizes is compared.

    Values that differ only by the order of an addition's multiply-adds, which depends on the processor, are
    counted separately. float32 may differ by rounding, a quantized softmax by 1, and a sum that ONNX Runtime
    computes in float32 by 1. On x86 without VNNI, where ONNX Runtime would saturate products of uint8 and
    int8, the first comparison takes int8 weights as uint8, and the second is left out.

    Where the outputs of ONNX Runtime without and with optimizations differ from one another, it says so.
    Missing inputs are random. With --backend the network is also compiled and run. The exit code is 1 if a
    tensor differs.

    \b
    Example:
      accel verify model.onnx --input image=picture.npy
    """
    network = read_network(file, batch=batch, shapes=parse_shapes(shapes))
    graph = network.graph
    files = input_files(inputs, graph.inputs)
    graph.check_names(inputs=files)
    values = random_inputs(graph, seed) | read_arrays(files)
    with busy("comparing"):
        found = verify_graph(graph, file, values)
    comparison, original = found.operators, found.original
    compared = [one for one in (comparison, original) if one is not None]
    result = None
    if backend is not None:
        with busy("running"):
            result = network.build(config, keep=True).run(values, backend=backend)
    if as_json:
        ok = found.ok and not (result and result.wrong)
        ran = {"backend": result.backend, "mismatches": result.wrong} if result is not None else {}
        print_json(
            {
                "schema_version": SCHEMA_VERSION,
                "ok": ok,
                **_as_data(comparison),
                "original": None if original is None else _as_data(original),
                "modes": [_difference_as_data(one) for one in found.modes],
                **ran,
            }
        )
        return 0 if ok else 1
    show(_table(comparison))
    show(_summary(comparison, "operators of the network"))
    if original is not None:
        show(_summary(original, "original file, all optimizations of ONNX Runtime"))
    for mode in found.modes:
        show(mode.describe())
    if result is not None:
        where = f"{result.config.label} ({backend})"
        show(f"{len(result.tensors)} tensors on {where}: {result.wrong} mismatches with numpy")
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
    """Return a difference as JSON, which has no infinity."""
    return asdict(one) | {"largest": one.largest if math.isfinite(one.largest) else None}


def _table(comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False)
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
