"""``accel compile``: a workload to a program file."""

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import RenderableType

from accel.base.errors import ProgramFault
from accel.base.files import check_targets
from accel.cli.common import (
    F,
    Group,
    busy,
    config_file,
    config_option,
    describe,
    figures_table,
    given,
    json_option,
    numbers_option,
    parse_settings,
    print_json,
    set_option,
    show,
)
from accel.cli.explain import candidate_dict, candidates_table
from accel.compiler.operators.default import candidates
from accel.compiler.ops import conv, conv_transpose, workload
from accel.compiler.ops import pool as pools
from accel.compiler.ops.mean import Mean
from accel.compiler.ops.workload import Workload
from accel.compiler.plans.candidate import Candidate
from accel.compiler.schedule.files import load_steps, save_steps
from accel.compiler.target.machine import machine
from accel.core.isa import Loops
from accel.core.token_rules import is_carrier
from accel.proof.check import PROVEN
from accel.run.program import Program, build
from accel.run.result import SCHEMA_VERSION, error_dict


@click.group(cls=Group, name="compile")
def compile_command() -> None:
    """Compile a workload to a program file.

    \b
    Example:
      accel compile gemm -m 1024 -n 1024 -k 1024 --shift 12 -o gemm.accel
    """


def _machine_options(config: str) -> Callable[[F], F]:
    """``--config`` and ``--set``."""
    name, setting = config_option(config), set_option("geometry or timing")
    return lambda command: name(setting(command))


def _epilogue_options(length: str) -> Callable[[F], F]:
    """What follows the sums; ``length`` is the bias's."""
    options = [
        click.option("--bias", is_flag=True, help=f"Add an int32 bias of shape ({length},)."),
        click.option("--relu", is_flag=True, help="Negative values become zero."),
        click.option("--shift", type=int, help="Shift sums right by 0..31 bits, then saturate to int8."),
    ]
    return lambda command: reduce(lambda inner, option: option(inner), reversed(options), command)


_batch_option = click.option(
    "-n", "--batch", type=int, default=1, show_default=True, help="Inputs in a batch."
)
_residual_option = click.option(
    "--residual", is_flag=True, help="After the shift, add an int8 tensor of the result's shape."
)
_clip_option = numbers_option(
    "--clip", form="LOW,HIGH", separator=",", counts=(2,), help="Saturate to these bounds."
)


def _pair_option(name: str, form: str, text: str, **settings: Any) -> Callable[[F], F]:
    """A number for both directions, or one for each; ``text`` is the help."""
    return numbers_option(name, form=form, separator="x", counts=(1, 2), help=text, **settings)


def _padding_option(text: str) -> Callable[[F], F]:
    """What surrounds inputs; ``text`` is the help."""
    return numbers_option(
        "--padding",
        form="P | Y,X | TOP,LEFT,BOTTOM,RIGHT",
        separator=",",
        counts=(1, 2, 4),
        default="0",
        show_default=True,
        help=text,
    )


def _convolution_options(command: F) -> F:
    """Sizes of input and kernel."""
    options: list[Callable[[F], F]] = [
        _batch_option,
        click.option("--ic", type=int, required=True, help="Input channels."),
        click.option("--oc", type=int, required=True, help="Output channels."),
        _pair_option("--size", "H[xW]", "Height and width of an input.", required=True),
        _pair_option("--kernel", "KH[xKW]", "Size of the kernel.", required=True),
    ]
    return reduce(lambda inner, option: option(inner), reversed(options), command)


def _program_options(command: F) -> F:
    """How to schedule, and where to write."""
    path = click.Path(path_type=Path)
    options = [
        click.option("--vthreads", type=int, help="Virtual threads; what is best if not given."),
        click.option("--explain", is_flag=True, help="Show the schedules that were compared."),
        click.option(
            "--schedule",
            "schedule_file",
            type=path,
            metavar="FILE",
            help="Schedule by the steps in this file (.toml or .json).",
        ),
        click.option("--save-schedule", type=path, metavar="FILE", help="Write the schedule's steps."),
        click.option("-o", "--output", type=path, help="The program file."),
        json_option,
    ]
    return reduce(lambda inner, option: option(inner), reversed(options), command)


