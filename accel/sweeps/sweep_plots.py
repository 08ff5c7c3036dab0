"""Plots of a table (extra ``plot``)."""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from math import log2
from typing import Any, Literal, get_args

from accel.base.errors import SweepError, nearest
from accel.base.optional_extras import not_installed
from accel.base.records import field_names
from accel.core.config import SPECS
from accel.core.isa import Unit
from accel.core.unit_states import State

Rows = Sequence[Mapping[str, Any]]

Kind = Literal["line", "bars"]
Scale = Literal["linear", "log2", "log"]

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
"""Okabe and Ito's palette for colour-blind people."""
MARKERS = "os^Dv<>"
_INK, _RULE, _EDGE = "#1b1f24", "#e6e6e6", "#888888"
_MAX_TICKS = 10
_SIZE_INCHES = (7.2, 4.4)
_STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": _RULE,
    "grid.linewidth": 0.8,
    "axes.edgecolor": _EDGE,
    "axes.axisbelow": True,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "lines.linewidth": 2,
    "lines.markersize": 5,
    "legend.frameon": False,
    "svg.hashsalt": "accel",
    "figure.facecolor": "white",
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"), _INK),
}
_DARK = {_INK: "#e6e9ed", _RULE: "#3a424b", _EDGE: "#808080", COLORS[0]: "#2487cc", COLORS[6]: "#9aa4ae"}
"""Replaced colours on dark pages. Others are visible on both."""

