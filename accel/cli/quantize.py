"""``accel quantize``: quantization of a float network, and its error."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from accel.base.atomic_files import check_targets, write_atomically
from accel.cli.npy_files import read_archive
from accel.cli.shared_options import busy, figures_table, json_option, print_json, show
from accel.cli.stdout import wrote
from accel.formats.quantize_onnx import METHODS, TYPES, OutputError, QuantizedModel, quantize_onnx
from accel.run.result import SCHEMA_VERSION


@click.command()
@click.argument("model", metavar="MODEL.onnx", type=click.Path(path_type=Path))
@click.option(
    "--calibrate",
    "data",
    metavar="DATA.npz",
    required=True,
    type=click.Path(path_type=Path),
    help="Samples by input name, stacked along the first axis.",
)
@click.option(
    "--activations",
    type=click.Choice(TYPES),
    default=TYPES[0],
    show_default=True,
    help="Data type of activations.",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default=METHODS[0],
    show_default=True,
    help="Calibration method.",
)
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), help="The quantized model's file."
)
@json_option
def quantize(model: Path, data: Path, activations: Any, method: Any, output: Path, as_json: bool) -> int:
    """Quantize a float network, and measure the error.

    Uses ONNX Runtime's static quantization (extra onnx) with settings for machines with post=1: weights are
    int8 with a scale for each output channel, activations have one scale and a zero point. Batch
    normalization is folded first. The quantized network, computed as machines do, is compared with the float
    network on the data: largest and mean difference, signal-to-noise ratio, and for classes the share of rows
    with the same winner.

    \b
    Example:
      accel quantize float.onnx --calibrate pictures.npz -o int8.onnx
      accel compile onnx int8.onnx -o net.accel
    """
    check_targets({"-o": output}, {"MODEL.onnx": model, "--calibrate": data})
    with busy("quantizing"):
        found = quantize_onnx(
            model, read_archive("--calibrate", data), activations=activations, method=method
        )
    write_atomically(output, found.content)
    if as_json:
        print_json(_as_data(found, output))
        return 0
    show(_table(found.errors))
    show(figures_table(_rows(found)))
    wrote(output)
    return 0


def _as_data(found: QuantizedModel, output: Path) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "output": str(output),
        "samples": found.samples,
        "macs": found.macs,
        "float_macs": found.float_macs,
        "outputs": [
            asdict(one) | {"snr": one.snr if math.isfinite(one.snr) else None} for one in found.errors
        ],
    }


def _table(errors: tuple[OutputError, ...]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("output")
    for heading in ("values", "largest error", "mean error", "SNR", "same winner"):
        table.add_column(heading, justify="right")
    for one in errors:
        table.add_row(
            one.name,
            f"{one.values:,}",
            f"{one.largest:.4g}",
            f"{one.mean:.4g}",
            f"{one.snr:.1f} dB",
            "" if one.agreement is None else f"{one.agreement:.1%}",
        )
    return table


def _rows(found: QuantizedModel) -> list[tuple[str, str]]:
    return [
        ("samples", f"{found.samples:,}"),
        ("MACs", f"{found.macs:,}, {found.float_macs:,} of them in float32"),
    ]
