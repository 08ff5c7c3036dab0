"""Constants in the lanes of a channel map."""

import numpy as np

from accel.base.records import replace
from accel.graph.graph import Graph
from accel.graph.graph_builder import Builder
from accel.graph.graph_tensor import Array, Quantization
from accel.network.channel_maps import ChannelMap


class LaneConstants:
    """Adds permuted constants to a new graph, equal ones once."""

    def __init__(self, graph: Graph, new: Builder) -> None:
        self._graph = graph
        self._new = new
        self._known: dict[tuple[str, tuple[tuple[int, ChannelMap], ...]], str] = {}

    def permuted(self, name: str, maps: dict[int, ChannelMap]) -> str:
        """Return a constant with its channels in the lanes of the map of each axis.

        Lanes without a channel have the zero point.
        """
        key = (name, tuple(sorted(maps.items(), key=lambda one: one[0])))
        if key not in self._known:
            values, quantization = self._graph.constants[name], self._graph.tensors[name].quantization
            for axis, channel_map in maps.items():
                values, quantization = _permuted(values, quantization, axis, channel_map)
            fresh = self._new.fresh(f"{name}/lanes")
            self._known[key] = self._new.constant(fresh, np.ascontiguousarray(values), quantization)
        return self._known[key]


def _permuted(
    values: Array, quantization: Quantization | None, axis: int, channel_map: ChannelMap
) -> tuple[Array, Quantization | None]:
    lanes = np.array(channel_map.lanes)
    taken = values.take(np.maximum(lanes, 0), axis=axis)
    if quantization is not None and quantization.axis == axis:
        quantization = replace(
            quantization,
            scale=tuple(quantization.scale[max(lane, 0)] for lane in channel_map.lanes),
            zero=tuple(quantization.zero[max(lane, 0)] for lane in channel_map.lanes),
        )
    zeros = 0 if quantization is None else quantization.zeros_along(values.ndim)
    is_hole = (lanes < 0).reshape([-1 if one == axis else 1 for one in range(values.ndim)])
    return np.where(is_hole, zeros, taken).astype(values.dtype), quantization
