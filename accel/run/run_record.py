"""The cycles of a run in columns."""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accel.core.events import Event, EventKind
from accel.core.isa import Instruction, Store, Unit
from accel.sim.timing.timing_run import TimingRun

Column = npt.NDArray[np.int64]

NONE = -1
"""The cycle of an absent event, or the number of an absent burst or instruction."""


class NodeKind(IntEnum):
    BEGIN = 0
    DISPATCH = 1
    """This kind and the next three are numbered by instruction."""
    START = 2
    RETIRE = 3
    PAD = 4
    READ_GRANT = 5
    """This kind and the following ones are numbered by grant."""
    READ_LAST = 6
    WRITE_GRANT = 7
    WRITE_SLOT = 8
    """The first cycle after a burst enters the path of ``store_depth`` cycles to the bus."""


class RunRecord(NamedTuple):
    """Cycles as int64, or :data:`NONE`.

    ``dispatch``, ``start`` and ``retire`` are by instruction, columns of reads and writes by burst, in the
    order of grants.
    """

    dispatch: Column
    start: Column
    retire: Column
    read_units: Column
    read_instructions: Column
    read_beats: Column
    read_grants: Column
    read_lasts: Column
    write_instructions: Column
    write_beats: Column
    write_grants: Column
    write_lasts: Column


def record_of_events(events: Sequence[Event], instructions: Sequence[Instruction]) -> RunRecord:
    """Collect cycles from sorted events."""
    cycles = np.full((3, len(instructions)), NONE, dtype=np.int64)
    rows = {EventKind.QUEUE_PUSH: cycles[0], EventKind.START: cycles[1], EventKind.RETIRE: cycles[2]}
    reads: list[list[int]] = []
    writes: list[list[int]] = []
    by_port: dict[tuple[Unit, bool], list[list[int]]] = {}
    completed: dict[tuple[Unit, bool], int] = {}
    for cycle, unit, kind, index, value in events:
        row = rows.get(kind)
        if row is not None:
            row[index] = cycle
        elif kind in (EventKind.BURST_GRANT, EventKind.BURST_LAST):
            port = unit, unit is Unit.STORE and isinstance(instructions[index], Store)
            bursts = by_port.setdefault(port, [])
            if kind == EventKind.BURST_GRANT:
                bursts.append([int(unit), index, value, cycle, NONE])
                (writes if port[1] else reads).append(bursts[-1])
            else:
                bursts[completed.get(port, 0)][4] = cycle
                completed[port] = completed.get(port, 0) + 1
    columns = [np.array(found, dtype=np.int64).reshape(-1, 5).T for found in (reads, writes)]
    return RunRecord(*cycles, *columns[0], *columns[1][1:])


def record_of_run(run: TimingRun) -> RunRecord:
    """Collect cycles from a simulation."""
    end = run.cycles if run.stop is None else run.stop.cycle
    columns = run.columns.dispatch, run.columns.start, run.columns.retire
    dispatch, start, retire = (np.where(column <= end, column, NONE) for column in columns)
    tables = []
    for writes in (False, True):
        logs = [log for log in run.logs if log.writes is writes]
        units = [np.full(len(log.grants), int(log.unit)) for log in logs]
        rows = [
            np.concatenate([np.array(getattr(log, name), dtype=np.int64) for log in logs])
            for name in ("instructions", "beats", "grants", "lasts")
        ]
        table = np.stack([np.concatenate(units).astype(np.int64), *rows])
        table = table[:, np.argsort(table[3], kind="stable")]
        table = table[:, table[3] <= end]
        table[4, table[4] > end] = NONE
        tables.append(table)
    return RunRecord(dispatch, start, retire, *tables[0], *tables[1][1:])
