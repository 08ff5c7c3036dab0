"""The rules of IF and WHILE of TensorFlow Lite.

With a constant condition, the operators of the chosen branch or of each iteration are imported. So a
recurrent layer over a fixed number of steps is unrolled, and its products run on the machine. Otherwise
subgraphs become If and Loop of ONNX, which ONNX Runtime executes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from accel.base.errors import GraphError
from accel.base.records import replace
from accel.formats.onnx_exporter import OPSET
from accel.formats.onnx_file import MICROSOFT, onnx, rename_captured
from accel.formats.onnx_foreign import encoded, to_initializer
from accel.formats.tflite_file import FileOperator
from accel.formats.tflite_importer import Scope, TfliteImporter
from accel.formats.tflite_registry import RULES, rule
from accel.formats.tflite_variable_rules import Variables, bind_variables, variables_of
from accel.graph.foreign_operator import Foreign, open_session
from accel.graph.graph import Graph
from accel.graph.graph_tensor import Array, Tensor
from accel.graph.movement_operators import Identity
from accel.rewriting.constant_rules import CONSTANT_FOLDING
from accel.rewriting.rule_application import simplify

MAX_UNROLLED = 512
"""Longer loops run in ONNX Runtime."""
MAX_UNROLLED_OPERATORS = 5_000
"""Of all iterations together."""
_INT64, _BOOL = 7, 9


def called_graphs(operator: FileOperator) -> list[int]:
    return list(operator.options.values()) if operator.kind in {"CALL_ONCE", "IF", "WHILE"} else []


class _Part(Struct):
    """A subgraph as a separate graph.

    Attributes:
        operands: tensors of the calling graph, for each input.
        given: positions of the arguments that are the first inputs.
        results: names of outputs that are no handles.
        variables: tensors of all variables, after the graph ran.
    """

    graph: Graph
    operands: Sequence[str]
    given: Sequence[int]
    results: Sequence[str]
    variables: Mapping[str, str]

    @property
    def macs(self) -> int:
        return sum(map(self.graph.macs, self.graph.nodes))


def _inlined(importer: TfliteImporter, index: int, arguments: Sequence[int]) -> TfliteImporter:
    with importer.context.entered(index) as file:
        child = TfliteImporter(file, importer.scope, importer.context)
        _bind(child, importer, arguments)
        child.take_all(RULES)
        child.results()
    return child


def _bind(
    child: TfliteImporter, parent: TfliteImporter, arguments: Sequence[int], varying: Sequence[int] = ()
) -> dict[int, str]:
    """Return the caller's tensors that became inputs."""
    places = child.file.inputs
    if len(places) != len(arguments):
        raise GraphError(f"it calls a graph of {len(places)} inputs with {len(arguments)}")
    given = {}
    for at, (place, outer) in enumerate(zip(places, arguments, strict=True)):
        name = child.bind(place, parent, outer, is_input=at in varying)
        if name is not None:
            given[at] = name
    return given


def _own_graph(
    importer: TfliteImporter,
    index: int,
    arguments: Sequence[int],
    used: Variables,
    varying: Sequence[int] | None = None,
) -> _Part:
    """Import a subgraph as a graph with the ``used`` variables as inputs and results.

    In a loop, ``varying`` arguments and variables become inputs even if constant.
    """
    with importer.context.entered(index) as file:
        child = TfliteImporter(file, Scope(), importer.context)
        given = _bind(child, importer, arguments, varying or ())
        more = bind_variables(child, importer, used, are_inputs=varying is not None)
        child.take_all(RULES)
        results = child.results()
    variables = {name: child.scope.variables[name] for name in used.tensors}
    outputs = list(dict.fromkeys([*results, *variables.values()]))
    return _Part(
        graph=simplify(child.builder.graph(f"graph {index}", outputs), [CONSTANT_FOLDING])[0],
        operands=[*given.values(), *more],
        given=list(given),
        results=results,
        variables=variables,
    )


