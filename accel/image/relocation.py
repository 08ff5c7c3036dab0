"""Moving a program's parts to other places in DRAM, so that several programs share one window.

A part keeps its place within a page: bursts end at pages, so a program takes as many cycles wherever its
parts lie.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace

from accel.base.errors import ProgramError
from accel.core.config import PAGE_BYTES, Config
from accel.core.faults import dram_element_bytes, dram_span
from accel.core.isa import Instruction, Memory, Transfer, encode
from accel.image.image import Image


@dataclass(frozen=True, kw_only=True)
class Part:
    """Bytes of DRAM that move together; ``offset`` counts from the start of the window."""

    offset: int
    nbytes: int

    @property
    def stop(self) -> int:
        """The byte behind the last."""
        return self.offset + self.nbytes


def parts(image: Image) -> tuple[Part, ...]:
    """What an image consists of, in order: each input and output, and everything between them.

    Raises:
        ProgramError: inputs or outputs overlap each other or the instructions.
    """
    tensors = sorted((t.offset, t.nbytes) for t in image.tensors if t.role != "constant")
    found: list[Part] = []
    reached = min(start for start, _ in image.spans())
    for offset, nbytes in [*tensors, (image.size, 0)]:
        if offset < reached:
            raise ProgramError("the program cannot be moved in DRAM: its inputs and outputs overlap")
        page = min(offset, -(-reached // PAGE_BYTES) * PAGE_BYTES) if found else reached
        if offset > page:
            found.append(Part(offset=page, nbytes=offset - page))
        if nbytes:
            found.append(Part(offset=offset, nbytes=nbytes))
        reached = offset + nbytes
    return tuple(found)


def relocated(image: Image, places: Mapping[Part, int]) -> Image:
    """The image with its parts elsewhere.

    Args:
        image: what :func:`parts` was asked about.
        places: the new offset of each part; it must lie as far behind a page's start as the old one.

    Raises:
        ProgramError: a part changes its place within a page, or a transfer touches two parts, which only
            programs of other compilers do.
    """
    for part, offset in places.items():
        if (offset - part.offset) % alignment(image.config):
            raise ProgramError(
                f"a part of the program is moved from {part.offset:#x} to {offset:#x}; "
                f"it may move by multiples of {alignment(image.config)} bytes"
            )
    known = sorted(places, key=lambda part: part.offset)
    starts = [part.offset for part in known]

    def shift(start: int, stop: int, what: str) -> int:
        part = known[max(0, bisect_right(starts, start) - 1)]
        if not part.offset <= start <= stop <= part.stop:
            raise ProgramError(
                f"the program cannot be moved in DRAM: {what} touches bytes {start:#x}..{stop - 1:#x}, "
                f"which belong to more than one of its parts"
            )
        return places[part] - part.offset

    def moved(instruction: Instruction) -> Instruction:
        if not isinstance(instruction, Transfer):
            return instruction
        start, stop = (byte - image.config.mem_base for byte in dram_span(instruction, image.config))
        if start == stop:
            return instruction
        distance = shift(start, stop, instruction.mnemonic)
        element = dram_element_bytes(instruction.memory, image.config)
        return replace(instruction, dram_base=instruction.dram_base + distance // element)

    twins: dict[int, Instruction] = {}  # equal instructions are one object
    for one in image.instructions:
        if id(one) not in twins:
            twins[id(one)] = moved(one)
    code = encode([twins[id(one)] for one in image.instructions], image.config)
    at = image.code_offset
    return replace(
        image,
        code=code,
        code_offset=at + shift(at, at + len(code), "fetch"),
        segments=tuple(
            (offset + shift(offset, offset + len(content), "a segment"), content)
            for offset, content in image.segments
        ),
        tensors=tuple(
            replace(t, offset=t.offset + shift(t.offset, t.offset + t.nbytes, t.name)) for t in image.tensors
        ),
        regions=tuple(
            replace(r, offset=r.offset + shift(r.offset, r.offset + r.nbytes, r.name)) for r in image.regions
        ),
    )


def alignment(config: Config) -> int:
    """Bytes by whose multiples parts move: whole pages, and whole elements of every memory."""
    return max(PAGE_BYTES, *(dram_element_bytes(memory, config) for memory in Memory))
