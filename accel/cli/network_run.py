"""``accel run`` of a network."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from accel.base.errors import AccelError, ProgramFault, ShapeError, nearest
from accel.base.files import check_targets, write_atomically
from accel.cli.arrays import array_file, input_files, output_files, read_arrays
from accel.cli.causes import advice_table, critical_table, instruction_name, segments_table
from accel.cli.common import busy, critical_json, figures_table, given, print_json, show
from accel.cli.output import wrote
from accel.cli.pictures import STDOUT, Pictures, new_waves, written_at
from accel.network.advice import advise_network
from accel.network.file import load_network
from accel.network.program import NetworkProgram
from accel.network.report import NetworkReport
from accel.network.result import NetworkResult
from accel.network.saved import saved_network
from accel.run.advice import Advised
from accel.run.critical import Segment, shares_text
from accel.run.replay import program_name
from accel.run.result import SCHEMA_VERSION, error_dict


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
    save: Path | None,
    advise: bool,
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
        save: of ``--save``.
        advise: say what would help.
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
    others = given({"--wave": wave, "--save": save})
    check_targets(
        {f"--output {name}": path for name, path in targets.items()} | page | drawn | others,
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
    advised = _advice(program, result) if advise else None
    for path in page.values():
        NetworkReport(program, result, advised=advised).save(path)
    if save is not None:
        saved_network(result, name=program_name(file), overrides=settings, seed=seed).save(save)
    for one, ran in zip(pictures, result.runs, strict=False):
        one.draw(ran)
    waves = new_waves(wave, before)
    if as_json:
        more = {"critical_path": critical_json(result.critical_path())}
        if advised is not None:
            more["advice"] = advised.to_dict()
        print_json({"schema_version": SCHEMA_VERSION, **result.to_dict(), **more})
        return 1 if result.mismatches else 0
    show(layers_table(result))
    show(figures_table(_result_rows(result)))
    show_path(result)
    if advised is not None:
        show(advice_table(advised))
    for one, ran in zip(pictures, result.runs, strict=False):
        one.show(ran)
    kept = [] if save is None else [save]
    wrote(*targets.values(), *waves, *page.values(), *drawn.values(), *kept)
    result.raise_if_wrong()
    return 0


def _advice(program: NetworkProgram, result: NetworkResult) -> Advised:
    with busy("trying changes"):
        return advise_network(program, result)


def show_path(result: NetworkResult) -> None:
    """Print what the critical path of all programs went to, and its longest segments."""
    path = result.critical_path()
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