# --- IF --------------------------------------------------------------------------------------------


@rule(1, "IF")
def _if(importer: TfliteImporter, operator: FileOperator) -> None:
    condition, *arguments = operator.inputs
    known = importer.known(condition)
    branches = [operator.options["then"], operator.options["other"]]
    if known is not None:
        if known.size != 1:
            raise GraphError(f"its condition is of shape {known.shape}; it must be one value")
        child = _inlined(importer, branches[0 if known.reshape(()) else 1], arguments)
        _take_results(importer, operator, child)
        return
    used = _used(importer, branches, arguments)
    parts = [_own_graph(importer, index, arguments, used) for index in branches]
    operands = list(dict.fromkeys([importer.plain(condition), *parts[0].operands, *parts[1].operands]))
    names = {name: f"x{n}" for n, name in enumerate(operands)}
    results = [[*part.results, *part.variables.values()] for part in parts]
    if len(results[0]) != len(results[1]):
        raise GraphError(f"its branches have {len(results[0])} and {len(results[1])} results")
    tensors = []
    for pair in zip(*results, strict=True):
        one, other = (part.graph.tensors[name] for part, name in zip(parts, pair, strict=True))
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            raise GraphError(
                f"its branches return {one.dtype}{list(one.shape)} and {other.dtype}{list(other.shape)}; "
                "both must be the same"
            )
        tensors.append(one)
    prefix = operator_name(importer, operator)
    graphs = [
        _branch(part, made, f"{prefix}/{label}", names)
        for part, made, label in zip(parts, results, ("then", "else"), strict=True)
    ]
    inputs = [names[importer.plain(condition)]]

    def nodes(outputs: Sequence[str]) -> list[Any]:
        return [onnx().helper.make_node("If", inputs, outputs, then_branch=graphs[0], else_branch=graphs[1])]

    macs = max(part.macs for part in parts)
    _emit(importer, operator, "If", nodes, {}, operands, tensors, list(used.tensors), macs)


def operator_name(importer: TfliteImporter, operator: FileOperator) -> str:
    named = [importer.file.tensors[place].name for place in operator.outputs]
    return importer.builder.fresh(f"{named[0] if named else operator.kind}/{operator.kind.lower()}")


def _used(importer: TfliteImporter, indices: Sequence[int], arguments: Sequence[int]) -> Variables:
    found = Variables()
    for index in indices:
        file = importer.context.subgraph(index)
        handles = {
            place: importer.handles[outer]
            for place, outer in zip(file.inputs, arguments, strict=False)
            if outer in importer.handles
        }
        one = variables_of(importer.context, file, handles)
        found.tensors = {**one.tensors, **found.tensors}
        found.assigned |= one.assigned
    return found


def _branch(part: _Part, results: Sequence[str], prefix: str, names: Mapping[str, str]) -> Any:
    """Return a branch of If. It reads its operands from outside."""
    inputs = [names[name] for name in part.operands]
    nodes, constants, renamed = _embedded(part.graph, prefix, inputs)
    outputs = [f"{prefix}/result {at}" for at in range(len(results))]
    make = onnx().helper
    nodes += [
        make.make_node("Identity", [renamed[name]], [output])
        for name, output in zip(results, outputs, strict=True)
    ]
    declared = [
        _declared(replace(part.graph.tensors[name], name=output))
        for name, output in zip(results, outputs, strict=True)
    ]
    return make.make_graph(nodes, prefix, [], declared, constants)


def _declared(tensor: Tensor) -> Any:
    helper = onnx().helper
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype))
    return helper.make_tensor_value_info(tensor.name, dtype, tensor.shape)


