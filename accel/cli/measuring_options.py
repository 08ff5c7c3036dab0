"""Options and files of commands that measure many points."""

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from accel.base.atomic_files import check_distinct, check_folder, check_writable
from accel.base.run_choices import EXECUTORS
from accel.cli.declared_options import F, choice_option

_OPTIONS = (
    click.option("--fresh", is_flag=True, help="Measure all points again."),
    click.option("--jobs", type=click.IntRange(1), help="Number of processes.  [default: one for each core]"),
    choice_option("--executor", EXECUTORS, "Measure points in processes or on a Dask cluster.", EXECUTORS[0]),
    click.option(
        "--scheduler", metavar="ADDRESS", help="Address of a Dask cluster.  [default: one on this machine]"
    ),
)


def measuring_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def folder_option(default: str) -> Callable[[F], F]:
    """Return ``-o``. ``default`` describes the default in the help."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help=f"The folder of the results.  [default: {default}]",
    )


def make_folder(folder: Path, targets: Mapping[str, Path], given: Mapping[str, Path]) -> None:
    """Make the results' folder, and check that its files can be written and differ from ``given`` ones."""
    check_distinct(targets, given)
    check_folder(folder)
    folder.mkdir(exist_ok=True)
    for path in targets.values():
        check_writable(path)


@contextmanager
def hint_to_resume(journal: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        arguments = click.get_current_context().obj
        again = shlex.join(["accel", *(one for one in arguments if one != "--fresh")])
        print(
            f"accel: interrupted; the measured points are in {str(journal)!r}, and this continues from "
            f"there: {again}",
            file=sys.stderr,
        )
        raise
