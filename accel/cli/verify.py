"""``accel verify``: a network against ONNX Runtime, tensor by tensor."""

import math
from dataclasses import asdict
from pathlib import Path

import click
from rich.table import Table

from accel.base.errors import ShapeError, nearest
from accel.cli.arrays import input_files, read_arrays
from accel.cli.common import busy, config_option, json_option, print_json, seed_option, show
from accel.formats.comparison import Comparison, compare, random_inputs
from accel.formats.onnx_import import MAX_BATCH
from accel.network.network import DEFAULT_MACHINE, read_network
from accel.network.result import NetworkResult
from accel.run.program import BACKENDS
from accel.run.result import SCHEMA_VERSION


@click.command()
@click.argument("file", metavar="MODEL", type=click.Path(path_type=Path))
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help="Value for an input tensor.")
@click.option(
    "--batch",
    type=click.IntRange(1, MAX_BATCH),
    help="Size of the batch, if the model leaves it open.  [default: 1]",
)
@click.option(
    "--backend",
    type=click.Choice(BACKENDS),
    help="Compile and run the network, too, and compare what it leaves with numpy.",
)
@config_option(DEFAULT_MACHINE)
@seed_option
@json_option
def verify(
    file: Path,
    inputs: tuple[str, ...],
    batch: int | None,
    backend: str | None,
    config: str,
    seed: int,
    as_json: bool,
) -> int:
    """Compare a network with ONNX Runtime, tensor by tensor.

    A MODEL is an ONNX file, or one of TensorFlow Lite (.tflite). The network is read as it would be
    compiled, computed in numpy, written as a model in QOperator format whose outputs are all of its
    tensors, and run by ONNX Runtime (extra onnx). Each operator is compared on the operands that ONNX
    Runtime has. What differs by the order of an addition's multiply-adds, which depends on the processor,
    is counted apart; float32 may differ by rounding, a quantized softmax by 1. Where ONNX Runtime saturates
    products of uint8 and int8, on x86 without VNNI, it is given int8 weights as uint8. Inputs that are not
    given are random. With --backend the network is also compiled and run. The exit code is 1 if a tensor
    differs.

    \b
    Example:
      accel verify model.onnx --input image=picture.npy
    """
    network = read_network(file, batch=batch)
    graph = network.graph
    files = input_files(inputs, graph.inputs)
    for name in files:
        if name not in graph.inputs:
            raise ShapeError(f"{name!r} is no input of the network; {nearest(name, graph.inputs)}")
    values = random_inputs(graph, seed) | read_arrays(files)
    with busy("comparing"):
        comparison = compare(graph, values)
    result = None
    if backend is not None:
        with busy("running"):
            result = network.build(config, keep=True).run(values, backend=backend)
    if as_json:
        print_json(_as_data(comparison, result))
        return 0 if comparison.first is None and not (result and result.wrong) else 1
    show(_table(comparison))
    show(_summary(comparison))
    if result is not None:
        where = f"{result.config.label} ({backend})"
        show(f"{len(result.tensors)} tensors on {where}: {result.wrong} mismatches with numpy")
    comparison.raise_if_bad()
    if result is not None:
        result.raise_if_wrong()
    return 0


def _as_data(comparison: Comparison, result: NetworkResult | None) -> dict[str, object]:
    ran = {"backend": result.backend, "mismatches": result.wrong} if result is not None else {}
    return {
        "schema_version": SCHEMA_VERSION,
        "ok": comparison.first is None and not (result and result.wrong),
        "values": comparison.values,
        "differing": sum(one.differing for one in comparison.tensors),
        "reordered": comparison.reordered,
        "first": None if comparison.first is None else comparison.first.name,
        **ran,
        "tensors": [
            asdict(one) | {"largest": one.largest if math.isfinite(one.largest) else None}
            for one in comparison.tensors
        ],
    }


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


def _summary(comparison: Comparison) -> str:
    right = sum(not one.differing for one in comparison.tensors)
    told = f"{right} of {len(comparison.tensors)} tensors equal, {comparison.values:,} values"
    if comparison.reordered:
        told += f"; {comparison.reordered:,} differ by the order of multiply-adds alone"
    return told
