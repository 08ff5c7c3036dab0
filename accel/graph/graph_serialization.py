"""Graphs as plain data, without values of constants."""

import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from accel.base.errors import GraphError
from accel.base.records import as_dict, field_names, replace
from accel.graph import (
    elementwise_operators,
    foreign_operator,
    movement_operators,
    pooling_operators,
    product_operators,
)
from accel.graph.graph import Graph, Node, State, build_graph
from accel.graph.graph_operator import Operator
from accel.graph.graph_state import with_states
from accel.graph.graph_tail import Tail
from accel.graph.graph_tensor import Array, Quantization, Tensor
from accel.graph.window_geometry import Windows

T = TypeVar("T")


def _operators() -> Iterator[type[Operator]]:
    modules = (
        elementwise_operators,
        foreign_operator,
        movement_operators,
        pooling_operators,
        product_operators,
    )
    for module in modules:
        for one in vars(module).values():
            if isinstance(one, type) and issubclass(one, Operator) and one.__module__ == module.__name__:
                yield one


OPERATORS: Mapping[str, type[Operator]] = {
    one.__name__: one for one in _operators() if not getattr(one, "__abstractmethods__", None)
}
"""By class name, as in files."""


LATER_ATTRIBUTES: Sequence[tuple[str, Any]] = (
    ("in_float32", False),
    ("entries", []),
    ("multiplications", 0),
    ("sum_scales", []),
)
"""Attributes that older releases do not know, with the values for which files omit them."""


def graph_to_data(graph: Graph) -> dict[str, Any]:
    """Convert a graph."""
    tail = {} if graph.tail is None else {"tail": as_dict(graph.tail)}
    states = {"states": [as_dict(one) for one in graph.states]} if graph.states else {}
    return (
        tail
        | states
        | {
            "name": graph.name,
            "tensors": [_tensor_to_data(one) for one in graph.tensors.values()],
            "constants": list(graph.constants),
            "nodes": [
                {
                    "name": node.name,
                    "operator": type(node.operator).__name__,
                    "attributes": _attributes(node.operator),
                    "inputs": list(node.inputs),
                    "output": node.output,
                }
                for node in graph.nodes
            ],
            "inputs": list(graph.inputs),
            "outputs": list(graph.outputs),
        }
    )


def graph_from_data(data: object, read: Callable[[Tensor], Array]) -> Graph:
    try:
        return _graph(data, read)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise GraphError(f"the graph is damaged: {reprlib.repr(error)}") from None


def _graph(data: Any, read: Callable[[Tensor], Array]) -> Graph:
    tensors = {one.name: one for one in map(_tensor, _list(data["tensors"]))}
    constants = {name: read(tensors[name]) for name in _texts(data["constants"])}
    graph = build_graph(
        _text(data["name"]),
        tensors.values(),
        constants,
        [_node(one) for one in _list(data["nodes"])],
        _texts(data["inputs"]),
        _texts(data["outputs"]),
    )
    if "tail" in data:
        graph = replace(graph, tail=_tail(data["tail"], graph))
    return (
        with_states(graph, [_state(one) for one in _list(data["states"])], constants)
        if "states" in data
        else graph
    )


def _state(data: Any) -> State:
    initial = data["initial"]
    return State(
        output=_text(data["output"]),
        input=_text(data["input"]),
        initial=None if initial is None else _text(initial),
    )


def _tail(data: Any, graph: Graph) -> Tail:
    tail = Tail(
        kinds=tuple(_texts(data["kinds"])),
        model=_text(data["model"]),
        inputs=tuple(_texts(data["inputs"])),
        outputs=tuple(_texts(data["outputs"])),
    )
    for name in tail.inputs:
        if name not in {*graph.inputs, *graph.outputs}:
            raise GraphError(f"the graph's tail reads {name!r}, which is neither an input nor an output")
    return tail


def _tensor_to_data(tensor: Tensor) -> dict[str, Any]:
    found: dict[str, Any] = {"name": tensor.name, "shape": list(tensor.shape), "dtype": tensor.dtype}
    one = tensor.quantization
    if one is not None:
        found |= {"scale": list(one.scale), "zero": list(one.zero), "axis": one.axis}
    return found


def _tensor(data: Any) -> Tensor:
    quantization = None
    if "scale" in data:
        axis = data["axis"]
        quantization = Quantization(
            scale=tuple(float(one) for one in _list(data["scale"])),
            zero=_integers(data["zero"]),
            axis=None if axis is None else _integer(axis),
        )
    return Tensor(
        name=_text(data["name"]),
        shape=_integers(data["shape"]),
        dtype=_text(data["dtype"]),
        quantization=quantization,
    )


def _node(data: Any) -> Node:
    name = _text(data["operator"])
    if name not in OPERATORS:
        raise GraphError(f"the graph has the operator {reprlib.repr(name)}; this release does not know it")
    kind = OPERATORS[name]
    attributes = {key: _value(value) for key, value in data["attributes"].items()}
    return Node(
        name=_text(data["name"]),
        operator=kind(**attributes),
        inputs=tuple(_texts(data["inputs"])),
        output=_text(data["output"]),
    )


def _attributes(one: Any) -> dict[str, Any]:
    found = {field: _plain(getattr(one, field)) for field in field_names(one)}
    return {name: value for name, value in found.items() if (name, value) not in LATER_ATTRIBUTES}


def _plain(value: Any) -> Any:
    if isinstance(value, Windows):
        return _attributes(value)
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value


def _value(data: Any) -> Any:
    if isinstance(data, dict):
        return Windows(**{key: _integers(value) for key, value in data.items()})
    if isinstance(data, list):
        return tuple(_value(one) for one in data)
    return data


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")
    return value


def _texts(value: object) -> Sequence[str]:
    return [_text(one) for one in _list(value)]


def _integer(value: object) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is not an integer")
    return value


def _integers(value: object) -> tuple[int, ...]:
    return tuple(_integer(one) for one in _list(value))
