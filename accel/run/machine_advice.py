"""Advice: other values of the machine's fields, with predicted cycles.

The critical path determines the fields. Timing is tried on the same program, geometry after compiling again.
Where simulation takes too long, the compiler's model predicts cycles, scaled by its error for the original
program.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from accel.assembly.symbolic_names import PlaceNames
from accel.base.deprecated_modules import renamed
from accel.base.errors import AccelError
from accel.base.records import as_dict, replace
from accel.compiler.mappings.mapping_choice import choose_mapping
from accel.compiler.operators.operator_registry import make_workload
from accel.compiler.ops.workload import Workload
from accel.compiler.target.machine import machine
from accel.core.config import SPECS, Config
from accel.core.instruction_access import dram_rows
from accel.core.isa import Load
from accel.image.image import Image
from accel.run.advice_candidates import candidates, relief, value_text
from accel.run.build_program import build
from accel.run.critical_path import Segment, shares, shares_text
from accel.run.machine_price import price_text
from accel.run.measured_plans import measure_plans
from accel.run.result import Result
from accel.sim.timing.timing_model import simulate_timing
from accel.sim.timing.timing_run import TimingRun

__getattr__ = renamed(__name__, {"Advised": "AdviceReport"})

DEFAULT_SECONDS = 10.0
"""Processor time of the search, which the last trial may exceed."""
_MAX_RECOMPILED_INSTRUCTIONS = 40_000
"""Largest program, in instructions, that is compiled again."""
_MAX_MEASURED_INSTRUCTIONS = 2_000
"""Largest program for which other schedules are simulated."""
_MEASURED_PLANS = 8
"""Number of simulated schedules."""
_MIN_SPEEDUP = 1.01


class Advice(Struct, frozen=True, kw_only=True):
    """Another value of a field.

    Attributes:
        speedup: the run's cycles divided by ``cycles``.
        recompiled: the program must be compiled again.
        simulated: False if the compiler's model predicts the cycles.
        mapping: the operator's, if it changes.
        price: additional hardware.
    """

    field: str
    now: int
    then: int
    cycles: int
    speedup: float
    recompiled: bool
    simulated: bool
    reason: str
    mapping: str = ""
    price: str = ""

    @property
    def change(self) -> str:
        """The change as ``--set`` takes it."""
        return f"{self.field}={value_text(self.field, self.then)}"

    @property
    def how(self) -> str:
        """How the cycles were obtained."""
        known = "simulated" if self.simulated else "predicted by the compiler's model"
        mapped = f" with mapping {self.mapping}" if self.mapping else ""
        return f"compiled again{mapped}, {known}" if self.recompiled else known

    @property
    def text(self) -> str:
        """Reason, speedup and cycles as a clause."""
        return f"{self.reason}: {self.speedup:.2f} times as fast ({self.cycles:,} cycles, {self.how})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return as_dict(self)


class SoftwareAdvice(Struct, frozen=True, kw_only=True):
    """Another schedule for the same machine.

    Attributes:
        command: option of ``accel compile``.
        cycles: simulated.
    """

    command: str
    cycles: int
    speedup: float
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return as_dict(self)


class AdviceReport(Struct, frozen=True, kw_only=True):
    """The limits of a run, and changes that help.

    Attributes:
        bound: the largest causes, in words.
        advice: changes, the best first.
        skipped: fields without time to try them.
    """

    bound: str
    advice: tuple[Advice, ...]
    tried: tuple[str, ...]
    skipped: tuple[str, ...]
    without: str = ""
    software: tuple[SoftwareAdvice, ...] = ()

    def __repr__(self) -> str:
        changes = [*((one.command, one.speedup) for one in self.software)]
        changes += [(one.change, one.speedup) for one in self.advice]
        best = ", ".join(f"{change} {speedup:.2f} times as fast" for change, speedup in changes[:3])
        return f"AdviceReport({self.bound}; {best or 'nothing helps'})"

    @property
    def left_out(self) -> str:
        """A sentence on fields that were not tried, or empty."""
        found = [f"Fields of the geometry were not tried: {self.without}."] if self.without else []
        if self.skipped:
            found.append(f"No time was left for {', '.join(self.skipped)}.")
        return " ".join(found)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "bound": self.bound,
            "software": [one.to_dict() for one in self.software],
            "advice": [one.to_dict() for one in self.advice],
            "tried": list(self.tried),
            "skipped": list(self.skipped),
            "without": self.without,
        }


Trial = Callable[[str, int], Advice | None]
"""Tries a value of a field. None stands for an impossible machine or a program that does not fit."""


def advise(result: Result, *, seconds: float = DEFAULT_SECONDS) -> AdviceReport:
    """Return the limits of a run, and single changes of the machine that make it faster.

    Geometry fields are tried for workloads with the default schedule.

    Args:
        seconds: limit on processor time.

    Raises:
        AccelError: there are no events, or an error ended the run.
    """
    path = result.known_path
    if path is None or result.error is not None:
        raise AccelError("the run has no events or ended early; advice needs a complete run, as on 'sim'")
    end = time.process_time() + seconds
    trial = _Trial(result, path)
    software = trial.other_schedule()
    found = search(result.config, path, trial.of, end=end, without=trial.without)
    return replace(found, software=() if software is None else (software,))


def search(
    config: Config, path: Sequence[Segment], trial: Trial, *, end: float, without: str
) -> AdviceReport:
    """Try changes of a machine, the most relief first."""
    tried: list[str] = []
    skipped: list[str] = []
    advice: list[Advice] = []
    for field, value in candidates(config, path, geometry=not without):
        if time.process_time() >= end:
            skipped.append(field)
            continue
        one = trial(field, value)
        if field not in tried:
            tried.append(field)
        same = [known for known in advice if known.field == field]
        least = max([1.0, *(known.speedup for known in same)])
        if one is not None and one.speedup >= _MIN_SPEEDUP * least:
            advice = [known for known in advice if known.field != field] + [one]
    return AdviceReport(
        bound=shares_text(shares(path), 3),
        advice=tuple(sorted(advice, key=lambda one: one.cycles)),
        tried=tuple(tried),
        skipped=tuple(dict.fromkeys(skipped)),
        without=without,
    )


class _Trial:
    """A program on other machines.

    Attributes:
        without: why it cannot be compiled again.
    """

    def __init__(self, result: Result, path: Sequence[Segment]) -> None:
        self._image = result.image
        self._path = path
        self._cycles = result.cycles or 0
        self._reads = reads_of(result.image)
        self._workload, self.without = _workload(result.image)

    def of(self, field: str, value: int) -> Advice | None:
        recompiled = SPECS[field].kind == "geometry"
        simulated = not recompiled or len(self._image.instructions) <= _MAX_RECOMPILED_INSTRUCTIONS
        reads, mapping = self._reads, self._image.mapping
        try:
            config = self._image.config.override({field: value})
            if not recompiled:
                cycles = timing_of(self._image.with_timing(config)).cycles
            elif simulated:
                assert self._workload is not None
                image = build(self._workload, config, without=self._image.passes_off)
                cycles, reads, mapping = timing_of(image).cycles, reads_of(image), image.mapping
            else:
                cycles, mapping = self._predicted(config)
        except AccelError:
            return None
        if not cycles:
            return None
        return Advice(
            field=field,
            now=int(getattr(self._image.config, field)),
            then=value,
            cycles=cycles,
            speedup=self._cycles / cycles,
            recompiled=recompiled,
            simulated=simulated,
            reason=self._reason(field, value, reads),
            mapping="" if mapping == self._image.mapping else mapping,
            price=price_text(self._image.config, config),
        )

    def other_schedule(self) -> SoftwareAdvice | None:
        """Return the fastest simulated schedule for the same machine, if faster."""
        count = len(self._image.instructions)
        if self._workload is None or count > _MAX_MEASURED_INSTRUCTIONS:
            return None
        target = machine(self._image.config)
        choice = measure_plans(
            choose_mapping(self._workload, target.config),
            target,
            _MEASURED_PLANS,
            without=self._image.passes_off,
        )
        cycles = choice.candidates[0].simulated_cycles
        if cycles is None or self._cycles < _MIN_SPEEDUP * cycles:
            return None
        return SoftwareAdvice(
            command=f"--measure {_MEASURED_PLANS}",
            cycles=cycles,
            speedup=self._cycles / cycles,
            reason="another of the most promising schedules is faster in simulation than the predicted one",
        )

    def _predicted(self, config: Config) -> tuple[int, str]:
        assert self._workload is not None
        now, then = (choose_mapping(self._workload, one) for one in (self._image.config, config))
        before, after = (one.candidates[0].prediction.cycles for one in (now, then))
        return round(self._cycles * after / before), then.mapping.name

    def _reason(self, field: str, value: int, reads: Mapping[str, float]) -> str:
        fewer = {
            name: (times, reads[name])
            for name, times in self._reads.items()
            if name in reads and reads[name] <= 0.95 * times
        }
        if fewer and field.endswith("_bytes"):
            name, (times, then) = max(fewer.items(), key=lambda one: one[1][0] - one[1][1])
            what = f"{field} of {value_text(field, value)}"
            return f"{name} is read {_times(times)}; {what} would make it {_times(then)}"
        return relief(field, value, self._path)


def timing_of(image: Image) -> TimingRun:
    """Simulate timing only.

    Raises:
        AccelError: the run does not end well.
    """
    run = simulate_timing(
        image.instructions,
        image.config,
        address=image.config.mem_base + image.code_offset,
        tokens=image.start.tokens,
    )
    if run.stop is not None:
        raise AccelError(f"the program stops: {run.stop.fault.message}")
    return run


def reads_of(image: Image) -> dict[str, float]:
    """Return how often LOADs read each tensor."""
    names, sizes = PlaceNames(image), Counter({one.name: one.nbytes for one in image.tensors})
    read: Counter[str] = Counter()
    for one in image.instructions:
        if not isinstance(one, Load) or (rows := dram_rows(one, image.config)) is None:
            continue
        name = names.place(one)
        if name is not None and name in sizes:
            read[name] += rows.rows * rows.row_bytes
    return {name: count / sizes[name] for name, count in read.items() if sizes[name]}


def _workload(image: Image) -> tuple[Workload | None, str]:
    options = None if image.source is None else image.source.options
    if options is None or options.workload is None:
        return None, "the program does not record its workload"
    try:
        workload = make_workload(options.workload, options.parameters)
        again = build(workload, machine(image.config), without=options.without)
    except AccelError as error:
        return None, f"the workload of the program cannot be compiled again: {error}"
    if again.code != image.code:
        return None, "the program has a requested schedule or mapping, made for this geometry"
    return workload, ""


def _times(count: float) -> str:
    rounded = round(count, 1)
    return "once" if rounded == 1 else f"{rounded:g} times"
