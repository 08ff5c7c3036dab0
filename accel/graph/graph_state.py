"""Values that a network keeps from one run to the next."""

from collections.abc import Mapping, Sequence

import numpy as np

from accel.base.errors import GraphError
from accel.base.records import replace
from accel.graph.graph import Graph, State
from accel.graph.graph_tensor import Array, Tensor


def with_states(graph: Graph, states: Sequence[State], constants: Mapping[str, Array]) -> Graph:
    """``constants`` has first values by name.

    Raises:
        GraphError: a name is unknown, or an output has another shape or dtype than its input.
    """
    tensors, kept = dict(graph.tensors), dict(graph.constants)
    for one in states:
        if one.output not in graph.outputs or one.input not in graph.inputs:
            raise GraphError(f"a state goes from {one.output!r} to {one.input!r}; one of them is unknown")
        source, target = tensors[one.output], tensors[one.input]
        if (source.shape, source.dtype) != (target.shape, target.dtype):
            raise GraphError(
                f"state {one.output!r} is {source.dtype}{list(source.shape)}; its input is "
                f"{target.dtype}{list(target.shape)}"
            )
        if one.initial is None:
            continue
        if one.initial not in constants or one.initial in {*graph.inputs, *graph.producers}:
            raise GraphError(f"the first value {one.initial!r} of a state must be a constant")
        values = constants[one.initial]
        if (values.shape, values.dtype) != (target.shape, np.dtype(target.dtype)):
            raise GraphError(
                f"the first value of {one.input!r} is {values.dtype}{list(values.shape)}; it must be "
                f"{target.dtype}{list(target.shape)}"
            )
        kept[one.initial] = np.ascontiguousarray(values).reshape(values.shape)
        tensors.setdefault(one.initial, Tensor(name=one.initial, shape=values.shape, dtype=values.dtype.name))
    return replace(graph, tensors=tensors, constants=kept, states=tuple(states))


def first_states(graph: Graph) -> dict[str, Array]:
    return {
        one.input: np.zeros(graph.tensors[one.input].shape, graph.tensors[one.input].dtype)
        if one.initial is None
        else graph.constants[one.initial]
        for one in graph.states
    }
