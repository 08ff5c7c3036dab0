"""Signatures of ports that several units have."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member, Out

from accel.core.config import DRAM_ADDRESS_BITS, INSTRUCTION_BYTES, Config
from accel.core.fault_causes import CAUSE_BITS
from accel.core.isa import Unit
from accel.core.scratchpad_specs import INP, SCRATCHPADS
from accel.hw.datapath.gemm import tap_names
from accel.hw.datapath.queue import Issue
from accel.hw.datapath.scratchpads import ElementRead
from accel.hw.datapath.word_layouts import INDEX_BITS, UNIT_BITS, EntryLayout
from accel.hw.units.in_flight import Retirement
from accel.hw.units.token_counters import TokenAccess

ELSEWHERE = tuple(pad for pad in SCRATCHPADS.values() if pad.filled_by is Unit.LOAD)
"""Scratchpads in the load unit that the compute unit reads."""


class UnitControl(wiring.Signature):
    """Control of a unit with a queue, seen from the core.

    ``flush`` clears the unit in the cycle before a run begins. With ``enable`` it may start instructions.
    ``mem_base``, constant during a run, is the start of the DRAM window.
    """

    def __init__(self) -> None:
        super().__init__({"flush": Out(1), "enable": Out(1), "mem_base": Out(DRAM_ADDRESS_BITS)})


class Fetched(wiring.Signature):
    """A dispatched instruction: with ``push``, ``word`` is the program's instruction ``index``, for
    ``unit``."""

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
    """Reads of ``ELSEWHERE``, seen from the compute unit: one per scratchpad and tap."""

    def __init__(self, config: Config) -> None:
        held = {pad.name: pad for pad in ELSEWHERE} | dict.fromkeys(tap_names(config), INP)
        super().__init__({name: Out(ElementRead(pad, config)) for name, pad in held.items()})


def unit_ports(config: Config) -> dict[str, Member]:
    """Return the ports of each unit with a queue.

    ``lacking`` shows that only a token prevents the head's start. ``fault`` is its fault, in the cycle in
    which it would have started, otherwise 0. Neither depends on ``enable``. ``busy`` shows that the unit
    works in this cycle.
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
