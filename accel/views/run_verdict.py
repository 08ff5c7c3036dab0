"""The end and token check of a run, in words."""

from accel.core.fault_causes import Cause
from accel.core.token_rules import Waiting, stuck
from accel.run.program import as_program
from accel.views.analyzed_run import AnalyzedRun

VerdictRow = tuple[str, str, bool]


def verdict_rows(run: AnalyzedRun) -> list[VerdictRow]:
    """Return a run's end, a deadlock's waiting instructions, and the token check."""
    error = run.result.error
    found: list[VerdictRow] = []
    if error is None:
        found.append(("the run", "finished", True))
    else:
        cause = error.cause.doc if isinstance(error.cause, Cause) else ""
        found.append(("the run", f"{stop_reason(run)}, in cycle {run.activity.cycles:,}: {cause}", False))
        found.append(("error", str(error), False))
        if error.index is not None and error.index < len(run.names):
            found.append(("instruction", f"#{error.index} {run.names[error.index]}", False))
        if error.cause is Cause.DEADLOCK:
            waiting = stuck(run.instructions, run.image.config, run.image.start.tokens)
            found += [("waits", _waiting_text(run, one), False) for one in waiting]
    return found + _token_rows(run)


def stop_reason(run: AnalyzedRun) -> str:
    """Return for example ``deadlock at instruction 1``, or an empty string."""
    error = run.result.error
    if error is None:
        return ""
    cause = error.cause.label if isinstance(error.cause, Cause) else "error"
    return cause if error.index is None else f"{cause} at instruction {error.index}"


def _waiting_text(run: AnalyzedRun, one: Waiting) -> str:
    source = one.counter.source.label
    text = f"{one.unit.label} at #{one.index} {run.names[one.index]} for a token from {source}; "
    if one.pusher is None:
        return f"{text}no instruction left in the {source} unit pushes one"
    return f"{text}the next to push one is #{one.pusher} {run.names[one.pusher]}, which cannot run"


def _token_rows(run: AnalyzedRun) -> list[VerdictRow]:
    report = as_program(run.image).check()
    found = [("tokens", report.summary, report.ok)]
    if report.leftovers and report.deadlock is None and not report.faults:
        text = f"{report.leftovers}; legal, and the next run starts with them"
        found.append(("tokens left over", text, True))
    if report.unwritten:
        more = f" ({report.unwritten_count - 1:,} more)" if report.unwritten_count > 1 else ""
        found.append(("reads of unwritten elements", f"{report.unwritten[0]}{more}", True))
    return found
