"""Values of options, output and progress of commands."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from accel.base.errors import AccelError, nearest
from accel.core.config import NAMED, Config
from accel.image import conformance_vectors
from accel.image.image import is_network
from accel.run.critical_path import Segment, critical_dict
from accel.run.program import Program
from accel.run.replay import load_any

_SEGMENTS = 20
DEFAULT_NOTE = "the default, --config changes it"


def machine_text(config: Config) -> str:
    """Mention if the machine is the default of ``--config``."""
    context = click.get_current_context(silent=True)
    source = None if context is None else context.get_parameter_source("config")
    chosen = source in (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)
    return f"{config}; {DEFAULT_NOTE}" if chosen else str(config)


def machine_row(config: Config) -> tuple[str, str]:
    return ("machine", machine_text(config))


def named_values(option: str, texts: Iterable[str], form: str, names: Sequence[str] = ()) -> dict[str, str]:
    """Return ``NAME=VALUE`` arguments as a mapping. Known ``names`` may contain ``=``, and the longest
    match counts. Raise an AccelError for another ``form``, or a repeated name."""
    values: dict[str, str] = {}
    for text in texts:
        known = max((name for name in names if text.startswith(f"{name}=")), key=len, default=None)
        if known is not None:
            name, value = known, text[len(known) + 1 :]
        else:
            name, _, value = text.partition("=")
            name = name.strip()
        if not name or not value:
            raise AccelError(f"{option} is given {text!r}; it takes {form}")
        if name in values:
            raise AccelError(f"{option} is given {name} twice, as {values[name]!r} and as {value!r}")
        values[name] = value
    return values


def parse_settings(settings: Sequence[str]) -> dict[str, str]:
    found = named_values("--set", settings, "FIELD=VALUE, as read_latency=100")
    return {name: value.strip() for name, value in found.items()}


def load_program(path: Path, settings: Sequence[str] = (), *, serial: bool = False) -> Program:
    """Load a program, assembly text, vector or network of one program. Raise a ProgramError for an unreadable
    file, and an AccelError for a wrong timing setting."""
    if is_network(path):
        from accel.network.network_file import load_network, single_program  # slow to import

        program = single_program(load_network(path), str(path))
    else:
        program = load_any(path)
    values = parse_settings(settings)
    if serial:
        if "serial" in values:
            raise AccelError(f"--serial and --set serial={values['serial']} are given; one of them is enough")
        values["serial"] = "1"
    if not values:
        return program
    return program.with_timing(program.config.variant(values, kinds=("timing",)))


def program_files(path: Path) -> dict[str, Path]:
    """Return the files of :func:`load_program` by their names in messages."""
    if path.is_dir():
        return {f"FILE ({name})": path / name for name in conformance_vectors.FILES}
    return {"FILE": path}


def config_file(config: str) -> dict[str, Path]:
    return {} if config in NAMED else {"--config": Path(config)}


def given(paths: Mapping[str, Path | None]) -> dict[str, Path]:
    return {name: path for name, path in paths.items() if path is not None}


def check_name(what: str, name: str, valid: Iterable[str]) -> None:
    names = list(valid)
    if name not in names:
        raise AccelError(f"the {what} is {name!r}; {nearest(name, names)}")


def critical_json(path: Sequence[Segment] | None) -> dict[str, Any] | None:
    return None if path is None else critical_dict(path, _SEGMENTS)


def parse_shapes(shapes: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return ``--shape`` by input. Raise an AccelError for another form than NAME=SIZES."""
    found = {}
    for name, text in named_values("--shape", shapes, "NAME=SIZES, as x=1,3,48,320").items():
        sizes = text.split(",")
        if not all(size.isascii() and size.isdigit() and int(size) for size in sizes):
            raise AccelError(
                f"--shape has {text!r} for {name!r}; it must be positive integers, as 1,3,48,320"
            )
        found[name] = tuple(map(int, sizes))
    return found
