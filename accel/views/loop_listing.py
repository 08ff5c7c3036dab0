"""The loop nests of a program with their instructions."""

from html import escape
from typing import Any

from accel.base.errors import AccelError
from accel.run.program import as_program
from accel.run.stage_listing import call_of, stage_lines, stage_text
from accel.views.analyzed_run import AnalyzedRun

STAGES = {
    "nest": "naive loops",
    "scheduled": "scheduled",
    "tensorized": "tensorized",
    "folded": "reset and bias folded",
    "threads": "virtual threads",
}
"""The stages that are shown, with their headings."""

STAGES_PLACEHOLDER = "<div data-stages></div>"
"""The element in which ``view.js`` shows loops and instructions next to one another."""


def loops_html(run: AnalyzedRun) -> str:
    """Return the loop nests as text, which scripts replace."""
    program = as_program(run.image)
    parts = []
    for stage, name in STAGES.items():
        try:
            text = stage_text(program, stage)
        except AccelError as error:
            return f"<p>{escape(str(error))}</p>"
        is_open = " open" if stage == "tensorized" else ""
        parts.append(f"<details{is_open}><summary>{name}</summary><pre>{escape(text)}</pre></details>")
    return f"<div data-stages>{''.join(parts)}</div>"


def stages_data(run: AnalyzedRun) -> dict[str, Any] | None:
    """Return ``nests`` (lines of each stage), ``statements``, and ``of`` (each instruction's statement).

    None for a program without loops.
    """
    program = as_program(run.image)
    try:
        nests = {stage: stage_lines(program, stage) for stage in STAGES}
    except AccelError:
        return None
    origin = run.image.provenance
    statements = [] if origin is None else origin.statements
    return {
        "nests": [
            {
                "name": stage,
                "label": STAGES[stage],
                "text": [line.text for line in lines],
                "names": [list(line.names) for line in lines],
                "call": [line.call for line in lines],
            }
            for stage, lines in nests.items()
        ],
        "statements": [
            {
                "stage": one.stage,
                "tensor": one.tensor,
                "call": call_of(one.text),
                "clears": one.kind == "clear" or (one.kind == "intrinsic" and not one.reads),
                "step": one.step,
            }
            for one in statements
        ],
        "of": [] if origin is None else origin.of.tolist(),
    }
