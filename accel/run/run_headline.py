"""One sentence about a run: bottleneck, lower bound, and next step."""

from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct

from accel.base.records import as_dict, replace
from accel.core.config import NAMED, Config
from accel.core.isa import Unit
from accel.run.critical_path import Share, shares
from accel.run.result import Result
from accel.run.wait_causes import Wait

if TYPE_CHECKING:
    from accel.run.machine_advice import AdviceReport

_MIN_SHARE = 0.05
"""Smallest mentioned avoidable share of a run."""
_REPEATED_READS = 1.2
"""Bytes read per packed byte of the inputs, above which reads count as repeated."""
_MAX_PACKING = 1.25
"""Packed bytes per byte of the inputs, above which blocks count as partly empty."""
_FILL_BLOCKS = "blocks are partly empty: another mapping (`--explain` lists them), or smaller blocks"
_LATENCIES = frozenset(
    {Wait.READ_LATENCY, Wait.WRITE_LATENCY, Wait.OUTSTANDING, Wait.RAW, Wait.WAR, Wait.IN_FLIGHT}
)


class Headline(Struct, frozen=True, kw_only=True):
    """The largest cause on the critical path, and a remedy.

    Attributes:
        share: part of the run, 0 to 1.
        ideal: the least that a program needs, as a clause, if known.
        step: the most promising change, as a clause.
    """

    unit: str
    cause: str
    cycles: int
    share: float
    ideal: str
    step: str

    @classmethod
    def of(cls, most: Share, cycles: int, *, ideal: str, step: str) -> Self:
        return cls(
            unit=most.unit,
            cause=str(most.cause),
            cycles=most.cycles,
            share=most.cycles / cycles,
            ideal=ideal,
            step=step,
        )

    @property
    def bound(self) -> str:
        """For example ``compute slots 96%``."""
        return f"{self.unit} {self.cause} {self.share:.0%}"

    @property
    def text(self) -> str:
        loss = f"{self.unit} {self.cause}: {self.cycles:,} cycles, {self.share:.0%} of the run"
        step = f"next: {self.step}" if self.step else ""
        return "; ".join(part for part in (loss, self.ideal, step) if part)

    def with_advice(self, advised: "AdviceReport | None") -> Self:
        """Replace the next step by the best advice: a schedule, otherwise a machine."""
        if advised is None:
            return self
        for schedule in advised.software[:1]:
            return replace(self, step=f"`accel compile {schedule.command}` takes {schedule.cycles:,} cycles")
        for change in advised.advice[:1]:
            price = f", for {change.price}" if change.price else ""
            return replace(self, step=f"`--set {change.change}` takes {change.cycles:,} cycles{price}")
        return replace(self, step="")

    def to_dict(self) -> dict[str, Any]:
        return as_dict(self)


def headline(result: Result) -> Headline | None:
    """Return None after an error, or without a critical path."""
    path = result.known_path
    if not path or result.error is not None or not result.cycles:
        return None
    most = shares(path)[0]
    return Headline.of(most, result.cycles, ideal=_ideal(result, most), step=_step(result, most))


def is_computing(most: Share) -> bool:
    return most.unit == Unit.COMPUTE.label and most.cause in (Wait.SLOTS, Wait.PIPELINE)


def _is_loading(most: Share) -> bool:
    return most.unit == Unit.LOAD.label and most.cause is Wait.READ_DATA


def _ideal(result: Result, most: Share) -> str:
    config, least = result.config, result.compulsory
    if least is None or result.uops is None:
        return ""
    if is_computing(most):
        passes = result.uops - result.gemm_uops
        ideal = round(least.ideal_cycles(config))
        rest = f", and {passes:,} are passes of the ALU" if passes else ""
        return f"the program has {result.uops:,} slots where {ideal:,} would be ideal{rest}"
    if _is_loading(most):
        times = result.load_bytes / max(1, result.image.packed_bytes)
        packed = " as packed in blocks" if _is_sparse(result) else ""
        return f"{result.load_bytes:,} bytes are loaded, {times:.1f} times the inputs{packed}"
    return f"{round(least.roofline_cycles(config)):,} cycles would be ideal"


def _step(result: Result, most: Share) -> str:
    """Prefer a change of the schedule to one of the machine."""
    config = result.config
    source = result.image.source
    steps = () if source is None or source.schedule is None else source.schedule
    has_one_thread = bool(steps) and not any(step["op"] == "bind" for step in steps)
    cycles = result.cycles or 1
    passes = 0 if result.uops is None else result.uops - result.gemm_uops
    least = result.compulsory
    if is_computing(most):
        unfilled = 0 if least is None else result.gemm_uops - least.ideal_cycles(config)
        if unfilled > max(passes, _MIN_SHARE * cycles):
            return _FILL_BLOCKS
        if passes > _MIN_SHARE * cycles and not config.post:
            return f"{_with_epilogue(config)} requantizes in the store unit, without passes"
        return "more multipliers (`--advise` names the fields)"
    if _is_loading(most):
        if result.load_bytes > _REPEATED_READS * result.image.packed_bytes:
            return (
                "plans that load less often (`accel compile --measure 8`), or larger scratchpads (`--advise`)"
            )
        if _is_sparse(result):
            return _FILL_BLOCKS
        return f"a wider bus (`--set bus_bits={2 * config.bus_bits}`)"
    if most.cause in _LATENCIES and has_one_thread:
        return "virtual threads, which hide latency (`accel compile --vthreads 2`)"
    if most.unit == Unit.FETCH.label and most.cause is Wait.READ_LATENCY:
        return "more work in one program: its first instructions arrive only after this latency"
    if most.unit == Unit.FETCH.label:
        return "fewer instructions: larger tiles (`accel compile --measure 8`)"
    return "`--advise` tries other machines"


def _is_sparse(result: Result) -> bool:
    return (result.image.packing_factor or 1) > _MAX_PACKING


def _with_epilogue(config: Config) -> str:
    twin = f"{config.name}-int8"
    return f"`{twin}`" if twin in NAMED else "a machine with `post=1`"