@compile_command.command()
@click.option("-m", "rows", type=int, required=True, help="Rows of A and C.")
@click.option("-n", "columns", type=int, required=True, help="Columns of B and C.")
@click.option("-k", "depth", type=int, required=True, help="Columns of A, rows of B.")
@_machine_options("gemm8x8")
@click.option("--transpose-a", is_flag=True, help="A is stored as (K, M).")
@click.option("--transpose-b", is_flag=True, help="B is stored as (N, K).")
@_epilogue_options("N")
@_residual_option
@_clip_option
@_program_options
def gemm(
    rows: int,
    columns: int,
    depth: int,
    transpose_a: bool,
    transpose_b: bool,
    bias: bool,
    residual: bool,
    relu: bool,
    shift: int | None,
    clip: tuple[int, int] | None,
    **common: Any,
) -> int:
    """C = A @ B on int8 operands, with int32 sums and an int8 result.

    A is (M, K), B is (K, N). Without --shift, --residual, --relu and --clip, C holds the low 8 bits of the
    sums. With any: plus bias, shift right, plus residual, ReLU, saturation, in this order.

    Without --schedule, an analytical model of the machine chooses tiles, loop order and virtual threads;
    --explain shows what it compared. With --explain or --save-schedule, -o may be left out.

    \b
    Example:
      accel compile gemm -m 100 -n 300 -k 77 --bias --relu --shift 8 --config vta -o gemm.accel
      accel compile gemm -m 512 -n 512 -k 512 --explain --save-schedule mine.toml
      accel compile gemm -m 512 -n 512 -k 512 --schedule mine.toml --vthreads 4 -o gemm.accel
    """
    return _compile(
        lambda: workload.gemm(
            rows,
            columns,
            depth,
            transpose_a=transpose_a,
            transpose_b=transpose_b,
            bias=bias,
            residual=residual,
            relu=relu,
            shift=shift,
            clip=clip,
        ),
        **common,
    )


@compile_command.command()
@_batch_option
@click.option("--ic", type=int, required=True, help="Inputs of the layer.")
@click.option("--oc", type=int, required=True, help="Outputs of the layer.")
@_machine_options("vta")
@_epilogue_options("OC")
@_residual_option
@_clip_option
@_program_options
def dense(
    batch: int,
    ic: int,
    oc: int,
    bias: bool,
    residual: bool,
    relu: bool,
    shift: int | None,
    clip: tuple[int, int] | None,
    **common: Any,
) -> int:
    """A fully connected layer: out = data @ weight.T on int8 operands, with an int8 result.

    data is (N, IC), weight is (OC, IC), out is (N, OC). Without --shift, --residual, --relu and
    --clip, out holds the low 8 bits of the sums. With any: plus bias, shift right, plus residual, ReLU,
    saturation, in this order.

    \b
    Example:
      accel compile dense --ic 512 --oc 1000 --bias --shift 8 -o dense.accel
    """
    return _compile(
        lambda: workload.dense(
            batch, ic, oc, bias=bias, residual=residual, relu=relu, shift=shift, clip=clip
        ),
        **common,
    )


@compile_command.command()
@_convolution_options
@_pair_option("--stride", "SY[xSX]", "Down and right.", default="1", show_default=True)
@_padding_option("Zeros around each input.")
@click.option(
    "--groups", type=int, default=1, show_default=True, help="Of channels; as many as IC: depthwise."
)
@_pair_option(
    "--dilation", "DY[xDX]", "Distance of what neighbours in the kernel meet.", default="1", show_default=True
)
@_machine_options("vta")
@_epilogue_options("OC")
@_residual_option
@_clip_option
@_program_options
def conv2d(
    batch: int,
    ic: int,
    oc: int,
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    groups: int,
    dilation: tuple[int, ...],
    bias: bool,
    residual: bool,
    relu: bool,
    shift: int | None,
    clip: tuple[int, int] | None,
    **common: Any,
) -> int:
    """A two-dimensional convolution on int8 operands, with int32 sums and an int8 result.

    data is (N, IC, H, W), weight is (OC, IC / groups, KH, KW), out is (N, OC, OH, OW). Without --shift,
    --residual, --relu and --clip, out holds the low 8 bits of the sums. With any: plus bias, shift right,
    plus residual, ReLU, saturation, in this order.

    \b
    Example:
      accel compile conv2d --ic 64 --oc 64 --size 56 --kernel 3 --padding 1 --bias --shift 8 -o c2.accel
      accel compile conv2d --ic 3 --oc 8 --size 20x30 --kernel 5x3 --stride 2x1 --padding 2,1 -o conv.accel
      accel compile conv2d --ic 128 --oc 128 --groups 128 --size 56 --kernel 3 --padding 1 -o depthwise.accel
    """
    return _compile(
        lambda: conv.conv2d(
            batch,
            ic,
            size[0],
            size[-1],
            oc,
            kernel,
            stride=stride,
            padding=padding,
            groups=groups,
            dilation=dilation,
            bias=bias,
            residual=residual,
            relu=relu,
            shift=shift,
            clip=clip,
        ),
        **common,
    )


