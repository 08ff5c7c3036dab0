"""``accel run``: execute a program or a network on a simulator or on the hardware."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accel.base.errors import AccelError, HardwareError, ProgramFault, ShapeError, nearest
from accel.base.files import check_targets, write_atomically
from accel.cli.arrays import array_file, input_files, output_files, read_arrays
from accel.cli.causes import advice_table, critical_table, instruction_name, segments_table, stall_table
from accel.cli.common import (
    backend_option,
    busy,
    critical_json,
    engine_option,
    figures_table,
    given,
    json_option,
    limit_options,
    load_program,
    order_option,
    parse_settings,
    print_json,
    program_files,
    seed_option,
    set_option,
    show,
)
from accel.cli.output import wrote
from accel.cli.pictures import Pictures, new_waves, picture_options, written_at
from accel.image.image import is_network
from accel.image.source import PLAIN
from accel.proof.check import TokenReport
from accel.run.backends.simulator import UNTIMED
from accel.run.figures import ErrorFigures, RunFigures
from accel.run.program import Program
from accel.run.replay import program_name
from accel.run.result import Result

if TYPE_CHECKING:
    from accel.run.advice import Advised


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help="Value for an input tensor.")
@click.option("--output", "outputs", multiple=True, metavar="NAME=FILE.npy", help="Where to write an output.")
@backend_option("sim", "What runs it.")
@engine_option("What simulates the hardware (backend rtl).")
@click.option(
    "--wave",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write waves as VCD or FST (backend rtl).",
)
@click.option("--serial", is_flag=True, help="Monolithic pipeline: one instruction after another.")
@order_option
@click.option("--no-check", is_flag=True, help="Neither compare with the numpy reference nor check tokens.")
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
    help="Also say which change of the machine would help, and by how much; for at most ten seconds, of "
    "a network sixty.",
)
@seed_option
@set_option("timing")
@limit_options
@json_option
def run(
    file: Path,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    backend: str,
    engine: str | None,
    wave: Path | None,
    serial: bool,
    order: str,
    no_check: bool,
    report: str | None,
    timeline: str | None,
    trace: str | None,
    save: Path | None,
    advise: bool,
    seed: int,
    settings: tuple[str, ...],
    max_cycles: int,
    max_uops: int,
    as_json: bool,
) -> int:
    """Run a program or a network, and compare its outputs with numpy.

    Inputs that are not given are random, drawn so that few outputs saturate. A race that the tokens allow is
    reported, but unlike in 'accel check' it is not an error. The backend rtl runs the hardware itself; its
    model is built once for each configuration and kept.

    \b
    Example:
      accel run gemm.accel --input A=a.npy --output C=c.npy --set read_latency=100
      accel run gemm.accel --report report.html --timeline gemm.svg --trace gemm.json
      accel run gemm.accel --set read_latency=100 --save slow.accelrun
      accel run gemm.accel --advise --report report.html
      accel run net.accel --input image=picture.npy --output scores=scores.npy --report net.html
    """
    if serial and backend == "functional":
        raise AccelError("--serial is given with the backend 'functional', which has no time; sim and rtl do")
    if save is not None:
        check_saved(save, backend)
    if advise and backend == UNTIMED:
        raise AccelError(f"--advise is given with the backend {backend!r}, which has no time; sim and rtl do")
    if is_network(file):
        from accel.cli.network_run import run_network  # noqa: PLC0415  # slow to import

        timing = parse_settings(settings) | ({"serial": "1"} if serial else {})
        return run_network(
            file,
            inputs=inputs,
            outputs=outputs,
            settings=timing,
            report=report,
            timeline=timeline,
            trace=trace,
            wave=wave,
            save=save,
            advise=advise,
            unknown=["--order random"] if order == "random" else [],
            as_json=as_json,
            seed=seed,
            check=not no_check,
            backend=backend,
            engine=engine,
            max_cycles=max_cycles,
            max_uops=max_uops,
        )
    program = load_program(file, settings, serial=serial)
    sources = input_files(inputs)
    arrays = read_arrays(sources)
    targets = output_files(outputs)
    names = [t.name for t in program.tensors if t.role == "output"]
    for name in targets:
        if name not in names:
            raise ShapeError(f"{name!r} is no output of the program; {nearest(name, names)}")
    pictures = Pictures(
        report=report,
        timeline=timeline,
        trace=trace,
        backend=backend,
        as_json=as_json,
        name=program_name(file),
    )
    check_targets(
        {f"--output {name}": path for name, path in targets.items()}
        | given({"--wave": wave, "--save": save})
        | pictures.targets,
        program_files(file) | {f"--input {name}": path for name, path in sources.items()},
    )
    before = written_at(wave)
    try:
        with busy("running") as note:
            result = program.run(
                arrays,
                backend=backend,
                seed=seed,
                check=not no_check,
                order="random" if order == "random" else "program",
                max_cycles=max_cycles,
                max_uops=max_uops,
                engine=engine,
                wave=wave,
                record=pictures.wanted or save is not None or advise,
                progress=lambda cycle: note(f"cycle {cycle:,}"),
            )
    except (ProgramFault, HardwareError) as error:
        written = [*new_waves(wave, before), *pictures.draw_stopped(error)]
        if not as_json:
            wrote(*written)
        if not as_json or isinstance(error, HardwareError):
            raise
        print_json(failure(program, backend, error))
        return error.exit_code
    for name, path in targets.items():
        write_atomically(path, array_file(result.outputs[name]))
    advised = find_advice(result) if advise else None
    pictures.draw(result, advised)
    if save is not None:
        overrides = parse_settings(settings) | ({"serial": "1"} if serial else {})
        save_run(save, result, name=program_name(file), seed=seed, overrides=overrides)
    waves = new_waves(wave, before)
    if as_json:
        print_json(run_json(result, advised))
        return 1 if result.mismatches else 0
    with busy("checking"):
        tokens = None if no_check else program.check()
    print_result(program, result, tokens)
    if advised is not None:
        show(advice_table(advised))
    pictures.show(result)
    kept = [] if save is None else [save]
    wrote(*targets.values(), *waves, *pictures.targets.values(), *kept)
    result.raise_if_wrong()
    return 0


def run_json(result: Result, advised: "Advised | None") -> dict[str, Any]:
    """The JSON object of a run."""
    found = result.to_dict() | {"critical_path": critical_json(result.critical_path())}
    return found if advised is None else found | {"advice": advised.to_dict()}


def find_advice(result: Result) -> "Advised":
    """What would help a run."""
    from accel.run.advice import advise  # noqa: PLC0415  # slow to import

    with busy("trying changes"):
        return advise(result)


def check_saved(path: Path, backend: str) -> None:
    """Refuse what cannot be saved as a run.

    Raises:
        AccelError: the file's name ends otherwise, or the backend has no time.
    """
    from accel.views.saved import check_run_path  # noqa: PLC0415  # slow to import

    check_run_path(path)
    if backend == UNTIMED:
        raise AccelError(f"--save is given with the backend {backend!r}, which has no time; sim and rtl do")


def save_run(path: Path, result: Result, **options: Any) -> None:
    """Write what is kept of a run; options are those of :meth:`~accel.views.saved.SavedRun.of`."""
    from accel.views.saved import SavedRun  # noqa: PLC0415  # slow to import

    SavedRun.of(result, **options).save(path)


def failure(program: Program, backend: str, error: ProgramFault) -> dict[str, Any]:
    """The JSON object of a run that the machine ended early."""
    return RunFigures(
        backend=backend,
        config=program.config.label,
        instructions=len(program.instructions),
        compile_seconds=program.compile_seconds,
        error=ErrorFigures.of(error),
    ).to_dict()


def print_result(program: Program, result: Result, tokens: TokenReport | None = None) -> None:
    """The figures of a run as text, and what the token check found if it was made."""
    rows = [("machine", str(program.config))]
    if result.cycles is not None:
        rows.append(("cycles", f"{result.cycles:,}"))
    if result.utilization is not None and result.roofline_fraction is not None:
        rows.append(("utilization", f"{result.utilization:.1%} of the GEMM core"))
        rows.append(("roofline", f"{result.roofline_fraction:.1%} of the limit"))
    if result.slot_utilization is not None and result.slot_roofline_fraction is not None:
        busy, reached = result.slot_utilization, result.slot_roofline_fraction
        rows.append(("slots", f"{busy:.1%} filled, {reached:.1%} of their limit"))
    if result.bound_by is not None:
        rows.append(("bound by", result.bound_by))
    rows.append(("instructions", f"{len(result.instructions):,}"))
    if result.uops is not None:
        rows.append(("micro-ops", f"{result.uops:,}"))
    if program.mapping != PLAIN:
        factor = program.packing_factor or 0
        packed = f"{program.packed_bytes:,} bytes of inputs packed, {factor:.3g} times those given"
        rows.append(("mapping", f"{program.mapping}: {packed}"))
    moved = ", ".join(f"{kind} {n:,}" for kind, n in result.bytes_by_kind.items() if n)
    rows.append(("bytes moved", moved))
    if result.mismatches is not None:
        wrong = f"{result.mismatches:,} MISMATCHES" if result.mismatches else "all equal"
        rows.append(("compared to numpy", wrong))
    elif not program.has_expression:
        rows.append(("compared to numpy", "no: the program holds no tensor expression"))
    if tokens is not None:
        rows.append(("tokens", tokens.summary))
    rows.append(("packing, simulation", f"{result.pack_seconds:.3f} s, {result.simulate_seconds:.3f} s"))
    show(figures_table(rows))
    if result.stalls is not None and result.cycles:
        show(stall_table(result))
    path = result.critical_path()
    if path:
        show(critical_table(path))
        show(segments_table(path, lambda one: instruction_name(one, result)))
