"""The assignment of strip layouts to the tensors of a chain, by predicted cycles.

docs/explain/mappings.md explains strips within a network. Dynamic programming minimizes the cycles of all
layers and row exchanges. Of partial assignments that are equivalent for the remaining layers, it keeps the
fastest.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from accel.base.errors import ScheduleError, ShapeError
from accel.base.records import replace
from accel.compiler.mappings.mapped_build import compile_mapped
from accel.compiler.mappings.mapping_choice import MappingChoice
from accel.compiler.target.machine import machine
from accel.core.config import Config
from accel.graph.graph import Graph
from accel.network.layout_candidates import (
    DATA,
    PRODUCT_WEIGHTS,
    CandidateFinder,
    LayerCandidate,
    operand_of,
)
from accel.network.layout_choice import LayoutAlternative, LayoutChoice
from accel.network.lowering.lowered_layer import LoweredLayer
from accel.network.network_part import NetworkPart
from accel.network.relocated_transfers import relocate_transfers
from accel.network.row_exchange import RowExchange, row_exchanges, supports_row_exchange
from accel.network.strip_layout import (
    LayerLayouts,
    PictureSize,
    StripLayout,
    element_positions,
    has_layout,
    merge_layouts,
)
from accel.run.program import Program, as_program

_BEAM_WIDTH = 4096


def assign_layouts(
    graph: Graph,
    parts: Sequence[NetworkPart],
    needed: Collection[str],
    config: Config,
    *,
    copied: Collection[str] = (),
) -> tuple[tuple[NetworkPart, ...], tuple[LayoutChoice, ...]]:
    """Compile a chain's layers for the layouts with the fewest predicted cycles.

    Args:
        needed: plain pictures that are needed outside of the chain.
        copied: results that layers also store elsewhere, as plain pictures.
    """
    if not supports_row_exchange(config):
        return tuple(parts), ()
    search = _LayoutSearch(graph, parts, needed, config)
    for part, candidates in zip(parts, search.candidates, strict=True):
        if part.fused.output in copied:
            candidates[:] = [one for one in candidates if one.writes is None or one.writes.strips == 1]
    while True:
        chosen = search.best()
        compiled = []
        for at in range(len(parts)):
            try:
                compiled.append(search.compile(at, chosen[at]))
            except (ScheduleError, ShapeError):
                search.candidates[at].remove(chosen[at])
                break
        else:
            return tuple(compiled), search.choices(chosen)


class _SharedPicture(Struct, frozen=True, kw_only=True):
    """``readers`` are layer and operand of readers in strips."""

    writer: int
    size: PictureSize
    readers: tuple[tuple[int, str], ...]
    needs_plain: bool

    @property
    def layers(self) -> set[int]:
        return {self.writer, *(at for at, _ in self.readers)}


class _PartialAssignment(Struct, frozen=True, kw_only=True):
    """Candidates of the first layers.

    Attributes:
        cycles: predicted for layers and complete exchanges.
        visible: candidates of layers that share a picture with a later one.
    """

    cycles: int
    visible: dict[int, LayerCandidate]
    chosen: dict[int, LayerCandidate]


class _LayoutSearch:
    def __init__(
        self, graph: Graph, parts: Sequence[NetworkPart], needed: Collection[str], config: Config
    ) -> None:
        self._parts = parts
        self._config = config
        finder = CandidateFinder(graph, parts, config)
        self._sizes = finder.sizes
        self._exchange_cycles: dict[tuple[object, ...], int | None] = {}
        self._programs: list[tuple[tuple[object, ...], Program]] = []
        self.candidates = [list(finder.candidates(part)) for part in parts]
        self._pictures = list(self._find_pictures(needed))

    def _find_pictures(self, needed: Collection[str]) -> Iterator[_SharedPicture]:
        writers = {part.fused.output: at for at, part in enumerate(self._parts) if part.on_machine}
        for name, size in self._sizes.items():
            readers: list[tuple[int, str]] = []
            needs_plain = name in needed
            for at, part in enumerate(self._parts):
                if part.layer is None:
                    needs_plain |= name in part.fused.inputs
                    continue
                operands = [
                    one.name for one in part.layer.operands if one.tensor == name and not one.generated
                ]
                if any(candidate.strips > 1 for candidate in self.candidates[at]):
                    readers += [(at, one) for one in operands]
                else:
                    needs_plain |= bool(operands)
            yield _SharedPicture(
                writer=writers[name], size=size, readers=tuple(readers), needs_plain=needs_plain
            )

    def _exchanges(self, picture: _SharedPicture, chosen: Mapping[int, LayerCandidate]) -> list[RowExchange]:
        writes = chosen[picture.writer].writes
        assert writes is not None
        read = [chosen[at].reads[name] for at, name in picture.readers if name in chosen[at].reads]
        needs_plain = picture.needs_plain or any(name not in chosen[at].reads for at, name in picture.readers)
        plain = StripLayout(strips=1, lines=picture.size.height)
        written, others = merge_layouts(writes, read, plain=plain if needs_plain else None)
        return row_exchanges(self._config, picture.size, written, others)

    def _cost(self, number: int, chosen: Mapping[int, LayerCandidate]) -> int | None:
        """Return None if a picture's exchanges do not fit."""
        picture = self._pictures[number]
        key = (number, *(chosen[at].strips for at in sorted(picture.layers)))
        if key not in self._exchange_cycles:
            try:
                cycles = sum(one.cycles for one in self._exchanges(picture, chosen))
            except ScheduleError:
                self._exchange_cycles[key] = None
            else:
                self._exchange_cycles[key] = cycles
        return self._exchange_cycles[key]

    def best(self) -> list[LayerCandidate]:
        first = [min(picture.layers) for picture in self._pictures]
        last = [max(picture.layers) for picture in self._pictures]
        partial = [_PartialAssignment(cycles=0, visible={}, chosen={})]
        for at, candidates in enumerate(self.candidates):
            complete = [number for number, end in enumerate(last) if end == at]
            visible = {
                layer
                for number, end in enumerate(last)
                if first[number] <= at < end
                for layer in self._pictures[number].layers
                if layer <= at
            }
            extended: dict[tuple[int, ...], _PartialAssignment] = {}
            for assignment in partial:
                for candidate in candidates:
                    self._extend(extended, assignment, at, candidate, complete, visible)
            partial = sorted(extended.values(), key=lambda one: one.cycles)[:_BEAM_WIDTH]
        fastest = min(partial, key=lambda one: one.cycles).chosen
        return [fastest[at] for at in range(len(self.candidates))]

    def _extend(
        self,
        extended: dict[tuple[int, ...], _PartialAssignment],
        assignment: _PartialAssignment,
        at: int,
        candidate: LayerCandidate,
        complete: Sequence[int],
        visible: Collection[int],
    ) -> None:
        """``extended`` has the fastest assignments by numbers of strips of the visible layers, ``complete``
        the pictures of which this is the last layer.
        """
        seen = assignment.visible | {at: candidate}
        costs = [self._cost(number, seen) for number in complete]
        if any(cost is None for cost in costs):
            return
        cycles = assignment.cycles + candidate.cycles + sum(cost for cost in costs if cost is not None)
        still_visible = {layer: one for layer, one in seen.items() if layer in visible}
        key = tuple(one.strips for _, one in sorted(still_visible.items()))
        if key not in extended or cycles < extended[key].cycles:
            chosen = assignment.chosen | {at: candidate}
            extended[key] = _PartialAssignment(cycles=cycles, visible=still_visible, chosen=chosen)

    def compile(self, at: int, candidate: LayerCandidate) -> NetworkPart:
        part = self._parts[at]
        if candidate.choice is None:
            return part
        assert candidate.layer is not None
        assert candidate.writes is not None
        program = self._program(candidate.layer, candidate.choice, candidate.name)
        is_transposed = any(layout.transposed for layout in candidate.reads.values())
        layouts = LayerLayouts(
            mapping=candidate.name,
            reads={PRODUCT_WEIGHTS: candidate.reads[DATA]} if is_transposed else candidate.reads,
            writes=candidate.writes,
            plain_output=part.output,
        )
        if not is_transposed:
            self._check_layouts(part, candidate, program)
        return replace(
            part,
            layer=candidate.layer,
            program=program,
            layouts=layouts,
            mapping=candidate.name,
            alone=candidate.cycles,
        )

    def _check_layouts(self, part: NetworkPart, candidate: LayerCandidate, program: Program) -> None:
        """Raise a ScheduleError for a program with other layouts, or whose halo cannot grow."""
        assert part.layer is not None
        assert candidate.writes is not None
        for name, layout in [*candidate.reads.items(), (part.layer.output, candidate.writes)]:
            tensors = [one for one in program.tensors if one.name == name]
            source = part.fused.output if name == part.layer.output else operand_of(part, name).tensor
            size = self._sizes[source]
            with_halo = replace(
                layout, halo_above=layout.halo_above + 1, halo_below=max(layout.halo_below, 0)
            )
            if len(tensors) != 1 or not has_layout(
                tensors[0], size, layout, self._config.batch, self._config.block_in
            ):
                raise ScheduleError(f"tensor {name!r} has another layout")
            positions = element_positions(size, layout, with_halo)
            if relocate_transfers(program, tensors[0].offset, positions) is None:
                raise ScheduleError(f"tensor {name!r} cannot have a halo")

    def _program(self, layer: LoweredLayer, choice: MappingChoice, mapping: str) -> Program:
        key = layer.operator, layer.parameters, mapping
        for known, program in self._programs:
            if known == key:
                return program
        image = compile_mapped(choice.mapping, choice.schedule(machine(self._config)), self._config)
        self._programs.append((key, as_program(image)))
        return self._programs[-1][1]

    def choices(self, chosen: Sequence[LayerCandidate]) -> tuple[LayoutChoice, ...]:
        found = []
        for at, part in enumerate(self._parts):
            if len(self.candidates[at]) < 2:
                continue
            shared = [number for number, picture in enumerate(self._pictures) if at in picture.layers]
            ranked: list[tuple[int, LayoutAlternative]] = []
            for candidate in self.candidates[at]:
                assignment = dict(enumerate(chosen)) | {at: candidate}
                costs = [self._cost(number, assignment) for number in shared]
                if any(cost is None for cost in costs):
                    continue
                exchange = sum(cost for cost in costs if cost is not None)
                one = LayoutAlternative(mapping=candidate.name, cycles=candidate.cycles, exchange=exchange)
                rank = 0 if candidate is chosen[at] else 1 + one.cycles + exchange
                ranked.append((rank, one))
            ranked.sort(key=lambda pair: pair[0])
            alternatives = tuple(one for _, one in ranked)
            found.append(LayoutChoice(name=part.fused.name, alternatives=alternatives))
        return tuple(found)
