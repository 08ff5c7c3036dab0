"""The construction of a chain's program.

Layers' programs get the chain's addresses and new tokens. LOADs of weights, micro-ops and parameters move to
the beginning of their layer, since they need no data of other layers.
"""

from collections.abc import Collection, Sequence

import numpy as np
from msgspec import Struct, field

from accel.base.records import replace
from accel.compiler.codegen.token_insertion import CARRIER, Ordered
from accel.core.config import Config
from accel.core.isa import (
    Finish,
    Instruction,
    Load,
    Loops,
    Memory,
    Set,
    SetAcc,
    SetInp,
    SetOut,
    SetSum,
    SetWgt,
    Store,
    StoreAdd,
    StoreReq,
    Transfer,
    encode,
    without_tokens,
)
from accel.graph.graph import Graph
from accel.image.dram_references import NO_PART, Part, References
from accel.image.image import Image
from accel.image.image_tensor import ImageTensor, Region
from accel.image.linker import Linker
from accel.network.chain_memory import ChainMemory
from accel.network.chain_waits import TENSOR_MEMORIES, insert_fastest_tokens
from accel.network.chained_program import Chain
from accel.network.network_part import NetworkPart
from accel.network.relocated_transfers import relocate_transfers, scatter_store, transfers_at
from accel.network.repeated_operands import loads_of_copies
from accel.network.repeated_residuals import Entry, Located, RepeatedStore, StorePiece, without_repeats
from accel.network.strip_layout import element_positions
from accel.run.program import as_program


def build_chain(
    graph: Graph, parts: Sequence[NetworkPart], needed: set[str], config: Config, jobs: int = 1
) -> Chain:
    """The host or another chain reads ``needed`` tensors."""
    return _ChainBuilder(graph, parts, needed, config).build(jobs)


class _Stream(Struct):
    """Instructions without tokens, the DRAM offsets that they touch, and the indices of their layers."""

    instructions: list[Instruction] = field(default_factory=list)
    offsets: list[int | None] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)
    _without_tokens: dict[Instruction, Instruction] = field(default_factory=dict)
    """Equal instructions become one object, which later steps process once."""

    def append(self, instruction: Instruction, offset: int | None, layer: int) -> None:
        plain = without_tokens(instruction)
        self.instructions.append(self._without_tokens.setdefault(plain, plain))
        self.offsets.append(offset)
        self.layers.append(layer)


