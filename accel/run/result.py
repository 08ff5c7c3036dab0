"""What a run gave: outputs, cycles, and the figures that tell how good it was."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy.typing as npt

from accel.base.errors import MachineError, MismatchError
from accel.compiler.expr.metrics import Compulsory, bound_by
from accel.core.access import dram_rows
from accel.core.config import INSTRUCTION_BYTES, Config
from accel.core.events import Event, Timing, UnitCycles
from accel.core.faults import instruction_fault
from accel.core.isa import Instruction, Memory, Products, Store, Transfer, Unit
from accel.core.memories import scratchpads_of
from accel.core.token_rules import is_carrier
from accel.image.image import Image
from accel.run.critical import Segment, critical_path
from accel.run.figures import RESULT_KEYS, SCHEMA_VERSION, ErrorFigures, RunFigures, error_dict
from accel.run.tables import ResultTable, events_table, instructions_table

__all__ = ["RESULT_KEYS", "SCHEMA_VERSION", "Result", "TimedResult", "Totals", "error_dict"]

_KINDS = tuple(memory.name.lower() for memory in Memory)


def _kind(transfer: Transfer) -> str:
    """Under which name a transfer's bytes are counted."""
    assert transfer.route is not None
    return Memory.OUT.name.lower() if isinstance(transfer, Store) else transfer.route.name.lower()


@dataclass(frozen=True, kw_only=True)
class Totals:
    """What is known of a run's cycles when its events are forgotten."""

    cycles: int
    unit_cycles: dict[Unit, UnitCycles]

    @classmethod
    def of(cls, timing: Timing) -> Self:
        """The totals of what is known."""
        return cls(cycles=timing.cycles, unit_cycles=timing.unit_cycles)

    def events(self) -> None:
        """They are gone."""
        return

    def retirements(self) -> None:
        """They are gone, too."""
        return