def _embedded(
    graph: Graph, prefix: str, inputs: Sequence[str]
) -> tuple[list[Any], list[Any], dict[str, str]]:
    """Return nodes, constants and new names for a larger graph."""
    from accel.formats.onnx_export import export_onnx  # slow to import

    model = onnx().load_from_string(export_onnx(graph, graph.outputs)).graph
    names = dict(zip(graph.inputs, inputs, strict=True)) | {"": ""}
    for one in (
        *(name for node in model.node for name in node.output),
        *(one.name for one in model.initializer),
    ):
        names.setdefault(one, f"{prefix}/{one}")
    for node in model.node:
        node.input[:] = [names[one] for one in node.input]
        node.output[:] = [names[one] for one in node.output]
        node.name = f"{prefix}/{node.name}"
        for attribute in node.attribute:
            if attribute.HasField("g"):
                rename_captured(attribute.g, names)
    for one in model.initializer:
        one.name = names[one.name]
    return list(model.node), list(model.initializer), names


# --- WHILE -----------------------------------------------------------------------------------------


@rule(0, "WHILE")
def _while(importer: TfliteImporter, operator: FileOperator) -> None:
    if len(operator.inputs) != len(operator.outputs):
        raise GraphError(f"it has {len(operator.inputs)} inputs and {len(operator.outputs)} outputs")
    if not _unroll(importer, operator):
        _loop(importer, operator)


