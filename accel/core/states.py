"""What a unit does in a cycle: one word, one column and one colour for it everywhere."""

from enum import IntEnum


class State(IntEnum):
    """What a cycle of a unit counts as; the first that holds."""

    BUSY = 0
    MEMORY = 1
    TOKEN = 2
    IDLE = 3

    @property
    def label(self) -> str:
        """In charts, tables and legends."""
        return ("busy", "waits for memory", "waits for token", "idle")[self]

    @property
    def figure(self) -> str:
        """The attribute of :class:`~accel.core.events.UnitCycles`, and behind a unit's name the column of a
        sweep's table."""
        return ("busy", "memory_stall", "token_stall", "idle")[self]

    @property
    def color(self) -> str:
        """On a light ground; from Okabe's and Ito's colours, which colour-blind people can tell apart."""
        return ("#0072b2", "#e69f00", "#cc79a7", "#bbbbbb")[self]
