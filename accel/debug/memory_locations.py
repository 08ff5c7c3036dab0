"""Locations in memory as users write them: ``acc[3:8]``, ``dram[x:x+64]``, ``C``."""

import re

from msgspec import Struct

from accel.assembly import places
from accel.base.errors import AccelError, nearest
from accel.core.scratchpad_specs import scratchpads_of
from accel.image.image import Image

_PLACE = re.compile(r"(\w[\w.]*)(?:\[([^\]:]*)(?:(:)([^\]]*))?\])?")


class MemoryLocation(Struct, frozen=True, kw_only=True):
    """Elements ``[first, stop)`` of a scratchpad, or bytes of the DRAM window."""

    memory: str
    first: int
    stop: int

    def __str__(self) -> str:
        if self.memory == "dram":
            return f"dram[{self.first:#x}:{self.stop:#x}]"
        return f"{self.memory}[{self.first}:{self.stop}]"


def parse_location(text: str, image: Image) -> MemoryLocation:
    """Parse a location."""
    match = _PLACE.fullmatch(text.strip())
    if match is None:
        raise AccelError(f"{text!r} is not a location; write acc[3], acc[3:8], dram[0x1000:0x1040] or a name")
    name, first, colon, stop = match.groups()
    named = places(image)
    pads = scratchpads_of(image.config)
    if name not in (*pads, "dram"):
        if name not in named or first is not None:
            raise AccelError(f"{text!r} is not a location; {nearest(name, [*pads, 'dram', *named])}")
        offset, nbytes = named[name]
        return MemoryLocation(memory="dram", first=offset, stop=offset + nbytes)
    size = image.config.mem_size if name == "dram" else int(getattr(image.config, f"{name}_depth"))
    if first is None:
        if name == "dram":
            raise AccelError("all of DRAM is too large; dram[FIRST:STOP] names a part of it")
        return MemoryLocation(memory=name, first=0, stop=size)
    begin = _number(first, named) if first.strip() else 0
    end = begin + 1
    if colon:
        end = _number(stop, named) if stop.strip() else size
    if not 0 <= begin < end <= size:
        unit = "bytes" if name == "dram" else "elements"
        raise AccelError(f"{text!r} is empty or outside of {name}, which has {size} {unit}")
    return MemoryLocation(memory=name, first=begin, stop=end)


def _number(text: str, named: dict[str, tuple[int, int]]) -> int:
    match = re.fullmatch(r"\s*(?:([A-Za-z_][\w.]*)\s*([+-])?)?\s*(\w*)\s*", text)
    if match is None or bool(match[2]) != bool(match[1] and match[3]):
        raise AccelError(f"{text!r} is not a number")
    total = 0
    if match[1]:
        if match[1] not in named:
            hint = nearest(match[1], named) if named else "no part of DRAM has one"
            raise AccelError(f"{match[1]!r} is not a name; {hint}")
        total = named[match[1]][0]
    if match[3]:
        try:
            total += int((match[2] or "") + match[3], 0)
        except ValueError:
            raise AccelError(f"{text!r} is not a number") from None
    return total
