"""The timing contract, stepped cycle by cycle.

This machine is slow, and intentionally independent of the event-driven model. Its parts (four units, the read
port, the write channels and the token counters) depend only on their state at the end of the previous cycle.
It shares the latencies of :mod:`accel.core.timing_rules` and the causes of :mod:`accel.core.fault_causes`
with the model.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accel.core.config import Config
from accel.core.events import Event, EventKind, UnitCycles
from accel.core.fault_causes import Cause, Fault, fetch_fault, instruction_faults
from accel.core.isa import (
    Alu,
    Instruction,
    Loops,
    Set,
    Unit,
)
from accel.core.scratchpad_specs import RES
from accel.core.timing_rules import (
    EMPTY_DURATION,
    FETCH_STARTUP,
    INDEX_CHECK,
    REQUEST_STARTUP,
    WRITE_DELAY,
    compute_depth,
    store_depth,
)
from accel.sim.timing.timing_run import TimingRun
from tests.sim.timing.instruction_work import Burst, Work, fetch_bursts, work_of

WORKERS = (Unit.LOAD, Unit.COMPUTE, Unit.STORE)
COUNTERS = {
    (Unit.LOAD, Unit.COMPUTE): 0,
    (Unit.COMPUTE, Unit.LOAD): 1,
    (Unit.COMPUTE, Unit.STORE): 2,
    (Unit.STORE, Unit.COMPUTE): 3,
}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a run; ``stop`` is (cycle, unit, instruction, cause)."""

    cycles: int
    events: list[Event]
    stop: tuple[int, Unit, int, Cause] | None
    unit_cycles: dict[Unit, UnitCycles]


