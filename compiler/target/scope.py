"""Memory scopes: where a buffer lives."""

from dataclasses import dataclass

from accel.base.errors import ScheduleError
from accel.core.config import Config
from accel.core.isa import Memory


@dataclass(frozen=True, kw_only=True)
class Scope:
    """One of a machine's scratchpads, as schedules name it.

    Attributes:
        name: ``inp_buffer``, ``wgt_buffer`` or ``acc_buffer``.
        memory: the memory id under which LOAD fills it.
        config: the machine it belongs to.
    """

    name: str
    memory: Memory
    config: Config

    @property
    def depth(self) -> int:
        """Elements."""
        return int(getattr(self.config, f"{self.memory.name.lower()}_depth"))

    @property
    def element(self) -> tuple[int, int]:
        """Shape of one element: rows and columns."""
        config = self.config
        return {
            Memory.INP: (config.batch, config.block_in),
            Memory.WGT: (config.block_out, config.block_in),
            Memory.ACC: (config.batch, config.block_out),
        }[self.memory]

    @property
    def dtype(self) -> str:
        return "int32" if self.memory is Memory.ACC else "int8"

    def __str__(self) -> str:
        return self.name


def scopes(config: Config) -> dict[str, Scope]:
    """The scopes of a machine, by name."""
    named = {"inp_buffer": Memory.INP, "wgt_buffer": Memory.WGT, "acc_buffer": Memory.ACC}
    return {name: Scope(name=name, memory=memory, config=config) for name, memory in named.items()}


def check_scope(scope: object) -> Scope:
    """``scope`` if it is one.

    Raises:
        ScheduleError: otherwise.
    """
    if isinstance(scope, Scope):
        return scope
    raise ScheduleError(f"{scope!r} is no memory scope; take a machine's, as machine.acc_buffer")
