"""Chains: the programs of several layers as one, which runs from the first to the last without the host.

Layers follow one another in one instruction stream, whose tokens come from an analysis of all of it: LOADs of
tensors wait for the STOREs that write what they read, each for itself or once for the layer, whichever takes
fewer cycles; weights, micro-ops and parameters of a layer are loaded as soon as there is room for them.
Tensors between layers lie in a pool that is planned.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from accel.base.errors import GraphError
from accel.base.names import Names
from accel.compiler.codegen.dependence import CARRIER, Dependences, Ordered, dependences, with_tokens
from accel.core.config import Config
from accel.core.isa import (
    Finish,
    Finishing,
    Instruction,
    Load,
    Loops,
    Memory,
    OwnMemory,
    Set,
    SetAcc,
    SetInp,
    SetOut,
    SetSum,
    Store,
    Transfer,
    Unit,
    encode,
    without_tokens,
)
from accel.graph.graph import Graph
from accel.image.image import Image
from accel.image.link import Linker, alignment
from accel.image.references import NO_PART, References
from accel.image.references import Part as Place
from accel.image.tensor import ImageTensor, Region
from accel.network.copies import loads_of_copies
from accel.network.layout import places
from accel.network.lower import Operand
from accel.network.memory import Lifetime, MemoryPlan, plan
from accel.network.place import Part
from accel.network.stored import stored_layouts, taken_layouts
from accel.network.transfers import moved_elements
from accel.network.views import Stored, find_views, may_be_view, stored_as, view_of
from accel.proof.shared_dram import SharedDram
from accel.run.program import Program, as_program
from accel.run.tensors import same_packing
from accel.sim.timing.model import simulate_timing

UOP_BYTES = 4
"""Of a micro-op in DRAM."""
_TENSORS = (Memory.INP, Memory.ACC, Memory.ACC_8BIT, OwnMemory.RES)
"""Memories that LOADs fill with tensors, not with constants."""


WAITS = ("once for each layer", "for what each transfer reads", "each layer as is better for it")
"""How LOADs of a layer wait for the STOREs of those before."""


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Layers that run one behind the other, as one program.

    Attributes:
        parts: the layers, with those in between that move nothing.
        program: all of it.
        operands: what the program takes, by the names of its inputs.
        outputs: tensors of the graph by the names of the program's outputs.
        ends: the instruction behind the last one of each layer.
        memory: where tensors lie that stay within the chain.
        compared: cycles by how layers wait for one another, of which the least was taken; see :data:`WAITS`.
    """

    parts: tuple[Part, ...]
    program: Program
    operands: dict[str, Operand]
    outputs: dict[str, str]
    ends: tuple[int, ...]
    memory: MemoryPlan
    compared: Mapping[str, int]

    @property
    def layers(self) -> tuple[Part, ...]:
        """The parts that the machine runs."""
        return tuple(part for part in self.parts if part.on_machine)

    def whole(self, graph: Graph) -> Program:
        """The program with the graph's constants in it, for those who know programs only."""
        segments, tensors = list(self.program.segments), list(self.program.tensors)
        for at, tensor in enumerate(tensors):
            operand = self.operands.get(tensor.name)
            values = None if operand is None else operand.known(graph)
            if values is not None:
                segments.append((tensor.offset, tensor.pack(values).tobytes()))
                tensors[at] = replace(tensor, role="constant")
        return replace(self.program, tensors=tuple(tensors), segments=tuple(segments))


def divide(graph: Graph, parts: Sequence[Part]) -> list[tuple[Part, ...]]:
    """Parts of the machine in groups within which tensors need not be packed anew.

    Args:
        graph: the parts'.
        parts: of the machine, and some that are to move nothing.
    """
    groups: list[list[Part]] = [[]]
    made: dict[str, ImageTensor | Stored] = {}
    for part in parts:
        if any(name in made and not _fits(graph, made[name], part, name) for name in part.stage.inputs):
            groups.append([])
            made = {}
        groups[-1].append(part)
        out = part.output if part.on_machine else _moved(graph, part, made)
        if out is not None:
            made[part.stage.output] = out
    return [tuple(group) for group in groups if group]