def _unroll(importer: TfliteImporter, operator: FileOperator) -> bool:
    """Import each iteration, or return False if a condition varies."""
    before = dict(importer.scope.variables)
    caller, values = importer, list(operator.inputs)
    indices = [operator.options["condition"], operator.options["body"]]
    count = sum(len(importer.context.subgraph(index).operators) for index in indices)
    for _ in range(min(MAX_UNROLLED, MAX_UNROLLED_OPERATORS // max(1, count))):
        asked = _inlined(caller, operator.options["condition"], values)
        if len(asked.file.outputs) != 1:
            raise GraphError(f"its condition has {len(asked.file.outputs)} results; it must have one")
        known = asked.known(asked.file.outputs[0])
        if known is None or known.size != 1:
            break
        if not known.reshape(()):
            _take_values(importer, operator, caller, values)
            return True
        caller = _inlined(caller, operator.options["body"], values)
        values = list(caller.file.outputs)
    importer.scope.restore(before, importer.context.assigned)
    return False


class _Loop(Struct):
    """A WHILE that becomes a Loop of ONNX.

    Attributes:
        asked: the condition.
        places: positions of the arguments that the body changes.
        names: of the variables, which follow these as values of the loop.
        first: the calling graph's tensors before the first iteration.
        results: the body's tensors after an iteration.
    """

    asked: _Part
    body: _Part
    places: Sequence[int]
    names: Sequence[str]
    first: Sequence[str]
    results: Sequence[str]

    @property
    def tensors(self) -> list[Tensor]:
        return [self.body.graph.tensors[name] for name in self.results]

    def inputs(self, part: _Part, values: Sequence[str], outside: Mapping[str, str]) -> list[str]:
        by_place = dict(zip(self.places, values, strict=False))
        found = [
            by_place[at] if at in by_place else outside[name]
            for at, name in zip(part.given, part.operands, strict=False)
        ]
        return [*found, *values[len(self.places) :]]


def _loop(importer: TfliteImporter, operator: FileOperator) -> None:
    loop = _parts_of_loop(importer, operator)
    for one, name in zip(loop.tensors, loop.first, strict=True):
        source = importer.builder.tensors[name]
        if (source.shape, source.dtype) != (one.shape, one.dtype):
            raise GraphError(
                f"it changes {source.dtype}{list(source.shape)} to {one.dtype}{list(one.shape)} in an "
                "iteration; both must be the same"
            )
    known = importer.builder.constants
    read = dict.fromkeys([*loop.first, *loop.asked.operands, *loop.body.operands])
    operands = [name for name in read if name not in known]
    if not operands:
        raise GraphError(f"it computes with constants only, and does not end in {MAX_UNROLLED} iterations")
    prefix = operator_name(importer, operator)
    constants = {f"{prefix}/first {at}": known[name] for at, name in enumerate(loop.first) if name in known}
    outside = {name: f"x{n}" for n, name in enumerate(operands)}
    outside |= {name: f"{prefix}/first {at}" for at, name in enumerate(loop.first) if name in known}
    before, more = _condition_and_body(loop, prefix, outside)
    constants |= more
    *start, last = before

    def nodes(outputs: Sequence[str]) -> list[Any]:
        copy = onnx().NodeProto()
        copy.CopyFrom(last)
        copy.output[:] = outputs
        return [*start, copy]

    chosen = replace(operator, outputs=tuple(operator.outputs[at] for at in loop.places))
    _emit(importer, chosen, "Loop", nodes, constants, operands, loop.tensors, loop.names, loop.body.macs)
    others = [at for at in range(len(operator.inputs)) if at not in loop.places]
    unchanged = replace(operator, outputs=tuple(operator.outputs[at] for at in others))
    _take_values(importer, unchanged, importer, [operator.inputs[at] for at in others])


def _parts_of_loop(importer: TfliteImporter, operator: FileOperator) -> _Loop:
    arguments = operator.inputs
    indices = [operator.options["condition"], operator.options["body"]]
    used = _used(importer, indices, arguments)
    file = importer.context.subgraph(indices[1])
    if not len(file.inputs) == len(file.outputs) == len(arguments):
        raise GraphError(f"its body has {len(file.inputs)} inputs and {len(file.outputs)} results")
    pairs = enumerate(zip(file.inputs, file.outputs, strict=True))
    places = [
        at for at, (source, result) in pairs if source != result and arguments[at] not in importer.handles
    ]
    asked, body = (_own_graph(importer, index, arguments, used, places) for index in indices)
    if len(asked.results) != 1 or asked.graph.tensors[asked.results[0]].dtype != "bool":
        raise GraphError("its condition must have one result of bool")
    if set(asked.variables.values()) - set(asked.graph.inputs):
        raise GraphError("its condition assigns to a variable; it must not")
    values = [place for place in file.outputs if file.tensors[place].dtype != "resource"]
    made = dict(zip(values, body.results, strict=True))
    variables = importer.scope.variables
    return _Loop(
        asked=asked,
        body=body,
        places=places,
        names=list(used.tensors),
        first=[
            *(importer.plain(arguments[at]) for at in places),
            *(variables[name] for name in used.tensors),
        ],
        results=[*(made[file.outputs[at]] for at in places), *body.variables.values()],
    )


def _condition_and_body(
    loop: _Loop, prefix: str, outside: Mapping[str, str]
) -> tuple[list[Any], dict[str, Array]]:
    helper = onnx().helper
    first = [outside[name] for name in loop.first]
    carried = [f"{prefix}/value {at}" for at in range(len(first))]
    outputs = [f"{prefix}/next {at}" for at in range(len(first))]
    continues, axes = f"{prefix}/continues", f"{prefix}/no axes"
    before, some, start = _embedded(
        loop.asked.graph, f"{prefix}/start", loop.inputs(loop.asked, first, outside)
    )
    inputs = loop.inputs(loop.body, carried, outside)
    nodes, more, inside = _embedded(loop.body.graph, f"{prefix}/body", inputs)
    after = [inside[name] for name in loop.results]
    inputs = loop.inputs(loop.asked, after, outside)
    asking, rest, end = _embedded(loop.asked.graph, f"{prefix}/condition", inputs)
    condition = loop.asked.results[0]
    nodes += [*asking, helper.make_node("Reshape", [end[condition], axes], [continues])]
    nodes += [
        helper.make_node("Identity", [source], [output])
        for source, output in zip(after, outputs, strict=True)
    ]
    scalars = [
        helper.make_tensor_value_info(f"{prefix}/iteration", _INT64, []),
        helper.make_tensor_value_info(f"{prefix}/went on", _BOOL, []),
        helper.make_tensor_value_info(continues, _BOOL, []),
    ]
    declared = [
        [_declared(replace(one, name=name)) for one, name in zip(loop.tensors, names, strict=True)]
        for names in (carried, outputs)
    ]
    body = helper.make_graph(
        nodes, prefix, [*scalars[:2], *declared[0]], [scalars[2], *declared[1]], [*more, *rest]
    )
    starts = f"{prefix}/starts"
    made = [
        *before,
        helper.make_node("Reshape", [start[condition], axes], [starts]),
        helper.make_node("Loop", ["", starts, *first], outputs, body=body),
    ]
    constants = {one.name: onnx().numpy_helper.to_array(one) for one in some}
    return made, constants | {axes: np.zeros(0, np.int64)}


# --- results ---------------------------------------------------------------------------------------


def _take_results(importer: TfliteImporter, operator: FileOperator, child: TfliteImporter) -> None:
    if len(child.file.outputs) != len(operator.outputs):
        raise GraphError(f"it has {len(operator.outputs)} results; its graph has {len(child.file.outputs)}")
    _take_values(importer, operator, child, child.file.outputs)


def _take_values(
    importer: TfliteImporter, operator: FileOperator, source: TfliteImporter, places: Sequence[int]
) -> None:
    """Use the results of the imported graph for an operator."""
    for output, place in zip(operator.outputs, places, strict=True):
        if place in source.handles:
            importer.handles[output] = source.handles[place]
            continue
        name = source.plain(place)
        tensor = importer.builder.tensors[name]
        declared = importer.file.tensors[output]
        if (len(declared.shape), declared.dtype) != (len(tensor.shape), tensor.dtype):
            raise GraphError(
                f"its result is {tensor.dtype}{list(tensor.shape)}; the file has "
                f"{declared.dtype}{list(declared.shape)}"
            )
        if name in importer.builder.constants or output not in importer.file.outputs:
            importer.rename(output, name)
        else:
            importer.emit(replace(operator, outputs=(output,)), Identity(), [name])


def _emit(
    importer: TfliteImporter,
    operator: FileOperator,
    title: str,
    nodes: Any,
    constants: Mapping[str, Array],
    operands: Sequence[str],
    tensors: Sequence[Tensor],
    variables: Sequence[str],
    macs: int,
) -> None:
    """Add a node of ONNX Runtime for each result, the variables last.

    ``nodes`` returns ONNX nodes that read the operands as ``x0``, ``x1`` and so on.
    """
    builder = importer.builder
    places = [place for place in operator.outputs if importer.file.tensors[place].dtype != "resource"]
    if len(places) + len(variables) != len(tensors):
        raise GraphError(f"it has {len(places)} results; its graph has {len(tensors) - len(variables)}")
    inputs = {
        f"x{n}": (builder.tensors[name].dtype, builder.tensors[name].shape) for n, name in enumerate(operands)
    }
    initializers = [to_initializer(values, name) for name, values in constants.items()]
    for at, tensor in enumerate(tensors):
        outputs = [f"unused{n}" for n in range(len(tensors))]
        outputs[at] = "y"
        model = encoded(nodes(outputs), initializers, inputs, ["y"], {"": OPSET, MICROSOFT: 1})
        if not at:
            open_session(model)
        what = Foreign(
            title=title,
            model=model,
            sizes=tensor.shape,
            dtype=tensor.dtype,
            multiplications=0 if at else macs,
        )
        if at < len(places):
            importer.emit(replace(operator, outputs=(places[at],)), what, operands)
        else:
            name = variables[at - len(places)]
            importer.scope.variables[name] = builder.emit(
                what, operands, builder.fresh(name), dtype=tensor.dtype, quantization=tensor.quantization
            )
