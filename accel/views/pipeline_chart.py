"""Layout and data of the pipeline chart."""

import base64
import gzip
import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from accel.core.isa import Alu, Instruction, Products, Transfer, Unit
from accel.core.token_rules import Counter
from accel.views.activity_records import Activity, StateReason
from accel.views.run_sequence import RunSequence
from accel.views.run_verdict import stop_reason

CHART_WIDTH = 1200
GUTTER = 78
RIGHT_MARGIN = 14
OVERVIEW_HEIGHT = 24
"""Shows the whole run."""
AXIS_HEIGHT = 24
STATE_BAND_HEIGHT = 9
TRACK_GAP = 24
"""Room for arrows of tokens."""
LEGEND_HEIGHT = 52

_TALL_ROW, _LOW_ROW = 22, 14
"""In a track of few rows, and of many."""
_MAX_TALL_ROWS = 3
_MAX_ROWS = 16
"""Further instructions in flight share the last row."""


class Track(Struct, frozen=True, kw_only=True):
    """A unit's rows of instructions and band of states. ``top`` is in pixels."""

    unit: Unit
    rows: int
    row_height: int
    top: int

    @property
    def state_band(self) -> int:
        return self.top + self.rows * self.row_height

    @property
    def bottom(self) -> int:
        return self.state_band + STATE_BAND_HEIGHT


def tracks(activity: Activity) -> list[Track]:
    """Return tracks from top to bottom."""
    found: list[Track] = []
    top = 0
    for unit in Unit:
        used = {one.row for one in activity.slices if one.unit is unit}
        rows = 0 if unit is Unit.FETCH else min(_MAX_ROWS, max(used, default=0) + 1)
        height = _TALL_ROW if rows <= _MAX_TALL_ROWS else _LOW_ROW
        track = Track(unit=unit, rows=rows, row_height=height, top=top)
        top = track.bottom + (TRACK_GAP if rows else TRACK_GAP // 2)
        found.append(track)
    return found


def chart_height(activity: Activity) -> int:
    """Return the height in pixels."""
    return OVERVIEW_HEIGHT + AXIS_HEIGHT + tracks(activity)[-1].bottom + LEGEND_HEIGHT


def instruction_kind(instruction: Instruction) -> str:
    """Return a key of :data:`INSTRUCTION_KINDS`."""
    if isinstance(instruction, Transfer):
        return "transfer" if instruction.x_size else "other"
    if isinstance(instruction, Products):
        return "gemm"
    return "alu" if isinstance(instruction, Alu) else "other"


INSTRUCTION_KINDS = {"transfer": "LOAD, STORE", "gemm": "GEMM", "alu": "ALU", "other": "tokens only, FINISH"}


def chart_data(sequence: RunSequence) -> dict[str, Any]:
    """Return data for ``chart.js``. Growing numbers are differences."""
    activity = sequence.activity
    names, number_of = _distinct(sequence.names)
    return {
        "cycles": activity.cycles,
        "layout": {
            "gutter": GUTTER,
            "right": RIGHT_MARGIN,
            "overview": OVERVIEW_HEIGHT,
            "axis": AXIS_HEIGHT,
            "band": STATE_BAND_HEIGHT,
            "height": chart_height(activity),
        },
        "begins": sequence.begins,
        "names": names,
        "name": number_of,
        "stop": stop_reason(sequence.runs[-1]),
        "kinds": list(INSTRUCTION_KINDS),
        "kindLabels": list(INSTRUCTION_KINDS.values()),
        "kind": [list(INSTRUCTION_KINDS).index(instruction_kind(one)) for one in sequence.instructions],
        "groups": colour_groups(sequence),
        "reasons": [reason.label for reason in StateReason],
        "counters": [{"kind": c.kind, "label": c.label} for c in Counter],
        "flows": {
            "counter": [int(flow.counter) for flow in activity.flows],
            "source": _differences(flow.source for flow in activity.flows),
            "target": _differences(flow.target for flow in activity.flows),
        },
        "tracks": [_track_data(activity, track) for track in tracks(activity)],
        "critical": _critical_data(sequence),
    }


def _critical_data(sequence: RunSequence) -> dict[str, Any]:
    path = list(sequence.critical_path())
    names = ("start", "cycles", "unit", "cause", "instruction", "tensor")
    rows = [one.to_dict() for one in path]
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in names}
    return columns | {"labels": {str(one.cause): one.cause.label for one in path}}


def colour_groups(sequence: RunSequence) -> list[dict[str, Any]]:
    """Return the groups layer and tensor.

    ``of`` has the index of each instruction's label, or -1.
    """
    tensors, number_of = _distinct(sequence.tensors)
    unknown = tensors.index("") if "" in tensors else len(tensors)
    stops = [stop for _, stop in sequence.layers]
    layers = {
        "name": "layer",
        "labels": [name for name, _ in sequence.layers],
        "of": [min(bisect_right(stops, n), len(stops) - 1) for n in range(len(sequence.instructions))],
    }
    return [
        *([layers] if stops else []),
        {
            "name": "tensor",
            "labels": [text for text in tensors if text],
            "of": [-1 if n == unknown else n - (n > unknown) for n in number_of],
        },
    ]


def _track_data(activity: Activity, track: Track) -> dict[str, Any]:
    slices = [one for one in activity.slices if one.unit is track.unit]
    spans = activity.spans[track.unit]
    return {
        "label": track.unit.label,
        "top": track.top,
        "rows": track.rows,
        "rowHeight": track.row_height,
        "slices": {
            "index": _differences(one.instruction for one in slices),
            "start": _differences(one.start for one in slices),
            "length": [one.stop - one.start for one in slices],
            "begin": [one.work_start - one.start for one in slices],
            "end": [one.work_stop - one.start for one in slices],
            "row": [min(one.row, track.rows - 1) for one in slices],
        },
        "spans": {
            "length": [span.stop - span.start for span in spans],
            "state": [int(span.state) for span in spans],
            "reason": [int(span.reason) for span in spans],
            "instruction": _differences(span.instruction for span in spans),
            "awaited": _differences(span.awaited for span in spans),
        },
    }


def _distinct(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    numbers = {text: n for n, text in enumerate(dict.fromkeys(texts))}
    return list(numbers), [numbers[text] for text in texts]


def _differences(values: Iterable[int]) -> list[int]:
    return [b - a for a, b in pairwise([0, *values])]


def packed(data: dict[str, Any]) -> str:
    """Return gzipped JSON in base64, for ``accel.unpack``."""
    text = json.dumps(data, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
