"""The allocation of a chain's tensors and constants in DRAM. Equal constants are stored once."""

import re
from collections.abc import Mapping, Sequence

from accel.base.records import replace
from accel.base.unique_names import Names
from accel.core.config import Config
from accel.graph.graph import Graph
from accel.image.dram_references import Part
from accel.image.image_tensor import ImageTensor
from accel.network.chain_layouts import layouts_read, tensor_layouts
from accel.network.dram_allocator import DramAllocator
from accel.network.lowering.layer_operand import Operand
from accel.network.memory_plan import LiveRange, MemoryPlan, plan_memory
from accel.network.network_part import NetworkPart
from accel.network.tensor_aliases import find_aliases


class ChainMemory:
    """Allocates a chain's DRAM."""

    def __init__(self, graph: Graph, parts: Sequence[NetworkPart], needed: set[str], config: Config) -> None:
        layers = [part for part in parts if part.on_machine]
        self.allocator = DramAllocator(config)
        self.tensors: list[ImageTensor] = []
        self.segments: list[tuple[int, bytes]] = []
        self.operands: dict[str, Operand] = {}
        self.outputs: dict[str, str] = {}
        self._names = Names()
        self._shared: dict[object, Part] = {}
        """By content or input. Equal parts share memory."""
        self.aliases = find_aliases(graph, parts, needed, config)
        assert not self.aliases.failed
        self.layouts = tensor_layouts(layers, needed, parts, config)
        copies = self.aliases.copies
        results = {part.fused.output: part.output for part in layers if not self._is_unread(part)}
        results |= {name: copy.tensor for name, copy in copies.items() if copy.tensor is not None}
        self._results = {name: tensor for name, tensor in results.items() if self.root(name) == name}
        self._nbytes = {name: one.nbytes for name, one in self._results.items()}
        self._nbytes |= {name: size for name, size in self.aliases.nbytes.items() if self.root(name) == name}
        self._replace_by_layouts()
        self._persistent = {self.root(name) for name in needed} & self._results.keys()
        self.plan = self._plan(layers)
        self.activations = self.allocator.allocate(self.unique_name("activations"), self.plan.nbytes)
        self._buffers = {
            name: Part(
                offset=self.activations.offset + offset, nbytes=self._nbytes[name], name=self.activations.name
            )
            for name, offset in self.plan.offsets.items()
        }
        for name in self._results:
            if name in self._persistent:
                self._buffers[name] = self._allocate_output(name)

    def _is_unread(self, part: NetworkPart) -> bool:
        return part.fused.output in self.aliases.unread

    def copies_of(self, part: NetworkPart) -> list[str]:
        return [name for name, one in self.aliases.copies.items() if part.fused.output in one.positions]

    def _replace_by_layouts(self) -> None:
        for name, layouts in self.layouts.items():
            if self.root(name) == name and name in self._results and name not in layouts.buffers:
                del self._results[name], self._nbytes[name]
            self._nbytes |= {
                buffer: layouts.nbytes(buffer)
                for buffer in (*layouts.buffers, *layouts.scratch_buffers)
                if buffer != name
            }

    def _plan(self, layers: Sequence[NetworkPart]) -> MemoryPlan:
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for at, part in enumerate(layers):
            layouts = self.layouts.get(part.fused.output)
            written = [part.fused.output] if layouts is None else [*layouts.buffers, *layouts.scratch_buffers]
            read = (self._buffer_read(part, name) for name in part.fused.inputs)
            written += self.copies_of(part)
            for name in map(self.root, written):
                first.setdefault(name, at)
            for name in map(self.root, (*written, *read)):
                if name in self._nbytes:
                    last[name] = at
        live_ranges = [
            LiveRange(name=name, nbytes=nbytes, first=first[name], last=last[name])
            for name, nbytes in self._nbytes.items()
            if name not in self._persistent
        ]
        return plan_memory(live_ranges, self.allocator.alignment)

    def _buffer_read(self, part: NetworkPart, name: str) -> str:
        layouts = self.layouts.get(name)
        read = [] if layouts is None else layouts_read(part, name)
        return name if layouts is None or not read else layouts.buffer_of(read[0])

    def _allocate_output(self, name: str) -> Part:
        tensor = self._results[name]
        output = self.unique_name(name)
        part = self.allocator.allocate(output, tensor.nbytes, tensor.offset)
        self.tensors.append(replace(tensor, name=output, offset=part.offset))
        self.outputs[output] = name
        return part

    def unique_name(self, name: str) -> str:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        return self._names.fresh(plain if plain.isidentifier() else f"t{plain}")

    def root(self, name: str) -> str:
        return self.aliases.location(name)[0]

    def offset(self, buffer: str) -> int | None:
        root, bytes_before = self.aliases.location(buffer)
        return self._buffers[root].offset + bytes_before if root in self._buffers else None

    def exchange_constant(self, name: str, content: bytes) -> int:
        if content not in self._shared:
            part = self.allocator.allocate(self.unique_name(name), len(content))
            self._shared[content] = part
            self.segments.append((part.offset, content))
        return self._shared[content].offset

    def layer_constant(self, part: Part, segments: Mapping[int, bytes]) -> int:
        content = {
            offset - part.offset: data
            for offset, data in segments.items()
            if part.offset <= offset < part.stop
        }
        key = (part.nbytes, part.offset % self.allocator.alignment, tuple(sorted(content.items())))
        if not content or key not in self._shared:
            name = self.unique_name(part.name or "part")
            found = self.allocator.allocate(name, part.nbytes, part.offset)
            self._shared[key] = found
            self.segments += [(found.offset + at, data) for at, data in content.items()]
            return found.offset
        return self._shared[key].offset

    def input(self, tensor: ImageTensor, operand: Operand) -> int:
        source = self.root(operand.tensor)
        copies = (operand.copies, operand.axis, operand.groups, operand.tensor_shape)
        if operand.generated:
            source = f"{operand.name}_of_{source}"
        packing = replace(tensor, name="", offset=tensor.offset % self.allocator.alignment)
        key = (source, operand.generated, copies, packing)
        if key not in self._shared:
            name = self.unique_name(source)
            part = self.allocator.allocate(name, tensor.nbytes, tensor.offset)
            self.tensors.append(replace(tensor, name=name, offset=part.offset))
            self.operands[name] = replace(operand, tensor=self.root(operand.tensor))
            self._shared[key] = part
        return self._shared[key].offset
