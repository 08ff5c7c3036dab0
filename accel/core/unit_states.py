"""The states of a unit in a cycle, with labels and colours."""

from enum import IntEnum


class State(IntEnum):
    """If several states apply, the first one counts."""

    BUSY = 0
    MEMORY = 1
    TOKEN = 2
    IDLE = 3

    @property
    def label(self) -> str:
        return ("busy", "waits for memory", "waits for token", "idle")[self]

    @property
    def figure(self) -> str:
        """The attribute of ``UnitCycles``, also in columns of sweeps: ``load_busy``."""
        return ("busy", "memory_stall", "token_stall", "idle")[self]

    @property
    def color(self) -> str:
        """Of Okabe and Ito's palette, which colour-blind readers can distinguish."""
        return ("#0072b2", "#e69f00", "#cc79a7", "#bbbbbb")[self]
