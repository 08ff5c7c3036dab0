from pathlib import Path

import click

from accel.cli.command_groups import runs
from accel.cli.declared_options import (
    backend_option,
    config_option,
    engine_option,
    json_option,
    limit_options,
    order_option,
    picture_options,
    rewrite_options,
    seed_option,
    set_option,
    shape_option,
)
from accel.network.model_files import DEFAULT_MACHINE


@click.command()
@click.argument("file", metavar="FILE|MODEL.onnx|digits", type=click.Path(path_type=Path))
@config_option(None, shown=f"{DEFAULT_MACHINE}; for models only")
@shape_option
@rewrite_options
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help="Value for an input tensor.")
@click.option("--output", "outputs", multiple=True, metavar="NAME=FILE.npy", help="Where to write an output.")
@click.option(
    "--state",
    "states",
    multiple=True,
    metavar="OUTPUT=INPUT|model",
    help="Run a network once for each sample, and make this output the next run's input. `model` takes the "
    "model's own pairs. Other inputs and outputs have an axis of samples in front.",
)
@backend_option("sim", "The backend.")
@engine_option("The engine that simulates the hardware (backend rtl).")
@click.option(
    "--wave",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write waves as VCD or FST (backend rtl).",
)
@click.option("--serial", is_flag=True, help="Monolithic pipeline: one instruction after another.")
@order_option
@click.option("--no-check", is_flag=True, help="Skip the comparison with numpy and the token check.")
@picture_options
@click.option(
    "--save",
    type=click.Path(path_type=Path),
    metavar="FILE.accelrun",
    help="Keep the run's figures and critical path, for 'accel diff'.",
)
@click.option(
    "--advise",
    is_flag=True,
    help="Also print changes of the machine that would help, with their predicted cycles. The search takes "
    "at most ten seconds, or sixty for a network.",
)
@click.option(
    "--energy",
    is_flag=True,
    help="Also print the energy by component and by layer, from counts of accesses and published energies.",
)
@seed_option
@set_option("timing")
@limit_options
@json_option
@runs("accel.cli.run:run")
def run() -> None:
    """Run a program or a network, and compare its outputs with numpy.

    FILE is a compiled program or network, an ONNX or TensorFlow Lite model, which is compiled first, or
    'digits' for the network that comes with accel. Missing inputs are random, with a spread at which few
    outputs saturate. A race that the tokens allow is reported, but, unlike in 'accel check', it is not an
    error. The backend rtl runs the hardware. Its model is built once for each configuration and kept.

    \b
    Example:
      accel run gemm.accel --input A=a.npy --output C=c.npy --set read_latency=100
      accel run gemm.accel --report report.html --timeline gemm.svg --trace gemm.json
      accel run gemm.accel --advise --report report.html
      accel run model.onnx --config gemm8x8-int8 --report net.html
      accel run net.accel --input image=picture.npy --output scores=scores.npy --report net.html
      accel run vad.accel --input sound=pieces.npy --state h_out=h --output speech=speech.npy
    """
