from pathlib import Path

import click

from accel.cli.command_groups import runs
from accel.cli.declared_options import json_option, shape_option
from accel.formats.quantization_choices import METHODS, TYPES


@click.command()
@click.argument("model", metavar="MODEL.onnx", type=click.Path(path_type=Path))
@click.option(
    "--calibrate",
    "data",
    metavar="DATA.npz|FOLDER",
    required=True,
    type=click.Path(path_type=Path),
    help="Samples by input name, stacked along the first axis or along one more in front, or a folder of "
    "pictures or .npy files.",
)
@shape_option
@click.option("--mean", metavar="R,G,B", help="Subtract from pictures divided by 255.  [default: 0]")
@click.option("--std", metavar="R,G,B", help="Divide pictures by this, after --mean.  [default: 1]")
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
@click.option("--per-layer", is_flag=True, help="Show the tensors that quantization changes most.")
@json_option
@runs("accel.cli.quantize:quantize")
def quantize() -> None:
    """Quantize a float network, and measure the error.

    Uses ONNX Runtime's static quantization (extra onnx) with settings for machines with post=1: weights are
    int8 with a scale for each output channel, activations have one scale and a zero point. Batch
    normalization is folded first. Sums of attention scores and a mask, for example -inf, stay in float32. The
    quantized network, computed as machines do, is compared with the float network on the data: largest and
    mean difference, signal-to-noise ratio, and for classes the share of rows with the same winner.

    \b
    Example:
      accel quantize float.onnx --calibrate pictures.npz -o int8.onnx
      accel quantize float.onnx --calibrate photos/ --mean 0.5 --std 0.25 --per-layer -o int8.onnx
      accel compile onnx int8.onnx -o net.accel
    """
