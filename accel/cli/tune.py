import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from accel.base.atomic_files import check_targets
from accel.base.errors import AccelError, TuningError, nearest
from accel.base.run_choices import EXPLORERS
from accel.cli.shared_options import check_name, config_file, given, machine_row, parse_settings
from accel.cli.stdout import wrote
from accel.cli.terminal_output import FiguresTable, print_json, progress_bar, show
from accel.compiler.mappings.mapping import AUTO, PLAIN
from accel.compiler.operators.declared_operator import Operator
from accel.compiler.ops.workload import Workload
from accel.compiler.schedule.schedule import Schedule
from accel.compiler.target.machine import machine
from accel.run.result import SCHEMA_VERSION
from accel.tuning.tune import Tuning
from accel.tuning.tune import tune as run_tuning


def tune_operator(operator: Operator, arguments: dict[str, Any], options: dict[str, Any]) -> int:
    return _run(operator.workload(arguments), options, {})


def tune_template(template: str, **options: Any) -> int:
    """Search among the points of ``FILE.py:NAME``, as :func:`tune_operator`."""
    path, _, name = template.rpartition(":")
    if not path:
        path, name = template, ""
    return _run(load_template(Path(path), name), options, {"FILE.py": Path(path)})


def _run(target: Workload | Callable[[], Schedule], options: dict[str, Any], read: dict[str, Path]) -> int:
    config, explorer = options["config"], options["explorer"]
    check_name("explorer", explorer, EXPLORERS)
    chosen = machine(config, **parse_settings(options["settings"]))
    written = given({"-o": options["output"], "--save-program": options["save_program"]})
    appended = given({"--records": options["records"]})
    check_targets(written, read | appended | config_file(config))
    with progress_bar("trials") as progress:
        tuning = run_tuning(
            target,
            chosen,
            trials=options["trials"],
            explorer=explorer,
            seed=options["seed"],
            jobs=options["jobs"],
            mapping=options.get("mapping", AUTO),
            records=options["records"],
            progress=progress,
        )
    if options["output"] is not None:
        tuning.save_schedule(options["output"])
    if options["save_program"] is not None:
        tuning.program.save(options["save_program"])
    if options["as_json"]:
        files = {
            "output": options["output"],
            "program": options["save_program"],
            "records": options["records"],
        }
        paths = {name: None if path is None else str(path) for name, path in files.items()}
        print_json({"schema_version": SCHEMA_VERSION, **tuning.to_dict(), **paths})
        return 0
    show(FiguresTable(_rows(tuning)))
    wrote(*written.values(), *appended.values())
    return 0


def _rows(tuning: Tuning) -> list[tuple[str, str]]:
    valid = "" if tuning.valid_points is None else f", {tuning.valid_points:,} of them valid"
    rows = [
        machine_row(tuning.config),
        ("space", f"{tuning.space_size:,} points{valid}"),
        (
            "trials",
            f"{len(tuning.trials):,} by {tuning.explorer}, {tuning.trials_per_second:.1f} per second in "
            f"{_counted(tuning.jobs, 'process', 'processes')}",
        ),
    ]
    if tuning.recorded:
        rows.append(("recorded", f"{tuning.recorded:,} trials of earlier searches"))
    for number, (message, count) in enumerate(tuning.invalid.items()):
        if number == 0:
            rows.append(
                ("invalid", f"{sum(tuning.invalid.values()):,}; the most frequent: {count:,} x {message}")
            )
    if tuning.deaths:
        rows.append(("workers", f"{_counted(tuning.deaths, 'worker', 'workers')} died; others took over"))
    if tuning.default_cycles is not None:
        saved = 1 - tuning.cycles / tuning.default_cycles
        rows.append(("default", f"{tuning.default_cycles:,} cycles"))
        rows.append(("fastest", f"{tuning.cycles:,} cycles, {saved:.1%} fewer; proven, and equal to numpy"))
    else:
        rows.append(("fastest", f"{tuning.cycles:,} cycles; proven, and equal to numpy"))
    if tuning.mapping != PLAIN:
        rows.append(("mapping", tuning.mapping))
    rows.append(("knobs", ", ".join(f"{name} {_shown(value)}" for name, value in tuning.knobs.items())))
    return rows


def _counted(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


def _shown(value: Any) -> str:
    return "-".join(map(str, value)) if isinstance(value, tuple) else str(value)


def load_template(path: Path, name: str) -> Callable[[], Schedule]:
    """Execute a user's file, and return its function ``name``, by default ``template``, or raise a
    TuningError."""
    if not path.is_file():
        raise TuningError(f"template file {str(path)!r} cannot be read: no such file")
    spec = spec_from_file_location("accel_template", path)
    if spec is None or spec.loader is None:
        raise TuningError(f"template file {str(path)!r} is not a Python file; its name must end in .py")
    module = module_from_spec(spec)
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)  # it may import its neighbours
    try:
        spec.loader.exec_module(module)
    except AccelError as error:
        raise TuningError(f"template file {str(path)!r} fails: {error}") from error
    except Exception as error:
        raise TuningError(f"template file {str(path)!r} fails: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(folder)
    wanted = name or "template"
    found = getattr(module, wanted, None)
    if not callable(found):
        own = [
            key
            for key, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", None) == spec.name
        ]
        hint = nearest(wanted, own) if own else "it has no functions"
        raise TuningError(f"template file {str(path)!r} has no function {wanted!r}; {hint}")
    return found  # type: ignore[no-any-return]