@compile_command.command()
@_convolution_options
@_pair_option(
    "--stride",
    "SY[xSX]",
    "Distance in the output of neighbours in the input.",
    default="1",
    show_default=True,
)
@_padding_option("Cut off the output.")
@_pair_option(
    "--output-padding",
    "PY[xPX]",
    "Added to the output, below and on the right.",
    default="0",
    show_default=True,
)
@_machine_options("vta")
@_epilogue_options("OC")
@_residual_option
@_clip_option
@_program_options
def conv2d_transpose(
    batch: int,
    ic: int,
    oc: int,
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    output_padding: tuple[int, ...],
    bias: bool,
    residual: bool,
    relu: bool,
    shift: int | None,
    clip: tuple[int, int] | None,
    **common: Any,
) -> int:
    """A transposed two-dimensional convolution on int8 operands, with int32 sums and an int8 result.

    data is (N, IC, H, W), weight is (IC, OC, KH, KW), out is (N, OC, OH, OW) with
    OH = (H - 1) * stride + KH + output padding - padding above and below. What follows the sums is as in
    conv2d.

    \b
    Example:
      accel compile conv2d-transpose --ic 64 --oc 32 --size 28 --kernel 4 --stride 2 --padding 1 -o up.accel
    """
    return _compile(
        lambda: conv_transpose.conv2d_transpose(
            batch,
            ic,
            size[0],
            size[-1],
            oc,
            kernel,
            stride=stride,
            padding=padding,
            output_padding=output_padding,
            bias=bias,
            residual=residual,
            relu=relu,
            shift=shift,
            clip=clip,
        ),
        **common,
    )


@compile_command.command()
@click.option(
    "--kind",
    type=click.Choice(["max", "average", "global"]),
    required=True,
    help="Maxima, means, or means over whole inputs.",
)
@_batch_option
@click.option("-c", "--channels", type=int, required=True, help="Channels.")
@_pair_option("--size", "H[xW]", "Height and width of an input.", required=True)
@_pair_option("--kernel", "KH[xKW]", "Size of a window; not with --kind global.")
@_pair_option("--stride", "SY[xSX]", "Down and right; the kernel's if not given.")
@_padding_option("Around each input.")
@_pair_option("--dilation", "DY[xDX]", "Distance of a window's elements.", default="1", show_default=True)
@click.option("--count-padding", is_flag=True, help="Padding counts as zeros in means; else it does not.")
@_machine_options("vta")
@_program_options
def pool(
    kind: str,
    batch: int,
    channels: int,
    size: tuple[int, ...],
    kernel: tuple[int, ...] | None,
    stride: tuple[int, ...] | None,
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    count_padding: bool,
    **common: Any,
) -> int:
    """Pooling on int8 values: maxima or means over windows, or means over whole inputs.

    data is (N, C, H, W), out is (N, C, OH, OW). Padding never counts for maxima. Means are
    ((sum + offset) * factor) >> shift, within 1 of the exact mean; offset, factor and shift are printed.

    \b
    Example:
      accel compile pool --kind max -c 64 --size 112 --kernel 3 --stride 2 --padding 1 -o pool.accel
      accel compile pool --kind global -c 512 --size 7 -o mean.accel
    """
    context = click.get_current_context()
    if kind == "global":
        for name in ("kernel", "stride", "padding", "dilation", "count_padding"):
            if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                raise click.UsageError(
                    f"--{name.replace('_', '-')} is given; with --kind global the window is the input.",
                    context,
                )
        return _compile(lambda: pools.global_avg_pool2d(batch, channels, size[0], size[-1]), **common)
    if kernel is None:
        raise click.UsageError("Missing option '--kernel'.", context)
    window = {"stride": stride, "padding": padding, "dilation": dilation}
    arguments = batch, channels, size[0], size[-1], kernel
    if kind == "average":
        return _compile(
            lambda: pools.avg_pool2d(*arguments, **window, count_padding=count_padding),  # type: ignore[arg-type]
            **common,
        )
    if count_padding:
        raise click.UsageError("--count-padding is given; for maxima padding never counts.", context)
    return _compile(lambda: pools.max_pool2d(*arguments, **window), **common)  # type: ignore[arg-type]


