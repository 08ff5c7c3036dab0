"""``python -m accel.hw.formal``: prove all properties."""

import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from accel.base.errors import AccelError
from accel.core.alu_operations import find_operation
from accel.hw.formal.all_proofs import PROOFS
from accel.hw.formal.claims import Proof
from accel.hw.formal.prove_alu import proof_of
from accel.hw.formal.smt_solver import Verdict, prove


@click.command()
@click.option("--only", metavar="TEXT", default="", help="Only proofs with this in their name.")
@click.option(
    "--operation",
    "operations",
    metavar="NAME",
    multiple=True,
    help="Only that the hardware of a declared operation of ALU computes its declaration. Repeatable.",
)
@click.option("--jobs", type=click.IntRange(min=1), default=os.cpu_count() or 1, help="Solvers at a time.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON.")
def main(only: str, operations: tuple[str, ...], jobs: int, as_json: bool) -> None:
    """Prove properties of the hardware for all time."""
    try:
        every = [proof_of(find_operation(name)) for name in operations] or PROOFS
        chosen = [proof for proof in every if only in proof.name]
        if not chosen:
            raise AccelError(f"no proof has {only!r} in its name")
        verdicts = sorted(_verdicts(chosen, jobs), key=lambda verdict: chosen.index(verdict.proof))
    except AccelError as error:
        sys.stderr.write(f"accel: {error}\n")
        sys.exit(2)
    proven = sum(verdict.properties for verdict in verdicts if verdict.holds)
    if as_json:
        rows = [
            {
                "name": verdict.proof.name,
                "statement": verdict.proof.statement,
                "properties": verdict.properties,
                "failed": list(verdict.failed),
                "seconds": round(verdict.seconds, 1),
            }
            for verdict in verdicts
        ]
        click.echo(json.dumps({"properties": proven, "proofs": rows}, indent=2))
    else:
        _print(verdicts)
        click.echo(f"{proven} properties proven")
    sys.exit(0 if all(verdict.holds for verdict in verdicts) else 1)


def _verdicts(proofs: list[Proof], jobs: int) -> Iterator[Verdict]:
    console = Console(stderr=True)
    with ThreadPoolExecutor(jobs) as pool, Progress(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("proving", total=len(proofs))
        futures = [pool.submit(prove, proof) for proof in proofs]
        try:
            for future in as_completed(futures):
                bar.advance(task)
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _print(verdicts: list[Verdict]) -> None:
    table = Table("what", "statement", "properties", "seconds", box=None, pad_edge=False)
    for verdict in verdicts:
        count = str(verdict.properties) if verdict.holds else "[red]not proven[/red]"
        table.add_row(verdict.proof.name, verdict.proof.statement, count, f"{verdict.seconds:.1f}")
    Console(width=None if sys.stdout.isatty() else 160, highlight=False).print(table)
    for verdict in verdicts:
        for claim in verdict.failed:
            click.echo(f"{verdict.proof.name}: not proven: {claim}")


if __name__ == "__main__":
    main()
