"""The program as loop nests, and what of them leads to which instructions."""

from html import escape
from typing import Any

from accel.base.errors import AccelError
from accel.run.program import as_program
from accel.run.stages import call_of, stage_lines, stage_text
from accel.views.scene import Scene

STAGES = {
    "nest": "naive loops",
    "scheduled": "scheduled",
    "tensorized": "tensorized",
    "folded": "reset and bias folded",
    "threads": "virtual threads",
}
"""The stages that are shown, and what they are called."""

LOOPS = "<div data-stages></div>"
"""Where the component puts the nests and the instructions side by side."""


def loops_text(scene: Scene) -> str:
    """The nests as text, in the place where a script puts them side by side with the instructions."""
    program = as_program(scene.image)
    parts = []
    for stage, name in STAGES.items():
        try:
            text = stage_text(program, stage)
        except AccelError as error:
            return f"<p>{escape(str(error))}</p>"
        opened = " open" if stage == "tensorized" else ""
        parts.append(f"<details{opened}><summary>{name}</summary><pre>{escape(text)}</pre></details>")
    return f"<div data-stages>{''.join(parts)}</div>"


def stages(scene: Scene) -> dict[str, Any] | None:
    """The lines of the nests with what they belong to, and the statements by which instructions lead to
    them; None of a program that has no loops."""
    program = as_program(scene.image)
    try:
        nests = {stage: stage_lines(program, stage) for stage in STAGES}
    except AccelError:
        return None
    origin = scene.image.provenance
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
        "statements": []
        if origin is None
        else [
            {
                "stage": one.stage,
                "tensor": one.tensor,
                "call": call_of(one.text),
                "clears": one.kind == "clear" or (one.kind == "intrinsic" and not one.reads),
                "step": one.step,
            }
            for one in origin.statements
        ],
        "of": [] if origin is None else origin.of.tolist(),
    }
