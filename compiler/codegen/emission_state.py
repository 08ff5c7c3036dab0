"""The state of emission: instructions, memory maps and settings of the units."""

from collections.abc import Iterable
from typing import TypeVar

from accel.compiler.codegen.block_addresses import Addresses
from accel.compiler.codegen.dram_map import DramMap
from accel.compiler.codegen.statement_numbers import StatementNumbers
from accel.compiler.codegen.sum_initialization import UnstartedSums
from accel.compiler.nest.nest import Buffer, Copy, Nest, Node, StoreEpilogue, walk_nodes
from accel.compiler.target.builtin_emitters import overwrites
from accel.compiler.target.emitter_registry import AccessPtr, Emitted
from accel.core.config import Config
from accel.core.isa import Set

SetT = TypeVar("SetT", bound=Set)


class EmissionState:
    """The state that all emitters share.

    Attributes:
        unstarted: the accumulators that their next product overwrites, or None on machines with ``post=0``.
        rereads: whether the program loads a tensor from DRAM that it stores there.
    """

    def __init__(self, nest: Nest, config: Config) -> None:
        self.nest, self.config = nest, config
        self.emitted: list[Emitted] = []
        self.addresses = Addresses(nest)
        self.dram = DramMap(config)
        self.statements = StatementNumbers(nest.body)
        self.unstarted = UnstartedSums(config) if overwrites(config) else None
        self.contents = BufferContents()
        self.rereads = _rereads(nest)
        self._settings: dict[type[Set], Set] = {}

    def setting(self, kind: type[SetT]) -> SetT:
        found = self._settings.get(kind, kind())
        assert isinstance(found, kind)
        return found

    def set(self, node: Node, *settings: Set) -> None:
        for one in settings:
            if self.setting(type(one)) != one:
                self._settings[type(one)] = one
                self.emitted.extend(self.statements.labelled(node, [Emitted(one)]))

    def settle(self, pointer: AccessPtr, extents: Iterable[int]) -> None:
        """Emit zeros for accumulators that an instruction reads and that no product was added to."""
        if self.unstarted is None or not self.unstarted.any or pointer.scope != "acc_buffer":
            return
        reach = [stride * (extent - 1) for stride, extent in zip(pointer.strides, extents, strict=True)]
        begin = pointer.base + sum(min(0, n) for n in reach)
        end = pointer.base + sum(max(0, n) for n in reach) + 1
        self.emitted.extend(self.unstarted.settled(begin, end))

    def stored(self, dram: Buffer) -> None:
        if self.rereads:
            self.contents.forget_source(dram)


class BufferContents:
    """The content of each copy of a scratchpad buffer, so that equal LOADs are emitted once.

    A content is ``(source buffer, *details)``.
    """

    def __init__(self) -> None:
        self._contents: dict[tuple[Buffer, int], tuple[object, ...]] = {}

    def replace(self, buffer: Buffer, copy: int, content: tuple[object, ...]) -> bool:
        """Note a LOAD. Return whether the copy of the buffer held something else."""
        if self._contents.get((buffer, copy)) == content:
            return False
        self._contents[buffer, copy] = content
        return True

    def overwrite(self, buffer: Buffer) -> None:
        for copy in range(buffer.sets):
            self._contents.pop((buffer, copy), None)

    def forget_source(self, dram: Buffer) -> None:
        self._contents = {key: value for key, value in self._contents.items() if value[0] is not dram}


def _rereads(nest: Nest) -> bool:
    copies = [node for node in walk_nodes(nest.body) if isinstance(node, Copy)]
    stores = [node for node in walk_nodes(nest.body) if isinstance(node, StoreEpilogue)]
    written = {node.target.buffer for node in copies} | {node.target.buffer for node in stores}
    read = {node.source.buffer for node in copies}
    read |= {one.operand.buffer for node in stores for one in node.ops if one.operand is not None}
    return any(buffer.scope is None for buffer in written & read)
