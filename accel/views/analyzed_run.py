"""Recorded runs with the data of pictures."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from accel.assembly.instruction_comments import Annotator
from accel.base.errors import AccelError
from accel.core.events import MAX_RECORDS, Event, EventKind, listed_events
from accel.core.instruction_access import MAX_CACHED_INDICES, Touch, coarse, index_count, residual_touches
from accel.core.isa import Instruction, StoreReq, Unit
from accel.image.image import Image
from accel.run.result import Result
from accel.views.activity_records import Activity
from accel.views.dram_map import DramMap
from accel.views.instruction_tiles import Operands, operands_of
from accel.views.unit_activity import derive_activity

if TYPE_CHECKING:
    from accel.run.machine_advice import AdviceReport


class AnalyzedRun(Struct, frozen=True, kw_only=True, dict=True):
    """A recorded run, and what its units did.

    Attributes:
        layers: of a network, names and the number of the instruction after each.
    """

    result: Result
    activity: Activity
    name: str | None = None
    layers: tuple[tuple[str, int], ...] = ()
    advised: "AdviceReport | None" = None

    @property
    def image(self) -> Image:
        return self.result.image

    @property
    def instructions(self) -> Sequence[Instruction]:
        return self.image.instructions

    @cached_property
    def dram_map(self) -> DramMap:
        return DramMap(self.image)

    @property
    def touches(self) -> list[tuple[Touch, ...]]:
        """Accessed scratchpad elements of each instruction, see :attr:`is_coarse`."""
        return self._touches[0]

    @property
    def is_coarse(self) -> bool:
        """Whether ranges replace large sets in :attr:`touches`."""
        return self._touches[1]

    @cached_property
    def _touches(self) -> tuple[list[tuple[Touch, ...]], bool]:
        annotator = Annotator(self.image)
        residuals = residual_touches(self.instructions, self.image.config)
        found = []
        exact: dict[int, tuple[Touch, ...]] = {}  # by id, since equal instructions share them
        indices, is_coarse = 0, False
        for n, instruction in enumerate(self.instructions):
            touches = annotator.touches(n, instruction)
            touches = (*touches, residuals[n]) if n in residuals else touches
            if id(touches) not in exact:
                count = index_count(touches)
                if indices + count > MAX_CACHED_INDICES:
                    touches, is_coarse = coarse(touches), True
                elif count:
                    exact[id(touches)] = touches
                    indices += count
            found.append(touches)
        return found, is_coarse

    @cached_property
    def operands(self) -> list[Operands]:
        order = dict.fromkeys(one.instruction for one in self.activity.slices)
        order |= dict.fromkeys(range(len(self.instructions)))  # an early end leaves some without start
        return operands_of(self.image, self.touches, list(order), self.dram_map)

    @cached_property
    def names(self) -> list[str]:
        """For example ``LOAD.INP A[0:64, 0:16]``."""
        return [
            f"{instruction.mnemonic} {operands}".rstrip()
            for instruction, operands in zip(self.instructions, map(str, self.operands), strict=True)
        ]

    @cached_property
    def tensors(self) -> list[str]:
        origin = self.image.provenance
        if origin is not None:
            return [origin[n].tensor for n in range(len(self.instructions))]
        return [(one.target[0].area or one.target[0].name) if one.target else "" for one in self.operands]


def analyze_run(
    result: Result,
    name: str | None = None,
    *,
    layers: Sequence[tuple[str, int]] = (),
    advised: "AdviceReport | None" = None,
) -> AnalyzedRun:
    """Derive activity from a run's events.

    Raises:
        AccelError: no cycles, no recorded events, or too many to draw.
    """
    if result.cycles is None:
        raise AccelError("the run ended before its first cycle; there is nothing to draw")
    if result.events is None and result.timing is not None and result.timing.record_count is not None:
        listed_events(result.timing)  # raises an error
    if result.events is None:
        raise AccelError(
            f"the run on the backend {result.backend!r} was not recorded; "
            f"pictures need 'sim', or 'rtl' with record=True"
        )
    image = result.image
    _check_slow_beats(result.events, image)
    activity = derive_activity(
        result.events,
        image.instructions,
        image.config,
        address=image.config.mem_base + image.code_offset,
        cycles=result.cycles,
        tokens=image.start.tokens,
    )
    return AnalyzedRun(result=result, activity=activity, name=name, layers=tuple(layers), advised=advised)


def _check_slow_beats(events: Sequence[Event], image: Image) -> None:
    """Pictures draw each beat of several cycles, so refuse too many."""
    config, instructions = image.config, image.instructions
    if not config.post or config.lanes >= config.bus_bytes:
        return
    beats = sum(
        one.value
        for one in events
        if one.unit is Unit.STORE
        and one.kind is EventKind.BURST_GRANT
        and isinstance(instructions[one.instruction], StoreReq)
    )
    if beats > MAX_RECORDS:
        raise AccelError(
            f"the run requantizes {beats:,} slow beats; pictures show at most {MAX_RECORDS:,}: "
            "end the run earlier by max_cycles"
        )
