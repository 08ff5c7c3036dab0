"""The page of an exploration."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from accel.explore.exploration_result import Exploration, Point
from accel.explore.front_picture import base_label, picture_axes
from accel.explore.machine_figures import MACHINE_FIGURES
from accel.explore.objectives import measured_figures
from accel.views.assets import asset
from accel.views.html_page import html_page


def front_page(exploration: Exploration) -> str:
    """Return a self-contained HTML page."""
    body = files("accel.explore.assets").joinpath("front_page.html").read_text(encoding="utf-8")
    data = json.dumps(page_data(exploration), separators=(",", ":")).replace("<", "\\u003c")
    style = asset("page.css") + front_asset("front_chart.css") + front_asset("front_page.css")
    script = front_asset("front_chart.js") + front_asset("front_page.js")
    facts = escape(exploration_facts(exploration))
    header = f"<header>\n<h1>{escape(exploration.title)}</h1>\n<p>{facts}</p>\n</header>\n"
    return html_page(exploration.title, header + body, style=style, script=script, data=data)


def page_data(exploration: Exploration) -> dict[str, Any]:
    """Return the script's data."""
    x, y = picture_axes(exploration)
    objectives = [one.name for one in exploration.objectives]
    others = [
        f"{figure}:{one.name}"
        for one in exploration.workloads
        for figure in measured_figures(exploration.timing)
    ]
    sums_are_equal = len(exploration.workloads) == 1 and exploration.workloads[0].weight == 1
    if sums_are_equal:
        others = [one for one in others if one.partition(":")[0] not in objectives]
    placed = (
        [name for name, one in exploration.known_objectives.items() if one.source == "placement"]
        if exploration.placement is not None
        else []
    )
    if sums_are_equal:
        placed = [name for name in placed if ":" not in name]
    axes = list(dict.fromkeys([*objectives, *placed, *others, *MACHINE_FIGURES, *exploration.space.domains]))
    base = exploration.base
    points = [
        _point_data(exploration, point, row, axes)
        for row, point in zip(exploration.table.rows, exploration.points, strict=True)
        if point.status == "measured"
    ]
    if base.status == "measured":
        points.append(_point_data(exploration, base, exploration.row(len(exploration.points), base), axes))
    return {
        "objectives": objectives,
        "maximized": [one.name for one in exploration.objectives if one.is_maximized],
        "axes": ["point", *axes],
        "labels": {name: one.label for name, one in exploration.known_objectives.items() if name in axes},
        "x": "point" if x is None else x.name,
        "y": y.name,
        "fields": list(exploration.space.domains),
        "base": {name: int(getattr(exploration.space.base, name)) for name in exploration.space.domains},
        "baseName": base_label(exploration),
        "limits": {name: value for name, value in exploration.space.limits.items() if name in axes},
        "points": points,
    }


def _point_data(
    exploration: Exploration, point: Point, row: Mapping[str, Any], axes: Sequence[str]
) -> dict[str, Any]:
    is_base = point is exploration.base
    return {
        "values": {name: row.get(name) for name in ("point", *axes)},
        "simulated": {key: value for key, value in row.items() if key.startswith("simulated_") and value},
        "front": not is_base and exploration.is_on_front(point),
        "base": is_base,
        "origin": point.origin,
        "commands": exploration.commands(point),
    }


def exploration_facts(exploration: Exploration) -> str:
    parts = [
        f"{exploration.space.size:,} points in the space",
        f"sampler {exploration.sampler}, seed {exploration.seed}",
        f"{len(exploration.measured):,} measured ({exploration.timing} cycles)",
        f"{len(exploration.front):,} on the front",
    ]
    if exploration.placement is not None:
        parts.append(exploration.placement.describe())
    if exploration.check is not None:
        parts.append(f"local check: {exploration.check.describe()}")
    return "; ".join(parts)


def front_asset(name: str) -> str:
    return files("accel.explore.assets").joinpath(name).read_text(encoding="utf-8")