LABELS = {
    "cycles": "cycles",
    "utilization": "utilization of the GEMM core",
    "roofline_fraction": "share of the roofline",
    "load_bytes": "bytes loaded",
    "store_bytes": "bytes stored",
    "traffic_bytes": "DRAM traffic",
    "intensity": "multiply-accumulates per compulsory byte",
    "macs_per_cycle": "multiply-accumulates per cycle",
    "compulsory_bytes": "compulsory traffic",
    "roof_macs_per_cycle": "roofline of bus and core",
    "roof_utilization": "roofline of bus and core",
    "vthreads": "virtual threads",
    "scratchpad_bytes": "capacity of inp, wgt and acc together",
    "bus_bits": "width of the bus (bits)",
    "cells_lut4": "LUT4",
    "cells_block_ram": "block RAMs of 18 Kbit",
    "cells_flip_flops": "flip-flops",
    "cells_multipliers": "multipliers 18x18",
    **{f"{unit.label}_{state.figure}": f"{unit.label}: {state.label}" for unit in Unit for state in State},
}
"""Axes' names of columns. Configuration fields have names and units."""
STALL_COLORS = {state.figure: state.color for state in State}


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A plot of a table.

    Attributes:
        x: column of the horizontal axis or bars.
        y: columns of the vertical axis or parts of bars.
        by: a line for each combination of columns.
        kind: ``line``, or ``bars`` for stacked horizontal bars.
        roof: column of a dashed line, the limit of ``y``.
        xscale, yscale: ``linear``, ``log2`` or ``log``.
    """

    x: str
    y: tuple[str, ...]
    by: tuple[str, ...] = ()
    kind: Kind = "line"
    roof: str | None = None
    title: str = ""
    xlabel: str = ""
    ylabel: str = ""
    xscale: Scale = "linear"
    yscale: Scale = "linear"
    only: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        for attribute, value, valid in (
            ("kind", self.kind, get_args(Kind)),
            ("xscale", self.xscale, get_args(Scale)),
            ("yscale", self.yscale, get_args(Scale)),
        ):
            if value not in valid:
                raise SweepError(f"a plot's {attribute} is {value!r}; {nearest(str(value), valid)}")

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.x, *self.y, *self.by, *self.only, *(() if self.roof is None else (self.roof,)))


def make_plot(table: Mapping[str, Any]) -> Plot:
    known = field_names(Plot)
    for key in table:
        if key not in known:
            raise SweepError(f"a plot has {key!r}; {nearest(key, known)}")
    for key in ("x", "y"):
        if key not in table:
            raise SweepError(f"a plot has no {key}; give the column")
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in table.items()
    }
    for key in ("y", "by"):
        if isinstance(values.get(key), str):
            values[key] = (values[key],)
    return Plot(**values)


def check_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise SweepError(not_installed("plots need matplotlib", "plot")) from None


def draw(plot: Plot, rows: Rows) -> Any:
    """Return a :class:`matplotlib.figure.Figure`."""
    drawn = [
        row
        for row in rows
        if all(row[name] is not None for name in (plot.x, *plot.y))
        and all(row[name] in (some if isinstance(some, list) else [some]) for name, some in plot.only.items())
    ]
    if not drawn:
        raise SweepError(f"there is nothing to draw: no row has {', '.join(plot.y)}")
    with new_figure() as (figure, axes):
        if plot.kind == "bars":
            _draw_bars(axes, plot, drawn)
            figure.legend(loc="outside lower left", ncols=len(plot.y))
        else:
            _draw_lines(axes, plot, drawn)
        if plot.title:
            axes.set_title(plot.title, pad=12)
    return figure


def svg(plot: Plot, rows: Rows) -> bytes:
    """Return a self-contained SVG file. Equal rows give equal bytes.

    Colours follow the page's scheme.
    """
    return figure_svg(draw(plot, rows))


def figure_svg(figure: Any) -> bytes:
    text = _svg(figure, transparent=True).decode()
    return text.replace("</style>", _dark_style() + "</style>", 1).encode()


@contextmanager
def new_figure() -> Iterator[tuple[Any, Any]]:
    """Yield an empty figure and axes in the common style."""
    check_matplotlib()
    from matplotlib import rc_context

    with rc_context(_STYLE):
        figure = _figure_class()(figsize=_SIZE_INCHES, layout="constrained")
        yield figure, figure.add_subplot()


def _dark_style() -> str:
    rules = "".join(
        f'#figure_1 [style*="{attribute}: {light}"] {{{attribute}: {dark} !important}}\n'
        for light, dark in _DARK.items()
        for attribute in ("fill", "stroke")
    )
    return f"\n@media (prefers-color-scheme: dark) {{\n{rules}}}\n"


def _svg(figure: Any, *, transparent: bool = False) -> bytes:
    from matplotlib import rc_context

    content = io.BytesIO()
    with rc_context(_STYLE):
        metadata = {"Date": None, "Creator": None}
        figure.savefig(content, format="svg", metadata=metadata, transparent=transparent)
    return content.getvalue()


@cache
def _figure_class() -> Any:
    from matplotlib.figure import Figure

    class Chart(Figure):
        def _repr_svg_(self) -> str:
            return _svg(self).decode()

    return Chart


def label(name: str) -> str:
    if name in LABELS:
        return LABELS[name]
    words = name.replace("_", " ")
    spec = SPECS.get(name)
    return words if spec is None or name.endswith("_" + spec.unit) else f"{words} ({spec.unit})"


def _draw_lines(axes: Any, plot: Plot, rows: Rows) -> None:
    lines: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        lines.setdefault(", ".join(_value_label(name, row[name]) for name in plot.by), []).append(row)
    ordinal = 0
    for name, line in lines.items():
        ordered = sorted(line, key=lambda row: row[plot.x])
        xs = [row[plot.x] for row in ordered]
        color = COLORS[ordinal % len(COLORS)]
        if plot.roof is not None:
            axes.plot(xs, [row[plot.roof] for row in ordered], color=color, linewidth=1, linestyle="--")
        for y in plot.y:
            style = {"color": COLORS[ordinal % len(COLORS)], "marker": MARKERS[ordinal % len(MARKERS)]}
            text = ", ".join(part for part in (name, label(y) if len(plot.y) > 1 or not name else "") if part)
            axes.plot(xs, [row[y] for row in ordered], label=text, **style)
            ordinal += 1
    axes.set_xlabel(plot.xlabel or label(plot.x))
    axes.set_ylabel(plot.ylabel or label(plot.y[0]))
    _scale(axes.xaxis, plot.xscale, plot.x, sorted({row[plot.x] for row in rows}))
    _scale(axes.yaxis, plot.yscale, plot.y[0], None)
    if plot.yscale == "linear":
        shares = all(_is_share(y) for y in plot.y)
        axes.set_ylim(bottom=0, top=1.02 if shares else None)
    if plot.roof is not None:
        axes.plot([], [], color=COLORS[6], linewidth=1, linestyle="--", label=label(plot.roof))
    if len(lines) > 1 or len(plot.y) > 1 or plot.roof is not None:
        axes.legend()


def _draw_bars(axes: Any, plot: Plot, rows: Rows) -> None:
    names = [_value_label(plot.x, row[plot.x]) for row in rows]
    positions = range(len(rows))
    left = [0.0] * len(rows)
    for ordinal, part in enumerate(plot.y):
        values = [row[part] for row in rows]
        state = part.partition("_")[2]
        color = STALL_COLORS.get(state, COLORS[ordinal % len(COLORS)])
        axes.barh(positions, values, left=left, color=color, label=label(part), height=0.62)
        left = [a + b for a, b in zip(left, values, strict=True)]
    axes.set_yticks(positions, names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(plot.xlabel or "cycles")
    _scale(axes.xaxis, plot.xscale, "cycles", None)
    for position, end in zip(positions, left, strict=True):
        axes.text(end, position, f"  {end:,.0f}", va="center", color=_INK)
    axes.set_xlim(0, 1.15 * max(left))  # room for numbers
    axes.locator_params(axis="x", nbins=6)


def _scale(axis: Any, scale: Scale, name: str, ticks: Sequence[Any] | None) -> None:
    from matplotlib import ticker

    if scale != "linear":
        axis._set_axes_scale("log", base=2 if scale == "log2" else 10)
        axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: _tick(name, value)))
    if scale == "log2":
        if ticks is not None and len(ticks) <= _MAX_TICKS:
            axis.set_major_locator(ticker.FixedLocator(ticks))
        else:
            axis.set_major_locator(ticker.LogLocator(base=2, numticks=_MAX_TICKS))


def _is_share(name: str) -> bool:
    return name.endswith(("utilization", "fraction"))


def _tick(name: str, value: float) -> str:
    if _is_share(name):
        return f"{value:.0%}"
    if name.endswith("_bytes"):
        return _bytes(value)
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def _bytes(value: float) -> str:
    if value <= 0:
        return "0"
    power = min(int(log2(value) // 10), 3) if value >= 1 else 0
    return f"{value / (1 << 10 * power):.4g} {('B', 'KiB', 'MiB', 'GiB')[power]}"


def _value_label(name: str, value: Any) -> str:
    if name == "vthreads":
        return f"V = {value}"
    if name == "serial":
        return "serial" if value else "decoupled"
    if name in ("grid", "workload", "config", "schedule"):
        return str(value)
    if name.endswith("_bytes"):
        return f"{name.removesuffix('_bytes')} {_bytes(value)}"
    if name == "bus_bits":
        return f"{value}-bit bus"
    return f"{name.replace('_', ' ')} = {value}"
