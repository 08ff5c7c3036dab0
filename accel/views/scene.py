"""All that the pictures of a run are drawn from."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from accel.assembly.annotate import Annotator
from accel.base.errors import AccelError
from accel.core.access import Touch, residual_touches
from accel.core.isa import Instruction
from accel.image.image import Image
from accel.run.result import Result
from accel.views.activity import activity
from accel.views.states import Activity
from accel.views.tiles import Places, Work, work

if TYPE_CHECKING:
    from accel.run.advice import Advised


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A run that can be looked at.

    Attributes:
        result: of the run.
        seen: what the units did.
        name: of the program, if it has one.
        layers: of a network's program, the name of each layer and the instruction behind its last one.
        advised: what would help, if that was asked for.
    """

    result: Result
    seen: Activity
    name: str | None = None
    layers: tuple[tuple[str, int], ...] = ()
    advised: "Advised | None" = None

    @property
    def image(self) -> Image:
        """The program that ran."""
        return self.result.image

    @property
    def instructions(self) -> Sequence[Instruction]:
        """The decoded program."""
        return self.image.instructions

    @cached_property
    def places(self) -> Places:
        """What lies where in DRAM."""
        return Places(self.image)

    @cached_property
    def touches(self) -> list[tuple[Touch, ...]]:
        """Scratchpad elements that each instruction reads and writes."""
        annotator = Annotator(self.image)
        own = residual_touches(self.instructions, self.image.config)
        found = []
        for n, one in enumerate(self.instructions):
            touches = annotator.touches(n, one)
            found.append((*touches, own[n]) if n in own else touches)
        return found

    @cached_property
    def work(self) -> list[Work]:
        """The tiles that each instruction works on."""
        order = dict.fromkeys(one.instruction for one in self.seen.slices)
        order |= dict.fromkeys(range(len(self.instructions)))  # those that a run cut short did not start
        return work(self.image, self.touches, list(order), self.places)

    @cached_property
    def names(self) -> list[str]:
        """Each instruction by its mnemonic and what it works on."""
        return [
            f"{one.mnemonic} {tiles}".rstrip()
            for one, tiles in zip(self.instructions, map(str, self.work), strict=True)
        ]

    @cached_property
    def tensors(self) -> list[str]:
        """The tensor that each instruction moves, or whose values it computes; empty where none is known."""
        origin = self.image.provenance
        if origin is not None:
            return [origin[n].tensor for n in range(len(self.instructions))]
        return [(one.target[0].area or one.target[0].name) if one.target else "" for one in self.work]


def scene(
    result: Result,
    name: str | None = None,
    *,
    layers: Sequence[tuple[str, int]] = (),
    advised: "Advised | None" = None,
) -> Scene:
    """What a run of a program, which may have a name and be that of a network's layers, looks like.

    Args:
        result: of the run.
        name: of the program.
        layers: of a network's program, the name of each layer and the instruction behind its last one.
        advised: what would help, see :mod:`accel.run.advice`.

    Raises:
        AccelError: nothing is known of when things happened.
    """
    if result.cycles is None:
        raise AccelError("the run ended before it took any time; there is nothing to draw")
    if result.events is None:
        raise AccelError(
            f"the run on the backend {result.backend!r} was not recorded; "
            f"pictures need 'sim', or 'rtl' with record=True"
        )
    image = result.image
    seen = activity(
        result.events,
        image.instructions,
        image.config,
        address=image.config.mem_base + image.code_offset,
        cycles=result.cycles,
        tokens=image.start.tokens,
    )
    return Scene(result=result, seen=seen, name=name, layers=tuple(layers), advised=advised)
