"""What would help: other values of the machine's fields, each with the cycles that a run would then take.

A field that only changes timing is tried on the program as it is, any other one by compiling the workload
again. What the run waits for, by its critical path, says which fields are worth it; then the timing of the
program is simulated, so that a prediction is what a run of it takes. Where that would take too long, the
compiler's analytical model predicts, corrected by what it says of the program that ran.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accel.assembly.names import PlaceNames
from accel.base.errors import AccelError
from accel.compiler.mappings.choose import choose
from accel.compiler.operators.registry import make_workload
from accel.compiler.ops.workload import Workload
from accel.compiler.target.machine import machine
from accel.core.access import dram_rows
from accel.core.config import SPECS, Config
from accel.core.isa import Load
from accel.image.image import Image
from accel.run.build import build
from accel.run.critical import Segment, shares, shares_text
from accel.run.levers import candidates, relief, value_text
from accel.run.result import Result
from accel.sim.timing.model import TimingRun, simulate_timing

DEFAULT_SECONDS = 10.0
"""Of processor time that the search takes at most, but for the last trial."""
_LARGE = 40_000
"""Instructions of a program that is not compiled again, but predicted."""
_WORTH = 1.01
"""Times as fast that a change must make a run to be told."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Another value of a field of the machine.

    Attributes:
        field: its name.
        now, then: its value, and the other one.
        cycles: that the run would take.
        speedup: times as fast as it was.
        recompiled: whether the program is another one then.
        simulated: whether the cycles were simulated; otherwise the compiler's model predicts them.
        reason: why it helps, in words.
        mapping: by which the operator is computed then, if that is another one than now; else empty.
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

    @property
    def change(self) -> str:
        """The field and its new value, as ``--set`` takes them."""
        return f"{self.field}={value_text(self.field, self.then)}"

    @property
    def how(self) -> str:
        """How the prediction was obtained."""
        known = "simulated" if self.simulated else "predicted by the compiler's model"
        mapped = f" with mapping {self.mapping}" if self.mapping else ""
        return f"compiled again{mapped}, {known}" if self.recompiled else known

    @property
    def text(self) -> str:
        """A sentence's words."""
        return f"{self.reason}: {self.speedup:.2f} times as fast ({self.cycles:,} cycles, {self.how})"

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "field": self.field,
            "now": self.now,
            "then": self.then,
            "cycles": self.cycles,
            "speedup": self.speedup,
            "recompiled": self.recompiled,
            "simulated": self.simulated,
            "reason": self.reason,
            "mapping": self.mapping,
        }


@dataclass(frozen=True, kw_only=True)
class Advised:
    """What bounds a run, and what would help.

    Attributes:
        bound: what takes most of its critical path, in words.
        advice: changes that make it faster, the best first.
        tried: fields that were tried.
        skipped: fields for which no time was left.
        without: why fields of the geometry were not tried; empty if they were.
    """

    bound: str
    advice: tuple[Advice, ...]
    tried: tuple[str, ...]
    skipped: tuple[str, ...]
    without: str = ""

    @property
    def left_out(self) -> str:
        """What was not tried, and why, as a sentence; empty if everything was."""
        found = [f"Fields of the geometry were not tried: {self.without}."] if self.without else []
        if self.skipped:
            found.append(f"No time was left for {', '.join(self.skipped)}.")
        return " ".join(found)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "bound": self.bound,
            "advice": [one.to_dict() for one in self.advice],
            "tried": list(self.tried),
            "skipped": list(self.skipped),
            "without": self.without,
        }


Trial = Callable[[str, int], Advice | None]
"""What one change does; None if there is no such machine, or the program does not fit it."""


def advise(result: Result, *, seconds: float = DEFAULT_SECONDS) -> Advised:
    """What bounds a run, and which single change of the machine would make it faster.

    Fields of the geometry are tried if the program was compiled from a workload by its default schedule.

    Args:
        result: of a run to the end in which time was simulated.
        seconds: of processor time, after which nothing more is tried.

    Raises:
        AccelError: nothing is known of when things happened, or the run ended early.
    """
    path = result.critical_path()
    if path is None or result.error is not None:
        raise AccelError("advice needs a run to the end whose events are known, as on 'sim'")
    end = time.process_time() + seconds
    trial = _Trial(result, path)
    return search(result.config, path, trial.of, end=end, without=trial.without)


def search(config: Config, path: Sequence[Segment], trial: Trial, *, end: float, without: str) -> Advised:
    """Try changes of a machine, those first that relieve most of a critical path.

    Args:
        config: the machine.
        path: the critical path.
        trial: tries one change.
        end: of the process's time, from which on nothing more is tried.
        without: why fields of the geometry are not to be tried; empty if they are.
    """
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
        if one is not None and one.speedup >= _WORTH * least:
            advice = [known for known in advice if known.field != field] + [one]
    return Advised(
        bound=shares_text(shares(path), 3),
        advice=tuple(sorted(advice, key=lambda one: one.cycles)),
        tried=tuple(tried),
        skipped=tuple(dict.fromkeys(skipped)),
        without=without,
    )


class _Trial:
    """A program on other machines.

    Attributes:
        without: why it cannot be compiled again; empty if it can.
    """

    def __init__(self, result: Result, path: Sequence[Segment]) -> None:
        self._image = result.image
        self._path = path
        self._cycles = result.cycles or 0
        self._reads = reads_of(result.image)
        self._workload, self.without = _workload(result.image)

    def of(self, field: str, value: int) -> Advice | None:
        """What one change does; None if there is no such machine, or the program does not fit it."""
        recompiled = SPECS[field].kind == "geometry"
        simulated = not recompiled or len(self._image.instructions) <= _LARGE
        reads, mapping = self._reads, self._image.mapping
        try:
            config = self._image.config.override({field: value})
            if not recompiled:
                cycles = timing_of(self._image.with_timing(config)).cycles
            elif simulated:
                assert self._workload is not None
                image = build(self._workload, config)
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
        )

    def _predicted(self, config: Config) -> tuple[int, str]:
        """Cycles by the compiler's model, corrected by what it says of this program, and the mapping."""
        assert self._workload is not None
        now, then = (choose(self._workload, one) for one in (self._image.config, config))
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
    """A run of which only the timing is simulated.

    Raises:
        AccelError: it does not end well.
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
    """How many times each tensor is read from DRAM: bytes that LOADs read over those it has there."""
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
    """What a program was compiled from, if compiling that again gives the program; otherwise why not."""
    options = None if image.source is None else image.source.options
    if options is None or options.workload is None:
        return None, "it is not known what the program was compiled from"
    try:
        workload = make_workload(options.workload, options.parameters)
        again = build(workload, machine(image.config))
    except AccelError as error:
        return None, f"what the program was compiled from cannot be compiled again: {error}"
    if again.code != image.code:
        return None, "the program has a schedule or a mapping that was asked for, made for this geometry"
    return workload, ""


def _times(count: float) -> str:
    """How often, in words."""
    rounded = round(count, 1)
    return "once" if rounded == 1 else f"{rounded:g} times"