class _ChainBuilder:
    def __init__(self, graph: Graph, parts: Sequence[NetworkPart], needed: set[str], config: Config) -> None:
        self._graph = graph
        self._parts = tuple(parts)
        self._layers = [part for part in parts if part.on_machine]
        self._config = config
        self._memory = ChainMemory(graph, parts, needed, config)
        self._relocated: dict[int, dict[int, Sequence[Transfer]]] = {}
        """By layer and instruction index: the transfers that replace the instruction."""
        self._pieces: dict[int, dict[int, list[StorePiece]]] = {}
        """Likewise, the STOREs of copies that follow it."""
        self._dropped: set[int] = set()
        """Layers of which only copies are stored."""

    def build(self, jobs: int) -> Chain:
        linked = [self._link(at, part) for at, part in enumerate(self._layers)]
        exchanges = [self._row_exchanges(part) for part in self._layers]
        code = self._memory.allocator.allocate(self._memory.unique_name("code"), 0)
        stream = self._stream(linked, exchanges)
        ordered, compared = insert_fastest_tokens(
            stream.instructions,
            stream.layers,
            self._producers(),
            self._memory.segments,
            self._config,
            code.offset,
            jobs,
        )
        program = as_program(self._image(stream, ordered, code))
        program.check().raise_if_bad()
        layers = [None if n == CARRIER else stream.layers[n] for n in ordered.sources.tolist()]
        return Chain(
            parts=self._parts,
            program=program,
            operands=self._memory.operands,
            outputs=self._memory.outputs,
            ends=tuple(_ends(layers, len(linked))),
            memory=self._memory.plan,
            compared=compared,
        )

    def _producers(self) -> list[int | None]:
        writers: dict[str, list[int]] = {}
        for at, part in enumerate(self._layers):
            for name in (part.fused.output, *self._memory.copies_of(part)):
                writers.setdefault(self._memory.root(name), []).append(at)
        return [
            max(
                (
                    writer
                    for name in map(self._memory.root, part.fused.inputs)
                    for writer in writers.get(name, ())
                    if writer < at
                ),
                default=None,
            )
            for at, part in enumerate(self._layers)
        ]

    # --- one layer -------------------------------------------------------------------------------

    def _link(self, at: int, part: NetworkPart) -> Image:
        assert part.layer is not None
        assert part.program is not None
        program, memory = part.program, self._memory
        linker = Linker(program)
        tensors = {tensor.offset: tensor for tensor in program.tensors}
        segments = dict(program.segments)
        offsets: dict[Part, int] = {}
        for one in linker.parts:
            if one.offset == program.code_offset:
                continue
            tensor = tensors.get(one.offset)
            if tensor is None or tensor.role == "constant":
                offsets[one] = memory.layer_constant(one, segments)
            elif tensor.role == "output":
                offsets[one] = self._output_offset(at, part, tensor)
            else:
                offsets[one] = self._input_offset(at, part, tensor)
        return linker.linked(offsets, within_pages=True)

    def _output_offset(self, at: int, part: NetworkPart, tensor: ImageTensor) -> int:
        assert part.program is not None
        memory, element = self._memory, self._config.out_element_bytes
        base = tensor.offset // element
        found: int | None = None
        copied: dict[int, list[StorePiece]] = {}
        buffers = memory.copies_of(part)
        stores = transfers_at(part.program, tensor.offset) if buffers else {}
        for buffer in buffers:
            found = memory.offset(buffer)
            assert found is not None
            for positions in memory.aliases.copies[buffer].positions[part.fused.output]:
                for index, store in stores.items():
                    assert isinstance(store, Store)
                    copied.setdefault(index, []).extend(
                        StorePiece(
                            store=replace(one, dram_base=one.dram_base - base + found // element),
                            offset=found,
                            elements=elements,
                        )
                        for one, elements in scatter_store(store, base, positions)
                    )
        self._pieces[at] = copied
        if part.fused.output in memory.aliases.unread:
            self._dropped.add(at)
            return found or 0
        found = memory.offset(self._buffer(at, part, tensor, part.fused.output))
        assert found is not None
        return found

    def _input_offset(self, at: int, part: NetworkPart, tensor: ImageTensor) -> int:
        assert part.layer is not None
        assert part.program is not None
        operand = next(one for one in part.layer.operands if one.name == tensor.name)
        if operand.generated:
            return self._memory.input(tensor, operand)
        offset = self._memory.offset(self._buffer(at, part, tensor, operand.tensor))
        if offset is None:
            return self._memory.input(tensor, operand)
        order = self._memory.aliases.orders.get(operand.tensor)
        if operand.copies > 1 and order is not None:
            loads = loads_of_copies(self._graph, part.program, operand, order)
            assert loads is not None  # otherwise the layer would be in another chain
            self._relocated.setdefault(at, {}).update(loads)
        return offset

    def _buffer(self, at: int, part: NetworkPart, tensor: ImageTensor, name: str) -> str:
        """Relocate transfers if the tensor's halo is larger than the layer expects."""
        layouts, own = self._memory.layouts.get(name), part.layouts
        if layouts is None:
            return name
        if own is None:
            return name if name != part.fused.output else layouts.written
        layout = own.writes if name == part.fused.output else own.reads.get(tensor.name)
        if layout is None:
            return name
        buffer = layouts.buffer_of(layout)
        positions = element_positions(layouts.size, layout, layouts.layouts[buffer])
        if not np.array_equal(positions, np.arange(len(positions))):
            assert part.program is not None
            transfers = relocate_transfers(part.program, tensor.offset, positions)
            assert transfers is not None  # checked when the layout was assigned
            self._relocated.setdefault(at, {}).update(transfers)
        return buffer

    def _row_exchanges(self, part: NetworkPart) -> list[tuple[Instruction, int | None]]:
        layouts = self._memory.layouts.get(part.fused.output)
        found: list[tuple[Instruction, int | None]] = []
        for exchange, buffers in () if layouts is None else layouts.exchanges:
            offsets = {
                name: self._memory.exchange_constant(name, content)
                for name, content in exchange.constants.items()
            }
            for name, buffer in buffers.items():
                offset = self._memory.offset(buffer)
                assert offset is not None
                offsets[name] = offset
            found += [(one, offsets.get(name)) for one, name in exchange.instructions(offsets)]
        return found

    # --- all layers ------------------------------------------------------------------------------

    def _stream(
        self, linked: Sequence[Image], exchanges: Sequence[Sequence[tuple[Instruction, int | None]]]
    ) -> _Stream:
        stream = _Stream()
        changed: set[type[Instruction]] = set()
        for at, image in enumerate(linked):
            body = self._body(at, image, _resets(image.instructions, changed))
            changed |= {type(one) for one in image.instructions if isinstance(one, Set)}
            order = _constants_first([one for one, _ in body]) if at else range(len(body))
            for n in order:
                stream.append(*body[n], at)
            for instruction, offset in exchanges[at]:
                stream.append(instruction, offset, at)
        return stream

    def _body(self, at: int, image: Image, resets: Sequence[Instruction]) -> list[Located]:
        program, references = self._layers[at].program, image.references
        assert program is not None
        assert references is not None
        relocated, pieces = self._relocated.get(at, {}), self._pieces.get(at, {})
        body: list[Entry] = [(one, None) for one in resets]
        for n, number in enumerate(references.of[:-1].tolist()):  # without FINISH
            offset = None if number == NO_PART else references.parts[number].offset
            instruction = image.instructions[n]
            if n in pieces:
                assert isinstance(instruction, Store)
                assert n not in relocated  # layers that store copies write plain pictures
                is_dropped = at in self._dropped
                body.append(
                    RepeatedStore(store=instruction, offset=offset, pieces=pieces[n], is_dropped=is_dropped)
                )
            elif n in relocated:
                moved = _link_transfers(relocated[n], instruction, program.instructions[n])
                body += [(one, offset) for one in moved]
            else:
                body.append((instruction, offset))
        return without_repeats(body, self._config)

    def _image(self, stream: _Stream, ordered: Ordered, code: Part) -> Image:
        memory = self._memory
        words = encode(ordered.program.followed_by(Finish()), self._config)
        parts = [replace(one, nbytes=len(words)) if one is code else one for one in memory.allocator.parts]
        numbers = {part.offset: number for number, part in enumerate(memory.allocator.parts) if part.nbytes}
        starts = np.array(sorted(numbers), dtype=np.int64)

        def part_number(offset: int | None) -> int:
            if offset is None:
                return NO_PART
            return numbers[int(starts[np.searchsorted(starts, offset, "right") - 1])]

        of = [NO_PART if n == CARRIER else part_number(stream.offsets[n]) for n in ordered.sources.tolist()]
        pool = memory.activations
        regions = [Region(name=pool.name, offset=pool.offset, nbytes=pool.nbytes)] if pool.nbytes else []
        return Image(
            config=self._config,
            code=words,
            code_offset=code.offset,
            segments=tuple(memory.segments),
            tensors=tuple(memory.tensors),
            regions=tuple(regions),
            references=References(parts=tuple(parts), of=np.array([*of, NO_PART], dtype=np.int32)),
        )


def _resets(body: Sequence[Instruction], changed: Collection[type[Instruction]]) -> list[Instruction]:
    """Return SETs of initial settings that earlier layers changed and a layer does not set."""
    own = {type(one) for one in body if isinstance(one, Set)}
    used: list[type[Set]] = [SetInp, SetWgt, SetAcc]
    if any(isinstance(one, StoreReq) for one in body):
        used.append(SetOut)
    if any(isinstance(one, StoreAdd) for one in body):  # STORE.MUL is one, too
        used.append(SetSum)
    return [kind() for kind in used if kind in changed and kind not in own]


def _link_transfers(
    transfers: Sequence[Transfer], linked: Instruction, own: Instruction
) -> list[Instruction]:
    assert isinstance(linked, Transfer)
    assert isinstance(own, Transfer)
    distance = linked.dram_base - own.dram_base
    return [replace(one, dram_base=one.dram_base + distance) for one in transfers]


def _constants_first(body: Sequence[Instruction]) -> list[int]:
    """A SET.WGT that resets the zero point stays before LOADs of weights. After another one, weights are no
    constants.
    """
    head = next((n for n, one in enumerate(body) if isinstance(one, Loops | Store)), 0)
    resets = [n for n, one in enumerate(body[:head]) if one == SetWgt()]
    has_centered_weights = any(isinstance(one, SetWgt) and one != SetWgt() for one in body)
    tensors = (*TENSOR_MEMORIES, Memory.WGT) if has_centered_weights else TENSOR_MEMORIES
    first = [n for n, one in enumerate(body[:head]) if isinstance(one, Load) and one.memory not in tensors]
    moved = {*resets, *first}
    return [*resets, *first, *(n for n in range(len(body)) if n not in moved)]


def _ends(layers: Sequence[int | None], count: int) -> list[int]:
    ends = [0] * count
    for index, layer in enumerate(layers):
        if layer is not None:
            ends[layer] = index + 1
    ends[-1] = len(layers) + 1
    return ends