@dataclass(frozen=True, kw_only=True)
class Arranged:
    """What the host packs for a program.

    Attributes:
        mapping: by which the program computes what it was asked for.
        packed_bytes: that inputs take in DRAM.
        packing_factor: how many times their own bytes that is; None if there are no inputs.
    """

    mapping: str
    packed_bytes: int
    packing_factor: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """A finished run, or one that the machine ended early. Two of them are equal if they are the same object:
    compare ``outputs`` by numpy, and figures as :meth:`to_dict` has them.

    Attributes:
        outputs: arrays by name; none of a run that ended early.
        mismatches: elements that differ from the numpy reference, or None if they were not compared.
        uops: micro-ops executed; None if that is not known.
        timing: what is known of cycles; None if time was not simulated.
        image: the program that ran, with the timing of the run.
        compulsory: what the computation takes at least, or None if it is not known or was not done.
        carried: the same of the operator that the program carries out, which differs where it was mapped to
            another one.
        arranged: what the host packs, of a summary.
        pack_seconds: packing of inputs and unpacking of outputs, which the host does; not in ``cycles``.
        simulate_seconds: from a loaded program with its inputs in memory to outputs and cycles in memory.
        error: what ended the run early, or None.
    """

    outputs: dict[str, npt.NDArray[Any]]
    mismatches: int | None
    backend: str
    image: Image
    uops: int | None
    timing: Timing | None
    compulsory: Compulsory | None
    compile_seconds: float | None
    pack_seconds: float
    simulate_seconds: float
    error: MachineError | None = None
    carried: Compulsory | None = None
    arranged: Arranged | None = None

    def __repr__(self) -> str:
        """The main figures in a line; all of them are in :meth:`to_dict`."""
        parts = [f"{self.backend} on {self.config.label}", f"{len(self.instructions)} instructions"]
        if self.cycles is not None:
            parts.append(f"{self.cycles} cycles")
        if self.error is not None:
            parts.append(f"stopped by {ErrorFigures.of(self.error).cause}")
        if self.utilization is not None:
            parts.append(f"utilization {self.utilization:.1%}")
        if self.bound_by is not None:
            parts.append(f"bound by {self.bound_by}")
        parts.append("not compared" if self.mismatches is None else f"{self.mismatches} mismatches")
        outputs = ", ".join(f"{name} {a.dtype}{list(a.shape)}" for name, a in self.outputs.items())
        return f"Result({', '.join(parts)}{f'; {outputs}' if outputs else ''})"

    @property
    def config(self) -> Config:
        """The machine that it ran on."""
        return self.image.config

    @property
    def instructions(self) -> Sequence[Instruction]:
        """The decoded program."""
        return self.image.instructions

    @property
    def cycles(self) -> int | None:
        """Length of the run; None if time was not simulated. A :class:`TimedResult` always knows it."""
        return None if self.timing is None else self.timing.cycles

    @cached_property
    def stalls(self) -> dict[str, UnitCycles] | None:
        """Where each unit's cycles went, by the unit's name; None if time was not simulated."""
        return None if self.timing is None else stalls_of(self.timing)

    @cached_property
    def events(self) -> list[Event] | None:
        """Everything that happened, sorted; None if time was not simulated, or nothing was recorded."""
        return None if self.timing is None else self.timing.events()

    def critical_path(self) -> tuple[Segment, ...] | None:
        """Why the run took as many cycles: from its last event back through whatever each event had waited
        for, as segments in order of time that sum up to :attr:`~accel.run.result.Result.cycles`.

        Returns:
            See :class:`~accel.run.critical.Segment`; None if time was not simulated, or nothing was recorded.
        """
        return self._critical_path

    def instructions_table(self) -> ResultTable:
        """A row for each instruction: its unit, its name, the tensor, the schedule's stage, its text, and the
        cycles in which it was handed out, started and retired, if they are known."""
        return instructions_table(self.image, self.events)

    def events_table(self) -> ResultTable | None:
        """A row for each event, with names instead of numbers; None where :attr:`events` is."""
        return None if self.events is None else events_table(self.image, self.events)

    @cached_property
    def _critical_path(self) -> tuple[Segment, ...] | None:
        return None if self.timing is None else critical_path(self.timing, self.image)

    @property
    def utilization(self) -> float | None:
        """Cycles that the multiply-accumulates need at least, but for those on padding, over cycles taken."""
        if self.cycles is None or self.compulsory is None:
            return None
        return self.compulsory.ideal_cycles(self.config) / self.cycles

    @property
    def roofline_fraction(self) -> float | None:
        """Cycles that GEMM core and bus need at least, over cycles taken; at most 1."""
        if self.cycles is None or self.compulsory is None:
            return None
        fraction = self.compulsory.roofline_cycles(self.config) / self.cycles
        if fraction > 1:
            raise MismatchError(
                f"the run took {self.cycles} cycles, less than the {fraction * self.cycles:.0f} "
                f"that the roofline allows; one of the two is wrong"
            )
        return fraction

    @property
    def slot_utilization(self) -> float | None:
        """Cycles in which the compute unit executes a micro-op, over cycles taken. Other than
        :attr:`utilization`, it counts products of zeros that fill up blocks, and passes that multiply
        nothing."""
        return None if not self.cycles or self.uops is None else self.uops / self.cycles

    @property
    def slot_bound_cycles(self) -> float | None:
        """Cycles that the program's micro-ops need at least, or the bus in either direction for what the
        operator that it carries out must move."""
        if self.uops is None or self.carried is None:
            return None
        width = self.config.bus_bytes
        return max(self.uops, self.carried.read_bytes / width, self.carried.write_bytes / width)

    @property
    def slot_roofline_fraction(self) -> float | None:
        """:attr:`slot_bound_cycles` over cycles taken: how good the schedule is, whatever it computes. Only
        :attr:`roofline_fraction` says how much of it was needed."""
        bound = self.slot_bound_cycles
        return None if not self.cycles or bound is None else bound / self.cycles

    @property
    def bound_by(self) -> str | None:
        """What holds the run back, see :func:`~accel.compiler.expr.metrics.bound_by`; None if time was not
        simulated."""
        if self.cycles is None or self.stalls is None:
            return None
        busy = {unit: self.stalls[unit.label].busy for unit in (Unit.COMPUTE, Unit.LOAD, Unit.STORE)}
        return bound_by(self.cycles, compute=busy[Unit.COMPUTE], load=busy[Unit.LOAD], store=busy[Unit.STORE])

    @property
    def gemm_uops(self) -> int:
        """Micro-ops that multiply."""
        return sum(one.uop_count for one in self.instructions if isinstance(one, Products) and one.multiplies)

    @cached_property
    def bytes_by_kind(self) -> dict[str, int]:
        """Bytes that the instructions move, by memory, all that STOREs write as ``out``, and those of the
        instructions themselves; instructions that are wrong move nothing."""
        return bytes_moved(self.instructions, self.config)

    @property
    def load_bytes(self) -> int:
        """Bytes that LOADs read."""
        return sum(n for kind, n in self.bytes_by_kind.items() if kind not in ("out", "instructions"))

    @property
    def store_bytes(self) -> int:
        """Bytes that STOREs write."""
        return self.bytes_by_kind["out"]

    def raise_if_stopped(self) -> None:
        """Raise what ended the run early.

        Raises:
            MachineError, LimitExceeded, DeadlockError: with cause, instruction and cycle.
        """
        if self.error is not None:
            raise self.error

    def raise_if_wrong(self) -> None:
        """Raise if the outputs differ from the reference.

        Raises:
            MismatchError: they do.
        """
        wrong = self._mismatch()
        if wrong is not None:
            raise wrong

    def summary(self, image: Image) -> Self:
        """The figures without what takes memory: no outputs and no events.

        Args:
            image: what the figures of the program are taken from: configuration and instructions are enough.
        """
        timing = None if self.timing is None else Totals.of(self.timing)
        return replace(self, outputs={}, timing=timing, image=image, arranged=self._arranged)

    @property
    def _arranged(self) -> Arranged:
        """What the host packs; a summary's image does not say it any more."""
        image = self.image
        return self.arranged or Arranged(
            mapping=image.mapping, packed_bytes=image.packed_bytes, packing_factor=image.packing_factor
        )

    def _mismatch(self) -> MismatchError | None:
        if not self.mismatches:
            return None
        total = sum(array.size for array in self.outputs.values())
        return MismatchError(f"{self.mismatches} of {total} output elements differ from the numpy reference")

    def figures(self) -> RunFigures:
        """The figures; what does not apply is None."""
        least = self.compulsory
        wrong = self.error or self._mismatch()
        return RunFigures(
            backend=self.backend,
            config=self.config.label,
            cycles=self.cycles,
            macs=None if least is None else least.macs,
            padding_macs=None if least is None else least.padding_macs,
            ideal_cycles=None if least is None else least.ideal_cycles(self.config),
            roofline_cycles=None if least is None else least.roofline_cycles(self.config),
            utilization=self.utilization,
            roofline_fraction=self.roofline_fraction,
            slot_bound_cycles=self.slot_bound_cycles,
            slot_utilization=self.slot_utilization,
            slot_roofline_fraction=self.slot_roofline_fraction,
            bound_by=self.bound_by,
            mapping=self._arranged.mapping,
            packed_bytes=self._arranged.packed_bytes,
            packing_factor=self._arranged.packing_factor,
            load_bytes=self.load_bytes,
            store_bytes=self.store_bytes,
            bytes_by_kind=self.bytes_by_kind,
            instructions=len(self.instructions),
            carriers=sum(map(is_carrier, self.instructions)),
            uops=self.uops,
            mismatches=self.mismatches,
            stalls=self.stalls,
            compile_seconds=self.compile_seconds,
            pack_seconds=self.pack_seconds,
            simulate_seconds=self.simulate_seconds,
            error=None if wrong is None else ErrorFigures.of(wrong),
        )

    def to_dict(self) -> dict[str, Any]:
        """:meth:`figures` as plain data."""
        return self.figures().to_dict()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TimedResult(Result):
    """The result of a run whose time was simulated, as those on ``sim`` and ``rtl`` are.

    Attributes:
        timing: what is known of cycles.
    """

    timing: Timing

    @property
    def cycles(self) -> int:
        """Length of the run."""
        return self.timing.cycles

    @cached_property
    def stalls(self) -> dict[str, UnitCycles]:
        """Where each unit's cycles went, by the unit's name."""
        return stalls_of(self.timing)


def stalls_of(timing: Timing) -> dict[str, UnitCycles]:
    """Where each unit's cycles went, by the unit's name."""
    return {unit.label: cycles for unit, cycles in timing.unit_cycles.items()}


def bytes_moved(instructions: Sequence[Instruction], config: Config) -> dict[str, int]:
    """Bytes by kind as :attr:`Result.bytes_by_kind` has them, of any instructions.

    Args:
        instructions: all or some of a program's.
        config: the machine.
    """
    moved: Counter[str] = Counter()
    for instruction in instructions:
        if not isinstance(instruction, Transfer) or instruction_fault(instruction, config) is not None:
            continue
        rows = dram_rows(instruction, config)
        if rows is not None:
            moved[_kind(instruction)] += rows.rows * rows.row_bytes
    own = [pad.name for pad in scratchpads_of(config).values() if pad.post]
    return {kind: moved[kind] for kind in (*_KINDS, *own)} | {
        "instructions": len(instructions) * INSTRUCTION_BYTES
    }
