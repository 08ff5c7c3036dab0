"""``accel replay``: run other compilers' programs and compare memory."""

import sys
from collections.abc import Iterable
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from accel.cli.common import check_name, json_option, limit_options, print_json, seed_option, show
from accel.program import BACKENDS
from accel.result import SCHEMA_VERSION
from accel.vectors import Replay, Vector, find_vectors, load_vector
from accel.vectors import replay as replay_vector


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path))
@click.option(
    "--backend",
    default="functional",
    show_default=True,
    metavar="|".join(BACKENDS),
    help="functional: memory only; sim: cycles too.",
)
@click.option(
    "--order",
    type=click.Choice(["program", "random"]),
    default="program",
    show_default=True,
    help="Of functional execution.",
)
@seed_option
@limit_options
@json_option
def replay(
    folders: tuple[Path, ...],
    backend: str,
    order: str,
    seed: int,
    max_cycles: int,
    max_uops: int,
    as_json: bool,
) -> int:
    """Run other VTA compilers' programs.

    Memory is compared with what is expected. Each DIR is a vector (config.json, insn.bin, dram_before.npz,
    expect.npz) or holds vectors. Scratchpads start with random contents. Exit code 1 if one fails.

    \b
    Example:
      accel replay vectors/ --backend sim
    """
    check_name("backend", backend, BACKENDS)
    paths = find_vectors(folders)
    vectors = [load_vector(path) for path in paths]
    done = [
        replay_vector(
            vector,
            timed=backend == "sim",
            seed=seed,
            order="random" if order == "random" else "program",
            max_cycles=max_cycles,
            max_uops=max_uops,
        )
        for vector in _with_progress(vectors)
    ]
    passed = sum(one.passed for one in done)
    if as_json:
        print_json(
            {
                "schema_version": SCHEMA_VERSION,
                "backend": backend,
                "passed": passed,
                "failed": len(done) - passed,
                "vectors": [one.to_dict() for one in done],
            }
        )
    else:
        _print(done)
    return 0 if passed == len(done) else 1


def _with_progress(vectors: list[Vector]) -> Iterable[Vector]:
    """The vectors, with a progress bar on a terminal."""
    if not sys.stderr.isatty():
        return vectors
    return track(vectors, "replaying", console=Console(stderr=True), transient=True)


def _print(done: list[Replay]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("vector", "result", "instructions", "micro-ops", "cycles"):
        table.add_column(heading, justify="left" if heading in ("vector", "result") else "right")
    for one in done:
        cycles = "" if one.cycles is None else f"{one.cycles:,}"
        uops = "" if one.uops is None else f"{one.uops:,}"
        table.add_row(one.name, "pass" if one.passed else "FAIL", f"{one.instructions:,}", uops, cycles)
    show(table)
    for one in done:
        if one.error is not None:
            show(f"{one.name}: {one.error}")
    show(f"{sum(one.passed for one in done)} of {len(done)} passed")
