"""A state as commands: what to type to get the same run without the studio."""

import json
import shlex
from typing import Any

from accel.compiler.mappings.mapping import AUTO
from accel.compiler.operators.parameter import Joint, Kind, Parameter
from accel.compiler.schedule.files import FORMAT, FORMAT_VERSION
from accel.studio.state import State

SCHEDULE = "schedule.json"


def commands(state: State) -> str:
    """Lines for a shell that compile and run what a state shows.

    Raises:
        ShapeError: as :meth:`State.arguments`.
    """
    operator = state.operator
    words = ["accel", "compile", operator.command]
    for name, value in state.arguments().items():
        words += _option(operator.spellings[name], value)
    words += ["--config", state.machine]
    for name, setting in state.settings.items():
        words += ["--set", f"{name}={setting}"]
    if state.mapping != AUTO:
        words += ["--mapping", state.mapping]
    lines = list[str]()
    if state.steps is not None:
        steps = ",\n".join(f"  {json.dumps(step)}" for step in state.steps)
        head = f'{{"format": {json.dumps(FORMAT)}, "version": {FORMAT_VERSION}, "steps": ['
        lines += [f"cat > {SCHEDULE} << 'END'", head, steps, "]}", "END"]
        words += ["--schedule", SCHEDULE]
    file = f"{operator.command}.accel"
    lines.append(shlex.join([*words, "-o", file]))
    lines.append(shlex.join(["accel", "run", file, "--report", f"{operator.command}.html"]))
    return "\n".join(lines) + "\n"


def _option(one: Parameter | Joint, value: Any) -> list[str]:
    """An option of ``accel compile`` and its value."""
    option = one.options[-1]
    if isinstance(one, Joint):
        return [option, "x".join(map(str, value))]
    if one.kind is Kind.FLAG:
        return [option]
    if isinstance(value, tuple):
        text = one.kind.separator.join(map(str, value))
        return [f"{option}={text}"] if text.startswith("-") else [option, text]
    text = str(value)
    return [f"{option}={text}"] if text.startswith("-") else [option, text]
