"""The linker moves parts of programs in DRAM, and adds the distance to ``dram_base`` of transfers.

A part keeps its offset within a page, where bursts end, so cycles do not depend on addresses.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from accel.base.errors import ProgramError
from accel.base.interned_sequence import Distinct
from accel.base.records import replace
from accel.core.config import INSTRUCTION_BYTES, PAGE_BYTES, Config
from accel.core.fault_causes import dram_element_bytes, dram_span
from accel.core.isa import TRANSFERS, Instruction, Slot, Transfer, add_to_field, class_slots, routes_of
from accel.image.dram_references import NO_PART, Part, References
from accel.image.image import Image

ImageT = TypeVar("ImageT", bound=Image)

_IMMOVABLE = "the program cannot be moved in DRAM"


class _Fields(NamedTuple):
    """``dram_base`` of one class of instructions."""

    slot: Slot
    rows: npt.NDArray[np.intp]
    """Indices of instructions."""
    parts: npt.NDArray[np.intp]
    element_bytes: npt.NDArray[np.int64]


class Addresses:
    """Address fields of a program.

    Args:
        of: part of each instruction, or ``NO_PART``.
    """

    def __init__(
        self,
        instructions: Sequence[Instruction] | Distinct[Instruction],
        of: npt.ArrayLike,
        config: Config,
    ) -> None:
        program = Distinct.of(instructions)
        numbers = np.asarray(of, dtype=np.intp)
        means = np.zeros(len(program.every), dtype=bool)
        means[program.places[numbers != NO_PART]] = True
        kinds = np.full(len(program.every), -1, dtype=np.int64)
        sizes = np.zeros(len(program.every), dtype=np.int64)
        classes: dict[type[Transfer], int] = {}
        known: dict[tuple[type[Transfer], int], int] = {}
        for number in np.flatnonzero(means).tolist():
            instruction = program.every[number]
            if isinstance(instruction, Transfer):
                cls = type(instruction)
                kinds[number] = classes.setdefault(cls, len(classes))
                if (cls, instruction.memory) not in known:
                    known[cls, instruction.memory] = dram_element_bytes(instruction, config)
                sizes[number] = known[cls, instruction.memory]
        kind_of = np.where(numbers != NO_PART, kinds[program.places], -1)
        self._fields = []
        for cls, kind in classes.items():
            slot = next(slot for slot in class_slots(cls, config) if slot.name == "dram_base")
            rows = np.flatnonzero(kind_of == kind)
            self._fields.append(_Fields(slot, rows, numbers[rows], sizes[program.places[rows]]))

    def moved(self, code: bytes, distances: Sequence[int]) -> bytes:
        """Move each part by a number of bytes.

        Raises:
            ProgramError: an address overflows its field.
        """
        steps = np.asarray(distances, dtype=np.int64)
        for field in self._fields:
            if (steps[field.parts] % field.element_bytes).any():
                raise ProgramError(
                    f"a part of the program is moved within an element, which has {field.element_bytes} bytes"
                )
            code = add_to_field(code, field.slot, field.rows, steps[field.parts] // field.element_bytes)
        return code


class Linker(Generic[ImageT]):
    """Places a program any number of times.

    Args:
        image: without references, each transfer must access a single part, and none the instructions.

    Raises:
        ProgramError: the program cannot be moved.
    """

    def __init__(self, image: ImageT) -> None:
        self._image = image
        given = image.references
        references = _inferred(image) if given is None else given
        self.parts = tuple(sorted({p for p in references.parts if p.nbytes}, key=lambda part: part.offset))
        self._starts = [part.offset for part in self.parts]
        self._references = references
        if given is not None:
            _check_spans(image, given)
        for start, stop in image.spans():
            if start < stop:
                self._holding(start, stop - start, "its content")
        self._addresses = Addresses(image.instructions, references.of, image.config)

    def linked(self, places: Mapping[Part, int], *, within_pages: bool = False) -> ImageT:
        """Return the program with parts at other offsets.

        Args:
            places: new offsets, equal to old ones within a page.
            within_pages: whether offsets within a page may change, and so cycles.

        Raises:
            ProgramError: a part changes its offset within a page or element, or leaves the window.
        """
        image = self._image
        _check_places(places, image.config, 1 if within_pages else alignment(image.config))
        distances = [places.get(part, part.offset) - part.offset for part in self._references.parts]

        def moved(start: int, nbytes: int, what: str) -> int:
            part = self._holding(start, nbytes, what)
            return start + places.get(part, part.offset) - part.offset

        expected = image.expected
        if expected is not None:
            memory = tuple((moved(at, len(data), "what is expected"), data) for at, data in expected.memory)
            expected = replace(expected, memory=memory)
        parts = (
            replace(part, offset=part.offset + distance)
            for part, distance in zip(self._references.parts, distances, strict=True)
        )
        return replace(
            image,
            code=self._addresses.moved(image.code, distances),
            code_offset=moved(image.code_offset, len(image.code), "fetch"),
            segments=tuple((moved(at, len(data), "a segment"), data) for at, data in image.segments),
            tensors=tuple(replace(t, offset=moved(t.offset, t.nbytes, t.name)) for t in image.tensors),
            regions=tuple(replace(r, offset=moved(r.offset, r.nbytes, r.name)) for r in image.regions),
            expected=expected,
            references=References(parts=tuple(parts), of=self._references.of),
        )

    def _holding(self, start: int, nbytes: int, what: str) -> Part:
        number = bisect_right(self._starts, start) - 1
        part = self.parts[number] if number >= 0 else None
        if part is None or start + nbytes > part.stop:
            raise _of_two_parts(what, start, start + nbytes)
        return part


def parts(image: Image) -> tuple[Part, ...]:
    """Return the parts of an image, in order."""
    return Linker(image).parts


def linked(image: ImageT, places: Mapping[Part, int]) -> ImageT:
    """Call :meth:`Linker.linked`."""
    return Linker(image).linked(places)


def alignment(config: Config) -> int:
    """Return the step of moves in bytes: pages, and elements of every memory."""
    routes = (route for cls in TRANSFERS for route in routes_of(cls, config).values())
    return max(PAGE_BYTES, *(route.element_bytes(config) for route in routes))


def by_address(image: Image, parts: Sequence[Part]) -> References:
    """Make references for instructions that access one part each."""
    order = sorted(range(len(parts)), key=lambda number: (parts[number].offset, parts[number].stop))
    starts = [parts[number].offset for number in order]
    of = np.full(len(image.code) // INSTRUCTION_BYTES, NO_PART, dtype=np.int32)
    for index, span in enumerate(_spans(image)):
        place = -1 if span is None else bisect_right(starts, span[0]) - 1
        if span is not None and place >= 0 and span[1] <= parts[order[place]].stop:
            of[index] = order[place]
    return References(parts=tuple(parts), of=of)


def _check_places(places: Mapping[Part, int], config: Config, step: int) -> None:
    for part, offset in places.items():
        if (offset - part.offset) % step:
            raise ProgramError(
                f"a part of the program is moved from {part.offset:#x} to {offset:#x}; "
                f"it may move by multiples of {step} bytes"
            )
        if offset < 0 or offset + part.nbytes > config.mem_size:
            raise ProgramError(
                f"a part of {part.nbytes} bytes is moved to {offset:#x}; "
                f"the window has mem_size={config.mem_size}"
            )


def _spans(image: Image) -> list[tuple[int, int] | None]:
    base = image.config.mem_base
    known: dict[int, tuple[int, int] | None] = {}  # equal instructions are one object
    found = []
    for one in image.instructions:
        if id(one) not in known:
            start, stop = dram_span(one, image.config) if isinstance(one, Transfer) else (0, 0)
            known[id(one)] = (start - base, stop - base) if start < stop else None
        found.append(known[id(one)])
    return found


def _check_spans(image: Image, references: References) -> None:
    for index, (span, number) in enumerate(zip(_spans(image), references.of.tolist(), strict=True)):
        if span is None:
            continue
        part = None if number == NO_PART else references.parts[number]
        if part is None or not part.offset <= span[0] <= span[1] <= part.stop:
            what = "none" if part is None else f"{part.offset:#x}..{part.stop - 1:#x}"
            raise ProgramError(
                f"{_IMMOVABLE}: instruction {index} touches bytes {span[0]:#x}..{span[1] - 1:#x}, "
                f"and the part that it refers to is {what}"
            )


def _inferred(image: Image) -> References:
    found = by_address(image, _parts_between(image))
    code = range(image.code_offset, image.code_offset + len(image.code))
    for index, span in enumerate(_spans(image)):
        if span is None:
            continue
        start, stop = span
        mnemonic = image.instructions[index].mnemonic
        if max(start, code.start) < min(stop, code.stop):
            raise ProgramError(
                f"{_IMMOVABLE}: instruction {index}, {mnemonic}, touches bytes {start:#x}..{stop - 1:#x}, "
                f"which hold the instructions, and so addresses that would change"
            )
        if found.part(index) is None:
            raise _of_two_parts(mnemonic, start, stop)
    return found


def _of_two_parts(what: str, start: int, stop: int) -> ProgramError:
    return ProgramError(
        f"{_IMMOVABLE}: {what} touches bytes {start:#x}..{stop - 1:#x}, which belong to no one of its parts"
    )


def _parts_between(image: Image) -> tuple[Part, ...]:
    tensors = sorted((t.offset, t.nbytes, t.name) for t in image.tensors if t.role != "constant")
    found: list[Part] = []
    reached = min(start for start, _ in image.spans())
    for offset, nbytes, name in [*tensors, (image.size, 0, "")]:
        if offset < reached:
            raise ProgramError(f"{_IMMOVABLE}: its inputs and outputs overlap")
        page = min(offset, -(-reached // PAGE_BYTES) * PAGE_BYTES) if found else reached
        if offset > page:
            found.append(Part(offset=page, nbytes=offset - page, name="rest"))
        if nbytes:
            found.append(Part(offset=offset, nbytes=nbytes, name=name))
        reached = offset + nbytes
    return tuple(found)
