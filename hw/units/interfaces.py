"""Signatures of the ports that units have in common."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member, Out

from accel.core.config import DRAM_ADDRESS_BITS, INSTRUCTION_BYTES, Config
from accel.core.faults import CAUSE_BITS
from accel.core.isa import Unit
from accel.core.memories import INP, SCRATCHPADS
from accel.hw.datapath.gemm import tap_names
from accel.hw.datapath.layouts import INDEX_BITS, UNIT_BITS, EntryLayout
from accel.hw.datapath.queue import Issue
from accel.hw.datapath.scratchpads import ElementRead
from accel.hw.units.flight import Retirement
from accel.hw.units.tokens import TokenAccess

ELSEWHERE = tuple(pad for pad in SCRATCHPADS.values() if pad.filled_by is Unit.LOAD)
"""The scratchpads of operands that the load unit holds, not the compute unit."""


class UnitControl(wiring.Signature):
    """What the core tells a unit behind a queue; seen from the core.

    ``flush`` forgets everything, in the cycle before a run begins. With ``enable`` the unit may start
    instructions. ``mem_base``, where memory begins, stands still during a run.
    """

    def __init__(self) -> None:
        super().__init__({"flush": Out(1), "enable": Out(1), "mem_base": Out(DRAM_ADDRESS_BITS)})


class Fetched(wiring.Signature):
    """What fetch hands out, seen from fetch: in a cycle with ``push`` the instruction ``word``, the
    ``index``-th of the program, for ``unit``."""

    def __init__(self) -> None:
        super().__init__(
            {
                "push": Out(1),
                "unit": Out(UNIT_BITS),
                "word": Out(8 * INSTRUCTION_BYTES),
                "index": Out(INDEX_BITS),
            }
        )


class OperandReads(wiring.Signature):
    """How the compute unit reads the operands that the load unit holds, seen from the compute unit: an
    :class:`~accel.hw.datapath.scratchpads.ElementRead` of each scratchpad's name, and of each tap's."""

    def __init__(self, config: Config) -> None:
        held = {pad.name: pad for pad in ELSEWHERE} | dict.fromkeys(tap_names(config), INP)
        super().__init__({name: Out(ElementRead(pad, config)) for name, pad in held.items()})


def unit_ports(config: Config) -> dict[str, Member]:
    """The ports of each unit behind a queue.

    Of the instruction at the head: ``lacking`` tells that nothing but a token keeps it from starting;
    ``fault`` is why it never will, in the cycle in which it would have started, else none. Neither asks
    whether the unit is enabled. ``busy`` tells that the unit does work in this cycle.
    """
    return {
        "control": In(UnitControl()),
        "issue": In(Issue(EntryLayout(config))),
        "tokens": Out(TokenAccess()),
        "lacking": Out(1),
        "fault": Out(CAUSE_BITS),
        "retirement": Out(Retirement()),
        "busy": Out(1),
    }
