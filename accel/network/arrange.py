"""Arrangement: in which layout each layer of a chain takes and makes pictures, by predicted cycles.

On machines whose elements have several rows, a picture by itself fills one of them. Convolutions can have it
in strips, one in each row (:mod:`accel.network.layout`), which are what :mod:`accel.compiler.mappings` calls
``strips=Yx1``. A tensor's layouts are decided once, for the layer that makes it and all that take it: what a
layer writes is what its neighbours read, and lines that they need above and below strips, or another layout
altogether, cost an exchange of rows (:mod:`accel.network.exchange`). Among all ways to choose, the one with
the fewest cycles of layers and exchanges is taken.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from accel.base.errors import ScheduleError, ShapeError
from accel.compiler.mappings.axes import Parts
from accel.compiler.mappings.build import compile_mapped
from accel.compiler.mappings.choose import Choice, choose
from accel.compiler.mappings.mapping import PLAIN
from accel.compiler.mappings.windows import axes_of, entry_names, name_of
from accel.compiler.ops.quantized import Quantized
from accel.compiler.target.machine import machine
from accel.core.config import Config
from accel.graph.graph import Graph
from accel.image.manifest import read_entry
from accel.network.entry import enters, planned
from accel.network.exchange import Exchange, can_exchange, exchanges
from accel.network.layout import Laid, Layout, Picture, is_of, layouts, picture_of, places
from accel.network.lower import Layer, Operand, mean_of_rows
from accel.network.place import Part
from accel.network.transfers import moved_elements
from accel.run.program import Program, as_program

_MOST = 2
"""Numbers of strips that are looked at for a layer, the largest ones."""
_BEAM = 4096
"""Ways to arrange the layers so far that are kept, of those that differ in what layers behind them see."""
_CONV, _MEAN, _MAXIMA = "conv2d", "global_avg_pool2d", "max_pool2d"
_DATA, _RESIDUAL = "data", "residual"
_WEIGHTS = "B"


@dataclass(frozen=True, kw_only=True)
class Considered:
    """A way to arrange a layer.

    Attributes:
        mapping: its name.
        cycles: that the layer is predicted to take by itself.
        exchange: cycles that exchanges of rows would take besides, where all other layers are as they are.
    """

    mapping: str
    cycles: int
    exchange: int

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"mapping": self.mapping, "cycles": self.cycles, "exchange": self.exchange}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Considered":
        """The inverse of :meth:`to_dict`.

        Raises:
            ProgramError: an entry is missing or of another type.
        """
        return cls(
            mapping=read_entry(data, "mapping", str),
            cycles=read_entry(data, "cycles", int),
            exchange=read_entry(data, "exchange", int),
        )


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """What was compared for a layer.

    Attributes:
        name: of its main node.
        considered: the way that was taken, then the others, by cycles with exchanges. Exchanges count what
            all tensors cost that the layer takes or makes, so that ways can be compared.
    """

    name: str
    considered: tuple[Considered, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"name": self.name, "considered": [one.to_dict() for one in self.considered]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Arrangement":
        """The inverse of :meth:`to_dict`.

        Raises:
            ProgramError: an entry is missing or of another type.
        """
        return cls(
            name=read_entry(data, "name", str),
            considered=tuple(map(Considered.from_dict, read_entry(data, "considered", list))),
        )


def arrange(
    graph: Graph, parts: Sequence[Part], needed: Collection[str], config: Config
) -> tuple[tuple[Part, ...], tuple[Arrangement, ...]]:
    """Layers of a chain with the programs for the layouts that take the fewest cycles.

    Args:
        graph: the parts'.
        parts: of one chain, compiled without strips.
        needed: tensors that are needed outside, where pictures lie as they are.
        config: the machine.

    Returns:
        The parts, and what was compared for each that could have been arranged in another way.
    """
    if not can_exchange(config):
        return tuple(parts), ()
    chain = _Chain(graph, parts, needed, config)
    while True:
        chosen = chain.best()
        laid = []
        for at in range(len(parts)):
            try:
                laid.append(chain.laid(at, chosen[at]))
            except (ScheduleError, ShapeError):
                chain.options[at].remove(chosen[at])
                break
        else:
            return tuple(laid), chain.told(chosen)


@dataclass(frozen=True, kw_only=True)
class _Option:
    """A way to arrange a layer; of one that is not on the machine, nothing.

    Attributes:
        strips: 1 if its pictures stay as they are.
        layer: what the machine computes; None without strips.
        choice: mapping and plans of that.
        cycles: predicted.
        takes: by operand the layout that it has to have.
        makes: the layout of the result.
    """

    strips: int = 1
    layer: Layer | None = None
    choice: Choice | None = None
    name: str = PLAIN
    cycles: int = 0
    takes: Mapping[str, Layout] = field(default_factory=dict)
    makes: Layout | None = None


@dataclass(frozen=True, kw_only=True)
class _Tensor:
    """A tensor that a layer makes and others take.

    Attributes:
        maker: the layer's number.
        picture: its size.
        takers: layers that can take it in strips, and the names of their operands.
        plain: whether somebody else needs it as it is.
    """

    maker: int
    picture: Picture
    takers: tuple[tuple[int, str], ...]
    plain: bool

    @property
    def layers(self) -> set[int]:
        """All that have to do with it."""
        return {self.maker, *(at for at, _ in self.takers)}


class _Chain:
    """Layers that are to be arranged."""

    def __init__(self, graph: Graph, parts: Sequence[Part], needed: Collection[str], config: Config) -> None:
        self._graph = graph
        self._parts = parts
        self._config = config
        self._pictures = {
            part.stage.output: picture
            for part in parts
            if part.on_machine and (picture := picture_of(part.output, config)) is not None
        }
        self._known: dict[tuple[object, ...], int] = {}
        self._programs: list[tuple[tuple[object, ...], Program]] = []
        self.options = [list(self._options_of(part)) for part in parts]
        self._tensors = list(self._found_tensors(needed))

    # --- what there is to choose from ------------------------------------------------------------

    def _options_of(self, part: Part) -> Iterator[_Option]:
        """Ways to arrange a layer, the one without strips first."""
        layer = part.layer
        if layer is None or part.program is None:
            yield _Option()
            return
        picture = self._pictures.get(part.stage.output)
        if picture is None or layer.operator not in (_CONV, _MEAN, _MAXIMA):
            makes = None if picture is None else Layout(strips=1, lines=picture.height)
            yield _Option(makes=makes)
            return
        usual = planned(self._graph, layer, self._config)
        yield _Option(
            name=usual.mapping.name,
            cycles=round(usual.candidates[0].prediction.cycles),
            makes=Layout(strips=1, lines=picture.height),
        )
        if layer.operator == _MEAN:
            yield from self._turned(layer)
            return
        if layer.operator == _MAXIMA:
            yield from self._pooled(layer, picture)
            return
        if not self._can_be_cut(part, picture):
            return
        counts = [n for n in self._counts(picture) if self._host_packs(part) or self._is_even(part)]
        for strips in counts[:_MOST]:
            yield from self._cut(part, strips, picture)

    def _turned(self, layer: Layer) -> Iterator[_Option]:
        """A mean as a product with a picture that is transposed."""
        (data,) = layer.operands
        picture, rows = self._pictures.get(data.tensor), self._config.batch
        if picture is None or (picture.pictures, picture.height, picture.width) != (
            data.shape[0],
            *data.shape[2:],
        ):
            return
        shift = -128 if layer.parameters["quantized"].input_dtype == "uint8" else 0
        for strips in self._counts(picture):
            product = mean_of_rows(layer, strips, rows)
            lines = picture.height // strips
            try:
                choice = choose(product.workload(), self._config, mapping=PLAIN)
            except (ScheduleError, ShapeError):  # it does not fit
                continue
            yield _Option(
                strips=strips,
                layer=product,
                choice=choice,
                name=f"turned={strips}x1",
                cycles=round(choice.candidates[0].prediction.cycles),
                takes={_DATA: Layout(strips=strips, lines=lines, turned=True, shift=shift)},
                makes=Layout(strips=1, lines=1),
            )

    def _pooled(self, layer: Layer, picture: Picture) -> Iterator[_Option]:
        """Maxima of strips, around which lies the least value."""
        (data,) = layer.operands
        found = self._pictures.get(data.tensor)
        size = picture.pictures, *data.shape[2:]
        axis, other = axes_of(layer.workload())
        if (
            found is None
            or (found.pictures, found.height, found.width) != size
            or axis.outputs * axis.stride != axis.size
        ):
            return
        least = int(np.iinfo(layer.parameters["dtype"]).min)
        for strips in self._counts(picture)[:_MOST]:
            down = Parts(axis=axis, strips=strips)
            shape = (picture.pictures * strips, data.shape[1], down.size, data.shape[3])
            sizes = {"N": shape[0], "H": down.size, "padding": (0, other.before, 0, other.after)}
            cut = replace(
                layer,
                parameters={**layer.parameters, **sizes},
                operands=(replace(data, shape=shape),),
            )
            try:
                choice = choose(cut.workload(), self._config, mapping=PLAIN)
            except (ScheduleError, ShapeError):  # it does not fit
                continue
            yield _Option(
                strips=strips,
                layer=cut,
                choice=choice,
                name=name_of((down, Parts(axis=other))),
                cycles=round(choice.candidates[0].prediction.cycles),
                takes={_DATA: _seen(down, least)},
                makes=Layout(strips=strips, lines=down.length),
            )

    def _counts(self, picture: Picture) -> list[int]:
        """Numbers of strips that a picture can have, the largest first."""
        most = self._config.batch // picture.pictures
        return [n for n in range(most, 1, -1) if picture.height % n == 0]

    def _can_be_cut(self, part: Part, picture: Picture) -> bool:
        """Whether a convolution's operands can lie in strips."""
        assert part.layer is not None
        for operand in part.layer.operands:
            if operand.name not in (_DATA, _RESIDUAL):
                continue
            if operand.made or operand.copies > 1:
                return False
            found = self._pictures.get(operand.tensor)
            size = (picture.pictures, *operand.shape[2:])
            if found is not None and (found.pictures, found.height, found.width) != size:
                return False
            if found is None and not (
                self._host_packs(part) if operand.name == _DATA else operand.tensor in self._graph.inputs
            ):
                return False
        return True

    def _host_packs(self, part: Part) -> bool:
        """Whether a layer's data comes from the host."""
        assert part.layer is not None
        data = next(one.tensor for one in part.layer.operands if one.name == _DATA)
        return data not in self._pictures and enters(self._graph, part.layer)

    def _is_even(self, part: Part) -> bool:
        """Whether strips of the result are made of as many strips of the data."""
        assert part.layer is not None
        down, _ = axes_of(part.layer.workload())
        return down.outputs * down.stride == down.size

    def _cut(self, part: Part, strips: int, picture: Picture) -> Iterator[_Option]:
        """A layer in strips."""
        assert part.layer is not None
        workload = part.layer.workload()
        own = Layout(strips=strips, lines=picture.height // strips)
        takes = {one.name: own for one in part.layer.operands if one.name == _RESIDUAL}
        takes = {name: own for name in takes if self._operand(part, name).tensor in self._pictures}
        axis, other = axes_of(workload)
        down = Parts(axis=axis, strips=strips)
        if self._host_packs(part):
            names = entry_names(workload, self._config, strips)
        else:
            names = [name_of((down, Parts(axis=other)))]
            zero = workload.epilogue.input_zero if isinstance(workload.epilogue, Quantized) else 0
            takes[_DATA] = _seen(down, zero)
        found: list[Choice] = []
        for name in names:
            try:
                found.append(choose(workload, self._config, mapping=name))
            except ScheduleError:  # it does not fit
                continue
        if found:
            choice = min(found, key=lambda one: one.candidates[0].prediction.cycles)
            yield _Option(
                strips=strips,
                layer=part.layer,
                choice=choice,
                name=choice.mapping.name,
                cycles=round(choice.candidates[0].prediction.cycles),
                takes=takes,
                makes=own,
            )

    def _operand(self, part: Part, name: str) -> Operand:
        assert part.layer is not None
        return next(one for one in part.layer.operands if one.name == name)

    def _found_tensors(self, needed: Collection[str]) -> Iterator[_Tensor]:
        makers = {part.stage.output: at for at, part in enumerate(self._parts) if part.on_machine}
        for name, picture in self._pictures.items():
            takers: list[tuple[int, str]] = []
            plain = name in needed
            for at, part in enumerate(self._parts):
                if part.layer is None:
                    plain |= name in part.stage.inputs
                    continue
                mine = [one.name for one in part.layer.operands if one.tensor == name and not one.made]
                if any(option.strips > 1 for option in self.options[at]):
                    takers += [(at, one) for one in mine]
                else:
                    plain |= bool(mine)
            yield _Tensor(maker=makers[name], picture=picture, takers=tuple(takers), plain=plain)

    # --- what a choice costs ---------------------------------------------------------------------

    def exchanges(self, tensor: _Tensor, chosen: Mapping[int, _Option]) -> list[Exchange]:
        """The exchanges of rows behind a layer."""
        makes = chosen[tensor.maker].makes
        assert makes is not None
        wanted = [chosen[at].takes[name] for at, name in tensor.takers if name in chosen[at].takes]
        plain = tensor.plain or any(name not in chosen[at].takes for at, name in tensor.takers)
        usual = Layout(strips=1, lines=tensor.picture.height)
        return exchanges(
            self._config, tensor.picture, *layouts(makes, wanted, plain=usual if plain else None)
        )

    def _cost(self, number: int, chosen: Mapping[int, _Option]) -> int | None:
        """Cycles of a tensor's exchanges; None if they do not fit."""
        tensor = self._tensors[number]
        key = (number, *(chosen[at].strips for at in sorted(tensor.layers)))
        if key not in self._known:
            try:
                self._known[key] = sum(one.cycles for one in self.exchanges(tensor, chosen))
            except ScheduleError:
                self._known[key] = -1
        return None if self._known[key] < 0 else self._known[key]

    def best(self) -> list[_Option]:
        """The way to arrange all layers with the fewest cycles."""
        last = [max(tensor.layers) for tensor in self._tensors]
        first = [min(tensor.layers) for tensor in self._tensors]
        ways: list[tuple[int, dict[int, _Option], dict[int, _Option]]] = [(0, {}, {})]
        for at, options in enumerate(self.options):
            done = [number for number, end in enumerate(last) if end == at]
            open_ = {
                layer
                for number, end in enumerate(last)
                if first[number] <= at < end
                for layer in self._tensors[number].layers
                if layer <= at
            }
            found: dict[tuple[int, ...], tuple[int, dict[int, _Option], dict[int, _Option]]] = {}
            for cycles, near, all_ in ways:
                for option in options:
                    seen = near | {at: option}
                    costs = [self._cost(number, seen) for number in done]
                    if any(cost is None for cost in costs):
                        continue
                    total = cycles + option.cycles + sum(cost for cost in costs if cost is not None)
                    kept = {layer: one for layer, one in seen.items() if layer in open_}
                    key = tuple(one.strips for _, one in sorted(kept.items()))
                    if key not in found or total < found[key][0]:
                        found[key] = total, kept, all_ | {at: option}
            ways = sorted(found.values(), key=lambda way: way[0])[:_BEAM]
        chosen = min(ways, key=lambda way: way[0])[2]
        return [chosen[at] for at in range(len(self.options))]

    # --- what comes of it ------------------------------------------------------------------------

    def laid(self, at: int, option: _Option) -> Part:
        """A layer compiled for its layouts.

        Raises:
            ScheduleError: the compiler arranges its tensors in another way.
        """
        part = self._parts[at]
        if option.choice is None:
            return part
        assert option.layer is not None
        assert option.makes is not None
        program = self._program(option.layer, option.choice, option.name)
        turned = any(layout.turned for layout in option.takes.values())
        laid = Laid(
            mapping=option.name,
            takes={_WEIGHTS: option.takes[_DATA]} if turned else option.takes,
            makes=option.makes,
            plain=part.output,
        )
        found = replace(
            part,
            layer=option.layer,
            program=program,
            laid=laid,
            mapping=option.name,
            alone=option.cycles,
        )
        if turned:
            return found
        assert part.layer is not None
        for name, layout in [*option.takes.items(), (part.layer.output, option.makes)]:
            tensors = [one for one in program.tensors if one.name == name]
            source = part.stage.output if name == part.layer.output else self._operand(part, name).tensor
            picture = self._pictures[source]
            wide = replace(layout, above=layout.above + 1, below=max(layout.below, 0))
            if len(tensors) != 1 or not is_of(
                tensors[0], picture, layout, self._config.batch, self._config.block_in
            ):
                raise ScheduleError(f"tensor {name!r} has another layout")
            if moved_elements(program, tensors[0].offset, places(picture, layout, wide)) is None:
                raise ScheduleError(f"tensor {name!r} cannot be taken out of a larger one")
        return found

    def _program(self, layer: Layer, choice: Choice, mapping: str) -> Program:
        """A layer's program; layers that are alike share one."""
        key = layer.operator, layer.parameters, mapping
        for known, program in self._programs:
            if known == key:
                return program
        image = compile_mapped(choice.mapping, choice.schedule(machine(self._config)), self._config)
        self._programs.append((key, as_program(image)))
        return self._programs[-1][1]

    def told(self, chosen: Sequence[_Option]) -> tuple[Arrangement, ...]:
        """What was compared for layers that could have been arranged in another way."""
        found = []
        for at, part in enumerate(self._parts):
            if len(self.options[at]) < 2:
                continue
            mine = [number for number, tensor in enumerate(self._tensors) if at in tensor.layers]
            ways: list[tuple[int, Considered]] = []
            for option in self.options[at]:
                seen = dict(enumerate(chosen)) | {at: option}
                costs = [self._cost(number, seen) for number in mine]
                if all(cost is not None for cost in costs):
                    exchange = sum(cost for cost in costs if cost is not None)
                    one = Considered(mapping=option.name, cycles=option.cycles, exchange=exchange)
                    ways.append((0 if option is chosen[at] else 1 + one.cycles + exchange, one))
            ways.sort(key=lambda way: way[0])
            found.append(Arrangement(name=part.stage.name, considered=tuple(one for _, one in ways)))
        return tuple(found)


def _seen(down: Parts, fill: int) -> Layout:
    """The lines that windows of each strip see."""
    lines, above = down.length * down.axis.stride, down.axis.before
    return Layout(strips=down.strips, lines=lines, above=above, below=down.size - above - lines, fill=fill)
