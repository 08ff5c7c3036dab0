"""Memory scopes of buffers."""

from enum import IntEnum
from functools import cached_property

from msgspec import Struct

from accel.base.errors import ScheduleError
from accel.core.config import Config
from accel.core.isa import Load, routes_of
from accel.core.scratchpad_specs import Scratchpad

_HIDDEN = ("uop", "res")
"""Scratchpads that hold no buffers: micro-ops, and a queue of residuals."""


class Scope(Struct, frozen=True, kw_only=True, dict=True):
    """One of a machine's scratchpads, as schedules name it.

    Attributes:
        name: ``inp_buffer``, ``wgt_buffer``, ``acc_buffer``, with ``post=1`` ``par_buffer``, or with tables
            ``tab_buffer``.
        memory: the memory id under which LOAD fills it.
    """

    name: str
    memory: IntEnum
    config: Config

    @cached_property
    def scratchpad(self) -> Scratchpad:
        return routes_of(Load, self.config)[self.memory].scratchpad

    @property
    def depth(self) -> int:
        return self.scratchpad.depth(self.config)

    @cached_property
    def element(self) -> tuple[int, int]:
        rows, columns = self.scratchpad.shape(self.config)
        return rows, columns

    @property
    def dtype(self) -> str:
        return self.scratchpad.dtype

    def __str__(self) -> str:
        return self.name


def scopes(config: Config) -> dict[str, Scope]:
    own = (
        route
        for route in routes_of(Load, config).values()
        if route.verbatim and route.scratchpad.name not in _HIDDEN
    )
    named = {f"{route.scratchpad}_buffer": route.memory for route in own}
    return {name: Scope(name=name, memory=memory, config=config) for name, memory in named.items()}


def check_scope(scope: object) -> Scope:
    if isinstance(scope, Scope):
        return scope
    raise ScheduleError(f"{scope!r} is not a memory scope; take a machine's, as machine.acc_buffer")