def _compile(
    make: Callable[[], Workload],
    *,
    config: str,
    settings: tuple[str, ...],
    vthreads: int | None,
    explain: bool,
    schedule_file: Path | None,
    save_schedule: Path | None,
    output: Path | None,
    as_json: bool,
) -> int:
    """Compile what ``make`` gives; returns the exit code."""
    if output is None and not explain and save_schedule is None:
        raise click.UsageError("Missing option '-o' / '--output'.", click.get_current_context())
    if explain and schedule_file is not None:
        raise click.UsageError(
            "--explain tells how a schedule was chosen; with --schedule none is.", click.get_current_context()
        )
    target = machine(config, **parse_settings(settings))
    made = make()
    written = {"-o": output, "--save-schedule": save_schedule}
    read = {"--schedule": schedule_file} | config_file(config)
    check_targets(given(written), given(read))
    steps = None if schedule_file is None else load_steps(schedule_file)
    compared = candidates(made, target.config, vthreads) if explain else None
    try:
        with busy("compiling"):
            program = build(made, target, vthreads=vthreads, steps=steps)
    except ProgramFault as error:
        if not as_json:
            raise
        figures = dict.fromkeys(FIGURES) | {
            "schema_version": SCHEMA_VERSION,
            "config": target.config.name,
            "error": error_dict(error),
        }
        print_json(figures)
        return error.exit_code
    if output is not None:
        program.save(output)
    if save_schedule is not None:
        save_steps(save_schedule, program.schedule().steps)
    if as_json:
        print_json(program_figures(program, made, output, save_schedule, compared))
    else:
        show(*_compiled(program, made, output, save_schedule, compared))
    return 0


def _compiled(
    program: Program,
    made: Workload,
    output: Path | None,
    schedule: Path | None,
    compared: list[Candidate[Any]] | None,
) -> list[RenderableType]:
    """What to say of a program that has been compiled."""
    figures = program_figures(program, made, output, schedule, compared)
    mean = [("mean", str(made.epilogue))] if isinstance(made.epilogue, Mean) else []
    shown = [
        *mean,
        ("machine", describe(program.config)),
        ("instructions", f"{figures['instructions']:,}"),
        ("carriers", f"{figures['carriers']:,}"),
        ("micro-ops", f"{figures['uops']:,} executed, {figures['stored_uops']:,} stored"),
        ("DRAM", f"{figures['dram_bytes']:,} bytes"),
        ("tokens", PROVEN),
        ("compiled in", f"{figures['compile_seconds']:.2f} s"),
    ]
    if output is not None:
        shown.append(("written to", str(output)))
    if schedule is not None:
        shown.append(("schedule", str(schedule)))
    table = figures_table(shown)
    return [table] if compared is None else [candidates_table(compared, program.config), "", table]


FIGURES = (
    "schema_version",
    "output",
    "config",
    "instructions",
    "carriers",
    "uops",
    "stored_uops",
    "dram_bytes",
    "compile_seconds",
    "mean",
    "schedule",
    "candidates",
    "error",
)
"""The keys of what ``--json`` prints, in order."""


def program_figures(
    program: Program,
    made: Workload,
    output: Path | None,
    schedule: Path | None,
    compared: list[Candidate[Any]] | None,
) -> dict[str, Any]:
    """Size of a program, what compiling it took, and what else was asked for."""
    instructions = program.instructions
    return dict.fromkeys(FIGURES) | {
        "schema_version": SCHEMA_VERSION,
        "config": program.config.name,
        "instructions": len(instructions),
        "carriers": sum(map(is_carrier, instructions)),
        "uops": sum(i.uop_count for i in instructions if isinstance(i, Loops)),
        "stored_uops": len(program.segments[0][1]) // 4 if program.segments else 0,
        "dram_bytes": program.size,
        "compile_seconds": program.compile_seconds,
        "mean": made.epilogue.to_dict() if isinstance(made.epilogue, Mean) else None,
        "output": None if output is None else str(output),
        "schedule": None if schedule is None else str(schedule),
        "candidates": None if compared is None else [candidate_dict(c, program.config) for c in compared],
    }
