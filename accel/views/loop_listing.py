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
STAGES_PLACEHOLDER = "<div data-stages></div>"
"""Here ``view.js`` shows loops and instructions side by side."""


def loops_html(run: AnalyzedRun) -> str:
    """Return loop nests as text. Scripts replace it."""
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
    """Return ``nests`` (lines by stage), ``statements``, and ``of`` (statement of each instruction).

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
