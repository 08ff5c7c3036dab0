"""The mappings that a chain's layers can have."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct, field

from accel.base.errors import ScheduleError, ShapeError
from accel.base.records import replace
from accel.compiler.mappings.convolution_mappings import mapping_name, strip_mapping_names, window_axes_of
from accel.compiler.mappings.mapping import PLAIN
from accel.compiler.mappings.mapping_choice import MappingChoice, choose_mapping
from accel.compiler.mappings.window_axes import AxisSplit
from accel.compiler.ops.quantized_layers import Quantized
from accel.compiler.plans.epilogue_cost import has_channel_residual
from accel.core.config import Config
from accel.graph.graph import Graph
from accel.network.host_inputs import choose_layer_mapping, host_packs_data
from accel.network.lowering.average_lowering import global_average_as_product
from accel.network.lowering.layer_operand import Operand
from accel.network.lowering.lowered_layer import LoweredLayer
from accel.network.network_part import NetworkPart
from accel.network.strip_layout import PictureSize, StripLayout, picture_size

MAX_STRIP_COUNTS = 2
"""For each layer, the largest ones are tried."""
CONVOLUTION, GLOBAL_AVERAGE, MAX_POOL = "conv2d", "global_avg_pool2d", "max_pool2d"
DATA, RESIDUAL, PRODUCT_WEIGHTS = "data", "residual", "B"
"""Inputs of layers, and of the product that replaces a global average."""


class LayerCandidate(Struct, frozen=True, kw_only=True):
    """A mapping of a layer. The host has all defaults.

    Attributes:
        strips: of the result, or 1 for plain pictures.
        layer: the operator in strips, or None for the layer's own program.
        cycles: predicted in isolation.
    """

    strips: int = 1
    layer: LoweredLayer | None = None
    choice: MappingChoice | None = None
    name: str = PLAIN
    cycles: int = 0
    reads: Mapping[str, StripLayout] = field(default_factory=dict)
    writes: StripLayout | None = None


class CandidateFinder:
    """Finds mappings for the layers of a chain.

    Attributes:
        sizes: of pictures that layers write, by tensor.
    """

    def __init__(self, graph: Graph, parts: Sequence[NetworkPart], config: Config) -> None:
        self._graph = graph
        self._config = config
        self.sizes: dict[str, PictureSize] = {
            part.fused.output: size
            for part in parts
            if part.on_machine and (size := picture_size(part.output, config)) is not None
        }

    def candidates(self, part: NetworkPart) -> Iterator[LayerCandidate]:
        layer = part.layer
        if layer is None or part.program is None:
            yield LayerCandidate()
            return
        size = self.sizes.get(part.fused.output)
        if size is None or layer.operator not in (CONVOLUTION, GLOBAL_AVERAGE, MAX_POOL):
            writes = None if size is None else StripLayout(strips=1, lines=size.height)
            yield LayerCandidate(writes=writes)
            return
        plain = choose_layer_mapping(self._graph, layer, self._config)
        yield LayerCandidate(
            name=plain.mapping.name,
            cycles=round(plain.candidates[0].prediction.cycles),
            writes=StripLayout(strips=1, lines=size.height),
        )
        if layer.operator == GLOBAL_AVERAGE:
            yield from self._transposed_averages(layer)
        elif layer.operator == MAX_POOL:
            yield from self._max_pools(layer, size)
        elif self._operands_fit_strips(part, size):
            counts = [n for n in self._strip_counts(size) if self._host_packs(part) or self._divides(part)]
            for strips in counts[:MAX_STRIP_COUNTS]:
                yield from self._convolutions(part, strips, size)

    def _transposed_averages(self, layer: LoweredLayer) -> Iterator[LayerCandidate]:
        (data,) = layer.operands
        size = self.sizes.get(data.tensor)
        if size is None or not _has_size(size, (data.shape[0], *data.shape[2:])):
            return
        shift = -128 if layer.parameters["quantized"].input_dtype == "uint8" else 0
        for strips in self._strip_counts(size):
            product = global_average_as_product(layer, strips, self._config.batch)
            choice = self._try_mapping(product, PLAIN)
            if choice is None:
                continue
            lines = size.height // strips
            yield LayerCandidate(
                strips=strips,
                layer=product,
                choice=choice,
                name=f"turned={strips}x1",
                cycles=round(choice.candidates[0].prediction.cycles),
                reads={DATA: StripLayout(strips=strips, lines=lines, transposed=True, shift=shift)},
                writes=StripLayout(strips=1, lines=1),
            )

    def _max_pools(self, layer: LoweredLayer, size: PictureSize) -> Iterator[LayerCandidate]:
        """Yield maxima of strips as separate pictures. Their halo pads with the least value."""
        (data,) = layer.operands
        data_size = self.sizes.get(data.tensor)
        vertical, horizontal = window_axes_of(layer.workload())
        if (
            data_size is None
            or not _has_size(data_size, (size.pictures, *data.shape[2:]))
            or vertical.outputs * vertical.stride != vertical.size
        ):
            return
        least = int(np.iinfo(layer.parameters["dtype"]).min)
        for strips in self._strip_counts(size)[:MAX_STRIP_COUNTS]:
            split = AxisSplit(axis=vertical, strips=strips)
            shape = (size.pictures * strips, data.shape[1], split.size, data.shape[3])
            changed = {
                "N": shape[0],
                "H": split.size,
                "padding": (0, horizontal.before, 0, horizontal.after),
            }
            pool = replace(
                layer,
                parameters={**layer.parameters, **changed},
                operands=(replace(data, shape=shape),),
            )
            choice = self._try_mapping(pool, PLAIN)
            if choice is None:
                continue
            yield LayerCandidate(
                strips=strips,
                layer=pool,
                choice=choice,
                name=mapping_name((split, AxisSplit(axis=horizontal))),
                cycles=round(choice.candidates[0].prediction.cycles),
                reads={DATA: _layout_read(split, least)},
                writes=StripLayout(strips=strips, lines=split.length),
            )

    def _convolutions(self, part: NetworkPart, strips: int, size: PictureSize) -> Iterator[LayerCandidate]:
        assert part.layer is not None
        workload = part.layer.workload()
        writes = StripLayout(strips=strips, lines=size.height // strips)
        residual = writes
        if has_channel_residual(workload):
            residual = StripLayout(strips=strips, lines=1, repeated=True)
        reads = {
            one.name: residual
            for one in part.layer.operands
            if one.name == RESIDUAL and one.tensor in self.sizes
        }
        vertical, horizontal = window_axes_of(workload)
        if self._host_packs(part):
            names = strip_mapping_names(workload, self._config, strips)
        else:
            split = AxisSplit(axis=vertical, strips=strips)
            names = [mapping_name((split, AxisSplit(axis=horizontal)))]
            zero = workload.epilogue.input_zero if isinstance(workload.epilogue, Quantized) else 0
            reads[DATA] = _layout_read(split, zero)
        choices: list[MappingChoice] = []
        for name in names:
            try:
                choices.append(choose_mapping(workload, self._config, mapping=name))
            except ScheduleError:  # does not fit the scratchpads
                continue
        if choices:
            choice = min(choices, key=lambda one: one.candidates[0].prediction.cycles)
            yield LayerCandidate(
                strips=strips,
                layer=part.layer,
                choice=choice,
                name=choice.mapping.name,
                cycles=round(choice.candidates[0].prediction.cycles),
                reads=reads,
                writes=writes,
            )

    def _try_mapping(self, layer: LoweredLayer, mapping: str) -> MappingChoice | None:
        try:
            return choose_mapping(layer.workload(), self._config, mapping=mapping)
        except (ScheduleError, ShapeError):
            return None

    def _strip_counts(self, size: PictureSize) -> list[int]:
        most = self._config.batch // size.pictures
        return [strips for strips in range(most, 1, -1) if size.height % strips == 0]

    def _operands_fit_strips(self, part: NetworkPart, size: PictureSize) -> bool:
        assert part.layer is not None
        for operand in part.layer.operands:
            if operand.name not in (DATA, RESIDUAL):
                continue
            if operand.generated or operand.copies > 1:
                return False
            operand_size = self.sizes.get(operand.tensor)
            if operand_size is None:
                host_packs = (
                    self._host_packs(part) if operand.name == DATA else operand.tensor in self._graph.inputs
                )
                if not host_packs:
                    return False
            elif not _has_size(operand_size, (size.pictures, *operand.shape[2:])):
                return False
        return True

    def _host_packs(self, part: NetworkPart) -> bool:
        assert part.layer is not None
        return operand_of(part, DATA).tensor not in self.sizes and host_packs_data(self._graph, part.layer)

    def _divides(self, part: NetworkPart) -> bool:
        """Whether strips of the result need equal strips of the data."""
        assert part.layer is not None
        vertical, _ = window_axes_of(part.layer.workload())
        return vertical.outputs * vertical.stride == vertical.size


def operand_of(part: NetworkPart, name: str) -> Operand:
    assert part.layer is not None
    return next(one for one in part.layer.operands if one.name == name)


def _has_size(size: PictureSize, shape: tuple[int, ...]) -> bool:
    return (size.pictures, size.height, size.width) == shape


def _layout_read(split: AxisSplit, fill: int) -> StripLayout:
    lines, above = split.length * split.axis.stride, split.axis.before
    below = split.size - above - lines
    return StripLayout(strips=split.strips, lines=lines, halo_above=above, halo_below=below, fill=fill)
