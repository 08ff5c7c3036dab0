"""Chains: the programs of several layers as one, which runs from the first to the last without the host.

Layers follow one another in one instruction stream. Where one ends, the store unit tells the compute unit
that everything is written, and the compute unit tells the other two that they may go on: so what a layer
reads is there, and what it overwrites nobody needs. Tensors between layers lie in a pool that is planned.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from accel.core.config import INSTRUCTION_BYTES, Config
from accel.core.isa import Gemm, Instruction, SetAcc, SetInp, Store, encode
from accel.graph.graph import Graph
from accel.image.image import Image
from accel.image.link import Linker, alignment
from accel.image.references import NO_PART, References
from accel.image.references import Part as Place
from accel.image.tensor import ImageTensor, Region
from accel.network.lower import Operand
from accel.network.memory import Lifetime, MemoryPlan, plan
from accel.network.place import Part
from accel.run.program import Program, as_program
from accel.run.tensors import same_packing


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
    """

    parts: tuple[Part, ...]
    program: Program
    operands: dict[str, Operand]
    outputs: dict[str, str]
    ends: tuple[int, ...]
    memory: MemoryPlan

    @property
    def layers(self) -> tuple[Part, ...]:
        """The parts that the machine runs."""
        return tuple(part for part in self.parts if part.on_machine)

    def whole(self, graph: Graph) -> Program:
        """The program with the graph's constants in it, for those who know programs only."""
        segments, tensors = list(self.program.segments), list(self.program.tensors)
        for at, tensor in enumerate(tensors):
            operand = self.operands.get(tensor.name)
            if operand is not None and operand.tensor in graph.constants:
                values = operand.values(graph, graph.constants[operand.tensor])
                segments.append((tensor.offset, tensor.pack(values).tobytes()))
                tensors[at] = replace(tensor, role="constant")
        return replace(self.program, tensors=tuple(tensors), segments=tuple(segments))


def divide(graph: Graph, parts: Sequence[Part]) -> list[tuple[Part, ...]]:
    """Parts of the machine in groups within which tensors need not be packed anew.

    Args:
        graph: the parts'.
        parts: of the machine, and some that move nothing.
    """
    groups: list[list[Part]] = [[]]
    made: dict[str, ImageTensor] = {}
    for part in parts:
        if any(name in made and not _fits(made[name], part, name) for name in part.stage.inputs):
            groups.append([])
            made = {}
        groups[-1].append(part)
        out = _output(part) if part.on_machine else made.get(part.stage.main.inputs[0])
        if out is not None:
            made[part.stage.output] = out
    return [tuple(group) for group in groups if group]


def _fits(made: ImageTensor, part: Part, name: str) -> bool:
    """Whether a part takes a tensor as another has written it."""
    if part.layer is None or part.program is None:
        return True
    names = [operand.name for operand in part.layer.operands if operand.tensor == name]
    return all(
        one.dtype == made.dtype
        and one.preparation is None
        and one.widening is None
        and same_packing(one.layout, made.layout)
        for one in part.program.tensors
        if one.name in names
    )


def _output(part: Part) -> ImageTensor:
    assert part.layer is not None
    assert part.program is not None
    return next(one for one in part.program.tensors if one.name == part.layer.output)


