"""Breakpoints of the debugger."""

import re
from collections.abc import Sequence

from msgspec import Struct

from accel.assembly import token_label
from accel.base.errors import AccelError
from accel.core.token_rules import Counter
from accel.debug.memory_locations import MemoryLocation, parse_location
from accel.image.image import Image


class Breakpoint(Struct, frozen=True, kw_only=True):
    """The start of an instruction, a cycle, a push or pop of a token, or an access to memory."""

    index: int | None = None
    cycle: int | None = None
    counter: Counter | None = None
    location: MemoryLocation | None = None
    reads: bool = True
    writes: bool = True

    def applies_to(self, write: bool) -> bool:
        return self.writes if write else self.reads

    def __str__(self) -> str:
        if self.index is not None:
            return f"instruction {self.index}"
        if self.cycle is not None:
            return f"cycle {self.cycle}"
        if self.counter is not None:
            return f"token {token_label(self.counter)}"
        what = "access" if self.reads and self.writes else "read" if self.reads else "write"
        return f"{what} {self.location}"


def parse_breakpoint(words: Sequence[str], image: Image) -> Breakpoint:
    """Parse ``12``, ``cycle 300``, ``token load>compute``, ``acc[3:8]`` or ``read C``."""
    text = " ".join(words)
    if re.fullmatch(r"\d+", text):
        index = int(text)
        if index >= len(image.instructions):
            raise AccelError(f"instruction {index} does not exist; the program has {len(image.instructions)}")
        return Breakpoint(index=index)
    kind, _, rest = text.partition(" ")
    if kind == "cycle" and re.fullmatch(r"\d+", rest):
        return Breakpoint(cycle=int(rest))
    if kind == "token":
        named = {token_label(counter): counter for counter in Counter}
        if rest not in named:
            raise AccelError(f"{rest!r} is not a token; {', '.join(named)} are")
        return Breakpoint(counter=named[rest])
    if kind in ("read", "write"):
        location = parse_location(rest, image)
        return Breakpoint(location=location, reads=kind == "read", writes=kind == "write")
    if not text:
        raise AccelError("break takes an instruction's number, cycle N, token load>compute, or a location")
    return Breakpoint(location=parse_location(text, image))
