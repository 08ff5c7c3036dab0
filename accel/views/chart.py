"""The pipeline chart: where everything is in it, and the data that it is redrawn from when one zooms."""

import base64
import gzip
import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from accel.core.isa import Alu, Instruction, Products, Transfer, Unit
from accel.core.token_rules import Counter
from accel.views.scenes import Scenes
from accel.views.states import Activity, Reason
from accel.views.verdict import stopped

WIDTH = 1200
"""Of the picture before it is fitted to the window, in pixels."""
GUTTER = 78
"""Left of the lanes, for their names."""
RIGHT = 14
OVERVIEW = 24
"""Height of the strip that shows the whole run."""
AXIS = 24
STRIP = 9
"""Height of a unit's states below its instructions."""
GAP = 24
"""Between lanes, for the arrows."""
LEGEND = 52

_TALL, _LOW = 22, 14
"""Height of a row of instructions where there are few, and where there are many."""
_FEW_ROWS = 3
_MOST_ROWS = 16
"""Slices of a unit that overlap more often share the last row."""


@dataclass(frozen=True, kw_only=True)
class Lane:
    """One unit in the picture; ``top`` counts from that of the lanes."""

    unit: Unit
    rows: int
    row_height: int
    top: int

    @property
    def strip(self) -> int:
        """Top of the strip of states."""
        return self.top + self.rows * self.row_height

    @property
    def bottom(self) -> int:
        return self.strip + STRIP


def lanes(seen: Activity) -> list[Lane]:
    """Fetch, load, compute and store from top to bottom."""
    found: list[Lane] = []
    top = 0
    for unit in Unit:
        used = {one.row for one in seen.slices if one.unit is unit}
        rows = 0 if unit is Unit.FETCH else min(_MOST_ROWS, max(used, default=0) + 1)
        lane = Lane(unit=unit, rows=rows, row_height=_TALL if rows <= _FEW_ROWS else _LOW, top=top)
        top = lane.bottom + (GAP if rows else GAP // 2)
        found.append(lane)
    return found


def height(seen: Activity) -> int:
    """Of the whole picture."""
    return OVERVIEW + AXIS + lanes(seen)[-1].bottom + LEGEND


def kind(instruction: Instruction) -> str:
    """How an instruction is coloured."""
    if isinstance(instruction, Transfer):
        return "transfer" if instruction.x_size else "other"
    if isinstance(instruction, Products):
        return "gemm"
    return "alu" if isinstance(instruction, Alu) else "other"


KINDS = {"transfer": "LOAD, STORE", "gemm": "GEMM", "alu": "ALU", "other": "tokens only, FINISH"}
"""The colours, and what they stand for."""


def chart_data(scenes: Scenes) -> dict[str, Any]:
    """All that the script needs to draw the chart at any zoom; numbers that grow stand as differences."""
    seen = scenes.seen
    names, number_of = _distinct(scenes.names)
    return {
        "cycles": seen.cycles,
        "layout": {
            "gutter": GUTTER,
            "right": RIGHT,
            "overview": OVERVIEW,
            "axis": AXIS,
            "strip": STRIP,
            "height": height(seen),
        },
        "begins": scenes.begins,
        "names": names,
        "name": number_of,
        "stop": stopped(scenes.parts[-1]),
        "kinds": list(KINDS),
        "kindLabels": list(KINDS.values()),
        "kind": [list(KINDS).index(kind(one)) for one in scenes.instructions],
        "groups": groups(scenes),
        "reasons": [reason.label for reason in Reason],
        "counters": [{"kind": c.kind, "label": c.label} for c in Counter],
        "flows": {
            "counter": [int(flow.counter) for flow in seen.flows],
            "source": _steps(flow.source for flow in seen.flows),
            "target": _steps(flow.target for flow in seen.flows),
        },
        "lanes": [_lane_data(scenes, lane) for lane in lanes(seen)],
        "critical": _critical(scenes),
    }


def _critical(scenes: Scenes) -> dict[str, Any]:
    """The critical path in columns, in order of time; ``labels`` says each cause in a sentence's words."""
    path = list(scenes.critical_path())
    names = ("start", "cycles", "unit", "cause", "instruction", "tensor")
    rows = [one.to_dict() for one in path]
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in names}
    return columns | {"labels": {str(one.cause): one.cause.label for one in path}}


def groups(scenes: Scenes) -> list[dict[str, Any]]:
    """What instructions can be coloured by besides their kind: names, and for each instruction the number of
    its own, or -1."""
    tensors, number_of = _distinct(scenes.tensors)
    nobody = tensors.index("") if "" in tensors else len(tensors)
    ends = [end for _, end in scenes.layers]
    layers = {
        "name": "layer",
        "labels": [name for name, _ in scenes.layers],
        "of": [min(bisect_right(ends, n), len(ends) - 1) for n in range(len(scenes.instructions))],
    }
    return [
        *([layers] if ends else []),
        {
            "name": "tensor",
            "labels": [text for text in tensors if text],
            "of": [-1 if n == nobody else n - (n > nobody) for n in number_of],
        },
    ]


def _lane_data(scenes: Scenes, lane: Lane) -> dict[str, Any]:
    slices = [one for one in scenes.seen.slices if one.unit is lane.unit]
    spans = scenes.seen.spans[lane.unit]
    return {
        "label": lane.unit.label,
        "top": lane.top,
        "rows": lane.rows,
        "rowHeight": lane.row_height,
        "slices": {
            "index": _steps(one.instruction for one in slices),
            "start": _steps(one.start for one in slices),
            "length": [one.stop - one.start for one in slices],
            "begin": [one.begin - one.start for one in slices],
            "end": [one.end - one.start for one in slices],
            "row": [min(one.row, lane.rows - 1) for one in slices],
        },
        "spans": {
            "length": [span.stop - span.start for span in spans],
            "state": [int(span.state) for span in spans],
            "reason": [int(span.reason) for span in spans],
            "instruction": _steps(span.instruction for span in spans),
            "other": _steps(span.other for span in spans),
        },
    }


def _distinct(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """The different texts, and for each its number among them."""
    numbers = {text: n for n, text in enumerate(dict.fromkeys(texts))}
    return list(numbers), [numbers[text] for text in texts]


def _steps(values: Iterable[int]) -> list[int]:
    """Differences from one to the next; small numbers pack better."""
    return [b - a for a, b in pairwise([0, *values])]


def packed(data: dict[str, Any]) -> str:
    """Data as text that a page can hold and unpack."""
    text = json.dumps(data, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
