from pathlib import Path

import click

from accel.base.run_choices import MAX_BATCH
from accel.cli.command_groups import runs
from accel.cli.declared_options import (
    config_option,
    jobs_option,
    json_option,
    rewrite_options,
    set_option,
    shape_option,
    tuned_option,
)
from accel.network.model_files import DEFAULT_MACHINE


@click.command("onnx")
@click.argument("model", metavar="MODEL.onnx", type=click.Path(path_type=Path))
@config_option(DEFAULT_MACHINE)
@set_option("geometry or timing")
@click.option(
    "--batch",
    type=click.IntRange(1, MAX_BATCH),
    help="Batch size, if it is open in the model.  [default: 1]",
)
@shape_option
@click.option("--strict", is_flag=True, help="Fail if a product of the network cannot run on the machine.")
@click.option(
    "--approximate",
    is_flag=True,
    help="Keep additions on the machine although some results differ from float32.",
)
@click.option(
    "--no-fuse", is_flag=True, help="Run every node as a layer of its own, to measure what fusion saves."
)
@rewrite_options
@click.option("--explain", is_flag=True, help="Show where each node runs, and the compared alternatives.")
@click.option(
    "--measure",
    type=click.IntRange(min=1),
    metavar="N",
    help="Simulate the N most promising schedules of each layer, and take the fastest, unless the network "
    "is slower with them.",
)
@tuned_option("Layers use schedules in this file of records of 'accel tune' that take fewer cycles.")
@click.option(
    "--annotate",
    metavar="OUT.onnx",
    type=click.Path(path_type=Path),
    help="Write the model with cycles and placement of each node as metadata, which Netron shows.",
)
@jobs_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The network's file.  [default: MODEL.accel]",
)
@json_option
@runs("accel.cli.repeated_compilation:compile_onnx", multiplies=False)
def compile_onnx() -> None:
    """Compile a network from an ONNX model (QOperator or QDQ) or a TensorFlow Lite model (.tflite).

    Convolutions and matrix products run on the machine, in one program where possible. Operators that the
    machine lacks run on the host, in numpy or in ONNX Runtime. Every quantized tensor equals ONNX Runtime's,
    bit for bit. With --explain or --annotate, a file is written only with -o.

    \b
    Example:
      accel compile onnx model.onnx -o net.accel
      accel run net.accel --input image=picture.npy --output scores=scores.npy
    """
