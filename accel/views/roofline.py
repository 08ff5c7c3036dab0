"""The roofline of a run."""

from msgspec import Struct

from accel.base.errors import AccelError
from accel.core.config import Config
from accel.run.result import Result
from accel.views.axis_ticks import power_ticks, tick_text
from accel.views.svg_chart import Chart

_WIDTH, _HEIGHT = 620, 340
_MARGINS = (64, 20, 18, 46)
"""Left, right, top and bottom."""
_AXIS_FACTOR = 4.0
_PEAK_FACTOR = 2.2


class Roofline(Struct, frozen=True, kw_only=True):
    """A run and its limits. Intensities are MACs per byte on the busier direction of the bus.

    Attributes:
        macs: without padding if ``is_exact``, otherwise of all GEMM micro-ops.
        macs_per_cycle: the run's speed.
        max_intensity: if each byte moved once.
    """

    config: Config
    macs: int
    is_exact: bool
    macs_per_cycle: float
    intensity: float
    max_intensity: float | None

    @property
    def peak(self) -> int:
        return self.config.macs_per_cycle

    def roof(self, intensity: float) -> float:
        return min(self.peak, intensity * self.config.bus_bytes)

    @property
    def bound(self) -> str:
        return "the GEMM core" if self.roof(self.intensity) == self.peak else "the bus"


def roofline(result: Result) -> Roofline | None:
    """Return None without MACs."""
    config, compulsory = result.config, result.compulsory
    if result.cycles is None:
        raise AccelError("the run has no cycles; a roofline needs a backend that simulates time")
    macs = result.gemm_uops * config.macs_per_cycle if compulsory is None else compulsory.real_macs
    if not macs:
        return None
    read, written = result.load_bytes + result.bytes_by_kind["instructions"], result.store_bytes
    min_bytes = None if compulsory is None else max(compulsory.read_bytes, compulsory.write_bytes)
    return Roofline(
        config=config,
        macs=macs,
        is_exact=compulsory is not None,
        macs_per_cycle=macs / result.cycles,
        intensity=macs / max(read, written),
        max_intensity=macs / min_bytes if min_bytes else None,
    )


def roofline_svg(line: Roofline) -> str:
    """Return the chart, with logarithmic axes."""
    ridge = line.peak / line.config.bus_bytes
    speed, roof = line.macs_per_cycle, line.roof(line.intensity)
    points = [line.intensity, ridge, *([line.max_intensity] if line.max_intensity else [])]
    left, right = min(points) / _AXIS_FACTOR, max(points) * _AXIS_FACTOR
    low, high = min(speed, line.roof(left)) / 2, line.peak * _PEAK_FACTOR
    chart = Chart(_WIDTH, _HEIGHT, x=(left, right), y=(low, high), margins=_MARGINS, is_logarithmic=True)
    for value in power_ticks(left, right):
        chart.x_tick(value, tick_text(value))
    for value in power_ticks(low, high):
        chart.y_tick(value, tick_text(value))
    chart.x_title("MACs per byte on the busier direction of the bus")
    chart.y_title("MACs per cycle")
    chart.line([(left, line.roof(left)), (ridge, line.peak), (right, line.peak)], "roof")
    chart.text(right, line.peak, f"GEMM core: {line.peak:,}", dx=-4, dy=-7, anchor="end")
    bus = f"bus: {line.config.bus_bytes} bytes/cycle"
    chart.text(left, line.roof(left), bus, dx=10, dy=16, anchor="start")
    if line.max_intensity is not None:
        chart.line([(line.intensity, speed), (line.max_intensity, speed)], "link")
        chart.mark(line.max_intensity, speed, "least", "with the least traffic", anchor="start")
    chart.line([(line.intensity, speed), (line.intensity, roof)], "link")
    chart.mark(line.intensity, speed, "here", "this run", anchor="end")
    return chart.svg("The roofline with this run on it")


def roofline_html(result: Result) -> str:
    """Return the chart and a text."""
    if result.error is not None:
        return "<p>The run stopped early. Only a run that finishes has a place in the roofline.</p>"
    line = roofline(result)
    if line is None:
        return "<p>The program multiplies nothing, so it has no roofline. Only the bus limits it.</p>"
    share = line.macs_per_cycle / line.roof(line.intensity)
    words = [
        f"The run does <b>{line.macs_per_cycle:,.1f}</b> MACs per cycle: {share:.1%} of the speed that "
        f"{line.bound} permits at {line.intensity:,.1f} MACs per byte."
    ]
    if line.max_intensity is not None:
        words.append(f"If every byte moved only once, it would be {line.max_intensity:,.1f} MACs per byte.")
    if not line.is_exact:
        words.append(
            "MACs are counted from the GEMM micro-ops, since the program holds no tensor expression."
        )
    words.append("Bytes are reads (with instructions) or writes, whichever are more.")
    return f'<div class="columns">{roofline_svg(line)}<p>{" ".join(words)}</p></div>'
