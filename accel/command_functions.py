"""Functions named like commands: ``accel.check`` does what ``accel check`` does."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy.typing as npt

from accel.base.errors import AccelError
from accel.compiler.target.machine import Machine, machine_names
from accel.core.config import Config, load_config
from accel.image.image import Image
from accel.network.network_program import NetworkProgram
from accel.network.network_result import NetworkResult
from accel.network.verify_network import verify
from accel.proof.check_program import check_program
from accel.proof.token_check import TokenReport
from accel.run.program import Program
from accel.run.result import Result

if TYPE_CHECKING:
    from accel.area import Area
    from accel.formats.quantize_onnx import QuantizedModel
    from accel.run.lockstep import Lockstep
    from accel.views.run_comparison import Comparison
    from accel.views.saved_run import SavedRun

__all__ = ["check", "diff", "lockstep", "machines", "package", "predict_area", "quantize", "verify"]

Arrays = Mapping[str, npt.NDArray[Any]]
FilePath = str | os.PathLike[str]


def machines() -> list[str]:
    """Return the names of the machines, for example ``vta`` and ``gemm8x8-int8``."""
    return list(machine_names())


def predict_area(machine: str | Machine | Config) -> "Area":
    """Predict the resources of a machine on an ECP5, before placement.

    For example, ``accel.predict_area("ecp5").block_ram`` is 60.

    Args:
        machine: the machine, its name or file.

    Raises:
        ConfigError: there is no such machine.
    """
    from accel.area import predict_area as predict

    config = load_config(machine) if isinstance(machine, str) else machine
    return predict(config.config if isinstance(config, Machine) else config)


def check(program: Image | FilePath) -> TokenReport:
    """Prove that a program neither deadlocks nor races, or report why not.

    Args:
        program: the program, or its file.

    Raises:
        ProgramError: the file cannot be read or is damaged.
    """
    return check_program(program if isinstance(program, Image) else Image.load(Path(program)))


def lockstep(
    program: Program,
    inputs: Arrays | None = None,
    *,
    seed: int = 0,
    engine: str | None = None,
    hostile: bool = False,
) -> "Lockstep":
    """Run a program on the simulator and on the hardware, and compare all cycles, events and memories.

    For example, ``accel.lockstep(program).equal`` is True. The first call for a machine builds the hardware
    model in about 40 s.

    Args:
        inputs: arrays by name. Missing ones are random.
        seed: of random inputs, scratchpad contents and hostile memory.
        engine: simulates the hardware, by default the fastest one for the platform.
        hostile: let the hardware's memory answer late and refuse at random, and compare memory alone.

    Raises:
        EngineError: the engine does not exist or cannot be built.
        LimitExceeded, ShapeError: see :func:`accel.run.lockstep.lockstep`.
    """
    from accel.hw.engines.open_engine import open_engine
    from accel.run.lockstep import lockstep as run_lockstep

    hardware = open_engine(program.config.hardware, engine)
    try:
        return run_lockstep(program, hardware, inputs, seed=seed, hostile=hostile)
    finally:
        hardware.close()


def diff(a: Result | NetworkResult | FilePath, b: Result | NetworkResult | FilePath) -> "Comparison":
    """Compare two runs, and explain the difference.

    For example, ``accel.diff(program.run(), program.run(read_latency=200)).save("diff.html")`` writes a page.

    Args:
        a, b: results of runs with simulated time, or files of ``accel run --save``. Networks need
            ``run(record=True)``.

    Raises:
        AccelError: a run has no cycles or events.
        ProgramError: a file cannot be read or is damaged.
    """
    from accel.views.run_comparison import Comparison

    return Comparison(_saved(a), _saved(b))


def _saved(run: Result | NetworkResult | FilePath) -> "SavedRun":
    from accel.network.saved_network_run import saved_network
    from accel.views.saved_run import SavedRun

    if isinstance(run, NetworkResult):
        return saved_network(run)
    return SavedRun.of(run) if isinstance(run, Result) else SavedRun.load(Path(run))


def quantize(
    path: FilePath,
    data: Arrays,
    *,
    activations: Literal["int8", "uint8"] = "int8",
    method: Literal["minmax", "entropy", "percentile"] = "minmax",
    shapes: Mapping[str, Sequence[int]] | None = None,
    per_layer: bool = False,
) -> "QuantizedModel":
    """Quantize a float ONNX network, and measure the error.

    Args:
        path: the ONNX file.
        data, activations, method, shapes, per_layer: see :func:`accel.formats.quantize_onnx.quantize_onnx`.

    Returns:
        The quantized model: ``content`` are the bytes of its file.

    Raises:
        GraphError, ShapeError: see :func:`accel.formats.quantize_onnx.quantize_onnx`.
    """
    from accel.formats.quantize_onnx import quantize_onnx
    from accel.network.exact_scales import with_exact_scales

    return quantize_onnx(
        path,
        data,
        activations=activations,
        method=method,
        shapes=shapes,
        per_layer=per_layer,
        adjust=with_exact_scales,
    )


def package(
    program: NetworkProgram | Program,
    folder: FilePath,
    *,
    name: str | None = None,
    embed: bool = False,
    example: bool = False,
    cut: bool = False,
    force: bool = False,
) -> dict[str, bytes]:
    """Write a network or a program as files for firmware: binary files, a manifest, and C99 sources.

    Args:
        program: compiled.
        folder: is created.
        name: prefix of the C symbols. The default is the folder's name.
        embed: also write the binary files as C arrays.
        example: also write random inputs and their outputs as C arrays.
        cut: leave out nodes that the driver lacks, so that their operands become outputs.
        force: replace an existing package.

    Returns:
        The files' contents by name.

    Raises:
        AccelError: ``cut`` is for networks, or the driver lacks a node.
        ProgramError: the folder cannot be written.
    """
    from accel.deployment.c_identifiers import identifier
    from accel.deployment.deployment_plan import deploy_network, deploy_program, example_run
    from accel.deployment.package_folder import check_folder, write_package

    target = Path(folder)
    check_folder(target, force=force)
    called = identifier(name or target.name)
    if isinstance(program, NetworkProgram):
        deployment = deploy_network(program, called, cut=cut)
    elif cut:
        raise AccelError("cut is given for a single program; it is for networks")
    else:
        deployment = deploy_program(program, called)
    run = example_run(program) if example else None
    return write_package(deployment, target, embed=embed, example=run, force=force)
