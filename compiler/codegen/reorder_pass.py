"""A pass that reorders emitted instructions, and the program that it works on."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from msgspec import Struct, field

from accel.base.records import AbstractRecord, replace
from accel.compiler.target.emitter_registry import Emitted
from accel.core.config import Config


class EmittedProgram(Struct, frozen=True, kw_only=True):
    """The instructions of a nest before micro-ops, tokens and DRAM addresses are assigned.

    Attributes:
        resident_loads: numbers of the statements that load resident buffers.
        load_orders: pairs of sets of statements, from ``Nest.load_orders``.
        waits: by position in ``emitted``, the position of an earlier instruction that must retire first
            although no data depend on it. Token insertion adds a token for each.
    """

    emitted: Sequence[Emitted]
    config: Config
    resident_loads: frozenset[int] = frozenset()
    load_orders: tuple[tuple[frozenset[int], frozenset[int]], ...] = ()
    waits: Mapping[int, int] = field(default_factory=dict)

    def with_order(self, emitted: Sequence[Emitted]) -> Self:
        """Replace the instructions. Positions change, so only the last passes may set ``waits``."""
        assert not self.waits
        return replace(self, emitted=emitted)


class ReorderPass(AbstractRecord, frozen=True):
    """One pass over emitted instructions.

    It may move instructions, and cut one into several. It never changes results: every accumulator receives
    the same products in the same order, and every STORE writes the same values.

    Attributes:
        name: the name that ``accel compile --without NAME`` turns off.
        reason: one sentence: why units stall less in the new order.
    """

    name: ClassVar[str]
    reason: ClassVar[str]

    @abstractmethod
    def run(self, program: EmittedProgram) -> EmittedProgram: ...