def _moved(graph: Graph, part: Part, made: Mapping[str, ImageTensor | Stored]) -> ImageTensor | Stored | None:
    """What a part that moves nothing has where its operands lie; None where they do not."""
    sources = [made.get(name) for name in part.stage.main.inputs]
    if not may_be_view(graph, part):
        return sources[0]
    view = view_of(graph, part, [stored_as(one) if isinstance(one, ImageTensor) else one for one in sources])
    return None if view is None else view[0]


def _fits(graph: Graph, made: ImageTensor | Stored, part: Part, name: str) -> bool:
    """Whether a part takes a tensor as another has written it."""
    if part.layer is None or part.program is None:
        return True
    operands = [one for one in part.layer.operands if one.tensor == name and not one.made]
    stored = stored_as(made) if isinstance(made, ImageTensor) else made
    for operand in operands:
        if operand.copies > 1 and (
            stored is None or loads_of_copies(graph, part.program, operand, stored) is None
        ):
            return False
    names = [operand.name for operand in operands if operand.copies == 1]
    if isinstance(made, Stored):
        return all(made.is_taken_as(one) for one in part.program.tensors if one.name in names)
    return all(
        one.dtype == made.dtype
        and one.preparation is None
        and one.widening is None
        and same_packing(one, made)
        for one in part.program.tensors
        if one.name in names
    )


class _Names:
    """Names that programs can have, for tensors of the graph."""

    def __init__(self) -> None:
        self._names = Names()

    def fresh(self, name: str) -> str:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        return self._names.fresh(plain if plain.isidentifier() else f"t{plain}")