class Machine:
    """The state of the machine in cycle ``now``."""

    def __init__(
        self,
        program: Sequence[Instruction],
        config: Config,
        *,
        address: int,
        faults: Mapping[int, tuple[int, Fault]],
        tokens: Sequence[int],
    ) -> None:
        self.config = config
        self.now = 0
        found = zip(program, instruction_faults(program, config), strict=True)
        self.work = [work_of(index, one, fault, config) for index, (one, fault) in enumerate(found)]
        self.uop_faults = faults
        self.fetches = deque(fetch_bursts(address, len(program), config))
        self.asked = 0
        """Instructions in all bursts granted so far."""
        self.arrivals: list[int] = []
        """First cycle in which each instruction can be dispatched."""
        self.queues: dict[Unit, list[Work]] = {unit: [] for unit in WORKERS}
        """All instructions that were dispatched to a unit, started or not."""
        self.tokens = list(tokens)
        self.reads: list[Burst] = []
        self.writes: list[Burst] = []
        self.arriving: deque[tuple[int, Work]] = deque()
        """Beats from the bus and the cycle in which they are written into a scratchpad."""
        self.slots: deque[tuple[Work, int]] = deque()
        """Micro-ops that have not entered the pipeline, of the instruction that started last."""
        self.pipeline: deque[tuple[int, Work, int]] = deque()
        """Cycle of its slot, instruction and number of each micro-op in the pipeline."""
        self.events: list[Event] = []
        self.errors: list[tuple[Unit, int, Cause]] = []
        self.pushed: list[tuple[int, Work]] = []
        """Tokens pushed in this cycle: counter and pusher."""
        self.moved: set[Unit] = set()
        """Units that are busy in this cycle."""
        self.lacking: set[Unit] = set()
        """Units that could start their next instruction if its tokens were there."""
        self.cycles = {unit: [0, 0, 0, 0] for unit in Unit}

    def run(self, max_cycles: int) -> Outcome:
        stop = None
        while not all(work.retired(self.now) for work in self.work):
            self.step()
            stop = self.stop(max_cycles)
            if stop is not None:
                break
            self.account()
            self.now += 1
        unit_cycles = {
            unit: UnitCycles(busy=busy, memory_stall=memory, token_stall=token, idle=idle)
            for unit, (busy, memory, token, idle) in self.cycles.items()
        }
        return Outcome(cycles=self.now, events=sorted(self.events), stop=stop, unit_cycles=unit_cycles)

    def step(self) -> None:
        """Step one cycle. Parts see each other's state before this cycle."""
        self.moved, self.lacking, self.pushed = set(), set(), []
        self.start_load()
        self.start_compute()
        self.start_store()
        self.run_pipeline()
        self.move_read_beat()
        self.write_scratchpads()
        self.move_write_beat()
        self.retire_transfers()
        self.hand_out()
        self.grant_read()
        self.grant_write()
        self.push_tokens()

    # --- the end of a run ------------------------------------------------------------------------

    def stop(self, max_cycles: int) -> tuple[int, Unit, int, Cause] | None:
        """Return the error of this cycle: the limit, or the first by unit and instruction, or a deadlock."""
        if self.now == max_cycles:
            late = next(work.index for work in self.work if not work.retired(self.now))
            return self.now, Unit.FETCH, late, Cause.LIMIT
        if self.errors:
            return self.now, *min(self.errors)
        if self.deadlocked():
            unit = min(self.lacking)
            return self.now, unit, self.head(unit).index, Cause.DEADLOCK
        return None

    def deadlocked(self) -> bool:
        """Whether no unit works, no burst is outstanding, fetch is done or blocked, and the head of every
        non-empty queue lacks a token."""
        works = any(work.in_flight(self.now) for work in self.work)
        outstanding = any(self.outstanding(bursts) for bursts in (self.reads, self.writes))
        new = any(work.handed_out is not None and not self.queued(work) for work in self.work)
        number = len(self.handed_out())
        fetching = number < len(self.work) and not self.arrived(number)
        waiting = {unit for unit in WORKERS if not all(w.started(self.now + 1) for w in self.queues[unit])}
        return not (works or outstanding or new or fetching) and bool(waiting) and waiting == self.lacking

    def error(self, unit: Unit, index: int, cause: Cause) -> None:
        self.errors.append((unit, index, cause))

    def note(self, unit: Unit, kind: EventKind, index: int, value: int = 0) -> None:
        self.events.append(Event(self.now, unit, kind, index, value))

    # --- tokens ----------------------------------------------------------------------------------

    def begin(self, unit: Unit) -> Work | None:
        """Start the head of the unit's queue, which the unit can accept, if its tokens are there."""
        work = self.head(unit)
        flags = work.instruction
        sides = [(flags.pop_prev, unit.previous), (flags.pop_next, unit.next)]
        popped = [COUNTERS[side, unit] for flag, side in sides if flag and side is not None]
        if not all(self.tokens[counter] for counter in popped):
            self.lacking.add(unit)
            return None
        if work.fault is not None:
            self.error(unit, work.index, work.fault.cause)
            return None
        work.start = self.now
        self.note(unit, EventKind.QUEUE_POP, work.index, unit)
        self.note(unit, EventKind.START, work.index)
        for counter in popped:
            self.tokens[counter] -= 1
            self.note(unit, EventKind.TOKEN_POP, work.index, counter)
        return work

    def finish(self, work: Work) -> None:
        """Retire an instruction. Its tokens can be used in the next cycle."""
        work.retire = self.now
        unit, flags = work.unit, work.instruction
        self.note(unit, EventKind.RETIRE, work.index)
        for flag, side in ((flags.push_prev, unit.previous), (flags.push_next, unit.next)):
            if flag and side is not None:
                self.pushed.append((COUNTERS[unit, side], work))
                self.note(unit, EventKind.TOKEN_PUSH, work.index, COUNTERS[unit, side])

    def push_tokens(self) -> None:
        for counter, work in self.pushed:
            self.tokens[counter] += 1
            if self.tokens[counter] >= 1 << self.config.token_bits:
                self.error(work.unit, work.index, Cause.TOKEN_OVERFLOW)

    # --- fetch -----------------------------------------------------------------------------------

    def handed_out(self) -> list[Work]:
        """Return the instructions that were dispatched before this cycle."""
        return [work for work in self.work if work.handed_out is not None and work.handed_out < self.now]

    def arrived(self, number: int) -> bool:
        return number < len(self.arrivals) and self.arrivals[number] <= self.now

    def hand_out(self) -> None:
        number = len(self.handed_out())
        if number == len(self.work) or not self.arrived(number):
            return
        work = self.work[number]
        fault = fetch_fault(work.instruction, number, len(self.work), self.config)
        if fault is not None:
            self.error(Unit.FETCH, number, fault.cause)
            return
        if self.config.serial and number and not self.work[number - 1].retired(self.now):
            return
        queue = self.queues[work.unit]
        depth = getattr(self.config, f"{work.unit.label}_queue")
        if sum(not other.started(self.now) for other in queue) < depth:
            queue.append(work)
            work.handed_out = self.now
            self.moved.add(Unit.FETCH)
            self.note(Unit.FETCH, EventKind.QUEUE_PUSH, number, work.unit)

    def head(self, unit: Unit) -> Work:
        return next(work for work in self.queues[unit] if work.start is None)

    def queued(self, work: Work) -> bool:
        """Whether an instruction was in its queue before this cycle."""
        return work.handed_out is not None and work.handed_out + self.config.dispatch_stages < self.now

    def heads_queue(self, unit: Unit) -> bool:
        """Whether there is an instruction that the unit may start."""
        waiting = [work for work in self.queues[unit] if work.start is None]
        return bool(waiting) and self.queued(waiting[0])

    # --- load, store -----------------------------------------------------------------------------

    def may_follow(self, unit: Unit, most: int) -> bool:
        """Whether the last burst of the previous LOAD, or STORE, has been granted, and fewer than ``most``
        have started and not retired."""
        kind = type(self.head(unit).instruction).OPCODE
        before = [w for w in self.queues[unit] if w.start is not None and w.instruction.OPCODE is kind]
        granted = not before or (not before[-1].requests and before[-1].last_grant < self.now)
        return granted and sum(work.in_flight(self.now) for work in before) < most

    def start_load(self) -> None:
        if not self.heads_queue(Unit.LOAD) or not self.may_follow(Unit.LOAD, self.config.loads_in_flight):
            return
        flying = [work for work in self.queues[Unit.LOAD] if work.in_flight(self.now)]
        if flying and any(isinstance(w.instruction, Set) for w in (self.head(Unit.LOAD), *flying)):
            return
        if not any(overlap(self.head(Unit.LOAD).range, work.range) for work in flying):
            self.begin(Unit.LOAD)

    def start_store(self) -> None:
        if not self.heads_queue(Unit.STORE):
            return
        head, config = self.head(Unit.STORE), self.config
        flying = [work for work in self.queues[Unit.STORE] if work.in_flight(self.now)]
        if any(isinstance(work.instruction, Set) for work in (head, *flying)):
            if not flying:
                self.begin(Unit.STORE)
            return
        if not self.may_follow(Unit.STORE, config.loads_in_flight if head.loads else config.stores_in_flight):
            return
        if head.fault is None and not (self.operands_free(head, flying) and self.res_free(head)):
            return
        self.begin(Unit.STORE)

    def operands_free(self, head: Work, flying: list[Work]) -> bool:
        """Whether a LOAD of PAR or TAB overwrites nothing in use, and a STORE's elements of them are
        written."""
        users = [work for work in flying if work.operands & head.operands]
        return not users if head.loads else not any(work.loads and work.beats for work in users)

    def res_free(self, head: Work) -> bool:
        """Whether RES has room for a LOAD, or the residuals of a STORE."""
        if not head.res:
            return True
        before = [work for work in self.queues[Unit.STORE] if work.res and work.start is not None]
        if head.loads:
            held = sum(work.res for work in before if work.loads)
            left = sum(work.res for work in before if not work.loads and work.retired(self.now))
            return held - left + head.res <= RES.depth(self.config)
        there = sum(work.res for work in before if work.loads and not work.beats)
        return there >= sum(work.res for work in before if not work.loads) + head.res

    def retire_transfers(self) -> None:
        """Retire the oldest transfer, or FINISH, of each unit if all of its data has been written; one per
        cycle."""
        for unit in WORKERS:
            flying = [work for work in self.queues[unit] if work.in_flight(self.now)]
            if not flying or flying[0].pipelined or flying[0].retire is not None:
                continue
            oldest = flying[0]
            assert oldest.start is not None
            written = not (oldest.requests or oldest.beats or oldest.pads) and oldest.response <= self.now
            if written and self.now >= oldest.start + EMPTY_DURATION:
                self.finish(oldest)

    def write_scratchpads(self) -> None:
        """Write the beats that have arrived, and in units without one a pad word."""
        fed = set()
        while self.arriving and self.arriving[0][0] == self.now:
            _, work = self.arriving.popleft()
            work.beats -= 1
            fed.add(work.unit)
        self.moved |= fed
        for unit in {Unit.LOAD, Unit.COMPUTE} - fed:
            for work in self.queues[unit]:
                if work.pads and work.start is not None and self.now >= work.start + REQUEST_STARTUP:
                    work.pads -= 1
                    self.moved.add(unit)
                    break

    # --- compute ---------------------------------------------------------------------------------

    def start_compute(self) -> None:
        if not self.heads_queue(Unit.COMPUTE):
            return
        flying = [work for work in self.queues[Unit.COMPUTE] if work.in_flight(self.now)]
        if self.head(Unit.COMPUTE).pipelined:
            free = not self.slots and all(work.pipelined for work in flying)
        else:
            free = not flying
        work = self.begin(Unit.COMPUTE) if free else None
        if work is not None and isinstance(work.instruction, Loops):
            slots = work.instruction.uop_count * self.uop_slots(work.instruction)
            self.slots.extend((work, number) for number in range(max(1, slots)))

    def uop_slots(self, instruction: Instruction) -> int:
        """A product takes ``mul_slots``, any other micro-op one."""
        return self.config.mul_slots if isinstance(instruction, Alu) and instruction.alu_op == 4 else 1

    def run_pipeline(self) -> None:
        """Issue a micro-op, check the indices of another, write the accumulators of a third."""
        if self.slots:
            work, number = self.slots.popleft()
            self.pipeline.append((self.now, work, number))
            if isinstance(work.instruction, Loops) and work.instruction.uop_count:
                self.moved.add(Unit.COMPUTE)
        for slot, work, number in list(self.pipeline):
            bad = self.uop_faults.get(work.index)
            each = self.uop_slots(work.instruction)
            last = number % each == each - 1
            if slot + INDEX_CHECK == self.now and bad is not None and last and bad[0] == number // each:
                self.error(Unit.COMPUTE, work.index, bad[1].cause)
            if slot + compute_depth(self.config) == self.now:
                self.pipeline.popleft()
                assert isinstance(work.instruction, Loops)
                if number == max(1, work.instruction.uop_count * each) - 1:
                    self.finish(work)

    # --- the bus ---------------------------------------------------------------------------------

    def outstanding(self, bursts: list[Burst]) -> int:
        """Count the bursts whose last beat, or response, has not come before this cycle."""
        ends = [burst.response if burst.writes else burst.last for burst in bursts]
        return sum(end is None or end >= self.now for end in ends)

    def requesting(self, unit: Unit, *, writes: bool = False) -> Work | None:
        for work in self.queues[unit]:
            if (
                work.loads is not writes
                and work.requests
                and work.start is not None
                and self.now >= work.start + REQUEST_STARTUP
            ):
                return work
        return None

    def grant(self, bursts: list[Burst], unit: Unit, work: Work) -> None:
        beats = work.requests.popleft()
        burst = Burst(unit, work.index, work, self.now, beats, [], writes=not work.loads)
        work.last_grant = self.now
        bursts.append(burst)
        self.note(unit, EventKind.BURST_GRANT, work.index, burst.beats)

    def grant_read(self) -> None:
        """Grant one burst per cycle: compute before store, store before load, load before fetch."""
        if self.outstanding(self.reads) >= self.config.outstanding:
            return
        for unit in (Unit.COMPUTE, Unit.STORE, Unit.LOAD):
            work = self.requesting(unit)
            if work is not None:
                self.grant(self.reads, unit, work)
                return
        if self.now < FETCH_STARTUP or not self.fetches:
            return
        completes = self.fetches[0]
        if self.asked + sum(completes) - len(self.handed_out()) <= self.config.fetch_buffer:
            self.reads.append(Burst(Unit.FETCH, self.asked, None, self.now, len(completes), completes))
            self.note(Unit.FETCH, EventKind.BURST_GRANT, self.asked, len(completes))
            self.asked += sum(self.fetches.popleft())

    def move_read_beat(self) -> None:
        """Move the next beat of the oldest burst whose data has arrived."""
        burst = next((burst for burst in self.reads if burst.last is None), None)
        if burst is None or self.now < burst.grant + self.config.read_latency:
            return
        if burst.work is None:
            self.arrivals += [self.now + WRITE_DELAY] * burst.completes[burst.sent]
        else:
            self.arriving.append((self.now + WRITE_DELAY, burst.work))
        self.sent(burst, burst.beats)

    def grant_write(self) -> None:
        """Grant a burst if its first beat can follow the previous burst once its accumulators are read."""
        work = self.requesting(Unit.STORE, writes=True)
        if work is None or self.outstanding(self.writes) >= self.config.outstanding:
            return
        if self.writes and self.writes[-1].last is None:
            before = self.writes[-1]
            assert before.work is not None
            sending = max(self.now, before.grant + store_depth(self.config) - 1)
            if (
                sending + before.beats * before.work.pace - before.sent
                > self.now + store_depth(self.config) - 1
            ):
                return
        self.grant(self.writes, Unit.STORE, work)

    def move_write_beat(self) -> None:
        burst = next((burst for burst in self.writes if burst.last is None), None)
        if burst is None or self.now < burst.grant + store_depth(self.config):
            return
        assert burst.work is not None
        self.sent(burst, burst.beats * burst.work.pace)
        if burst.sent % burst.work.pace == 0:
            burst.work.beats -= 1
            self.moved.add(Unit.STORE)
        if burst.last is not None:
            burst.response = burst.work.response = self.now + self.config.write_latency

    def sent(self, burst: Burst, most: int) -> None:
        burst.sent += 1
        if burst.sent == most:
            burst.last = self.now
            self.note(burst.unit, EventKind.BURST_LAST, burst.index, burst.beats)

    # --- cycle counters --------------------------------------------------------------------------

    def account(self) -> None:
        """Count a cycle of each unit: busy, waiting for memory, waiting for a token, or idle."""
        for unit in Unit:
            if unit is Unit.FETCH:
                number = len(self.handed_out())
                left = number < len(self.work)
                memory, token = left and not self.arrived(number), left
            else:
                memory = any(work.in_flight(self.now) for work in self.queues[unit] if not work.pipelined)
                token = unit in self.lacking
            kind = 0 if unit in self.moved else 1 if memory else 2 if token else 3
            self.cycles[unit][kind] += 1


def overlap(one: tuple[int, int, int] | None, other: tuple[int, int, int] | None) -> bool:
    if one is None or other is None or one[0] != other[0]:
        return False
    return one[1] < other[2] and other[1] < one[2]


def step_by_step(
    program: Sequence[Instruction],
    config: Config,
    *,
    address: int = 0,
    faults: dict[int, tuple[int, Fault]] | None = None,
    max_cycles: int = 1 << 40,
    tokens: tuple[int, int, int, int] = (0, 0, 0, 0),
) -> Outcome:
    machine = Machine(program, config, address=address, faults=faults or {}, tokens=tokens)
    return machine.run(max_cycles)


def assert_same(run: TimingRun, expected: Outcome) -> None:
    stop = None if run.stop is None else (run.stop.cycle, run.stop.unit, run.stop.index, run.stop.fault.cause)
    assert (run.events(), stop, run.cycles) == (expected.events, expected.stop, expected.cycles)
    retired = [(one.instruction, one.cycle) for one in expected.events if one.kind is EventKind.RETIRE]
    assert sorted(run.retirements()) == sorted(retired)
    assert run.unit_cycles == expected.unit_cycles
    assert stop is None or all(burst.grant <= stop[0] for burst in run.bursts)
