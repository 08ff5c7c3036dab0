"""The roofline: what arithmetic and bus allow, and where a run lies below it."""

from dataclasses import dataclass
from itertools import count

from accel.base.errors import AccelError
from accel.core.config import Config
from accel.run.result import Result
from accel.views.figure import Figure

_WIDTH, _HEIGHT = 620, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 20, 18, 46
_MARGIN = 4.0
"""The axes reach this factor beyond what is drawn."""


@dataclass(frozen=True, kw_only=True)
class Roofline:
    """A run and its limits; intensities are multiply-accumulates per byte of the busier direction of the bus.

    Attributes:
        macs: multiply-accumulates of the computation, without those with padding; or, where that is not
            known, of all GEMM micro-ops.
        exact: whether it is known.
        speed: multiply-accumulates a cycle.
        intensity: by the bytes that the run moves.
        least_intensity: by those that any run must move; None if they are not known.
    """

    config: Config
    macs: int
    exact: bool
    speed: float
    intensity: float
    least_intensity: float | None

    @property
    def peak(self) -> int:
        """Multiply-accumulates a cycle of the GEMM core."""
        return self.config.macs_per_cycle

    def roof(self, intensity: float) -> float:
        """Multiply-accumulates a cycle that an intensity allows."""
        return min(self.peak, intensity * self.config.bus_bytes)

    @property
    def bound(self) -> str:
        """What limits the run as it is."""
        return "the GEMM core" if self.roof(self.intensity) == self.peak else "the bus"


def roofline(result: Result) -> Roofline | None:
    """Where a run lies; None if it multiplies nothing.

    Raises:
        AccelError: the run has no time.
    """
    config, least = result.config, result.compulsory
    if result.cycles is None:
        raise AccelError("the run has no cycles; a roofline needs a backend that has time")
    macs = result.gemm_uops * config.macs_per_cycle if least is None else least.real_macs
    if not macs:
        return None
    kinds = result.bytes_by_kind
    read, written = result.load_bytes + kinds["instructions"], result.store_bytes
    fewest = None if least is None else max(least.read_bytes, least.write_bytes)
    return Roofline(
        config=config,
        macs=macs,
        exact=least is not None,
        speed=macs / result.cycles,
        intensity=macs / max(read, written),
        least_intensity=macs / fewest if fewest else None,
    )


def draw(line: Roofline) -> str:
    """The classic picture, both axes logarithmic."""
    ridge = line.peak / line.config.bus_bytes
    points = [line.intensity, ridge, *([line.least_intensity] if line.least_intensity else [])]
    left, right = min(points) / _MARGIN, max(points) * _MARGIN
    low = min(line.speed, line.roof(left)) / 2
    figure = Figure(
        _WIDTH,
        _HEIGHT,
        x=(left, right),
        y=(low, line.peak * 2.2),
        margins=(_LEFT, _RIGHT, _TOP, _BOTTOM),
        logarithmic=True,
    )
    for value in powers(left, right):
        figure.x_tick(value, short(value))
    for value in powers(low, line.peak * 2.2):
        figure.y_tick(value, short(value))
    figure.x_title("multiply-accumulates per byte on the busier direction of the bus")
    figure.y_title("multiply-accumulates per cycle")
    figure.line([(left, line.roof(left)), (ridge, line.peak), (right, line.peak)], "roof")
    figure.text(right, line.peak, f"GEMM core: {line.peak:,}", dx=-4, dy=-7, anchor="end")
    figure.text(
        left, line.roof(left), f"bus: {line.config.bus_bytes} bytes/cycle", dx=10, dy=16, anchor="start"
    )
    if line.least_intensity is not None:
        figure.line([(line.intensity, line.speed), (line.least_intensity, line.speed)], "link")
        figure.mark(line.least_intensity, line.speed, "least", "with the least traffic", anchor="start")
    figure.line([(line.intensity, line.speed), (line.intensity, line.roof(line.intensity))], "link")
    figure.mark(line.intensity, line.speed, "here", "this run", anchor="end")
    return figure.svg("The roofline with this run on it")


def powers(low: float, high: float) -> list[float]:
    """Powers of two, or of more where those would be too many."""
    step = next(n for n in count(1) if sum(1 for k in range(-40, 60, n) if low <= 2.0**k <= high) <= 8)
    return [2.0**k for k in range(-40, 60, step) if low <= 2.0**k <= high]


def short(value: float) -> str:
    """A tick's number, below one as a fraction."""
    return f"{value:,.0f}" if value >= 1 else f"1/{1 / value:.0f}"


def roofline_html(result: Result) -> str:
    """The chart, and in words where the run lies."""
    if result.error is not None:
        return "<p>The run stopped early; only one that finishes has a place below the roofline.</p>"
    line = roofline(result)
    if line is None:
        return "<p>The program multiplies nothing; the bus alone is its limit, and there is no roofline.</p>"
    share = line.speed / line.roof(line.intensity)
    words = [
        f"The run does <b>{line.speed:,.1f}</b> multiply-accumulates a cycle, {share:.1%} of what "
        f"{line.bound} allows at {line.intensity:,.1f} of them per byte."
    ]
    if line.least_intensity is not None:
        words.append(
            f"If it read and wrote everything only once, it would be {line.least_intensity:,.1f} per byte."
        )
    if not line.exact:
        words.append(
            "They are counted from the GEMM micro-ops, since the program holds no tensor expression."
        )
    words.append("Bytes are those of the busier direction of the bus, reads (with instructions) or writes.")
    return f'<div class="columns">{draw(line)}<p>{" ".join(words)}</p></div>'
