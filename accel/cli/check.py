"""``accel check``: the proof that tokens neither deadlock nor race."""

from pathlib import Path
from typing import Any

import click

from accel.cli.common import busy, figures_table, json_option, load_program, print_json, set_option, show
from accel.order import Counter, explain_deadlock
from accel.result import SCHEMA_VERSION
from accel.tokens import TokenReport


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--serial", is_flag=True, help="As on a monolithic pipeline.")
@set_option("timing")
@json_option
def check(file: Path, serial: bool, settings: tuple[str, ...], as_json: bool) -> int:
    """Prove that a program neither deadlocks nor races.

    Whatever the timing. Exit code 1, and the reason, if it does not hold.

    \b
    Example:
      accel check gemm.accel
    """
    program = load_program(file, settings, serial=serial)
    with busy("checking"):
        report = program.check()
    if as_json:
        print_json({"schema_version": SCHEMA_VERSION} | report_dict(report))
        return 0 if report.ok else 1
    show(figures_table(_rows(report)))
    report.raise_if_bad()
    return 0


def report_dict(report: TokenReport) -> dict[str, Any]:
    """A report as plain data."""
    return {
        "ok": report.ok,
        "instructions": report.instructions,
        "races": report.race_count,
        "first_races": [str(race) for race in report.races],
        "deadlock": None if report.deadlock is None else explain_deadlock(report.deadlock),
        "faults": [
            {"instruction": index, "cause": fault.cause.label, "message": fault.message}
            for index, fault in report.faults
        ],
        "unknown_uops": list(report.unknown_uops),
        "left_over": {c.label: report.left_over[c] for c in Counter},
        "peak": {c.label: report.peak[c] for c in Counter},
    }


def _rows(report: TokenReport) -> list[tuple[str, str]]:
    left = ", ".join(f"{report.left_over[c]} {c.label}" for c in Counter if report.left_over[c])
    rows = [
        ("instructions", f"{report.instructions:,}"),
        ("deadlock", "none" if report.deadlock is None else "yes"),
        ("races", f"{report.race_count:,}" if report.race_count else "none"),
        ("most tokens at once", ", ".join(f"{report.peak[c]} {c.label}" for c in Counter)),
        ("tokens left over", left or "none"),
    ]
    rows += [("fault", f"instruction {index}: {fault.message}") for index, fault in report.faults]
    rows += [("race", str(race)) for race in report.races]
    return rows
