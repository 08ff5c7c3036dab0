"""Programs in a session's DRAM, linked again if their tensors move."""

import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from accel.base.errors import ProgramError
from accel.core.config import Config
from accel.image.dram import Dram
from accel.image.dram_references import Part
from accel.image.image import Image
from accel.image.linker import Linker
from accel.run.dram_allocator import DramAllocator
from accel.run.program import Program

_MAX_PLACEMENTS = 4
"""Linked variants of each program. A program that reads its own last output needs two."""


class ResidentProgram:
    """A program in DRAM. Everything except inputs and outputs has fixed offsets."""

    def __init__(self, program: Program, dram: Dram, allocator: DramAllocator) -> None:
        self.bare = Image(
            config=program.config,
            code=program.code,
            code_offset=program.code_offset,
            compile_seconds=program.compile_seconds,
            tensors=program.tensors,
            source=program.source,
        )
        self._linker = Linker(program)
        self._dram = dram
        self._placements: OrderedDict[tuple[int, ...], Program] = OrderedDict()
        tensors = {t.offset for t in program.tensors if t.role != "constant"}
        own = [part for part in self._linker.parts if part.offset not in tensors]
        data = [(self._own_part(own, at), at, content) for at, content in program.segments if content]
        offsets = allocator.allocate(self, [(part.nbytes, part.offset) for part in own])
        self._offsets = dict(zip(own, offsets, strict=True))
        for part, offset in self._offsets.items():  # parts without data are zero
            dram.write(dram.base + offset, bytes(part.nbytes))
        for part, offset, content in data:
            dram.write(dram.base + self._offsets[part] + offset - part.offset, content)

    @staticmethod
    def _own_part(own: Sequence[Part], offset: int) -> Part:
        found = next((part for part in own if part.offset <= offset < part.stop), None)
        if found is None:
            raise ProgramError(
                f"the program holds data at {offset:#x}, in an input or output; "
                f"in a session these hold the session's tensors"
            )
        return found

    def linked_at(self, tensors: Mapping[Part, int]) -> Program:
        """Link for these tensors, and write instructions to DRAM."""
        offsets = {**self._offsets, **tensors}
        key = tuple(offsets.values())
        found = self._placements.get(key)
        if found is None:
            found = self._placements[key] = self._linker.linked(offsets)
            if len(self._placements) > _MAX_PLACEMENTS:
                self._placements.popitem(last=False)
        self._placements.move_to_end(key)
        self._dram.write(self._dram.base + found.code_offset, found.code)
        return found


class _SessionProgram:
    def __init__(self, program: "weakref.ref[Program]", timed: Program) -> None:
        self.program = program
        self.timed = timed
        self.residents: dict[int, ResidentProgram] = {}
        """By the id of the timed program, or of one for values that it cannot take."""


class ResidentPrograms:
    """The programs of a session."""

    def __init__(self, config: Config, dram: Dram, allocator: DramAllocator) -> None:
        self._config = config
        self._dram = dram
        self._allocator = allocator
        self._known: dict[int, _SessionProgram] = {}

    def __len__(self) -> int:
        return len(self._known)

    def clear(self) -> None:
        self._known.clear()

    def timed(self, program: Program) -> Program:
        return self._of(program).timed

    def resident(self, program: Program, running: Program) -> ResidentProgram:
        """Return ``program`` in DRAM. ``running`` may be one made for some values."""
        residents = self._of(program).residents
        if id(running) not in residents:
            residents[id(running)] = ResidentProgram(running, self._dram, self._allocator)
        return residents[id(running)]

    def _of(self, program: Program) -> _SessionProgram:
        known = self._known.get(id(program))
        if known is None:
            self._check(program)
            key, residents = id(program), weakref.ref(self)

            def forget(_: object) -> None:
                alive = residents()
                if alive is not None:
                    alive._known.pop(key, None)

            known = _SessionProgram(weakref.ref(program, forget), program.with_timing(self._config))
            self._known[key] = known
        return known

    def _check(self, program: Program) -> None:
        if not isinstance(program, Program):
            raise ProgramError(
                f"the argument is a {type(program).__name__}; it must be a program, as accel.build returns"
            )
        theirs, mine = program.config.hardware, self._config.hardware
        for name, value in theirs.geometry.items():
            if value != getattr(mine, name):
                raise ProgramError(
                    f"the program is compiled for {name}={theirs.field_text(name)}; "
                    f"the session's machine has {mine.field_text(name)}"
                )
