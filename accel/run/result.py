"""The result of a run: outputs, cycles, and figures."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.errors import AccelError, MachineError, MismatchError
from accel.base.html_summary import Bar, html_summary
from accel.base.interned_sequence import Distinct
from accel.base.records import replace
from accel.compiler.expr.compulsory_cost import Compulsory, bound_by
from accel.core.config import INSTRUCTION_BYTES, Config
from accel.core.events import Event, Timing, UnitCycles
from accel.core.fault_causes import instruction_fault
from accel.core.instruction_access import dram_rows
from accel.core.isa import Instruction, Memory, Products, Store, Transfer, Unit
from accel.core.scratchpad_specs import scratchpads_of
from accel.core.token_rules import is_carrier
from accel.image.image import Image
from accel.run.critical_path import Segment, critical_path
from accel.run.event_tables import ResultTable, events_table, instructions_table
from accel.run.result_pictures import Picture, picture
from accel.run.run_figures import RESULT_KEYS, SCHEMA_VERSION, ErrorFigures, RunFigures, error_dict

if TYPE_CHECKING:
    from accel.energy.energy_report import EnergyReport

__all__ = ["RESULT_KEYS", "SCHEMA_VERSION", "Result", "TimedResult", "Totals", "error_dict"]

_KINDS = tuple(memory.name.lower() for memory in Memory)


def _byte_kind(transfer: Transfer) -> str:
    assert transfer.route is not None
    return Memory.OUT.name.lower() if isinstance(transfer, Store) else transfer.route.name.lower()


class Totals(Struct, frozen=True, kw_only=True):
    """Cycles without events."""

    cycles: int
    unit_cycles: dict[Unit, UnitCycles]

    @classmethod
    def of(cls, timing: Timing) -> Self:
        return cls(cycles=timing.cycles, unit_cycles=timing.unit_cycles)

    @property
    def record_count(self) -> None:
        return

    def events(self) -> None:
        return

    def retirements(self) -> None:
        return


class Arranged(Struct, frozen=True, kw_only=True):
    """How the host packs tensors for a program.

    Attributes:
        packing_factor: packed bytes divided by those of the inputs, if any.
    """

    mapping: str
    packed_bytes: int
    packing_factor: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """A complete run, or one that the machine ended early.

    Attributes:
        outputs: arrays by name. Empty after an error.
        mismatches: wrong elements. None if not compared.
        uops: executed micro-ops, if known.
        timing: None if time was not simulated.
        compulsory: least work of the computation, if known.
        carried: least work of the compiled operator.
        arranged: in a summary, how the host packs tensors.
        pack_seconds: for packing and unpacking.
        simulate_seconds: of the run, without packing.
        error: the error that ended the run, if any.
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
        parts = [f"{self.backend} on {self.config.label}", f"{len(self.instructions)} instructions"]
        if self.cycles is not None:
            parts.append(f"{self.cycles} cycles")
        if self.error is not None:
            parts.append(f"stopped by {ErrorFigures.of(self.error).cause}")
        if self.utilization is not None:
            parts.append(f"utilization {self.utilization:.1%}")
        parts.append("not compared" if self.mismatches is None else f"{self.mismatches} mismatches")
        outputs = ", ".join(f"{name} {a.dtype}{list(a.shape)}" for name, a in self.outputs.items())
        return f"Result({', '.join(parts)}{f'; {outputs}' if outputs else ''})"

    @property
    def config(self) -> Config:
        """The machine."""
        return self.image.config

    @property
    def instructions(self) -> Sequence[Instruction]:
        """The decoded program."""
        return self.image.instructions

    @property
    def cycles(self) -> int | None:
        """Length of the run. Known in a :class:`TimedResult`."""
        return None if self.timing is None else self.timing.cycles

    @cached_property
    def stalls(self) -> dict[str, UnitCycles] | None:
        """Cycles in each state, by unit. None if time was not simulated."""
        return None if self.timing is None else stalls_of(self.timing)

    @cached_property
    def events(self) -> list[Event] | None:
        return None if self.timing is None else self.timing.events()

    def critical_path(self) -> tuple[Segment, ...]:
        """Return the critical path, whose segments add up to :attr:`~accel.run.result.Result.cycles`.

        Raises:
            AccelError: time was not simulated, or events were not recorded or are too many.
        """
        if self.timing is None:
            raise AccelError(
                f"the backend {self.backend!r} does not simulate time, so the run has no critical path; "
                f"use 'sim' or 'rtl'"
            )
        if self.known_path is None:
            raise AccelError(
                "the events of the run were not recorded or are too many, so it has no critical path; "
                "on the hardware, record=True records them"
            )
        return self.known_path

    def report(self, *, name: str | None = None) -> Picture:
        """Return an :class:`accel.views.Report`: ``.save("report.html")`` writes it, and a notebook shows
        it."""
        made: Picture = picture("report", self, name=name)
        return made

    def timeline(self, *, name: str | None = None) -> Picture:
        """Return an :class:`accel.views.Timeline`: ``print`` shows it as text, and ``.save("run.svg")``
        writes it."""
        made: Picture = picture("timeline", self, name=name)
        return made

    def plot(self, *, name: str | None = None) -> Picture:
        """Return an interactive view for a notebook (extra ``notebook``)."""
        made: Picture = picture("plot", self, name=name)
        return made

    def advise(self, *, seconds: float | None = None) -> "Any":
        """Return changes that would help, an :class:`~accel.run.machine_advice.AdviceReport`."""
        return picture("advise", self, **({} if seconds is None else {"seconds": seconds}))

    def _repr_html_(self) -> str:
        figures = self.figures()
        rows = [("machine", f"{self.config.label} ({self.backend})")]
        if figures.cycles is not None:
            rows.append(("cycles", f"{figures.cycles:,}"))
        if figures.utilization is not None:
            rows.append(("utilization", f"{figures.utilization:.1%}"))
        rows.append(("bytes read, written", f"{self.load_bytes:,}, {self.store_bytes:,}"))
        if self.error is not None:
            rows.append(("stopped by", str(self.error)))
        wrong = "not compared" if self.mismatches is None else f"{self.mismatches:,}"
        rows.append(("mismatches with numpy", wrong))
        rows += [(f"output {name}", f"{a.dtype}{list(a.shape)}") for name, a in self.outputs.items()]
        busy = [
            Bar(f"{unit} busy", states.busy / self.cycles, f"{states.busy:,} cycles")
            for unit, states in (self.stalls or {}).items()
            if self.cycles
        ]
        return html_summary("Result", rows, busy)

    def energy(self) -> "EnergyReport":
        """Return the energy, from exact counts of accesses and published energies.

        For example, ``result.energy().total.nominal`` is in picojoules.

        Raises:
            AccelError: an error ended the run early.
        """
        from accel.energy import count_accesses, energy_of  # seldom needed

        self.check_energy()
        address = self.config.mem_base + self.image.code_offset
        return energy_of(count_accesses(self.instructions, self.config, address=address))

    def check_energy(self) -> None:
        """Raise an AccelError after an error, since the accesses are unknown."""
        if self.error is not None:
            raise AccelError(
                f"an error ended the run, so its accesses are not known: {ErrorFigures.of(self.error).cause}"
            )

    def instructions_table(self) -> ResultTable:
        """Return unit, name, tensor, stage, text and known cycles of each instruction."""
        return instructions_table(self.image, self.events)

    def events_table(self) -> ResultTable | None:
        """Return a row for each event."""
        return None if self.events is None else events_table(self.image, self.events)

    @cached_property
    def known_path(self) -> tuple[Segment, ...] | None:
        """:meth:`critical_path`, or None instead of an error."""
        return None if self.timing is None else critical_path(self.timing, self.image)

    @property
    def utilization(self) -> float | None:
        """Fewest cycles for the multiply-accumulates without padding, divided by the run's cycles."""
        if self.cycles is None or self.compulsory is None:
            return None
        return self.compulsory.ideal_cycles(self.config) / self.cycles

    @property
    def roofline_fraction(self) -> float | None:
        """Fewest cycles for GEMM core and bus, divided by the run's cycles. At most 1."""
        if self.cycles is None or self.compulsory is None:
            return None
        fraction = self.compulsory.roofline_cycles(self.config) / self.cycles
        if fraction > 1:
            raise MismatchError(
                f"the run took {self.cycles} cycles, fewer than the {fraction * self.cycles:.0f} "
                f"that the roofline allows; one of the two is wrong"
            )
        return fraction

    @property
    def slot_utilization(self) -> float | None:
        """Cycles with a micro-op, divided by the run's cycles. Unlike :attr:`utilization`, it also counts
        padding and passes without products."""
        return None if not self.cycles or self.uops is None else self.uops / self.cycles

    @property
    def slot_bound_cycles(self) -> float | None:
        """Fewest cycles for micro-ops, or for compulsory bytes in either direction of the bus."""
        if self.uops is None or self.carried is None:
            return None
        width = self.config.bus_bytes
        return max(self.uops, self.carried.read_bytes / width, self.carried.write_bytes / width)

    @property
    def slot_roofline_fraction(self) -> float | None:
        """:attr:`slot_bound_cycles` divided by the run's cycles. It rates the schedule."""
        bound = self.slot_bound_cycles
        return None if not self.cycles or bound is None else bound / self.cycles

    @property
    def bound_by(self) -> str | None:
        """The unit that limits the run, see :func:`~accel.compiler.expr.compulsory_cost.bound_by`."""
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
        """Bytes of transfers by memory, and of instructions. STOREs count as ``out``."""
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
        """Raise the error that ended the run early."""
        if self.error is not None:
            raise self.error

    def raise_if_wrong(self) -> None:
        """Raise a MismatchError if the outputs differ from the reference."""
        wrong = self._mismatch()
        if wrong is not None:
            raise wrong

    def summary(self, image: Image) -> Self:
        """Return a result without outputs and events."""
        timing = None if self.timing is None else Totals.of(self.timing)
        return replace(self, outputs={}, timing=timing, image=image, arranged=self._arranged)

    @property
    def _arranged(self) -> Arranged:
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
        """Return the figures."""
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
        """Return :meth:`figures` as plain data."""
        return self.figures().to_dict()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TimedResult(Result):
    """A result of the backends ``sim`` and ``rtl``."""

    timing: Timing

    @property
    def cycles(self) -> int:
        return self.timing.cycles

    @cached_property
    def stalls(self) -> dict[str, UnitCycles]:
        return stalls_of(self.timing)


def stalls_of(timing: Timing) -> dict[str, UnitCycles]:
    return {unit.label: cycles for unit, cycles in timing.unit_cycles.items()}


def bytes_moved(instructions: Sequence[Instruction], config: Config) -> dict[str, int]:
    moved: Counter[str] = Counter()
    program = Distinct(instructions)
    counts = np.bincount(program.places, minlength=len(program.every)).tolist()
    for instruction, count in zip(program.every, counts, strict=True):
        if not isinstance(instruction, Transfer) or instruction_fault(instruction, config) is not None:
            continue
        rows = dram_rows(instruction, config)
        if rows is not None:
            moved[_byte_kind(instruction)] += count * rows.rows * rows.row_bytes
    own = [pad.name for pad in scratchpads_of(config).values() if pad.requires]
    return {kind: moved[kind] for kind in (*_KINDS, *own)} | {
        "instructions": len(instructions) * INSTRUCTION_BYTES
    }
