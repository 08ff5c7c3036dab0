from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from accel.base.atomic_files import check_targets
from accel.base.errors import AccelError, ProgramError, ProgramFault
from accel.cli.shared_options import load_program
from accel.cli.stdout import wrote
from accel.cli.terminal_output import FiguresTable, busy, print_json, show, text_table
from accel.core.token_rules import Counter, explain_deadlock
from accel.proof.certificate import certificate as certify
from accel.proof.certificate import write_certificate
from accel.proof.token_check import TokenReport
from accel.run.replay import find_programs, program_name
from accel.run.result import SCHEMA_VERSION


def check(
    paths: tuple[Path, ...],
    serial: bool,
    settings: tuple[str, ...],
    certificate: Path | None,
    as_json: bool,
) -> int:
    if certificate is not None:
        check_targets({"--certificate": certificate}, {"PATH": paths[0]})
    found = find_programs(list(paths)) if all(path.exists() for path in paths) else list(paths)
    if found == list(paths) and len(found) == 1:
        program = load_program(found[0], settings, serial=serial)
        with busy("checking"):
            report = program.check()
            if certificate is not None and report.ok:
                write_certificate(certificate, certify(program))
        if certificate is not None and report.ok:
            wrote(certificate)
        return _one(report, as_json)
    if certificate is not None:
        raise click.UsageError("--certificate is of one program; give one file")
    reports: list[TokenReport | AccelError] = []
    with busy("checking"):
        for path in found:
            try:
                reports.append(load_program(path, settings, serial=serial).check())
            except ProgramError as error:
                reports.append(error)
    return _several(found, reports, as_json)


def _one(report: TokenReport, as_json: bool) -> int:
    if as_json:
        print_json({"schema_version": SCHEMA_VERSION} | report_dict(report))
        return 0 if report.ok else 1
    show(FiguresTable(_rows(report)))
    report.raise_if_bad()
    return 0


def _several(found: Sequence[Path], reports: Sequence[TokenReport | AccelError], as_json: bool) -> int:
    proven = [isinstance(report, TokenReport) and report.ok for report in reports]
    ok = all(proven)
    if as_json:
        programs = [
            {"name": program_name(path), "path": str(path)} | report_dict(report)
            for path, report in zip(found, reports, strict=True)
        ]
        print_json({"schema_version": SCHEMA_VERSION, "ok": ok, "programs": programs})
        _raise_if_unreadable(reports)
        return 0 if ok else 1
    table = text_table()
    for heading in ("program", "verdict", "instructions", "races", "tokens left", "unwritten reads"):
        table.add_column(heading, justify="left" if heading in ("program", "verdict") else "right")
    for path, report in zip(found, reports, strict=True):
        if not isinstance(report, TokenReport):
            table.add_row(program_name(path), "unreadable", *["-"] * 4)
            continue
        unknown = undetermined(report)
        numbers = {
            "instructions": report.instructions,
            "races": report.race_count,
            "left_over": sum(report.left_over),
            "unwritten_reads": report.unwritten_count,
        }
        cells = ("-" if key in unknown else f"{number:,}" for key, number in numbers.items())
        table.add_row(program_name(path), report.verdict, *cells)
    show(table)
    for path, report in zip(found, reports, strict=True):
        for remark in _remarks(report) if isinstance(report, TokenReport) else [str(report)]:
            show(f"{program_name(path)}: {remark}")
    show(f"{sum(proven)} of {len(reports)} proven")
    _raise_if_unreadable(reports)
    return 0 if ok else 1


def _raise_if_unreadable(reports: Sequence[TokenReport | AccelError]) -> None:
    errors = [report for report in reports if not isinstance(report, TokenReport)]
    if errors:
        more = f" ({len(errors) - 1} more cannot be read)" if len(errors) > 1 else ""
        raise ProgramError(f"{errors[0]}{more}")


REPORT_KEYS = {
    "ok": "whether the program is proven right",
    "verdict": "proven, fault, deadlock, race, or unknown",
    "undetermined": "the keys below that this check could not determine and that are null",
    "instructions": "number of instructions",
    "races": "number of races",
    "first_races": "the first ones, in words",
    "deadlock": "its explanation, or null without a deadlock",
    "faults": "instructions that are wrong by themselves, counters that may overflow",
    "unknown_uops": "instructions whose micro-ops are known only at run time",
    "left_over": "tokens in each counter at the end, which are legal",
    "peak": "largest value of each counter in any order",
    "unwritten_reads": "number of instructions that read unwritten scratchpad elements, which is legal",
    "first_unwritten_reads": "the first ones, in words",
}
"""Keys of ``--json`` in order, with meanings."""


def undetermined(report: TokenReport) -> dict[str, str]:
    if report.faults:
        keys = ("races", "deadlock", "left_over", "peak", "unwritten_reads")
        return dict.fromkeys(keys, "the check ends at a fault")
    if report.unknown_uops:
        return dict.fromkeys(("races", "unwritten_reads"), "some micro-ops are known only at run time")
    return {}


def report_dict(report: TokenReport | AccelError) -> dict[str, Any]:
    """Return the values of :data:`REPORT_KEYS`, or an error's message."""
    if not isinstance(report, TokenReport):
        return {"ok": False, "error": str(report)}
    unknown = undetermined(report)
    values = {
        "ok": report.ok,
        "verdict": report.verdict,
        "undetermined": list(unknown),
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
        "unwritten_reads": report.unwritten_count,
        "first_unwritten_reads": [str(one) for one in report.unwritten],
    }
    return values | dict.fromkeys(unknown)


def _remarks(report: TokenReport) -> list[str]:
    remarks = []
    try:
        report.raise_if_bad()
    except ProgramFault as error:
        remarks.append(str(error))
    if report.leftovers and "left_over" not in undetermined(report):
        remarks.append(f"tokens left over: {report.leftovers}")
    if report.unwritten:
        more = f" ({report.unwritten_count - 1} more)" if report.unwritten_count > 1 else ""
        remarks.append(f"{report.unwritten[0]}{more}")
    return remarks


def _rows(report: TokenReport) -> list[tuple[str, str]]:
    unknown = undetermined(report)

    def value_text(key: str, found: str, *, least: bool = False) -> str:
        if key not in unknown:
            return found or "none"
        return f"at least {found}" if least and found else f"unknown; {unknown[key]}"

    def counted(key: str, count: int) -> str:
        return value_text(key, f"{count:,}" if count else "", least=True)

    rows = [
        ("instructions", f"{report.instructions:,}"),
        ("deadlock", value_text("deadlock", "" if report.deadlock is None else "yes")),
        ("races", counted("races", report.race_count)),
        (
            "most tokens at once",
            value_text("peak", ", ".join(f"{report.peak[c]} {c.label}" for c in Counter)),
        ),
        ("tokens left over", value_text("left_over", report.leftovers)),
        ("reads of unwritten elements", counted("unwritten_reads", report.unwritten_count)),
    ]
    rows += [("fault", f"instruction {index}: {fault.message}") for index, fault in report.faults]
    rows += [("race", str(race)) for race in report.races]
    rows += [("unwritten", str(one)) for one in report.unwritten]
    return rows
