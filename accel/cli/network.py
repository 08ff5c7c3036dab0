"""Networks on the command line: compile, run, show."""

from pathlib import Path
from typing import Any

import click

from accel.base.errors import AccelError, nearest
from accel.base.files import check_targets, write_atomically
from accel.cli.common import (
    busy,
    config_file,
    config_option,
    figures_table,
    given,
    json_option,
    parse_settings,
    print_json,
    set_option,
    show,
)
from accel.cli.output import wrote
from accel.compiler.target.machine import machine
from accel.formats.onnx_annotate import check_annotation
from accel.formats.onnx_import import MAX_BATCH
from accel.network.annotate import annotated_model
from accel.network.choose import savings
from accel.network.file import load_network, save_network
from accel.network.network import DEFAULT_MACHINE, is_lite, read_network
from accel.network.place import QUANTIZE, multiplies_floats
from accel.network.program import NetworkProgram
from accel.network.text import STAGES, choices_text, network_text
from accel.run.result import SCHEMA_VERSION
from accel.run.stages import STAGES as PROGRAM_STAGES


@click.command("onnx")
@click.argument("model", metavar="MODEL.onnx", type=click.Path(path_type=Path))
@config_option(DEFAULT_MACHINE)
@set_option("geometry or timing")
@click.option(
    "--batch",
    type=click.IntRange(1, MAX_BATCH),
    help="Size of the batch, if the model leaves it open.  [default: 1]",
)
@click.option("--strict", is_flag=True, help="Refuse multiplications that the machine cannot do.")
@click.option(
    "--approximate", is_flag=True, help="Let additions whose integers are not exact stay on the machine."
)
@click.option("--no-fuse", is_flag=True, help="Leave every node by itself, to see what fusion saves; slower.")
@click.option("--explain", is_flag=True, help="Show where each node runs, and what that was compared with.")
@click.option(
    "--measure",
    type=click.IntRange(min=1),
    metavar="N",
    help="Simulate the N most promising schedules of each layer, and take the fastest, unless the network "
    "is slower with them.",
)
@click.option(
    "--annotate",
    metavar="OUT.onnx",
    type=click.Path(path_type=Path),
    help="Write the model with cycles and places of its nodes, as Netron shows them.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The network's file.")
@json_option
def compile_onnx(
    model: Path,
    config: str,
    settings: tuple[str, ...],
    batch: int | None,
    strict: bool,
    approximate: bool,
    no_fuse: bool,
    explain: bool,
    measure: int | None,
    annotate: Path | None,
    output: Path | None,
    as_json: bool,
) -> int:
    """A network from an ONNX model, in QOperator or in QDQ format, or from a TensorFlow Lite model (.tflite).

    Convolutions and products run on the machine, one behind the other; what it does not have runs on the
    host, in numpy. Every quantized tensor is ONNX Runtime's, bit for bit. With --explain or --annotate, -o
    may be left out.

    \b
    Example:
      accel compile onnx model.onnx -o net.accel
      accel run net.accel --input image=picture.npy --output scores=scores.npy
    """
    if output is None and annotate is None and not explain:
        raise click.UsageError("Missing option '-o' / '--output'.", click.get_current_context())
    target = machine(config, **parse_settings(settings))
    targets = given({"-o": output, "--annotate": annotate})
    check_targets(targets, {"MODEL.onnx": model} | config_file(config))
    if annotate is not None and is_lite(model):
        raise AccelError(
            f"--annotate is given, and {str(model)!r} is TensorFlow Lite's; it is for ONNX models"
        )
    with busy("compiling") as note:
        network = read_network(model, batch=batch)
        if annotate is not None:
            check_annotation(model, annotate)
        program = network.build(
            target, strict=strict, approximate=approximate, fusion=not no_fuse, measure=measure
        )
        if annotate is not None:
            note("simulating")
            result = program.run(check=False)
    if output is not None:
        save_network(program, output)
    if annotate is not None:
        write_atomically(annotate, annotated_model(model, program, result))
    if as_json:
        print_json(_compiled(program, output))
        return 0
    if explain:
        click.echo(choices_text(program), nl=False)
        click.echo(network_text(program, "placed"), nl=False)
    show(figures_table(_compiled_rows(program)))
    wrote(*targets.values())
    return 0


def _compiled(program: NetworkProgram, output: Path | None) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "output": None if output is None else str(output),
        "config": program.config.label,
        "macs": program.macs,
        "host_macs": program.host_macs,
        "programs": len(program.chains),
        "instructions": sum(len(chain.program.instructions) for chain in program.chains),
        "dram_bytes": [chain.program.size for chain in program.chains],
        "activation_bytes": [chain.memory.nbytes for chain in program.chains],
        "activation_bound": [chain.memory.bound for chain in program.chains],
        "compile_seconds": program.compile_seconds,
        "savings": savings(program.choices).to_dict(),
        "choices": [choice.to_dict() for choice in program.choices],
        "arrangements": [one.to_dict() for one in program.arrangements],
        "layers": [
            {
                "name": part.stage.name,
                "operator": part.stage.operators(),
                "where": part.where,
                "reason": part.reason,
                "mapping": part.mapping,
                "alone": part.alone,
                "macs": part.stage.macs(program.graph),
            }
            for part in program.parts
        ],
    }


def _compiled_rows(program: NetworkProgram) -> list[tuple[str, str]]:
    figures = _compiled(program, None)
    on_host = sum(not part.on_machine for part in program.parts)
    activations, bound = sum(figures["activation_bytes"]), sum(figures["activation_bound"])
    return [
        ("machine", str(program.config)),
        ("layers", f"{len(program.parts) - on_host} on the machine, {on_host} on the host"),
        ("MACs", f"{program.macs:,}, {program.machine_share:.2%} of them on the machine"),
        ("programs", f"{figures['programs']} of {figures['instructions']:,} instructions"),
        ("activations", f"{activations:,} bytes; no plan needs less than {bound:,}"),
        ("fusion saves", f"{savings(program.choices)}, predicted"),
        ("compiled in", f"{program.compile_seconds or 0:.2f} s"),
        *([("hint", QUANTIZE)] if multiplies_floats(program.graph, program.parts) else []),
    ]


def show_network(file: Path, stage: str) -> str:
    """A compiled network at one stage, as text.

    Raises:
        AccelError: the stage is one of single programs, or none at all.
        ProgramError: the file cannot be read.
    """
    if stage not in STAGES:
        what = "is one of programs" if stage in PROGRAM_STAGES else "is none"
        raise AccelError(
            f"stage {stage!r} {what}, and {str(file)!r} holds a network; {nearest(stage, STAGES)}"
        )
    return network_text(load_network(file), stage)