class _Room:
    """Places of what a chain has in DRAM, one behind the other."""

    def __init__(self, config: Config) -> None:
        self.step = alignment(config)
        self.places: list[Place] = []
        self._limit = config.mem_size
        self._reached = 0

    def take(self, name: str, nbytes: int, like: int = 0) -> Place:
        """Room for so many bytes, as far behind a page's start as ``like``.

        Raises:
            GraphError: there is none left.
        """
        start = -(-self._reached // self.step) * self.step + like % self.step
        self._reached = start + nbytes
        if self._reached > self._limit:
            raise GraphError(
                f"the network does not fit into the machine's memory: tensors and constants take more than "
                f"mem_size={self._limit} bytes"
            )
        found = Place(offset=start, nbytes=nbytes, name=name)
        self.places.append(found)
        return found


def chain(graph: Graph, parts: Sequence[Part], needed: set[str], config: Config) -> Chain:
    """One program for several layers.

    Args:
        graph: the parts'.
        parts: as :func:`divide` groups them; at least one of them is a layer.
        needed: tensors that the host or another program needs.
        config: the machine.

    Raises:
        GraphError: the machine's memory is too small.
    """
    return _Chaining(graph, parts, needed, config).result()


class _Chaining:
    """A chain under construction."""

    def __init__(self, graph: Graph, parts: Sequence[Part], needed: set[str], config: Config) -> None:
        self._graph = graph
        self._parts = tuple(parts)
        self._layers = [part for part in parts if part.on_machine]
        self._config = config
        self._names = _Names()
        self._room = _Room(config)
        self._tensors: list[ImageTensor] = []
        self._segments: list[tuple[int, bytes]] = []
        self._operands: dict[str, Operand] = {}
        self._outputs: dict[str, str] = {}
        self._elsewhere: dict[int, dict[int, Sequence[Transfer]]] = {}
        """Of layers whose tensors lie otherwise than in their own programs, transfers in the place of their
        own, by instructions' numbers."""
        self._known: dict[object, Place] = {}
        """Places of what several layers share: weights, micro-ops, inputs."""
        self._views = find_views(graph, parts, needed, config)
        assert not self._views.wrong
        made = {part.stage.output: part.output for part in self._layers}
        self._made = {name: tensor for name, tensor in made.items() if self._root(name) == name}
        self._bytes = {name: one.nbytes for name, one in self._made.items()}
        self._bytes |= {name: size for name, size in self._views.nbytes.items() if self._root(name) == name}
        self._stored = stored_layouts(self._layers, needed, self._parts, config)
        for name, stored in self._stored.items():
            if self._root(name) == name and name not in stored.keys:
                del self._made[name], self._bytes[name]
            self._bytes |= {key: stored.nbytes(key) for key in (*stored.keys, *stored.turned) if key != name}
        self._kept = {self._root(name) for name in needed} & self._made.keys()
        self._memory = self._plan()

    def _key(self, part: Part, name: str) -> str:
        """What a layer takes for a tensor: it, or one of its layouts."""
        stored = self._stored.get(name)
        layouts = [] if stored is None else taken_layouts(part, name)
        return name if stored is None or not layouts else stored.key(layouts[0])

    def _root(self, name: str) -> str:
        """The tensor that one is, or lies in."""
        return self._views.place(name)[0]

    def _plan(self) -> MemoryPlan:
        """Where tensors lie that only layers of the chain need."""
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for at, part in enumerate(self._layers):
            out = self._stored.get(part.stage.output)
            written = [part.stage.output] if out is None else [*out.keys, *out.turned]
            taken = (self._key(part, name) for name in part.stage.inputs)
            for name in map(self._root, written):
                first.setdefault(name, at)
            for name in map(self._root, (*written, *taken)):
                if name in self._bytes:
                    last[name] = at
        lifetimes = [
            Lifetime(name=name, nbytes=nbytes, first=first[name], last=last[name])
            for name, nbytes in self._bytes.items()
            if name not in self._kept
        ]
        return plan(lifetimes, self._room.step)

    def result(self) -> Chain:
        pool = self._room.take(self._names.fresh("activations"), self._memory.nbytes)
        placed: dict[str, Place] = {
            name: Place(offset=pool.offset + at, nbytes=self._bytes[name], name=pool.name)
            for name, at in self._memory.offsets.items()
        }
        for name in self._made:
            if name in self._kept:
                placed[name] = self._output_place(name)
        linked = [self._linked(at, part, placed) for at, part in enumerate(self._layers)]
        exchanged = [self._exchanged(part, placed) for part in self._layers]
        code = self._room.take(self._names.fresh("code"), 0)
        numbers = {place.offset: number for number, place in enumerate(self._room.places) if place.nbytes}
        starts = np.array(sorted(numbers), dtype=np.int64)
        programs = [part.program.instructions for part in self._layers if part.program is not None]
        instructions: list[Instruction] = []
        of: list[int] = []
        layers: list[int] = []
        for at, image in enumerate(linked):
            assert image.references is not None
            body = self._settled(at, linked)
            meant = [NO_PART] * len(body)
            elsewhere = self._elsewhere.get(at, {})
            for n, number in enumerate(image.references.of[:-1].tolist()):  # FINISH ends the whole
                start = NO_PART if number == NO_PART else image.references.parts[number].offset
                one = image.instructions[n]
                taken = [one] if n not in elsewhere else self._moved(elsewhere[n], one, programs[at][n])
                body += taken
                part = NO_PART if number == NO_PART else numbers[_floor(starts, start)]
                meant += [part] * len(taken)
            for n in _constants_first(body) if at else range(len(body)):
                instructions.append(without_tokens(body[n]))
                of.append(meant[n])
            layers += [at] * len(body)
            for one, place in exchanged[at]:
                instructions.append(one)
                of.append(NO_PART if place is None else numbers[_floor(starts, place)])
                layers.append(at)
        ordered, compared = self._fastest(instructions, layers, code.offset)
        sources = ordered.sources.tolist()
        words = encode(ordered.program.followed_by(Finish()), self._config)
        of = [*(NO_PART if n == CARRIER else of[n] for n in sources), NO_PART]
        ends = _ends([None if n == CARRIER else layers[n] for n in sources], len(linked))
        places = [replace(one, nbytes=len(words)) if one is code else one for one in self._room.places]
        regions = [Region(name=pool.name, offset=pool.offset, nbytes=pool.nbytes)] if pool.nbytes else []
        image = Image(
            config=self._config,
            code=words,
            code_offset=code.offset,
            segments=tuple(self._segments),
            tensors=tuple(self._tensors),
            regions=tuple(regions),
            references=References(parts=tuple(places), of=np.array(of, dtype=np.int32)),
        )
        program = as_program(image)
        program.check().raise_if_bad()
        return Chain(
            parts=self._parts,
            program=program,
            operands=self._operands,
            outputs=self._outputs,
            ends=tuple(ends),
            memory=self._memory,
            compared=compared,
        )

    def _output_place(self, name: str) -> Place:
        """Room for a tensor that is needed outside."""
        tensor = self._made[name]
        called = self._names.fresh(name)
        place = self._room.take(called, tensor.nbytes, tensor.offset)
        self._tensors.append(replace(tensor, name=called, offset=place.offset))
        self._outputs[called] = name
        return place

    def _exchanged(self, part: Part, placed: Mapping[str, Place]) -> list[tuple[Instruction, int | None]]:
        """What moves rows behind a layer, each instruction with the place in DRAM that it means."""
        stored = self._stored.get(part.stage.output)
        found: list[tuple[Instruction, int | None]] = []
        for exchange, names in () if stored is None else stored.exchanges:
            offsets = {what: self._constant(what, data) for what, data in exchange.constants.items()}
            for what, name in names.items():
                root, before = self._views.place(name)
                offsets[what] = placed[root].offset + before
            found += [(one, offsets.get(what)) for one, what in exchange.instructions(offsets)]
        return found

    def _constant(self, name: str, data: bytes) -> int:
        """The place of what an exchange of rows needs; one for equal contents."""
        if data not in self._known:
            self._known[data] = place = self._room.take(self._names.fresh(name), len(data))
            self._segments.append((place.offset, data))
        return self._known[data].offset

    def _moved(
        self, transfers: Sequence[Transfer], linked: Instruction, own: Instruction
    ) -> list[Instruction]:
        """Transfers of a layer's own program, as far away as one of them is after linking."""
        assert isinstance(linked, Transfer)
        assert isinstance(own, Transfer)
        distance = linked.dram_base - own.dram_base
        return [replace(one, dram_base=one.dram_base + distance) for one in transfers]

    def _linked(self, at: int, part: Part, placed: dict[str, Place]) -> Image:
        """A layer's program with its parts where the chain has them."""
        assert part.layer is not None
        assert part.program is not None
        program = part.program
        linker = Linker(program)
        operands = {operand.name: operand for operand in part.layer.operands}
        tensors = {tensor.offset: tensor for tensor in program.tensors}
        contents = dict(program.segments)
        places: dict[Place, int] = {}
        for one in linker.parts:
            tensor = tensors.get(one.offset)
            if one.offset == program.code_offset:
                continue
            if tensor is None or tensor.role == "constant":
                places[one] = self._own(one, contents).offset
            elif tensor.role == "output":
                key = self._own_key(at, part, tensor, part.stage.output)
                root, before = self._views.place(key)
                places[one] = placed[root].offset + before
            else:
                operand = operands[tensor.name]
                key = operand.tensor if operand.made else self._own_key(at, part, tensor, operand.tensor)
                root, before = self._views.place(key)
                if root in placed and not operand.made:
                    places[one] = placed[root].offset + before
                    stored = self._views.stored.get(operand.tensor)
                    if operand.copies > 1 and stored is not None:
                        found = loads_of_copies(self._graph, program, operand, stored)
                        assert found is not None  # else it were in another chain
                        self._elsewhere[at] = dict(found)
                else:
                    places[one] = self._input(tensor, operand).offset
        return linker.linked(places, within_pages=True)

    def _own_key(self, at: int, part: Part, tensor: ImageTensor, name: str) -> str:
        """Which of a tensor's layouts a layer has it in. Where that holds more lines than the layer's own
        program knows of, its transfers find them there."""
        stored, laid = self._stored.get(name), part.laid
        if stored is None:
            return name
        if laid is None:
            return name if name != part.stage.output else stored.first
        layout = laid.makes if name == part.stage.output else laid.takes.get(tensor.name)
        if layout is None:
            return name
        key = stored.key(layout)
        elements = places(stored.picture, layout, stored.layouts[key])
        if not np.array_equal(elements, np.arange(len(elements))):
            assert part.program is not None
            found = moved_elements(part.program, tensor.offset, elements)
            assert found is not None  # that was found out when it was chosen
            self._elsewhere.setdefault(at, {}).update(found)
        return key

    def _own(self, one: Place, contents: dict[int, bytes]) -> Place:
        """Room for what only the layer's instructions know, as micro-ops; one for equal contents."""
        inside = {at - one.offset: data for at, data in contents.items() if one.offset <= at < one.stop}
        key = (one.nbytes, one.offset % self._room.step, tuple(sorted(inside.items())))
        if not inside or key not in self._known:
            place = self._room.take(self._names.fresh(one.name or "part"), one.nbytes, one.offset)
            self._known[key] = place
            self._segments += [(place.offset + at, data) for at, data in inside.items()]
            return place
        return self._known[key]

    def _input(self, tensor: ImageTensor, operand: Operand) -> Place:
        """Room for what comes from outside; one for equal tensors in equal packings."""
        source = self._root(operand.tensor)
        copies = (operand.copies, operand.axis, operand.groups, operand.whole)
        if operand.made:
            source = f"{operand.name}_of_{source}"
        key = (source, operand.made, copies, replace(tensor, name="", offset=tensor.offset % self._room.step))
        if key not in self._known:
            called = self._names.fresh(source)
            place = self._room.take(called, tensor.nbytes, tensor.offset)
            self._tensors.append(replace(tensor, name=called, offset=place.offset))
            self._operands[called] = replace(operand, tensor=self._root(operand.tensor))
            self._known[key] = place
        return self._known[key]

    def _settled(self, at: int, linked: Sequence[Image]) -> list[Instruction]:
        """What comes before a layer's instructions: it finds SETs as at the start of a run."""
        before = {type(one) for image in linked[:at] for one in image.instructions if isinstance(one, Set)}
        body = linked[at].instructions
        own = {type(one) for one in body if isinstance(one, Set)}
        kinds: list[type[Set]] = [SetInp, SetAcc]
        stores = {one.memory for one in body if isinstance(one, Store)}
        if stores & {Finishing.REQ, Finishing.ADD}:
            kinds.append(SetOut)
        if Finishing.ADD in stores:
            kinds.append(SetSum)
        return [kind() for kind in kinds if kind in before - own]

    def _fastest(
        self, instructions: Sequence[Instruction], layers: Sequence[int], offset: int
    ) -> tuple[Ordered, dict[str, int]]:
        """The instructions with tokens, and the cycles of all ways in which layers can wait.

        Args:
            instructions: without tokens.
            layers: the number of the layer of each.
            offset: where the program will be.
        """
        once = self._gathered(instructions, layers)
        needed = self._dependences(instructions)
        if not once:
            return with_tokens(needed), {}
        found: dict[str, tuple[int, Ordered]] = {}
        cycles: list[list[int]] = []
        of = np.array(layers, dtype=np.int64)

        def attempt(name: str, after: Mapping[int, int]) -> None:
            ordered = with_tokens(needed, after)
            program = [*ordered.program, Finish()]
            run = simulate_timing(
                program,
                self._config,
                address=self._config.mem_base + offset,
                checked=[None] * len(program),  # the one that is taken is checked in the end
            )
            sources = ordered.sources
            own, last = sources != CARRIER, np.zeros(len(self._layers), dtype=np.int64)
            np.maximum.at(last, of[sources[own]], run.columns.retire[:-1][own])
            cycles.append(np.diff(np.maximum.accumulate(last), prepend=0).tolist())
            found[name] = run.cycles, ordered

        attempt(WAITS[0], once)
        attempt(WAITS[1], {})
        better = [one <= other for one, other in zip(*cycles, strict=True)]
        if not all(better) and any(better):
            attempt(WAITS[2], {late: early for late, early in once.items() if better[layers[late]]})
        best = min(found, key=lambda name: found[name][0])
        return found[best][1], {name: taken for name, (taken, _) in found.items()}

    def _gathered(self, instructions: Sequence[Instruction], layers: Sequence[int]) -> dict[int, int]:
        """For each layer's first LOAD of a tensor that another layer has made, the last STORE of that layer.

        Waiting once leaves the LOADs behind it free to run ahead; each wait takes the way through compute.
        """
        makers: dict[str, list[int]] = {}
        for at, part in enumerate(self._layers):
            makers.setdefault(self._root(part.stage.output), []).append(at)
        sources = [
            max(
                (
                    maker
                    for name in map(self._root, part.stage.inputs)
                    for maker in makers.get(name, ())
                    if maker < at
                ),
                default=None,
            )
            for at, part in enumerate(self._layers)
        ]
        stores: dict[int, int] = {}
        found: dict[int, int] = {}
        seen: set[int] = set()
        for index, (one, layer) in enumerate(zip(instructions, layers, strict=True)):
            source = sources[layer]
            if isinstance(one, Store):
                stores[layer] = index
            elif isinstance(one, Load) and one.memory in _TENSORS and layer not in seen:
                seen.add(layer)
                if source is not None and one.unit is not Unit.STORE:
                    found[index] = stores[source]
        return found

    def _dependences(self, instructions: Sequence[Instruction]) -> Dependences:
        """What the instructions have to wait for, as if one program had been emitted."""
        size = max((at + len(data) for at, data in self._segments), default=0)
        memory = np.zeros(-(-size // UOP_BYTES) * UOP_BYTES, dtype=np.uint8)
        for at, data in self._segments:
            memory[at : at + len(data)] = np.frombuffer(data, dtype=np.uint8)
        shared = SharedDram(instructions, self._config)
        return dependences(instructions, self._config, memory.view("<u4"), shared)


def _constants_first(body: Sequence[Instruction]) -> list[int]:
    """A layer's instructions, by number, with its first weights, micro-ops and parameters in front.

    Nobody has to wait for these but for room. What moves is before the first product and the first STORE.
    """
    own = next((n for n, one in enumerate(body) if isinstance(one, Loops | Store)), 0)
    first = [n for n, one in enumerate(body[:own]) if isinstance(one, Load) and one.memory not in _TENSORS]
    moved = set(first)
    return [*first, *(n for n in range(len(body)) if n not in moved)]


def _ends(layers: Sequence[int | None], count: int) -> list[int]:
    """The instruction behind each layer's last; what has no layer goes with what follows."""
    ends = [0] * count
    for index, layer in enumerate(layers):
        if layer is not None:
            ends[layer] = index + 1
    ends[-1] = len(layers) + 1
    return ends


def _floor(starts: npt.NDArray[np.int64], offset: int) -> int:
    """The last start that is not behind an offset."""
    return int(starts[np.searchsorted(starts, offset, "right") - 1])
