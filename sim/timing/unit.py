"""What load, compute and store unit have in common: a queue that fetch fills, and when what is in it ran."""

from collections.abc import Mapping
from typing import ClassVar

from accel.core.faults import Fault
from accel.core.isa import Unit
from accel.core.timing_rules import dispatch_depth
from accel.core.token_rules import queue_depth
from accel.sim.timing.engine import Engine
from accel.sim.timing.plan import Plan, Shape
from accel.sim.timing.port import BurstLog, Requester
from accel.sim.timing.recurring import CYCLE, NEVER, later


class Worker(Requester):
    """A unit that executes instructions. Its instructions are counted from zero: their *places*.

    Attributes:
        UNIT: which unit it is.
        log: its reads.
        indices: of its instructions, all of them, in the program.
        shapes: theirs.
        dispatches, readies, starts, retires: by place, the cycles in which fetch hands an instruction out, in
            which the unit could accept it, and in which it starts and retires; as far as they are known.
        ready: of the first instruction that has not started, when the unit can accept it; NEVER if that is
            not known.
    """

    UNIT: ClassVar[Unit]
    CYCLES: ClassVar[tuple[str, ...]] = ("request", "ready")
    LISTS: ClassVar[Mapping[str, str]] = {
        "dispatches": CYCLE,
        "readies": CYCLE,
        "starts": CYCLE,
        "retires": CYCLE,
    }

    def __init__(self, engine: Engine, plan: Plan) -> None:
        members = plan.members[self.UNIT]
        self._engine = engine
        self.indices: list[int] = members.tolist()
        self.shapes: list[Shape] = list(map(plan.shapes.__getitem__, plan.numbers[members].tolist()))
        self._faults: Mapping[int, Fault] = plan.start_faults
        self.log = BurstLog(self.UNIT)
        self.dispatches: list[int] = []
        self.readies: list[int] = []
        self.starts: list[int] = []
        self.retires: list[int] = []
        self.ready = NEVER
        self._dispatch = dispatch_depth(engine.config)
        self._reach = queue_depth(self.UNIT, engine.config)
        """So many instructions that have started matter at most, if they have retired."""
        engine.on(self.UNIT, self._advance)

    def _advance(self) -> None:
        """Start instructions as far as possible."""
        raise NotImplementedError

    def _fails(self, place: int, cycle: int) -> bool:
        """Whether the unit finds the instruction wrong that would start in ``cycle``."""
        if not self._faults:
            return False
        fault = self._faults.get(self.indices[place])
        if fault is not None:
            self._engine.fail(cycle, self.UNIT, self.indices[place], fault)
        return fault is not None

    def floor(self, fetched: int) -> int:
        """No instruction starts before this cycle from now on, if fetch hands out none before ``fetched``."""
        place = len(self.starts)
        handed = self.dispatches[place] if place < len(self.dispatches) else fetched
        return max(handed + self._dispatch, self.starts[-1] if place else 0)

    @property
    def last(self) -> int:
        """The last cycle in which something is known to happen."""
        return max([*self.starts[-1:], *self.retires[-1:], *self.dispatches[-1:], 0])

    def oldest(self, fetched: int) -> int:
        """Place of the oldest instruction that matters."""
        return max(0, min(len(self.retires), len(self.starts) - self._reach))

    def common(self, fetched: int, base: int) -> tuple[int, ...]:
        """What matters of it, whatever the unit: queue, and what has started and retired last."""
        floor, started, retired = self.floor(fetched), len(self.starts), len(self.retires)
        first = self.oldest(fetched)
        return (
            len(self.dispatches) - started,
            started - retired,
            started - first,
            later(self.request, 0, base),
            *(cycle - base for cycle in self.dispatches[started:]),
            *(later(cycle, fetched - 1, base) for cycle in self.starts[first:retired]),
            *(cycle - base for cycle in self.starts[max(first, retired) :]),
            *(later(cycle, floor - 1, base) for cycle in self.retires[first:]),
        )
