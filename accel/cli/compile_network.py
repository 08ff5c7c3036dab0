"""``accel compile onnx``, and stages of a network."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from accel.base.atomic_files import check_targets, write_atomically
from accel.base.errors import AccelError, nearest
from accel.base.forked_tasks import default_jobs
from accel.base.records import as_dict
from accel.base.run_choices import NETWORK_STAGES, PROGRAM_STAGES
from accel.cli.compiled_models import (
    SECONDS_ROW,
    CompiledModel,
    model_key,
    seconds_text,
    write_compiled_model,
)
from accel.cli.rewrite_request import RewriteRequest
from accel.cli.shared_options import config_file, given, machine_row, parse_settings, parse_shapes
from accel.cli.stdout import wrote
from accel.cli.terminal_output import FiguresTable, busy, print_json, show
from accel.compiler.target.machine import machine
from accel.core.alu_operations import STOCK_NAMES
from accel.formats.onnx_annotations import check_annotation
from accel.network.fusion_report import total_savings
from accel.network.model_files import is_tflite
from accel.network.network import read_network
from accel.network.network_annotations import annotated_model
from accel.network.network_cache import build_or_read, network_key
from accel.network.network_cuts import network_cuts
from accel.network.network_file import load_network, save_network
from accel.network.network_part import QUANTIZE_HINT, multiplies_float32
from accel.network.network_program import NetworkProgram
from accel.network.network_text import choices_text, network_text
from accel.run.result import SCHEMA_VERSION

_SHOWN_CUTS = 3


def compile_onnx(
    model: Path,
    config: str,
    settings: tuple[str, ...],
    batch: int | None,
    shapes: tuple[str, ...],
    strict: bool,
    approximate: bool,
    no_fuse: bool,
    explain: bool,
    measure: int | None,
    tuned: Path | None,
    annotate: Path | None,
    jobs: int | None,
    output: Path | None,
    as_json: bool,
    **rewriting: Any,
) -> int:
    """Execute the command."""
    request = RewriteRequest(**rewriting)
    if output is None and annotate is None and not explain:
        output = Path(f"{model.stem}.accel")
    target = machine(config, **parse_settings(settings))
    targets = given({"-o": output, "--annotate": annotate})
    read = given({"--rules": request.rules, "--tuned": tuned})
    check_targets(targets, {"MODEL.onnx": model} | read | config_file(config))
    if annotate is not None and is_tflite(model):
        raise AccelError(
            f"--annotate is given, and {str(model)!r} is TensorFlow Lite's; it is for ONNX models"
        )
    with busy("compiling") as note:
        network = read_network(model, batch=batch, shapes=parse_shapes(shapes))
        if annotate is not None:
            check_annotation(model, annotate)
        options = {
            "strict": strict,
            "approximate": approximate,
            "fusion": not no_fuse,
            "measure": measure,
            "tuned": tuned,
            **request.build_options,
        }
        program = build_or_read(network, target, jobs=jobs or default_jobs(), **options)
        if annotate is not None:
            note("simulating")
            result = program.run(check=False)
    if output is not None:
        save_network(program, output)
    if annotate is not None:
        write_atomically(annotate, annotated_model(model, program, result))
    figures = _figures(program, output)
    rows = _rows(program, figures)
    key = model_key(click.get_current_context().params)
    if key is not None and set(target.config.alu_ops) <= set(
        STOCK_NAMES
    ):  # the key covers no other declarations
        known = CompiledModel(figures=figures, rows=rows, network=network_key(network, target, **options))
        write_compiled_model(key, known)
    if as_json:
        print_json(figures)
        return 0
    if explain:
        click.echo(choices_text(program), nl=False)
        click.echo(network_text(program, "placed"), nl=False)
    show(FiguresTable(rows))
    wrote(*targets.values())
    return 0


def _figures(program: NetworkProgram, output: Path | None) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "output": None if output is None else str(output),
        "config": program.config.label,
        "macs": program.macs,
        "host_macs": program.host_macs,
        "programs": len(program.chains),
        "partition": None if program.partition is None else program.partition.to_dict(),
        "instructions": sum(len(chain.program.instructions) for chain in program.chains),
        "dram_bytes": [chain.program.size for chain in program.chains],
        "activation_bytes": [chain.memory.nbytes for chain in program.chains],
        "activation_bound": [chain.memory.bound for chain in program.chains],
        "compile_seconds": program.compile_seconds,
        "rewriting": None if program.rewriting is None else program.rewriting.to_dict(),
        "savings": total_savings(program.choices).to_dict(),
        "cuts": [as_dict(cut) for cut in network_cuts(program)],
        "choices": [choice.to_dict() for choice in program.choices],
        "arrangements": [one.to_dict() for one in program.arrangements],
        "moves": [one.to_dict() for one in program.moves],
        "layers": [
            {
                "name": part.fused.name,
                "operator": part.fused.operators(),
                "where": part.where,
                "reason": part.reason,
                "mapping": part.mapping,
                "alone": part.alone,
                "macs": part.fused.macs(program.graph),
            }
            for part in program.parts
        ],
    }


def _rows(program: NetworkProgram, figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    on_host = sum(not part.on_machine for part in program.parts)
    activations, bound = sum(figures["activation_bytes"]), sum(figures["activation_bound"])
    return [
        machine_row(program.config),
        ("layers", f"{len(program.parts) - on_host} on the machine, {on_host} on the host"),
        ("MACs", f"{program.macs:,}, {program.machine_share:.2%} of them on the machine"),
        ("programs", _programs_text(program, figures["instructions"])),
        *_cut_rows(program),
        ("activations", f"{activations:,} bytes; no plan needs less than {bound:,}"),
        *([] if program.rewriting is None else [("rewritten", program.rewriting.describe())]),
        ("fusion saves", f"{total_savings(program.choices)}, predicted"),
        (SECONDS_ROW, seconds_text(program.compile_seconds or 0)),
        *([("hint", QUANTIZE_HINT)] if _is_float(program) else []),
    ]


def _programs_text(program: NetworkProgram, instructions: int) -> str:
    text = f"{len(program.chains)} of {instructions:,} instructions"
    if program.partition is None or len(program.chains) < 2:
        return text
    return f"{text}; no order of execution needs fewer than {program.partition.bound}"


def _is_float(program: NetworkProgram) -> bool:
    """Whether quantization would move work to the machine."""
    return not program.chains or multiplies_float32(program.graph, program.parts)


def _cut_rows(program: NetworkProgram) -> list[tuple[str, str]]:
    """Return rows of host nodes that most often end a program."""
    cuts = network_cuts(program)[:_SHOWN_CUTS] if len(program.chains) > 1 else ()
    return [("" if number else "cut by", cut.describe()) for number, cut in enumerate(cuts)]


def show_network(file: Path, stage: str) -> str:
    if stage not in NETWORK_STAGES:
        what = "is one of programs" if stage in PROGRAM_STAGES else "is none"
        raise AccelError(
            f"stage {stage!r} {what}, and {str(file)!r} holds a network; {nearest(stage, NETWORK_STAGES)}"
        )
    return network_text(load_network(file), stage)
