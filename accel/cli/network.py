"""Networks on the command line: compile, run, show."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from accel.base.errors import AccelError, ProgramFault, ShapeError, nearest
from accel.base.files import check_targets, write_atomically
from accel.cli.arrays import array_file, input_files, output_files, read_arrays
from accel.cli.common import (
    busy,
    config_file,
    config_option,
    critical_json,
    figures_table,
    given,
    json_option,
    parse_settings,
    print_json,
    set_option,
    show,
)
from accel.cli.output import wrote
from accel.cli.pictures import STDOUT, Pictures, new_waves, written_at
from accel.compiler.target.machine import machine
from accel.formats.onnx_annotate import check_annotation
from accel.formats.onnx_import import MAX_BATCH
from accel.network.annotate import annotated_model
from accel.network.choose import savings
from accel.network.file import load_network, save_network
from accel.network.network import DEFAULT_MACHINE, is_lite, read_network
from accel.network.place import QUANTIZE, multiplies_floats
from accel.network.program import NetworkProgram
from accel.network.report import NetworkReport
from accel.network.result import NetworkResult
from accel.network.text import STAGES, choices_text, network_text
from accel.run.critical import shares_text
from accel.run.replay import program_name
from accel.run.result import SCHEMA_VERSION, error_dict
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
        program = network.build(target, strict=strict, approximate=approximate, fusion=not no_fuse)
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


def run_network(
    file: Path,
    *,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    settings: Mapping[str, str],
    report: str | None,
    timeline: str | None,
    trace: str | None,
    wave: Path | None,
    unknown: Sequence[str],
    as_json: bool,
    seed: int,
    check: bool,
    **options: Any,
) -> int:
    """Run a compiled network; returns the exit code.

    Args:
        file: the network's.
        inputs, outputs: arguments of ``--input`` and ``--output``.
        settings: of ``--set``.
        report: of ``--report``.
        timeline, trace: of these options; of several programs each gets a file, with its number in the name.
        wave: of ``--wave``.
        unknown: options that are given and that networks do not take.
        as_json: print a JSON object.
        seed: of what is random.
        check: compare with the graph's evaluation.
        options: of :meth:`~accel.network.program.NetworkProgram.run`.

    Raises:
        AccelError: whatever is wrong with the file, the options or the run.
    """
    if unknown:
        raise AccelError(
            f"{unknown[0]} is given, and {str(file)!r} holds a network; it is for single programs"
        )
    if report is not None:
        NetworkReport.check_backend(options["backend"])
        NetworkReport.check_path(report)
    program = load_network(file).with_timing(settings)
    graph = program.graph
    sources, targets = input_files(inputs, graph.inputs), output_files(outputs, graph.outputs)
    for name in sources:
        if name not in graph.inputs:
            raise ShapeError(f"{name!r} is no input of the network; {nearest(name, graph.inputs)}")
    for name in targets:
        if name not in graph.outputs:
            raise ShapeError(f"{name!r} is no output of the network; {nearest(name, graph.outputs)}")
    page = given({"--report": None if report is None else Path(report)})
    pictures = [
        Pictures(
            report=None,
            timeline=_numbered(timeline, number, program),
            trace=_numbered(trace, number, program),
            backend=options["backend"],
            as_json=as_json,
            name=f"{program_name(file)}, program {number}",
        )
        for number in range(1, len(program.chains) + 1)
    ]
    drawn = {f"{what} {path}": path for one in pictures for what, path in one.targets.items()}
    check_targets(
        {f"--output {name}": path for name, path in targets.items()} | page | drawn | given({"--wave": wave}),
        {"FILE": file} | {f"--input {name}": path for name, path in sources.items()},
    )
    arrays = program.random_inputs(seed) | read_arrays(sources)
    before = written_at(wave)
    try:
        with busy("running") as note:
            result = program.run(
                arrays, seed=seed, check=check, progress=note, wave=wave, record=True, **options
            )
    except ProgramFault as error:
        if not as_json:
            wrote(*new_waves(wave, before))
            raise
        print_json(
            {"schema_version": SCHEMA_VERSION, "config": program.config.label, "error": error_dict(error)}
        )
        return error.exit_code
    for name, path in targets.items():
        write_atomically(path, array_file(result.outputs[name]))
    for path in page.values():
        NetworkReport(program, result).save(path)
    for one, ran in zip(pictures, result.runs, strict=False):
        one.draw(ran)
    waves = new_waves(wave, before)
    if as_json:
        critical = critical_json(result.critical_path())
        print_json({"schema_version": SCHEMA_VERSION, **result.to_dict(), "critical_path": critical})
        return 1 if result.mismatches else 0
    show(layers_table(result))
    show(figures_table(_result_rows(result)))
    for one, ran in zip(pictures, result.runs, strict=False):
        one.show(ran)
    wrote(*targets.values(), *waves, *page.values(), *drawn.values())
    result.raise_if_wrong()
    return 0


def _numbered(path: str | None, number: int, program: NetworkProgram) -> str | None:
    """A file's name with the number of one of several programs in it; what is no name stays."""
    if path is None or path == STDOUT or len(program.chains) == 1:
        return path
    given = Path(path)
    suffixes = "".join(given.suffixes[-2:] if given.suffix == ".gz" else given.suffixes[-1:])
    return str(given.with_name(f"{given.name.removesuffix(suffixes)}.{number}{suffixes}"))


def layers_table(result: NetworkResult) -> Table:
    """The layers of a run: what, where, by which mapping, MACs, cycles in the network and predicted alone,
    utilization."""
    table = Table(box=None, pad_edge=False)
    for heading in ("layer", "operator", "where", "mapping"):
        table.add_column(heading)
    for heading in ("MACs", "cycles", "alone", "utilization"):
        table.add_column(heading, justify="right")
    known = any(layer.causes for layer in result.layers)
    if known:
        table.add_column("critical path")
    for layer in result.layers:
        table.add_row(
            layer.name,
            layer.operator,
            f"{layer.where}: {layer.reason}" if layer.reason else layer.where,
            layer.mapping,
            f"{layer.macs:,}" if layer.macs else "",
            "" if layer.cycles is None else f"{layer.cycles:,}",
            "" if layer.alone is None else f"{layer.alone:,}",
            "" if layer.utilization is None else f"{layer.utilization:.1%}",
            *([shares_text(layer.causes)] if known else []),
        )
    return table


def _result_rows(result: NetworkResult) -> list[tuple[str, str]]:
    rows = [("machine", str(result.config))]
    if result.cycles is not None:
        rows.append(("cycles", f"{result.cycles:,}"))
    if result.utilization is not None:
        rows.append(("utilization", f"{result.utilization:.1%} of the GEMM core, by nominal MACs"))
    rows.append(("MACs", f"{result.macs:,}, {result.host_macs:,} of them on the host"))
    moved = ", ".join(f"{kind} {n:,}" for kind, n in result.bytes_by_kind.items() if n)
    rows.append(("bytes moved", moved))
    rows.append(("host", str(result.packing)))
    if result.wrong is not None:
        wrong = f"{result.wrong:,} MISMATCHES" if result.wrong else f"all {len(result.tensors)} tensors equal"
        rows.append(("compared to numpy", wrong))
    rows.append(("run in", f"{result.simulate_seconds:.3f} s"))
    return rows


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
