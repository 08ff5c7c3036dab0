"""``accel run`` of a program."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel.base.atomic_files import check_targets, write_atomically
from accel.base.errors import AccelError, HardwareError, ProgramFault, ShapeError, nearest
from accel.cli.energy_tables import energy_json, show_energy
from accel.cli.npy_files import array_file, input_files, output_files, read_arrays
from accel.cli.picture_options import Pictures, new_waves, written_at
from accel.cli.rewrite_request import RewriteRequest
from accel.cli.run_request import RunRequest
from accel.cli.shared_options import critical_json, given, load_program, program_files
from accel.cli.stall_tables import advice_table, critical_table, instruction_name, segments_table, stall_table
from accel.cli.stdout import wrote
from accel.cli.terminal_output import FiguresTable, busy, print_json, show
from accel.core.events import MAX_RECORDS
from accel.image.image import is_network
from accel.image.program_source import PLAIN
from accel.proof.token_check import TokenReport
from accel.run.program import Program
from accel.run.replay import program_name
from accel.run.result import Result
from accel.run.run_figures import ErrorFigures, RunFigures
from accel.run.run_headline import headline

if TYPE_CHECKING:
    from accel.run.machine_advice import AdviceReport


def run(**options: Any) -> int:
    request = RunRequest(rewriting=RewriteRequest.take(options), **options)
    request.check()
    if request.is_model or is_network(request.file):
        from accel.cli.run_network import run_network  # slow to import

        return run_network(request)
    if request.states:
        raise AccelError(f"--state is given, and {str(request.file)!r} holds a program; it is for networks")
    return _run_program(request)


def _run_program(request: RunRequest) -> int:
    program = load_program(request.file, request.settings, serial=request.serial)
    sources = input_files(request.inputs)
    arrays = read_arrays(sources)
    targets = output_files(request.outputs)
    names = [t.name for t in program.tensors if t.role == "output"]
    for name in targets:
        if name not in names:
            raise ShapeError(f"{name!r} is not an output of the program; {nearest(name, names)}")
    pictures = Pictures(
        report=request.report,
        timeline=request.timeline,
        trace=request.trace,
        backend=request.backend,
        as_json=request.as_json,
        name=program_name(request.file),
    )
    check_targets(
        {f"--output {name}": path for name, path in targets.items()}
        | given({"--wave": request.wave, "--save": request.save})
        | pictures.targets,
        program_files(request.file) | {f"--input {name}": path for name, path in sources.items()},
    )
    before = written_at(request.wave)
    try:
        with busy("running") as note:
            result = program.run(
                arrays,
                seed=request.seed,
                check=not request.no_check,
                order="random" if request.order == "random" else "program",
                record=pictures.wanted or request.save is not None or request.advise,
                progress=lambda cycle: note(f"cycle {cycle:,}"),
                **request.run_options,
            )
    except (ProgramFault, HardwareError) as error:
        written = [*new_waves(request.wave, before), *pictures.draw_stopped(error)]
        if not request.as_json:
            wrote(*written)
        if not request.as_json or isinstance(error, HardwareError):
            raise
        print_json(failure(program, request.backend, error))
        return error.exit_code
    for name, path in targets.items():
        write_atomically(path, array_file(result.outputs[name]))
    advised = find_advice(result) if request.advise else None
    pictures.draw(result, advised)
    if request.save is not None:
        overrides = request.overrides
        save_run(
            request.save, result, name=program_name(request.file), seed=request.seed, overrides=overrides
        )
    waves = new_waves(request.wave, before)
    if request.as_json:
        print_json(run_json(result, advised) | energy_json(result, request))
        return 1 if result.mismatches else 0
    with busy("checking"):
        tokens = None if request.no_check else program.check()
    print_result(program, result, tokens, advised)
    show_energy(result.energy() if request.energy else None)
    if advised is not None:
        show(advice_table(advised))
    pictures.show(result)
    wrote(*targets.values(), *waves, *pictures.targets.values(), *given({"--save": request.save}).values())
    result.raise_if_wrong()
    return 0


def run_json(result: Result, advised: "AdviceReport | None") -> dict[str, Any]:
    top_line = headline(result)
    if top_line is not None:
        top_line = top_line.with_advice(advised)
    found = result.to_dict() | {
        "headline": None if top_line is None else top_line.to_dict(),
        "critical_path": critical_json(result.known_path),
    }
    return found if advised is None else found | {"advice": advised.to_dict()}


def find_advice(result: Result) -> "AdviceReport":
    from accel.run.machine_advice import advise

    with busy("trying changes"):
        return advise(result)


def save_run(path: Path, result: Result, **options: Any) -> None:
    from accel.views.saved_run import SavedRun

    SavedRun.of(result, **options).save(path)


def failure(program: Program, backend: str, error: ProgramFault) -> dict[str, Any]:
    return RunFigures(
        backend=backend,
        config=program.config.label,
        instructions=len(program.instructions),
        compile_seconds=program.compile_seconds,
        error=ErrorFigures.of(error),
    ).to_dict()


def print_result(
    program: Program,
    result: Result,
    tokens: TokenReport | None = None,
    advised: "AdviceReport | None" = None,
) -> None:
    """Print the figures of a run."""
    found = headline(result)
    if found is not None:
        show(f"{found.with_advice(advised).text}\n")
    rows = [("machine", str(program.config))]
    if result.cycles is not None:
        rows.append(("cycles", f"{result.cycles:,}"))
    if result.utilization is not None and result.roofline_fraction is not None:
        rows.append(("utilization", f"{result.utilization:.1%} of the GEMM core"))
        rows.append(("roofline", f"{result.roofline_fraction:.1%} of the limit"))
    if result.slot_utilization is not None and result.slot_roofline_fraction is not None:
        busy, reached = result.slot_utilization, result.slot_roofline_fraction
        rows.append(("slots", f"{busy:.1%} filled, {reached:.1%} of their limit"))
    if found is not None:
        rows.append(("bound by", found.bound))
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
    records = None if result.timing is None else result.timing.record_count
    if records is not None and records > MAX_RECORDS:
        rows.append(("critical path", f"not computed: {records:,} records; at most {MAX_RECORDS:,} are kept"))
    rows.append(("packing, simulation", f"{result.pack_seconds:.3f} s, {result.simulate_seconds:.3f} s"))
    show(FiguresTable(rows))
    if result.stalls is not None and result.cycles:
        show(stall_table(result))
    path = result.known_path
    if path:
        show(critical_table(path))
        show(segments_table(path, lambda one: instruction_name(one, result)))
