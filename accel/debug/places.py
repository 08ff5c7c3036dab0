"""Parts of memory as a user names them: ``acc[3:8]``, ``dram[x:x+64]``, ``C``."""

import re
from dataclasses import dataclass

from accel.assembly import places
from accel.base.errors import AccelError, nearest
from accel.core.memories import scratchpads_of
from accel.image.image import Image

_PLACE = re.compile(r"(\w[\w.]*)(?:\[([^\]:]*)(?:(:)([^\]]*))?\])?")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Elements ``[first, stop)`` of a scratchpad, or bytes of DRAM from the start of the window."""

    memory: str
    first: int
    stop: int

    def __str__(self) -> str:
        if self.memory == "dram":
            return f"dram[{self.first:#x}:{self.stop:#x}]"
        return f"{self.memory}[{self.first}:{self.stop}]"


def parse_place(text: str, image: Image) -> Place:
    """The part of memory that a text names.

    Raises:
        AccelError: it names none, or one beyond the memory.
    """
    match = _PLACE.fullmatch(text.strip())
    if match is None:
        raise AccelError(f"{text!r} is no place; it reads acc[3], acc[3:8], dram[0x1000:0x1040], or a name")
    name, first, colon, stop = match.groups()
    named = places(image)
    pads = scratchpads_of(image.config)
    if name not in (*pads, "dram"):
        if name not in named or first is not None:
            raise AccelError(f"{text!r} is no place; {nearest(name, [*pads, 'dram', *named])}")
        offset, nbytes = named[name]
        return Place(memory="dram", first=offset, stop=offset + nbytes)
    size = image.config.mem_size if name == "dram" else int(getattr(image.config, f"{name}_depth"))
    if first is None:
        if name == "dram":
            raise AccelError("all of DRAM is too much; dram[FIRST:STOP] names some bytes of it")
        return Place(memory=name, first=0, stop=size)
    begin = _number(first, named) if first.strip() else 0
    end = begin + 1
    if colon:
        end = _number(stop, named) if stop.strip() else size
    if not 0 <= begin < end <= size:
        unit = "bytes" if name == "dram" else "elements"
        raise AccelError(f"{text!r} names nothing in {name}, which has {size} {unit}")
    return Place(memory=name, first=begin, stop=end)


def _number(text: str, named: dict[str, tuple[int, int]]) -> int:
    """A number, or a name and a number of bytes."""
    match = re.fullmatch(r"\s*(?:([A-Za-z_][\w.]*)\s*([+-])?)?\s*(\w*)\s*", text)
    if match is None or bool(match[2]) != bool(match[1] and match[3]):
        raise AccelError(f"{text!r} is no number")
    total = 0
    if match[1]:
        if match[1] not in named:
            hint = nearest(match[1], named) if named else "nothing in DRAM has one"
            raise AccelError(f"{match[1]!r} is no name; {hint}")
        total = named[match[1]][0]
    if match[3]:
        try:
            total += int((match[2] or "") + match[3], 0)
        except ValueError:
            raise AccelError(f"{text!r} is no number") from None
    return total
