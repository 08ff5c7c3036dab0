from pathlib import Path

import click

from accel.base.run_choices import BACKENDS, MAX_BATCH
from accel.cli.command_groups import runs
from accel.cli.declared_options import (
    config_option,
    json_option,
    rewrite_options,
    seed_option,
    shape_option,
)
from accel.network.model_files import DEFAULT_MACHINE


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
@rewrite_options
@seed_option
@json_option
@runs("accel.cli.verify:verify")
def verify() -> None:
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
    computes in float32 by 1.

    It says where ONNX Runtime's outputs without and with optimizations differ. Missing inputs are random.
    With --backend the network is also compiled and run, after the rewriting that --rewrite and --rules
    choose. The exit code is 1 if a tensor differs.

    \b
    Example:
      accel verify model.onnx --input image=picture.npy
    """
