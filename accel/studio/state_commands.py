"""A state as shell commands."""

import json
import shlex
from typing import Any

from accel.compiler.mappings.mapping import AUTO
from accel.compiler.operators.operator_parameters import JointParameter, Parameter, ParameterKind
from accel.compiler.schedule.schedule_files import FORMAT, FORMAT_VERSION
from accel.studio.studio_files import is_model
from accel.studio.studio_state import StudioState

SCHEDULE_FILE = "schedule.json"


def commands(state: StudioState) -> str:
    """Return commands that compile and run a state."""
    if state.file:
        return _file_commands(state)
    operator = state.operator
    words = ["accel", "compile", operator.command]
    lines = list[str]()
    for name, value in _option_values(state).items():
        if isinstance(value, list):
            lines.append(_save_line(f"{name}.npy", value))
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
        lines += [f"cat > {SCHEDULE_FILE} << 'END'", head, steps, "]}", "END"]
        words += ["--schedule", SCHEDULE_FILE]
    file = f"{operator.command}.accel"
    lines.append(shlex.join([*words, "-o", file]))
    lines.append(shlex.join(["accel", "run", file, "--report", f"{operator.command}.html"]))
    return "\n".join(lines) + "\n"


def _file_commands(state: StudioState) -> str:
    settings = [word for name, value in state.settings.items() for word in ("--set", f"{name}={value}")]
    if not is_model(state.file):
        return shlex.join(["accel", "run", state.file, *settings, "--report", "run.html"]) + "\n"
    compiled = ["accel", "compile", "onnx", state.file, "--config", state.machine, *settings]
    lines = [[*compiled, "-o", "net.accel"], ["accel", "run", "net.accel", "--report", "net.html"]]
    return "".join(f"{shlex.join(words)}\n" for words in lines)


def _option_values(state: StudioState) -> dict[str, Any]:
    records = {one.name for one in state.operator.records}
    found = dict[str, Any]()
    for name, value in state.arguments().items():
        if name in records:
            record = state.parameters[name].items()
            found |= {key: one for key, one in record if one is not None and one is not False}
        else:
            found[name] = value
    for name, value in found.items():
        one = state.operator.spellings[name]
        is_file = not isinstance(one, JointParameter) and one.kind in (
            ParameterKind.SCALES,
            ParameterKind.TABLE,
        )
        if isinstance(value, list) and not is_file:
            found[name] = tuple(value)
    return found


def _save_line(file: str, values: list[float]) -> str:
    dtype = "int16" if all(isinstance(value, int) for value in values) else "float32"
    script = f"import numpy; numpy.save({file!r}, numpy.array({values}, numpy.{dtype}))"
    return shlex.join(["python", "-c", script])


def _option(one: Parameter | JointParameter, value: Any) -> list[str]:
    option = one.options[-1]
    if isinstance(one, JointParameter):
        return [option, "x".join(map(str, value))]
    if one.kind is ParameterKind.FLAG:
        return [option]
    if isinstance(value, tuple):
        text = one.kind.separator.join(map(str, value))
        return [f"{option}={text}"] if text.startswith("-") else [option, text]
    text = str(value)
    return [f"{option}={text}"] if text.startswith("-") else [option, text]
