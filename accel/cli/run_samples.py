"""The command ``accel run --state``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.atomic_files import check_targets, write_atomically
from accel.base.errors import AccelError, ProgramFault, ShapeError
from accel.cli.npy_files import array_file, input_files, output_files, read_arrays
from accel.cli.run_request import RunRequest, fault_figures
from accel.cli.shared_options import named_values
from accel.cli.stdout import wrote
from accel.cli.terminal_output import FiguresTable, busy, print_json, show
from accel.network.network_program import NetworkProgram
from accel.network.network_result import NetworkResult
from accel.network.network_session import NetworkSession
from accel.run.result import SCHEMA_VERSION

_Array = npt.NDArray[Any]
OWN_STATE = "model"
"""``--state`` for the model's own pairs."""
_DEFAULT_SAMPLES = 1
"""Number of samples without inputs."""


def run_samples(request: RunRequest, program: NetworkProgram) -> int:
    """Run a network once for each sample.

    The first axis of files counts samples. State starts at 0, or at a file without this axis.
    """
    _check(request)
    graph = program.graph
    texts = [text for text in request.states if text != OWN_STATE]
    form = f"OUTPUT=INPUT, as h_out=h, or {OWN_STATE}"
    pairs = named_values("--state", texts, form, graph.result_names)
    if not pairs and not graph.states:
        raise AccelError(f"--state {OWN_STATE} is given, and the model has no state; name OUTPUT=INPUT")
    session = NetworkSession(program, pairs)
    sources = input_files(request.inputs, graph.inputs)
    targets = output_files(request.outputs, graph.result_names)
    graph.check_names(inputs=sources, outputs=targets)
    check_targets(
        {f"--output {name}": path for name, path in targets.items()},
        {"FILE": request.file} | {f"--input {name}": path for name, path in sources.items()},
    )
    arrays = read_arrays(sources)
    session.reset({name: arrays.pop(name) for name in session.state if name in arrays})
    count = _count(arrays)
    try:
        results = _run_each(request, session, arrays, count)
    except ProgramFault as error:
        if not request.as_json:
            raise
        print_json(fault_figures(program.config, error))
        return error.exit_code
    for name, path in targets.items():
        write_atomically(path, array_file(_stacked(name, results)))
    return _report(request, results, targets)


def _run_each(
    request: RunRequest, session: NetworkSession, arrays: Mapping[str, _Array], count: int
) -> list[NetworkResult]:
    results: list[NetworkResult] = []
    free = [name for name in session.program.graph.inputs if name not in session.state]
    with busy("running") as note:
        for at in range(count):
            note(f"sample {at + 1} of {count}")
            given = {name: np.asarray(values[at]) for name, values in arrays.items()}
            missing = session.program.random_inputs(request.seed + at)
            inputs = {name: given[name] if name in given else missing[name] for name in free}
            results.append(
                session.run(inputs, seed=request.seed, check=not request.no_check, **request.run_options)
            )
    return results


def _check(request: RunRequest) -> None:
    others = {
        "--report": request.report,
        "--timeline": request.timeline,
        "--trace": request.trace,
        "--save": request.save,
        "--wave": request.wave,
        "--advise": request.advise,
        "--energy": request.energy,
    }
    for option, value in others.items():
        if value:
            raise AccelError(
                f"{option} is given with --state, which makes several runs; leave one of them out"
            )


def _count(arrays: Mapping[str, _Array]) -> int:
    for name, values in arrays.items():
        if not values.ndim:
            raise ShapeError(f"input {name!r} is a single number; with --state its first axis counts samples")
        if not len(values):
            raise ShapeError(f"input {name!r} has 0 samples; it must have at least one")
    counts = {name: len(values) for name, values in arrays.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{count} of {name!r}" for name, count in counts.items())
        raise ShapeError(f"there are samples for {listed}; the numbers must be equal")
    return next(iter(counts.values()), _DEFAULT_SAMPLES)


def _stacked(name: str, results: list[NetworkResult]) -> _Array:
    arrays = [result.outputs[name] for result in results]
    if len({one.shape for one in arrays}) > 1:
        raise ShapeError(f"output {name!r} has another shape in each run; it cannot be written as one array")
    return np.stack(arrays)


def _report(request: RunRequest, results: list[NetworkResult], targets: Mapping[str, Path]) -> int:
    cycles = [result.cycles for result in results if result.cycles is not None]
    wrong = None if request.no_check else sum(result.wrong or 0 for result in results)
    figures: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "config": results[0].config.label,
        "backend": request.backend,
        "samples": len(results),
        "cycles": cycles or None,
        "mismatches": wrong,
    }
    if request.as_json:
        print_json(figures)
        return 1 if wrong else 0
    rows = [request.machine_row(results[0].config), ("samples", f"{len(results):,}")]
    if cycles:
        rows.append(("cycles", f"{sum(cycles):,}, {min(cycles):,} to {max(cycles):,} for a sample"))
    rows.append(("mismatches", "not compared" if wrong is None else f"{wrong:,}"))
    show(FiguresTable(rows))
    wrote(*targets.values())
    for result in results:
        result.raise_if_wrong()
    return 0
