"""A state as commands: what to type to get the same run without the studio."""

import json
import shlex
from typing import Any

from accel.compiler.mappings.mapping import AUTO
from accel.compiler.operators.parameter import Joint, Kind, Parameter
from accel.compiler.schedule.files import FORMAT, FORMAT_VERSION
from accel.studio.files import is_model
from accel.studio.state import State

SCHEDULE = "schedule.json"


def commands(state: State) -> str:
    """Lines for a shell that compile and run what a state shows.

    Raises:
        ShapeError: as :meth:`State.arguments`.
    """
    if state.file:
        return _of_file(state)
    operator = state.operator
    words = ["accel", "compile", operator.command]
    lines = list[str]()
    for name, value in _flat(state).items():
        if isinstance(value, list):
            lines.append(_saved(f"{name}.npy", value))
            words += [operator.spellings[name].options[-1], f"{name}.npy"]
        else:
            words += _option(operator.spellings[name], value)
    words += ["--config", state.machine]
    for name, setting in state.settings.items():
        words += ["--set", f"{name}={setting}"]
    if state.mapping != AUTO:
        words += ["--mapping", state.mapping]
    if state.steps is not None:
        steps = ",\n".join(f"  {json.dumps(step)}" for step in state.steps)
        head = f'{{"format": {json.dumps(FORMAT)}, "version": {FORMAT_VERSION}, "steps": ['
        lines += [f"cat > {SCHEDULE} << 'END'", head, steps, "]}", "END"]
        words += ["--schedule", SCHEDULE]
    file = f"{operator.command}.accel"
    lines.append(shlex.join([*words, "-o", file]))
    lines.append(shlex.join(["accel", "run", file, "--report", f"{operator.command}.html"]))
    return "\n".join(lines) + "\n"


def _of_file(state: State) -> str:
    """Of a network or a program."""
    settings = [word for name, value in state.settings.items() for word in ("--set", f"{name}={value}")]
    if not is_model(state.file):
        return shlex.join(["accel", "run", state.file, *settings, "--report", "run.html"]) + "\n"
    compiled = ["accel", "compile", "onnx", state.file, "--config", state.machine, *settings]
    lines = [[*compiled, "-o", "net.accel"], ["accel", "run", "net.accel", "--report", "net.html"]]
    return "".join(f"{shlex.join(words)}\n" for words in lines)


def _flat(state: State) -> dict[str, Any]:
    """The parameters as the command line has them, which knows no records but their fields."""
    records = {one.name for one in state.operator.records}
    found = dict[str, Any]()
    for name, value in state.arguments().items():
        if name in records:
            given = state.parameters[name].items()
            found |= {key: one for key, one in given if one is not None and one is not False}
        else:
            found[name] = value
    for name, value in found.items():
        one = state.operator.spellings[name]
        if isinstance(value, list) and (isinstance(one, Joint) or one.kind is not Kind.SCALES):
            found[name] = tuple(value)
    return found


def _saved(file: str, values: list[float]) -> str:
    """A line that writes numbers to a file of numpy's."""
    script = f"import numpy; numpy.save({file!r}, numpy.array({values}, numpy.float32))"
    return shlex.join(["python", "-c", script])


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