class _Names:
    """Names that programs can have, for tensors of the graph."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def fresh(self, name: str) -> str:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        plain = plain if plain.isidentifier() else f"t{plain}"
        found, number = plain, 1
        while found in self._used:
            number += 1
            found = f"{plain}_{number}"
        self._used.add(found)
        return found


class _Room:
    """Places of what a chain has in DRAM, one behind the other."""

    def __init__(self, config: Config) -> None:
        self.step = alignment(config)
        self.places: list[Place] = []
        self._reached = 0

    def take(self, name: str, nbytes: int, like: int = 0) -> Place:
        """Room for so many bytes, as far behind a page's start as ``like``."""
        start = -(-self._reached // self.step) * self.step + like % self.step
        self._reached = start + nbytes
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
        self._known: dict[object, Place] = {}
        """Places of what several layers share: weights, micro-ops, inputs."""
        self._aliases = self._find_aliases()
        self._made = {self._root(part.stage.output): _output(part) for part in self._layers}
        self._kept = {self._root(name) for name in needed} & self._made.keys()
        self._memory = self._plan()

    def _find_aliases(self) -> dict[str, str]:
        """Tensors that are others under another name."""
        return {part.stage.output: part.stage.main.inputs[0] for part in self._parts if not part.on_machine}

    def _root(self, name: str) -> str:
        while name in self._aliases:
            name = self._aliases[name]
        return name

    def _plan(self) -> MemoryPlan:
        """Where tensors lie that only layers of the chain need."""
        first = {self._root(part.stage.output): at for at, part in enumerate(self._layers)}
        last = dict(first)
        for at, part in enumerate(self._layers):
            for name in part.stage.inputs:
                if self._root(name) in last:
                    last[self._root(name)] = at
        lifetimes = [
            Lifetime(name=name, nbytes=tensor.nbytes, first=first[name], last=last[name])
            for name, tensor in self._made.items()
            if name not in self._kept
        ]
        return plan(lifetimes, self._room.step)

    def result(self) -> Chain:
        pool = self._room.take(self._names.fresh("activations"), self._memory.nbytes)
        placed: dict[str, Place] = {
            name: Place(offset=pool.offset + at, nbytes=self._made[name].nbytes, name=pool.name)
            for name, at in self._memory.offsets.items()
        }
        for name in self._made:
            if name in self._kept:
                placed[name] = self._output_place(name)
        linked = [self._linked(part, placed) for part in self._layers]
        code = self._room.take(self._names.fresh("code"), 0)
        numbers = {place.offset: number for number, place in enumerate(self._room.places) if place.nbytes}
        starts = np.array(sorted(numbers), dtype=np.int64)
        words: list[bytes] = []
        of: list[int] = []
        ends: list[int] = []
        for at, image in enumerate(linked):
            if at:
                between = self._between(linked[:at])
                words.append(encode(between, self._config))
                of += [NO_PART] * len(between)
            assert image.references is not None
            last = at == len(linked) - 1
            count = len(image.code) // INSTRUCTION_BYTES - (not last)  # FINISH ends the whole
            words.append(image.code[: count * INSTRUCTION_BYTES])
            meant = [
                NO_PART
                if number == NO_PART
                else numbers[_floor(starts, image.references.parts[number].offset)]
                for number in image.references.of[:count].tolist()
            ]
            of += meant
            ends.append(len(of))
        content = b"".join(words)
        places = [replace(one, nbytes=len(content)) if one is code else one for one in self._room.places]
        regions = [Region(name=pool.name, offset=pool.offset, nbytes=pool.nbytes)] if pool.nbytes else []
        image = Image(
            config=self._config,
            code=content,
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
        )

    def _output_place(self, name: str) -> Place:
        """Room for a tensor that is needed outside."""
        tensor = self._made[name]
        called = self._names.fresh(name)
        place = self._room.take(called, tensor.nbytes, tensor.offset)
        self._tensors.append(replace(tensor, name=called, offset=place.offset))
        self._outputs[called] = name
        return place

    def _linked(self, part: Part, placed: dict[str, Place]) -> Image:
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
                places[one] = placed[self._root(part.stage.output)].offset
            else:
                name = self._root(operands[tensor.name].tensor)
                found = placed.get(name) or self._input(tensor, operands[tensor.name])
                places[one] = found.offset
        return linker.linked(places)

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
        key = (source, replace(tensor, name="", offset=tensor.offset % self._room.step))
        if key not in self._known:
            called = self._names.fresh(source)
            place = self._room.take(called, tensor.nbytes, tensor.offset)
            self._tensors.append(replace(tensor, name=called, offset=place.offset))
            self._operands[called] = replace(operand, tensor=source)
            self._known[key] = place
        return self._known[key]

    def _between(self, before: Sequence[Image]) -> list[Instruction]:
        """What stands between two layers: everything is over when the second begins, and no SET is left."""
        found: list[Instruction] = [
            Store(push_prev=True),
            Gemm(pop_next=True, push_prev=True, push_next=True),
            SetInp(pop_next=True),
            Store(pop_prev=True),
        ]
        if any(isinstance(one, SetAcc) for image in before for one in image.instructions):
            found.append(SetAcc())
        return found


def _floor(starts: npt.NDArray[np.int64], offset: int) -> int:
    """The last start that is not behind an offset."""
    return int(starts[np.searchsorted(starts, offset, "right") - 1])
