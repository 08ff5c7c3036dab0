"""``accel run`` of a network."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel.base.atomic_files import check_targets, write_atomically
from accel.base.errors import AccelError, ProgramFault
from accel.base.forked_tasks import default_jobs
from accel.cli.adaptive_table import Column, adaptive_table
from accel.cli.energy_tables import energy_json, show_energy
from accel.cli.npy_files import array_file, input_files, output_files, read_arrays
from accel.cli.picture_options import STDOUT, Pictures, new_waves, written_at
from accel.cli.run_request import RunRequest, fault_figures
from accel.cli.run_samples import run_samples
from accel.cli.shared_options import critical_json, given, parse_shapes
from accel.cli.stall_tables import advice_table, critical_table, instruction_name, segments_table
from accel.cli.stdout import wrote
from accel.cli.terminal_output import FiguresTable, busy, print_json, show, terminal_width
from accel.compiler.target.machine import machine
from accel.network.digits import digits_network
from accel.network.model_files import DEFAULT_MACHINE
from accel.network.network import read_network
from accel.network.network_advice import advise_network
from accel.network.network_cache import build_or_read
from accel.network.network_file import load_network
from accel.network.network_headline import network_headline
from accel.network.network_program import NetworkProgram
from accel.network.network_report import NetworkReport
from accel.network.network_result import LayerResult, NetworkResult
from accel.network.saved_network_run import saved_network
from accel.run.critical_path import Segment, shares_text
from accel.run.machine_advice import AdviceReport
from accel.run.replay import program_name
from accel.run.result import SCHEMA_VERSION

if TYPE_CHECKING:
    from rich.console import RenderableType


def run_network(request: RunRequest) -> int:
    """Run a network, or compile a model and run it."""
    if request.order == "random":
        raise AccelError(
            f"--order random is given, and {str(request.file)!r} holds a network; it is for single programs"
        )
    if request.report is not None:
        NetworkReport.check_backend(request.backend)
        NetworkReport.check_path(request.report)
    program = _network_program(request)
    if request.states:
        return run_samples(request, program)
    graph = program.graph
    sources, targets = (
        input_files(request.inputs, graph.inputs),
        output_files(request.outputs, graph.result_names),
    )
    graph.check_names(inputs=sources, outputs=targets)
    page = given({"--report": None if request.report is None else Path(request.report)})
    pictures = _pictures(request, program)
    drawn = {f"{what} {path}": path for one in pictures for what, path in one.targets.items()}
    check_targets(
        {f"--output {name}": path for name, path in targets.items()}
        | page
        | drawn
        | given({"--wave": request.wave, "--save": request.save}),
        {"FILE": request.file} | {f"--input {name}": path for name, path in sources.items()},
    )
    arrays = program.random_inputs(request.seed) | read_arrays(sources)
    before = written_at(request.wave)
    try:
        with busy("running") as note:
            result = program.run(
                arrays,
                seed=request.seed,
                check=not request.no_check,
                progress=note,
                record=True,
                **request.run_options,
            )
    except ProgramFault as error:
        if not request.as_json:
            wrote(*new_waves(request.wave, before))
            raise
        print_json(fault_figures(program.config, error))
        return error.exit_code
    for name, path in targets.items():
        write_atomically(path, array_file(result.outputs[name]))
    advised = _advice(program, result) if request.advise else None
    for path in page.values():
        NetworkReport(program, result, advised=advised).save(path)
    if request.save is not None:
        name = program_name(request.file)
        saved_network(result, name=name, overrides=request.overrides, seed=request.seed).save(request.save)
    for one, ran in zip(pictures, result.runs, strict=False):
        one.draw(ran)
    waves = new_waves(request.wave, before)
    if request.as_json:
        print_json(_json(program, result, advised) | energy_json(result, request))
        return 1 if result.mismatches else 0
    top_line = network_headline(result)
    if top_line is not None:
        show(f"{top_line.with_advice(advised).text}\n")
    show(layers_table(result, terminal_width()))
    _explain_utilization(result)
    rewriting = [] if program.rewriting is None else [("rewritten", program.rewriting.describe())]
    show(FiguresTable([*_result_rows(result, request), *rewriting]))
    show_path(result)
    show_energy(result.energy() if request.energy else None)
    if advised is not None:
        show(advice_table(advised))
    for one, ran in zip(pictures, result.runs, strict=False):
        one.show(ran)
    kept = given({"--save": request.save}).values()
    wrote(*targets.values(), *waves, *page.values(), *drawn.values(), *kept)
    result.raise_if_wrong()
    return 0


def _network_program(request: RunRequest) -> NetworkProgram:
    if not request.is_model:
        return load_network(request.file).with_timing(request.overrides)
    with busy("compiling"):
        shapes = parse_shapes(request.shapes)
        network = digits_network() if request.is_digits else read_network(request.file, shapes=shapes)
        target = machine(request.config or DEFAULT_MACHINE, **request.overrides)
        return build_or_read(network, target, jobs=default_jobs(), **request.rewriting.build_options)


def _pictures(request: RunRequest, program: NetworkProgram) -> list[Pictures]:
    return [
        Pictures(
            report=None,
            timeline=_numbered(request.timeline, number, program),
            trace=_numbered(request.trace, number, program),
            backend=request.backend,
            as_json=request.as_json,
            name=f"{program_name(request.file)}, program {number}",
        )
        for number in range(1, len(program.chains) + 1)
    ]


def _json(program: NetworkProgram, result: NetworkResult, advised: AdviceReport | None) -> dict[str, Any]:
    top_line = network_headline(result)
    if top_line is not None:
        top_line = top_line.with_advice(advised)
    advice = {} if advised is None else {"advice": advised.to_dict()}
    path = critical_json(result.known_path)
    return {
        "schema_version": SCHEMA_VERSION,
        **result.to_dict(),
        "headline": None if top_line is None else top_line.to_dict(),
        "critical_path": path,
        "rewriting": None if program.rewriting is None else program.rewriting.to_dict(),
        **advice,
    }


def _advice(program: NetworkProgram, result: NetworkResult) -> AdviceReport:
    with busy("trying changes"):
        return advise_network(program, result)


def show_path(result: NetworkResult) -> None:
    path = result.known_path
    if not path:
        return
    show(critical_table(path))

    def where(one: Segment) -> str:
        layer = result.layer_of(one.start)
        if one.instruction is None or layer is None or layer.program is None:
            return ""
        return f"{instruction_name(one, result.runs[layer.program - 1])} in {layer.name}"

    show(segments_table(path, where))


def _numbered(path: str | None, number: int, program: NetworkProgram) -> str | None:
    """Other targets stay."""
    if path is None or path == STDOUT or len(program.chains) == 1:
        return path
    given = Path(path)
    suffixes = "".join(given.suffixes[-2:] if given.suffix == ".gz" else given.suffixes[-1:])
    return str(given.with_name(f"{given.name.removesuffix(suffixes)}.{number}{suffixes}"))


def layers_table(result: NetworkResult, width: int | None = None) -> "RenderableType":
    """Return a table of layers."""

    def cells(text: Callable[[LayerResult], str]) -> list[str]:
        return [text(layer) for layer in result.layers]

    def number(value: int | None) -> str:
        return "" if value is None else f"{value:,}"

    columns = [
        Column(heading="layer", cells=cells(lambda one: one.name), is_text=True, is_name=True),
        Column(heading="operator", cells=cells(lambda one: one.operator), is_text=True, is_name=True),
        Column(
            heading="where",
            cells=cells(lambda one: f"{one.where}: {one.reason}" if one.reason else one.where),
            least=3,
            is_text=True,
            is_name=True,
        ),
        Column(heading="mapping", cells=cells(lambda one: one.mapping), least=4, is_text=True),
        Column(heading="MACs", cells=cells(lambda one: number(one.macs or None)), least=2),
        Column(heading="cycles", cells=cells(lambda one: number(one.cycles))),
        Column(heading="alone", cells=cells(lambda one: number(one.alone)), least=5),
        Column(
            heading="utilization",
            cells=cells(lambda one: "" if one.utilization is None else f"{one.utilization:.1%}"),
            least=1,
        ),
    ]
    if any(layer.causes for layer in result.layers):
        causes = cells(lambda one: shares_text(one.causes))
        columns.append(Column(heading="critical path", cells=causes, is_text=True))
    return adaptive_table(columns, width)


def _explain_utilization(result: NetworkResult) -> None:
    above = [layer for layer in result.layers if (layer.utilization or 0) > 1]
    overlapping = [layer.name for layer in above if layer.overlaps]
    skipping = [layer.name for layer in above if not layer.overlaps]
    if skipping:
        show(f"above 100 %: {', '.join(skipping)}; zeros around pictures count as MACs, but take no time")
    if overlapping:
        show(
            f"above 100 %: {', '.join(overlapping)}; products start before the previous layer ends, and "
            "cycles count from there"
        )


def _result_rows(result: NetworkResult, request: RunRequest) -> list[tuple[str, str]]:
    rows = [request.machine_row(result.config)]
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
