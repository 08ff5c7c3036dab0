"""TensorFlow Lite's variables, which keep a value between runs.

A variable that a run assigns becomes an input and an output of the graph. One that only CALL_ONCE assigns is
a constant.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from accel.base.errors import GraphError
from accel.base.records import replace
from accel.formats.tflite_file import FileOperator, FileTensor, TfliteFile
from accel.formats.tflite_importer import ModelContext, Scope, TfliteImporter
from accel.formats.tflite_registry import RULES, rule
from accel.graph.graph import State
from accel.graph.graph_tensor import Array, Tensor
from accel.graph.movement_operators import Identity


class Variables(Struct):
    """The variables that a graph and called graphs use.

    Attributes:
        tensors: the first tensor read from or assigned to each.
        assigned: those to which an operator assigns.
    """

    tensors: dict[str, FileTensor] = field(default_factory=dict)
    assigned: set[str] = field(default_factory=set)


def variables_of(context: ModelContext, file: TfliteFile, handles: Mapping[int, str]) -> Variables:
    found = Variables()
    _collect(context, file, dict(handles), found, set())
    return found


def _collect(
    context: ModelContext, file: TfliteFile, handles: dict[int, str], found: Variables, seen: set[object]
) -> None:
    for one in file.operators:
        handle = handles.get(one.inputs[0]) if one.inputs else None
        if one.kind == "VAR_HANDLE" and one.outputs:
            handles[one.outputs[0]] = _variable_name(one)
        elif one.kind == "READ_VARIABLE" and handle and one.outputs:
            found.tensors.setdefault(handle, file.tensors[one.outputs[0]])
        elif one.kind == "ASSIGN_VARIABLE" and handle and len(one.inputs) > 1 and one.inputs[1] >= 0:
            found.tensors.setdefault(handle, file.tensors[one.inputs[1]])
            found.assigned.add(handle)
        elif one.kind in {"IF", "WHILE"}:
            given = one.inputs[1:] if one.kind == "IF" else one.inputs
            for index in one.options.values():
                if not 1 <= index <= len(context.subgraphs):
                    continue
                called = context.subgraphs[index - 1]
                inner = {
                    place: handles[outer]
                    for place, outer in zip(called.inputs, given, strict=False)
                    if outer in handles
                }
                key = (index, frozenset(inner.items()))
                if key not in seen:
                    seen.add(key)
                    _collect(context, called, inner, found, seen)


def _variable_name(operator: FileOperator) -> str:
    container, name = (
        (operator.options[key] or b"").decode("utf-8", "replace") for key in ("container", "name")
    )
    return f"{container}/{name}" if container else name or "variable"


def variable(importer: TfliteImporter, name: str, like: FileTensor) -> str:
    """Return the variable's current tensor. ``like`` has its quantization."""
    scope, builder = importer.scope, importer.builder
    if name in scope.variables:
        return scope.variables[name]
    initial = importer.context.initial.get(name)
    if initial is None:
        raise GraphError(f"variable {name!r} has no value before it is read; CALL_ONCE must assign one")
    quantization = importer.quantization(like) if like.dtype == initial.dtype.name else None
    made = builder.fresh(name)
    if name in importer.context.assigned:
        builder.input(
            Tensor(name=made, shape=initial.shape, dtype=initial.dtype.name, quantization=quantization)
        )
        scope.states[name] = made
    else:
        builder.constant(made, initial, quantization)
    scope.variables[name] = made
    return made


def next_states(importer: TfliteImporter) -> tuple[list[State], dict[str, Array]]:
    """Add an output for each variable's next value, and return states and first values."""
    builder, scope = importer.builder, importer.scope
    states, initial = [], {}
    for name, source in scope.states.items():
        now = builder.tensors[scope.variables[name]]
        output = builder.emit(
            Identity(),
            [now.name],
            builder.fresh(f"{source}/next"),
            dtype=now.dtype,
            quantization=now.quantization,
        )
        values = importer.context.initial[name]
        first = builder.fresh(f"{source}/first") if values.any() else None
        if first is not None:
            initial[first] = values
        states.append(State(output=output, input=source, initial=first))
    return states, initial


@rule(0, "VAR_HANDLE")
def _handle(importer: TfliteImporter, operator: FileOperator) -> None:
    importer.handles[operator.outputs[0]] = _variable_name(operator)


def _handle_of(importer: TfliteImporter, place: int) -> str:
    if place not in importer.handles:
        raise GraphError(f"tensor {importer.file.tensors[place].name!r} is not a variable; it must be one")
    return importer.handles[place]


@rule(1, "READ_VARIABLE")
def _read(importer: TfliteImporter, operator: FileOperator) -> None:
    place = operator.outputs[0]
    name = _handle_of(importer, operator.inputs[0])
    now = importer.builder.tensors[variable(importer, name, importer.file.tensors[place])]
    if now.name in importer.builder.constants:
        importer.rename(place, now.name)
    else:
        importer.emit(operator, Identity(), [now.name])


@rule(2, "ASSIGN_VARIABLE")
def _assign(importer: TfliteImporter, operator: FileOperator) -> None:
    name, value = _handle_of(importer, operator.inputs[0]), importer.plain(operator.inputs[1])
    importer.scope.variables[name] = value


@rule(0, "CALL_ONCE")
def _call_once(importer: TfliteImporter, operator: FileOperator) -> None:
    context = importer.context
    with context.entered(operator.options["graph"]) as file:
        if file.inputs:
            raise GraphError(f"CALL_ONCE calls a graph with {len(file.inputs)} inputs; it must have none")
        child = TfliteImporter(file, Scope(), context)
        child.take_all(RULES)
    for name, made in child.scope.variables.items():
        values = child.builder.constants.get(made)
        if values is None:
            raise GraphError(f"CALL_ONCE computes the value of variable {name!r}; it must be a constant")
        context.initial[name] = values


def bind_variables(
    child: TfliteImporter, parent: TfliteImporter, used: Variables, *, are_inputs: bool
) -> Sequence[str]:
    """Give a separate graph its variables, as inputs, or as constants unless ``are_inputs``.

    Returns:
        The calling graph's tensors for these inputs.
    """
    given = []
    for name, like in used.tensors.items():
        outer = parent.builder.tensors[variable(parent, name, like)]
        own = child.builder.fresh(name)
        values = parent.builder.constants.get(outer.name)
        if values is not None and not are_inputs:
            child.builder.constant(own, values, outer.quantization)
        else:
            child.builder.input(replace(outer, name=own))
            given.append(outer.name)
        child.scope.variables[name] = own
    return given
