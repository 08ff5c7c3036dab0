"""Sections of a report: scratchpad occupancy and DRAM traffic."""

from html import escape

from accel.views.analyzed_run import AnalyzedRun
from accel.views.axis_ticks import tick_step
from accel.views.dram_traffic import TensorTraffic, dram_traffic
from accel.views.html_tables import table
from accel.views.scratchpad_occupancy import Levels, listed_scratchpads, occupancy, peaks
from accel.views.svg_chart import Chart

_BINS = 560
"""Parts of a run. The chart shows the highest occupancy of each."""
_BAR_PIXELS = 160


def scratchpads_html(run: AnalyzedRun) -> str:
    config = run.image.config
    levels = occupancy(run.touches, run.activity.slices, config)
    names = listed_scratchpads(config)
    charts = "".join(_occupancy_chart(run, name, levels[name]) for name in names)
    note = (
        "An element is occupied from the start of the instruction that fills it until the last instruction "
        "that reads it retires."
    )
    if run.is_coarse:
        note += (
            " Some instructions count with all elements between the first and the last that they access, "
            "since the exact sets would take too much memory."
        )
    return f'<p class="faint">{note}</p><div class="grid">{charts}</div>'


def _occupancy_chart(run: AnalyzedRun, name: str, levels: Levels) -> str:
    depth = int(getattr(run.image.config, f"{name}_depth"))
    cycles = max(1, run.activity.cycles)
    peak = max(level for _, level in levels)
    top = min(depth, 1 << max(2, (peak * 5 // 4).bit_length()))
    chart = Chart(620, 150, x=(0, cycles), y=(0, top), margins=(58, 24, 8, 24))
    for cycle in range(0, cycles + 1, tick_step(cycles, 5)):
        chart.x_tick(cycle, f"{cycle:,}")
    for elements in (0, top // 2, top):
        chart.y_tick(elements, f"{elements:,}")
    chart.steps(peaks(levels, cycles, _BINS), "area")
    return (
        f"<figure><figcaption><b>{name}</b>: at most {peak:,} of {depth:,} elements occupied "
        f"({peak / depth:.0%})</figcaption>{chart.svg(f'Occupied elements of {name}')}</figure>"
    )


def dram_html(run: AnalyzedRun) -> str:
    entries = dram_traffic(run)
    max_bus = max((one.bus for one in entries), default=0) or 1
    rows = [_traffic_row(one, max_bus) for one in entries if one.moved]
    headings = ("tensor", "role", "size", "read", "written", "moved / size", "bursts", "bytes on the bus", "")
    note = (
        "All amounts are in bytes. The bus moves whole beats; an instruction may use only a part of a beat."
    )
    return table(headings, rows) + f'<p class="faint">{note}</p>'


def _traffic_row(one: TensorTraffic, max_bus: int) -> tuple[str, ...]:
    return (
        f"<b>{escape(one.name)}</b>",
        escape(one.role),
        "" if one.size is None else f"{one.size:,}",
        f"{one.read:,}",
        f"{one.written:,}",
        f"{one.moved / one.size:,.1f}" if one.size else "",
        f"{one.bursts:,}",
        f"{one.bus:,}",
        f'<svg class="amount" width="{_BAR_PIXELS * one.bus / max_bus:.1f}" height="11">'
        '<rect width="100%" height="11"/></svg>',
    )
