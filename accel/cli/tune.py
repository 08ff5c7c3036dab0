"""``accel tune``: search for the fastest schedule of a template or of an operator."""

import re
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import click

from accel.base.atomic_files import check_targets
from accel.base.errors import AccelError, TuningError, nearest
from accel.cli.declared_options import complete, json_option, machine_names, set_option
from accel.cli.operator_commands import operator_command
from accel.cli.shared_options import check_name, config_file, given, machine_row, parse_settings
from accel.cli.stdout import wrote
from accel.cli.terminal_output import figures_table, print_json, progress_bar, show
from accel.compiler.mappings.mapping import AUTO, PLAIN
from accel.compiler.operators.declared_operator import Operator
from accel.compiler.operators.operator_registry import OPERATORS
from accel.compiler.ops.workload import Workload
from accel.compiler.schedule.schedule import Schedule
from accel.compiler.target.machine import machine
from accel.run.result import SCHEMA_VERSION
from accel.tuning.explorers import EXPLORERS
from accel.tuning.tune import DEFAULT_EXPLORER, DEFAULT_TRIALS, Tuning
from accel.tuning.tune import tune as run_tuning

_CLOSING = (
    "The points are the plans of the operator's planner. --schedule of 'accel compile' takes the file of -o. "
    "The explorers annealing and evolution need the extra 'tune'."
)
_EXPLORER_HELP = (
    "How points are chosen: 'model' by predicted cycles; 'annealing' and 'evolution' by a cost model that "
    "learns from the trials (extra 'tune'), with '+records' also from other computations in --records."
)


def _shared_options(config: str) -> list[click.Parameter]:
    """Return the options that all computations share."""
    path = click.Path(path_type=Path)

    @click.command()
    @click.option(
        "--config",
        "--machine",
        "config",
        default=config,
        show_default=True,
        metavar="NAME|FILE",
        help="The machine, by name or as a TOML or JSON file.",
        shell_complete=complete(machine_names, files=True),
    )
    @set_option("geometry or timing")
    @click.option(
        "--trials",
        type=click.IntRange(1),
        default=DEFAULT_TRIALS,
        show_default=True,
        help="Points to measure.",
    )
    @click.option(
        "--explorer",
        default=DEFAULT_EXPLORER,
        show_default=True,
        metavar="|".join(EXPLORERS),
        shell_complete=complete(EXPLORERS),
        help=_EXPLORER_HELP,
    )
    @click.option(
        "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all random choices."
    )
    @click.option("--jobs", type=click.IntRange(1), help="Number of processes.  [default: one for each core]")
    @click.option(
        "--records",
        type=path,
        metavar="FILE",
        help="Continue with the trials in this file, and append to it. --tuned of 'accel compile' takes it.",
    )
    @click.option(
        "-o", "--output", type=path, metavar="FILE", help="Write the fastest schedule (.toml or .json)."
    )
    @click.option(
        "--save-program", type=path, metavar="FILE", help="Write the program of the fastest schedule."
    )
    @json_option
    def shared(**_: Any) -> None:
        """Only the options of this function are used."""

    return shared.params


_mapping_option = click.Option(
    ["--mapping"],
    default=AUTO,
    show_default=True,
    metavar="NAME",
    help="The mapping whose plans are searched.",
)


def _run_operator(operator: Operator, arguments: dict[str, Any], options: dict[str, Any]) -> int:
    return _run(operator.workload(arguments), options, {})


def _run_template(template: str, **options: Any) -> int:
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
    show(figures_table(_rows(tuning)))
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
    """Return a template from a user's file, which is executed.

    Args:
        path: the file.
        name: name of the function, or empty if the file has one function named ``template``.

    Raises:
        TuningError: the file cannot be read, fails, or has no such function.
    """
    if not path.is_file():
        raise TuningError(f"template file {str(path)!r} cannot be read: no such file")
    spec = spec_from_file_location("accel_template", path)
    if spec is None or spec.loader is None:
        raise TuningError(f"template file {str(path)!r} is not a Python file; its name must end in .py")
    module = module_from_spec(spec)
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)  # it may import its neighbours, as a script does
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


template_command = click.Command(
    "FILE.py:TEMPLATE",
    params=[click.Argument(["template"], metavar="FILE.py:TEMPLATE"), *_shared_options("vta")],
    callback=_run_template,
    help="""Search for the fastest schedule of a template.

    TEMPLATE is a function in FILE.py without arguments. It declares knobs with te.knob and te.knob_order,
    constraints with te.require, and returns a schedule. FILE.py is executed.

    \b
    Example:
      accel tune layer.py:template --machine vta --trials 64 --explorer model -o best.json
    """,
    short_help="A Python function with knobs that returns a schedule.",
)


def _tuning_examples(operator: Operator) -> list[str]:
    """Return the operator's first example with the options of a search."""
    shape = re.split(
        r" (?:-o|--explain|--measure|--save-schedule|--schedule|--mapping)\b", operator.examples[0]
    )[0]
    return [f"{shape} --trials 32 -o best.json"]


COMMANDS: dict[str, click.Command] = {
    operator.command: operator_command(
        operator,
        [*_shared_options(operator.machine), _mapping_option],
        _run_operator,
        "tune",
        _CLOSING,
        _tuning_examples(operator),
    )
    for operator in OPERATORS.values()
}
"""A command for each operator, by name."""
