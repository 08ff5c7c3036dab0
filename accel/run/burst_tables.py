"""Bursts and pad words of a recorded run."""

from bisect import bisect_left
from itertools import accumulate

import numpy as np

from accel.core.config import Config
from accel.core.isa import Unit
from accel.core.timing_rules import REQUEST_STARTUP, WRITE_DELAY, fetch_bursts, store_depth
from accel.run.instruction_dependencies import InstructionDependencies, fast_column
from accel.run.run_record import NONE, NodeKind, RunRecord


class ReadBursts:
    """Reads, in the order of their grants.

    Attributes:
        previous: the unit's previous burst.
        last_of: last burst of an instruction, except fetch, or NONE.
    """

    def __init__(self, record: RunRecord, instruction_count: int) -> None:
        self.grants = fast_column(record.read_grants)
        self.lasts = fast_column(record.read_lasts)
        self.beats = fast_column(record.read_beats)
        self.instructions = fast_column(record.read_instructions)
        units = list(Unit)
        self.units = [units[unit] for unit in record.read_units.tolist()]
        previous = np.full(len(self.grants), NONE, dtype=np.int64)
        last_of = np.full(instruction_count, NONE, dtype=np.int64)
        for unit in Unit:
            own = np.flatnonzero(record.read_units == int(unit))
            previous[own[1:]] = own[:-1]
            if unit is not Unit.FETCH:
                last_of[record.read_instructions[own]] = own
        self.previous = fast_column(previous)
        self.last_of = fast_column(last_of)


class WriteBursts:
    """The store unit's writes.

    Attributes:
        slots: first cycle after all beats of a burst have entered the store path.
        slot_cycles: cycles in which they enter.
        last_of: last burst of an instruction, or NONE.
    """

    def __init__(self, record: RunRecord, dependencies: InstructionDependencies, config: Config) -> None:
        self.instructions = fast_column(record.write_instructions)
        self.grants = fast_column(record.write_grants)
        self.lasts = fast_column(record.write_lasts)
        beat_cycles = [dependencies.timings[index].beat_cycles for index in self.instructions]
        slot_cycles = record.write_beats * np.array(beat_cycles, dtype=np.int64)
        self.slot_cycles = fast_column(slot_cycles)
        self.slots = fast_column(record.write_lasts + 1 - store_depth(config))
        for number, last in enumerate(self.lasts):
            if last == NONE:  # the run ended before
                before = self.slots[number - 1] if number else 0
                self.slots[number] = max(self.grants[number], before) + self.slot_cycles[number]
        last_of = np.full(len(dependencies.timings), NONE, dtype=np.int64)
        last_of[record.write_instructions] = np.arange(len(self.instructions))
        self.last_of = fast_column(last_of)


class FetchBursts:
    """Bursts that fetch instructions.

    Attributes:
        reads: number of each fetch burst among all reads.
        numbers: number of each read among fetch bursts, or NONE.
        burst_of, beat_of: fetch burst and last beat of an instruction.
    """

    def __init__(self, record: RunRecord, instruction_count: int, config: Config, address: int) -> None:
        planned = fetch_bursts(address, instruction_count, config)
        sizes = [len(one.arrival) for one in planned]
        reads = np.flatnonzero(record.read_units == int(Unit.FETCH))
        numbers = np.full(len(record.read_units), NONE, dtype=np.int64)
        numbers[reads] = np.arange(len(reads))
        self.reads = fast_column(reads)
        self.numbers = fast_column(numbers)
        self.burst_of = fast_column(np.repeat(np.arange(len(planned)), sizes))
        self.beat_of: list[int] = [beat for one in planned for beat in one.arrival]
        self.ends = list(accumulate(sizes))


class PadWords:
    """Pad words. A unit writes one per cycle without data, in program order.

    Attributes:
        waits_for: the event before a LOAD's first pad word: its start, an earlier LOAD's last pad word, or
            the last beat of a read.
    """

    def __init__(self, record: RunRecord, dependencies: InstructionDependencies, reads: ReadBursts) -> None:
        self.last_cycles: dict[int, int] = {}
        self.first_cycles: dict[int, int] = {}
        self.waits_for: dict[int, tuple[NodeKind, int]] = {}
        if any(timing.pad_words for timing in set(dependencies.timings)):
            for unit in (Unit.LOAD, Unit.COMPUTE):
                self._place_words(unit, record, dependencies, reads)

    def _place_words(
        self, unit: Unit, record: RunRecord, dependencies: InstructionDependencies, reads: ReadBursts
    ) -> None:
        own = np.flatnonzero(record.read_units == int(unit))
        lasts = [cycle for cycle in record.read_lasts[own].tolist() if cycle != NONE]
        numbers = own.tolist()
        starts = record.start.tolist()
        next_free, previous = 0, NONE
        for index in dependencies.members[unit]:
            words = dependencies.timings[index].pad_words
            if not words or starts[index] == NONE:
                continue
            cycle = starts[index] + REQUEST_STARTUP
            waits_for, first = (NodeKind.START, index), cycle
            if next_free > cycle:
                waits_for, first = (NodeKind.PAD, previous), next_free
                cycle = next_free
            cursor = bisect_left(lasts, cycle - WRITE_DELAY)
            has_begun = False
            while words:
                has_data = cursor < len(lasts)
                written = lasts[cursor] + WRITE_DELAY if has_data else cycle + words
                data_begin = written - reads.beats[numbers[cursor]] + 1 if has_data else written
                gap = min(words, max(0, data_begin - cycle))
                has_begun |= gap > 0
                words -= gap
                cycle += gap
                if words:
                    cycle = written + 1
                    if not has_begun:
                        waits_for, first = (NodeKind.READ_LAST, numbers[cursor]), cycle
                    cursor += 1
            next_free, previous = cycle, index
            self.last_cycles[index] = cycle - 1
            self.first_cycles[index], self.waits_for[index] = first, waits_for
