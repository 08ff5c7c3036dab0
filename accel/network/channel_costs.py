"""Predicted cycles of the forms of a move between channels."""

from accel.base.errors import ScheduleError, ShapeError
from accel.compiler.mappings.mapping import PLAIN
from accel.compiler.mappings.mapping_choice import choose_mapping
from accel.compiler.operators.operator_registry import WORKLOADS
from accel.compiler.ops.quantized_layers import Quantized
from accel.core.config import Config
from accel.graph.graph import Graph, Node
from accel.graph.product_operators import Conv
from accel.graph.window_geometry import Windows
from accel.network.lowering.lowered_layer import NotOnMachine
from accel.network.lowering.window_parameters import require_two_axes, size_parameters, window_parameters

POINT = Windows(kernel=(1, 1), strides=(1, 1), dilations=(1, 1), begin=(0, 0), end=(0, 0))


class ConvolutionCosts:
    """Predicts convolutions, or returns None for unsupported ones. Equal ones are predicted once."""

    def __init__(self, graph: Graph, config: Config) -> None:
        self._graph = graph
        self._config = config
        self._known: dict[tuple[object, ...], int | None] = {}

    def of_node(self, node: Node, inputs: int | None = None, outputs: int | None = None) -> int | None:
        operator = node.operator
        assert isinstance(operator, Conv)
        data, out = self._graph.tensors[node.inputs[0]], self._graph.tensors[node.output]
        channels = (inputs or data.shape[1], outputs or out.shape[1])
        groups = channels[0] if operator.groups > 1 else 1
        return self._cycles(data.shape, operator.windows, channels, groups)

    def of_product(self, name: str, inputs: int, outputs: int) -> int | None:
        return self._cycles(self._graph.tensors[name].shape, POINT, (inputs, outputs), 1)

    def of_lanes(self, name: str, lanes: int) -> int | None:
        return self._cycles(self._graph.tensors[name].shape, POINT, (lanes, lanes), lanes)

    def _cycles(
        self, shape: tuple[int, ...], windows: Windows, channels: tuple[int, int], groups: int
    ) -> int | None:
        key = (shape[0], shape[2:], windows, channels, groups)
        if key not in self._known:
            inputs, outputs = channels
            try:
                require_two_axes(windows)
                parameters = {
                    "N": shape[0],
                    "IC": inputs,
                    **size_parameters((*shape[:1], inputs, *shape[2:]), windows),
                    "OC": outputs,
                    **window_parameters(windows),
                    "groups": groups,
                    "bias": True,
                    "quantized": Quantized(scale=0.01),
                }
                choice = choose_mapping(WORKLOADS["conv2d"](**parameters), self._config, mapping=PLAIN)
                self._known[key] = round(choice.candidates[0].prediction.cycles)
            except (NotOnMachine, ScheduleError, ShapeError):
                self._known[key] = None
        return self._known[key]
