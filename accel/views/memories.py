"""What a run held in its scratchpads and moved from and to DRAM, as parts of a report."""

from html import escape

from accel.views.figure import Figure
from accel.views.occupancy import Levels, occupancy, peaks, shown
from accel.views.scene import Scene
from accel.views.still import tick_step
from accel.views.tables import table
from accel.views.traffic import Traffic, traffic

_BINS = 560
"""Parts of a run in which the highest occupancy is shown."""


def scratchpads_html(scene: Scene) -> str:
    """A chart of the elements in use of each scratchpad."""
    found = occupancy(scene.touches, scene.seen.slices, scene.image.config)
    charts = "".join(_scratchpad(scene, name, found[name]) for name in shown(scene.image.config))
    note = (
        "Elements that hold what is still to be read: from the start of the instruction that fills them to "
        "the retirement of the last one that reads them."
    )
    return f'<p class="faint">{note}</p><div class="grid">{charts}</div>'


def _scratchpad(scene: Scene, name: str, levels: Levels) -> str:
    depth = int(getattr(scene.image.config, f"{name}_depth"))
    cycles = max(1, scene.seen.cycles)
    peak = max(level for _, level in levels)
    top = min(depth, 1 << max(2, (peak * 5 // 4).bit_length()))
    figure = Figure(620, 150, x=(0, cycles), y=(0, top), margins=(58, 24, 8, 24))
    for cycle in range(0, cycles + 1, tick_step(cycles, 5)):
        figure.x_tick(cycle, f"{cycle:,}")
    for part in (0, top // 2, top):
        figure.y_tick(part, f"{part:,}")
    figure.steps(peaks(levels, cycles, _BINS), "area")
    return (
        f"<figure><figcaption><b>{name}</b> at most {peak:,} of {depth:,} elements "
        f"({peak / depth:.0%})</figcaption>{figure.svg(f'Elements in use of {name}')}</figure>"
    )


def dram_html(scene: Scene) -> str:
    """Bytes read and written of each tensor."""
    entries = traffic(scene)
    most = max((one.bus for one in entries), default=0) or 1
    rows = [_traffic_row(one, most) for one in entries if one.moved]
    headings = ("in DRAM", "", "bytes there", "read", "written", "times its size", "bursts", "on the bus", "")
    note = "Bytes on the bus count whole beats, of which parts may be of no use."
    return table(headings, rows) + f'<p class="faint">{note}</p>'


def _traffic_row(one: Traffic, most: int) -> tuple[str, ...]:
    return (
        f"<b>{escape(one.name)}</b>",
        escape(one.role),
        "" if one.size is None else f"{one.size:,}",
        f"{one.read:,}",
        f"{one.written:,}",
        f"{one.moved / one.size:,.1f}" if one.size else "",
        f"{one.bursts:,}",
        f"{one.bus:,}",
        f'<svg class="amount" width="{160 * one.bus / most:.1f}" height="11">'
        '<rect width="100%" height="11"/></svg>',
    )
