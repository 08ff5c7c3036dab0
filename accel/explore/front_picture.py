"""A picture of the measured points and the Pareto front."""

from pathlib import Path
from typing import Any

from accel.explore.exploration_result import Exploration, Point
from accel.explore.objectives import Objective
from accel.sweeps.sweep_plots import COLORS, figure_svg, new_figure

_MAX_SPREAD = 20
"""A larger spread makes an axis logarithmic."""


def picture_axes(exploration: Exploration) -> tuple[Objective | None, Objective]:
    """Return the second objective, or None for a point's number, and the first."""
    first, *others = exploration.objectives
    return (others[0] if others else None), first


def draw_front(exploration: Exploration) -> Any:
    """Return a matplotlib figure of two objectives, with pale dominated points."""
    x, y = picture_axes(exploration)
    numbers = {point.values: number for number, point in enumerate(exploration.points)}

    def place(point: Point) -> tuple[float, float]:
        across = numbers[point.values] if x is None else point.objectives[x.name]
        return across, point.objectives[y.name]

    dominated = [place(one) for one in exploration.measured if not exploration.is_on_front(one)]
    best = sorted(place(one) for one in exploration.front)
    with new_figure() as (figure, axes):
        axes.plot(*_columns(dominated), "o", color=COLORS[6], alpha=0.35, markersize=4, label="dominated")
        is_line = len(exploration.objectives) == 2 and not any(
            one.is_maximized for one in exploration.objectives
        )
        style = {"drawstyle": "steps-post", "linestyle": "-" if is_line else ""}
        axes.plot(*_columns(best), marker="o", **style, color=COLORS[0], markersize=6, label="Pareto front")
        if exploration.base.status == "measured" and x is not None:
            axes.plot(
                *_columns([place(exploration.base)]),
                "D",
                color=COLORS[1],
                markersize=7,
                label=base_label(exploration),
            )
        axes.set_xlabel("point" if x is None else _axis_label(x))
        axes.set_ylabel(_axis_label(y))
        axes.set_title(exploration.title, pad=12)
        values = [one for _, one in (*dominated, *best)]
        if min(values) > 0 and max(values) > _MAX_SPREAD * min(values):
            axes.set_yscale("log")
        else:
            axes.yaxis.set_major_formatter(
                lambda value, _: f"{value:,.0f}" if value == int(value) else f"{value:g}"
            )
        axes.legend()
    return figure


def front_svg(exploration: Exploration) -> bytes:
    return figure_svg(draw_front(exploration))


def base_label(exploration: Exploration) -> str:
    return Path(exploration.space.base_name).name


def _columns(points: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [one for one, _ in points], [one for _, one in points]


def _axis_label(objective: Objective) -> str:
    return objective.label.replace("_", " ")
