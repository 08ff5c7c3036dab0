"""How a run ended and what is known of its tokens, in words."""

from accel.core.faults import Cause
from accel.core.token_rules import Waiting, stuck
from accel.run.program import as_program
from accel.views.scene import Scene

Row = tuple[str, str, bool]
"""A name, what is found, and whether that is as it should be."""


def rows(scene: Scene) -> list[Row]:
    """What ended the run, who waits for what if nobody can go on, and what the token check says."""
    error = scene.result.error
    found: list[Row] = []
    if error is None:
        found.append(("the run", "finished", True))
    else:
        cause = error.cause.doc if isinstance(error.cause, Cause) else ""
        found.append(("the run", f"{stopped(scene)}, in cycle {scene.seen.cycles:,}: {cause}", False))
        found.append(("what is wrong", str(error), False))
        if error.index is not None and error.index < len(scene.names):
            found.append(("instruction", f"#{error.index} {scene.names[error.index]}", False))
        if error.cause is Cause.DEADLOCK:
            waiting = stuck(scene.instructions, scene.image.config, scene.image.start.tokens)
            found += [("waits", _wait(scene, one), False) for one in waiting]
    return found + _tokens(scene)


def stopped(scene: Scene) -> str:
    """What ended the run early and where, in a few words; nothing of one that finished."""
    error = scene.result.error
    if error is None:
        return ""
    cause = error.cause.label if isinstance(error.cause, Cause) else "error"
    return cause if error.index is None else f"{cause} at instruction {error.index}"


def _wait(scene: Scene, one: Waiting) -> str:
    source = one.counter.source.label
    text = f"{one.unit.label} at #{one.index} {scene.names[one.index]} for a token from {source}; "
    if one.pusher is None:
        return f"{text}no instruction left in the {source} unit pushes one"
    return f"{text}the next to push one is #{one.pusher} {scene.names[one.pusher]}, which cannot run"


def _tokens(scene: Scene) -> list[Row]:
    """The token check, which concerns the program whatever this run did."""
    report = as_program(scene.image).check()
    found = [("tokens", report.summary, report.ok)]
    if report.leftovers and report.deadlock is None and not report.faults:
        text = f"{report.leftovers}; legal, and the next run starts with them"
        found.append(("tokens left over", text, True))
    if report.unwritten:
        more = f" ({report.unwritten_count - 1:,} more)" if report.unwritten_count > 1 else ""
        found.append(("reads of what nothing wrote", f"{report.unwritten[0]}{more}", True))
    return found
