"""Programs in the DRAM of a session: each with room of its own, placed anew only where its tensors moved.

Nothing here keeps a program that nobody else has; with it, its room and all that was made of it go.
"""

import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from accel.base.errors import ProgramError
from accel.core.config import SPECS, Config
from accel.image.dram import Dram
from accel.image.image import Image
from accel.image.link import Linker
from accel.image.references import Part
from accel.run.program import Program
from accel.run.space import Space

_KEPT_PLACEMENTS = 4
"""Of each program. Two are enough for one whose output is taken by its next run."""


class Resident:
    """A program whose own parts, all that is neither input nor output, are in DRAM.

    Args:
        program: with the session's timing.
        dram: of the session.
        space: of that, which bytes are taken.

    Attributes:
        bare: its instructions and tensors as compiled, without data, for figures of runs whose program may be
            gone.

    Raises:
        ProgramError: it cannot be moved, or DRAM is full.
    """

    def __init__(self, program: Program, dram: Dram, space: Space) -> None:
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
        places = space.hold(self, [(part.nbytes, part.offset) for part in own])
        self._places = dict(zip(own, places, strict=True))
        for part, place in self._places.items():  # what nobody writes is zero
            dram.write(dram.base + place, bytes(part.nbytes))
        for part, offset, content in data:
            dram.write(dram.base + self._places[part] + offset - part.offset, content)

    @staticmethod
    def _own_part(own: Sequence[Part], offset: int) -> Part:
        """The part that data at an offset is in."""
        found = next((part for part in own if part.offset <= offset < part.stop), None)
        if found is None:
            raise ProgramError(
                f"the program holds data at {offset:#x}, in an input or output; "
                f"in a session these hold what its tensors hold"
            )
        return found

    def placed(self, tensors: Mapping[Part, int]) -> Program:
        """The program with its inputs and outputs at these places, and its instructions in DRAM."""
        places = {**self._places, **tensors}
        key = tuple(places.values())
        found = self._placements.get(key)
        if found is None:
            found = self._placements[key] = self._linker.linked(places)
            if len(self._placements) > _KEPT_PLACEMENTS:
                self._placements.popitem(last=False)
        self._placements.move_to_end(key)
        self._dram.write(self._dram.base + found.code_offset, found.code)
        return found


class _Known:
    """A program that a session has seen: with the session's timing, and what is in DRAM of it."""

    def __init__(self, program: "weakref.ref[Program]", timed: Program) -> None:
        self.program = program
        self.timed = timed
        self.residents: dict[int, Resident] = {}
        """By the id of the timed program, or of the one that it makes for values it does not take."""


class Residents:
    """The programs of a session, for as long as somebody has them.

    Args:
        config: the session's machine.
        dram: its memory.
        space: of that, which bytes are taken.
    """

    def __init__(self, config: Config, dram: Dram, space: Space) -> None:
        self._config = config
        self._dram = dram
        self._space = space
        self._known: dict[int, _Known] = {}

    def __len__(self) -> int:
        return len(self._known)

    def clear(self) -> None:
        """Forget all of them."""
        self._known.clear()

    def timed(self, program: Program) -> Program:
        """The program with the session's timing.

        Raises:
            ProgramError: it is no program, or one for a machine of another geometry.
        """
        return self._of(program).timed

    def resident(self, program: Program, running: Program) -> Resident:
        """The program in DRAM.

        Args:
            program: that the user has.
            running: what runs in its place, :meth:`timed` or what that makes for some values.

        Raises:
            ProgramError: it cannot be moved, or DRAM is full.
        """
        residents = self._of(program).residents
        if id(running) not in residents:
            residents[id(running)] = Resident(running, self._dram, self._space)
        return residents[id(running)]

    def _of(self, program: Program) -> _Known:
        known = self._known.get(id(program))
        if known is None:
            self._check(program)
            key, residents = id(program), weakref.ref(self)

            def forget(_: object) -> None:
                alive = residents()
                if alive is not None:
                    alive._known.pop(key, None)

            known = _Known(weakref.ref(program, forget), program.with_timing(self._config))
            self._known[key] = known
        return known

    def _check(self, program: Program) -> None:
        if not isinstance(program, Program):
            raise ProgramError(
                f"what is to run is a {type(program).__name__}; it must be a program, as accel.build makes"
            )
        theirs, mine = program.config.hardware, self._config.hardware
        for name, spec in SPECS.items():
            if spec.kind == "geometry" and getattr(theirs, name) != getattr(mine, name):
                raise ProgramError(
                    f"the program is compiled for {name}={getattr(theirs, name)}; "
                    f"the session's machine has {getattr(mine, name)}"
                )
