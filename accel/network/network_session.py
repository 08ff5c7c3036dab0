"""Runs of a network that keep state."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from accel.base.errors import ShapeError, nearest
from accel.graph.graph_state import first_states
from accel.graph.graph_tensor import Array
from accel.network.network_program import NetworkProgram
from accel.network.network_result import NetworkResult


class NetworkSession:
    """A network with state, for example a detector of wake words.

    For example, ``NetworkSession(program, {"h_out": "h"})`` starts with zeros for ``h``. After each run, the
    output ``h_out`` becomes the next ``h``. A model that keeps its state itself, such as a TensorFlow Lite
    model with variables, needs no pairs, and starts with its own first values.

    Attributes:
        state: the next values of the inputs with state, by name.

    Raises:
        ShapeError: a pair has an unknown name, two outputs become one input, or an output has another shape
            or dtype than its input.
    """

    def __init__(self, program: NetworkProgram, pairs: Mapping[str, str] | None = None) -> None:
        self.program = program
        own = {one.output: one.input for one in program.graph.states}
        self._pairs = own | dict(pairs or {})
        self._check()
        self.reset()

    def _check(self) -> None:
        graph = self.program.graph
        graph.check_names(inputs=self._pairs.values(), outputs=self._pairs)
        for output, name in self._pairs.items():
            if output in graph.tensors:
                source, target = graph.tensors[output], graph.tensors[name]
                _check_equal(output, source.shape, source.dtype, name, target.shape, target.dtype)
        if len(set(self._pairs.values())) != len(self._pairs):
            raise ShapeError(f"the state is {self._pairs}; each input can take one output only")

    def reset(self, state: Mapping[str, Array] | None = None) -> None:
        """Start again.

        Args:
            state: first values by input. Missing ones are the model's own, or 0.

        Raises:
            ShapeError: a name is not an input with state.
        """
        names = list(self._pairs.values())
        given = dict(state or {})
        for name in given:
            if name not in names:
                raise ShapeError(f"{name!r} is not an input with state; {nearest(name, names)}")
        tensors = self.program.graph.tensors
        zeros = {name: np.zeros(tensors[name].shape, tensors[name].dtype) for name in names}
        self.state: dict[str, Array] = zeros | first_states(self.program.graph) | given

    def run(self, inputs: Mapping[str, Array] | None = None, **options: Any) -> NetworkResult:
        """Run the network once, and keep its state.

        Args:
            inputs: arrays by name, without the state.
            options: as for :meth:`accel.NetworkProgram.run`.

        Raises:
            ShapeError: as there, or a state has another shape than its input.
        """
        result = self.program.run({**(inputs or {}), **self.state}, **options)
        outputs = result.outputs
        for output, name in self._pairs.items():
            array, before = outputs[output], self.state[name]
            _check_equal(output, array.shape, array.dtype.name, name, before.shape, before.dtype.name)
            self.state[name] = array
        return result


def _check_equal(
    output: str, shape: tuple[int, ...], dtype: str, name: str, wanted: tuple[int, ...], wanted_dtype: str
) -> None:
    if (shape, dtype) != (wanted, wanted_dtype):
        raise ShapeError(
            f"output {output!r} is {dtype}{list(shape)}; input {name!r} takes {wanted_dtype}{list(wanted)}"
        )
