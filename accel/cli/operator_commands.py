"""Commands of ``accel compile`` and ``accel tune`` for operators."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
from click.core import ParameterSource

from accel.base.errors import nearest
from accel.base.npy_arrays import read_npy
from accel.cli.declared_options import numbers_parser
from accel.compiler.expr.quantization import ORDERS
from accel.compiler.expr.quantized_expressions import check_scales
from accel.compiler.expr.scalar_expressions import BYTES
from accel.compiler.expr.table_expressions import check_entries
from accel.compiler.operators.declared_operator import CommandFamily, Operator
from accel.compiler.operators.operator_parameters import JointParameter, Parameter, ParameterKind
from accel.compiler.ops.quantized_layers import RESIDUAL_OPERATIONS
from accel.compiler.plans.planner import TileSide

Run = Callable[[Operator, dict[str, Any], dict[str, Any]], int]
"""Gets an operator, its arguments, and shared options."""

_TYPES: dict[ParameterKind, Any] = {
    ParameterKind.NUMBER: click.FLOAT,
    ParameterKind.TYPE: click.Choice(BYTES),
    ParameterKind.ORDER: click.Choice(ORDERS),
    ParameterKind.RESIDUAL_OPERATION: click.Choice(RESIDUAL_OPERATIONS),
}

_SCHEDULING = (
    "Without --schedule, an analytical model of the machine chooses tiles, loop order and virtual threads. "
    "--explain shows the compared plans. With --explain or --save-schedule, only -o writes a program."
)


def operator_command(
    operator: Operator,
    shared: Sequence[click.Parameter],
    run: Run,
    group: str = "compile",
    closing: str = _SCHEDULING,
    examples: Sequence[str] | None = None,
) -> click.Command:
    """Return ``accel GROUP OPERATOR``. The help ends with ``closing`` and ``examples``."""

    def call(**values: Any) -> int:
        given, rest = _divided(values, shared)
        _check_needed(operator, given)
        return run(operator, given, rest)

    options = [*_options(operator), *shared]
    texts = [operator.summary, operator.text, closing]
    shown = operator.examples if examples is None else examples
    return _command(operator.command, options, call, texts, shown, group)


def family_command(
    family: CommandFamily, operators: Sequence[Operator], shared: Sequence[click.Parameter], run: Run
) -> click.Command:
    """Return a command of several operators. Each also has its own."""
    by_value = {one.variant.value: one for one in operators if one.variant is not None}

    def call(**values: Any) -> int:
        value = values.pop(family.option.lstrip("-"))
        operator, context = by_value[value], click.get_current_context()
        given, rest = _divided(values, shared)
        for name in [one for one in given if not operator.parameters_named(one)]:
            if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                option = known[name].opts[-1]
                raise click.UsageError(f"{option} is given; {family.option} {value} takes none.", context)
            del given[name]
        _check_needed(operator, given)
        return run(operator, given, rest)

    known: dict[str, click.Option] = {}
    for operator in operators:
        for option in _options(operator, required=False):
            known.setdefault(str(option.name), option)
    choice = click.Option(
        [family.option],
        type=click.Choice(list(by_value)),
        required=True,
        help="; ".join(f"{value}: as {one.command}" for value, one in by_value.items()) + ".",
    )
    examples = [
        example.replace(one.command, f"{family.command} {family.option} {value}")
        for value, one in by_value.items()
        for example in one.examples
    ]
    texts = [family.summary, *dict.fromkeys(one.text for one in operators), _SCHEDULING]
    return _command(family.command, [choice, *known.values(), *shared], call, texts, examples)


def _command(
    name: str,
    options: Sequence[click.Parameter],
    call: Callable[..., int],
    paragraphs: Sequence[str],
    examples: Sequence[str],
    group: str = "compile",
) -> click.Command:
    lines = "\n".join(f"  accel {group} {example}" for example in examples)
    text = "\n\n".join([*paragraphs, f"\b\nExample:\n{lines}"])
    return click.Command(
        name,
        params=list(options),
        callback=call,
        help=text,
        short_help=paragraphs[0],
        context_settings={"token_normalize_func": str.lower},  # --IC means --ic
    )


def _divided(
    values: Mapping[str, Any], shared: Sequence[click.Parameter]
) -> tuple[dict[str, Any], dict[str, Any]]:
    names = {option.name for option in shared}
    given = {name: value for name, value in values.items() if name not in names and value is not None}
    return given, {name: value for name, value in values.items() if name in names}


def _check_needed(operator: Operator, given: Mapping[str, Any]) -> None:
    found = set().union(*(operator.parameters_named(name) for name in given))
    for one in operator.parameters:
        if operator.is_needed(one) and one.name not in found:
            joint = next((joint for joint in operator.joint_parameters if one.name in joint.names), one)
            raise click.UsageError(f"Missing option '{joint.options[0]}'.", click.get_current_context())


def _options(operator: Operator, *, required: bool = True) -> list[click.Option]:
    joined = {name: joint for joint in operator.joint_parameters for name in joint.names}
    found: dict[str, click.Option] = {}
    for one in operator.parameters:
        joint = joined.get(one.name)
        if joint is not None and joint.name not in found:
            found[joint.name] = _joint_option(joint)
        if one.kind is ParameterKind.RECORD:
            found |= {field.name: _field_option(field) for field in one.fields}
        else:
            found[one.name] = _option(operator, one, required=required and joint is None)
    return list(found.values())


def _joint_option(joint: JointParameter) -> click.Option:
    return click.Option(
        [*joint.options, joint.name],
        metavar=joint.metavar,
        callback=numbers_parser(joint.metavar, "x", range(1, len(joint.names) + 1)),
        help=joint.text,
    )


def _field_option(field: Parameter) -> click.Option:
    names = [*field.options, field.name]
    text = field.text + (f"  [default: {field.default_text}]" if field.default_text else "")
    if field.kind is ParameterKind.FLAG:
        return click.Option(names, is_flag=True, help=text)
    if field.kind is ParameterKind.BOUNDS:
        parser = numbers_parser(field.metavar or "", field.kind.separator, field.kind.counts)
        return click.Option(names, metavar=field.metavar, callback=parser, help=text)
    if field.kind is ParameterKind.SCALES:
        return click.Option(names, metavar=field.metavar, callback=_scales, help=text)
    if field.kind is ParameterKind.TABLE:
        return click.Option(names, metavar=field.metavar, callback=_table, help=text)
    return click.Option(names, type=_TYPES.get(field.kind, int), help=text)


def _scales(_: click.Context, __: click.Parameter, value: str | None) -> float | list[float] | None:
    if value is None:
        return None
    if not value.endswith(".npy"):
        try:
            return float(value)
        except ValueError:
            raise click.BadParameter(f"{value!r} is not a number and not an .npy file") from None
    return list(check_scales(read_npy(f"scale from {value!r}", value)))


def _table(_: click.Context, __: click.Parameter, value: str | None) -> list[int] | None:
    if value is None:
        return None
    entries = read_npy(f"table from {value!r}", value)
    check_entries(entries)
    return [int(entry) for entry in entries]


def _several(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...] | None:
    return values or None


def _option(operator: Operator, parameter: Parameter, *, required: bool) -> click.Option:
    names = [*parameter.options, parameter.name]
    if parameter.kind is ParameterKind.FLAG:
        return click.Option(names, is_flag=True, help=parameter.text)
    needed = operator.is_needed(parameter)
    default = None if needed else operator.default_of(parameter)
    text = parameter.text + (f"  [default: {parameter.default_text}]" if parameter.default_text else "")
    if parameter.kind is ParameterKind.OPERATIONS:
        return click.Option(names, metavar=parameter.metavar, multiple=True, callback=_several, help=text)
    if parameter.kind is ParameterKind.INTEGER:
        return click.Option(
            names,
            type=int,
            required=required and needed,
            default=default,
            show_default=default is not None,
            help=text,
        )
    if parameter.kind in (ParameterKind.TYPE, ParameterKind.ORDER):
        return click.Option(names, type=_TYPES[parameter.kind], default=default, show_default=True, help=text)
    form, kind = parameter.metavar or "", parameter.kind
    return click.Option(
        names,
        metavar=form,
        callback=numbers_parser(form, kind.separator, kind.counts),
        required=required and needed,
        default=None if default is None else str(default),
        show_default=default is not None,
        help=text,
    )


def tile_sides(sides: Sequence[TileSide], text: str) -> dict[str, int]:
    """Parse ``--tile``: ``64x128`` for the first sides, or ``m=64,k=32``.

    Raises:
        click.BadParameter: wrong form, or unknown side.
    """
    order = "x".join(side.short_name.upper() for side in sides)
    wrong = f"{text!r} is not of the form {order}, or {sides[0].short_name}=N,..."
    numbers = text.lower().split("x")
    if all(re.fullmatch(r"\s*[0-9]{1,9}\s*", part) for part in numbers) and len(numbers) <= len(sides):
        return {side.key: int(part) for side, part in zip(sides, numbers, strict=False)}
    known = {name: side.key for side in sides for name in (side.short_name, side.key)}
    found: dict[str, int] = {}
    for part in text.lower().split(","):
        name, _, number = (piece.strip() for piece in part.partition("="))
        if not re.fullmatch(r"[0-9]{1,9}", number):
            raise _bad_tile(wrong)
        if name not in known:
            raise _bad_tile(f"{name!r} is not a side; {nearest(name, [side.short_name for side in sides])}")
        if known[name] in found:
            raise _bad_tile(f"{name} is given twice")
        found[known[name]] = int(number)
    return found


def _bad_tile(text: str) -> click.BadParameter:
    return click.BadParameter(text, click.get_current_context(), param_hint="'--tile'")
