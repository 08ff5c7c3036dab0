"""What differs between two runs, and why one takes longer."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from accel.base.files import write_atomically
from accel.core.isa import Unit
from accel.run.critical import Segment, longest
from accel.run.waits import Wait
from accel.views.changes import Change, LayerChange, Why, changes, layer_changes, program_changes
from accel.views.lanes import lanes_html, lanes_text
from accel.views.saved import FIGURES, SavedRun
from accel.views.sections import check_page_path, page_of
from accel.views.states import State
from accel.views.tables import table

_EXPLAINING = 5
_SEGMENTS = 3


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two runs beside each other.

    Attributes:
        a, b: the runs.
    """

    a: SavedRun
    b: SavedRun

    @property
    def same_program(self) -> bool:
        """Whether both ran the same instructions on the same constants."""
        return self.a.program == self.b.program

    @property
    def fields(self) -> dict[str, tuple[Any, Any]]:
        """Fields of the machines that differ, and both values; None where a machine has no such field."""
        a, b = self.a.config.to_dict(), self.b.config.to_dict()
        return {name: (a.get(name), b.get(name)) for name in {**a, **b} if a.get(name) != b.get(name)}

    @property
    def figures(self) -> dict[str, tuple[Any, Any]]:
        """:data:`FIGURES` of both."""
        return {key: (self.a.figures.get(key), self.b.figures.get(key)) for key in FIGURES}

    @property
    def units(self) -> list[Change[tuple[str, str]]]:
        """Cycles of every unit in every state; each unit's sum up to those of the run."""
        a, b = (run.figures["stalls"] for run in (self.a, self.b))
        names = [state.name.lower() for state in State]
        keys = dict(zip(("busy", "memory_stall", "token_stall", "idle"), names, strict=True))
        return [
            Change((unit.label, name), a[unit.label][key], b[unit.label][key])
            for unit in Unit
            for key, name in keys.items()
        ]

    @cached_property
    def causes(self) -> list[Change[tuple[str, Wait]]]:
        """What the critical paths went to, by unit and cause, the largest differences first; they sum up to
        the difference of the cycles."""
        return changes(self.a.critical, self.b.critical, lambda one: (one.unit, one.cause))

    @cached_property
    def reasons(self) -> list[Change[Why]]:
        """The same by tensor, too."""
        return changes(self.a.critical, self.b.critical, lambda one: Why(one.unit, one.cause, one.tensor))

    def segments(self, why: Why, most: int = _SEGMENTS) -> tuple[list[Segment], list[Segment]]:
        """The longest segments of either run for a reason."""
        paths = ([one for one in run.critical if Why(*_key(one)) == why] for run in (self.a, self.b))
        first, second = (longest(path, most) for path in paths)
        return first, second

    @property
    def explaining(self) -> list[Change[Why]]:
        """The reasons that make the most of the difference."""
        return [one for one in self.reasons if one.difference][:_EXPLAINING]

    @cached_property
    def layers(self) -> list[LayerChange]:
        """Of networks, the layers of both."""
        return layer_changes(self.a, self.b)

    @cached_property
    def programs(self) -> list[Change[int]]:
        """Of networks, the cycles of each program by its number."""
        return program_changes(self.a, self.b)

    @property
    def traffic(self) -> list[tuple[Change[str], Change[str]]]:
        """Bytes read and written of each tensor."""
        found = []
        sides = [{one.name: one for one in run.traffic} for run in (self.a, self.b)]
        for name in {**sides[0], **sides[1]}:
            a, b = (side.get(name) for side in sides)
            read, written = (
                Change(name, getattr(a, key, 0), getattr(b, key, 0)) for key in ("read", "written")
            )
            found.append((read, written))
        return found

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "a": _run_dict(self.a),
            "b": _run_dict(self.b),
            "same_program": self.same_program,
            "fields": {name: {"a": a, "b": b} for name, (a, b) in self.fields.items()},
            "figures": {name: {"a": a, "b": b} for name, (a, b) in self.figures.items()},
            "units": [{"unit": unit, "state": state, **_sides(a, b)} for (unit, state), a, b in self.units],
            "causes": [
                {"unit": unit, "cause": str(cause), **_sides(a, b)} for (unit, cause), a, b in self.causes
            ],
            "explaining": [
                {
                    **one.key._asdict(),
                    "cause": str(one.key.cause),
                    **_sides(one.a, one.b),
                    "segments": {
                        side: [segment.to_dict() for segment in segments]
                        for side, segments in zip("ab", self.segments(one.key), strict=True)
                    },
                }
                for one in self.explaining
            ],
            "traffic": [
                {"name": read.key, "read": _sides(*read[1:]), "written": _sides(*written[1:])}
                for read, written in self.traffic
            ],
            "layers": [_layer_dict(one) for one in self.layers],
            "programs": [{"program": number, **_sides(a, b)} for number, a, b in self.programs],
        }

    def timelines(self, columns: int, *, ascii_only: bool = False) -> Iterator[str]:
        """The units of both runs as lines of text, one above the other on one scale."""
        return lanes_text(self.a, self.b, columns, ascii_only=ascii_only)

    @staticmethod
    def check_path(path: str | Path) -> None:
        """Refuse a file whose name does not say what to write.

        Raises:
            AccelError: it ends otherwise.
        """
        check_page_path("comparison", path)

    def save(self, path: str | Path) -> None:
        """Write the page.

        Raises:
            AccelError: the name ends otherwise.
            ProgramError: it cannot be written.
        """
        self.check_path(path)
        write_atomically(Path(path), self.html().encode())

    def html(self) -> str:
        """A page of it, which needs nothing but itself."""
        return page_of(f"A: {self.a.name}; B: {self.b.name}", summary(self), comparison_sections(self))


def comparison_sections(found: Comparison) -> list[tuple[str, str, str]]:
    """What a page says of two runs: of each section its name, its heading and its HTML."""
    return [
        ("figures", "Figures", _figures(found)),
        ("explaining", "What explains the difference", _explaining(found)),
        *([("layers", "Layers", _layers(found))] if found.layers else []),
        ("timelines", "Timelines", lanes_html(found.a, found.b)),
        ("critical", "Critical paths", _causes(found)),
        ("units", "Where the cycles went", _units(found)),
        ("traffic", "DRAM traffic", _traffic(found)),
    ]


def summary(found: Comparison) -> str:
    """How many times as fast the second run is, and what differs between the machines."""
    a, b = found.a.cycles, found.b.cycles
    parts = [f"{a:,} and {b:,} cycles"]
    if a == b:
        parts.append("as fast")
    elif b:
        parts.append(f"B is {a / b:.3g} times as fast")
    parts.append("the same program" if found.same_program else "different programs")
    if found.fields:
        changed = ", ".join(f"{name} {_value(a)} and {_value(b)}" for name, (a, b) in found.fields.items())
        parts.append(changed)
    return "; ".join(parts)


def mostly(one: LayerChange) -> str:
    """What makes the most of a layer's difference, in words."""
    if one.moved:
        assert one.a is not None
        assert one.b is not None
        return f"on the {one.b.where}, before on the {one.a.where}"
    if one.a is None or one.b is None:
        return f"only in {'B' if one.a is None else 'A'}"
    if not one.difference:
        return ""
    more = one.difference > 0
    most = next(cause for cause in one.causes if (cause.difference > 0) is more and cause.difference)
    mapped = f"; mapping {one.b.mapping}" if one.a.mapping != one.b.mapping else ""
    return f"{' '.join(most.key)} {signed(most.difference)}{mapped}"


def figure_text(value: Any) -> str:
    """A figure in a table."""
    if isinstance(value, float):
        return f"{value:.1%}"
    return f"{value:,}" if isinstance(value, int) else str(value or "")


def signed(difference: int) -> str:
    """A difference with its sign; nothing if there is none."""
    return f"{difference:+,}" if difference else ""


def _value(value: Any) -> str:
    return "none" if value is None else str(value)


def _key(one: Segment) -> tuple[str, Wait, str | None]:
    return one.unit, one.cause, one.tensor


def _run_dict(run: SavedRun) -> dict[str, Any]:
    return {
        "name": run.name,
        "program": run.program,
        "config": run.config.label,
        "overrides": dict(run.overrides),
        "seed": run.seed,
        "cycles": run.cycles,
    }


def _layer_dict(one: LayerChange) -> dict[str, Any]:
    a, b = one.cycles
    return {
        "name": one.name,
        "a": a,
        "b": b,
        "difference": one.difference,
        "where": {
            side: None if layer is None else layer.where for side, layer in zip("ab", one[1:3], strict=True)
        },
        "causes": [{"unit": unit, "cause": str(cause), **_sides(a, b)} for (unit, cause), a, b in one.causes],
    }


def _sides(a: int, b: int) -> dict[str, int]:
    return {"a": a, "b": b, "difference": b - a}


# --- page ------------------------------------------------------------------------------------------


def _figures(found: Comparison) -> str:
    rows = []
    for key, (a, b) in found.figures.items():
        more = signed(b - a) if isinstance(a, int) and isinstance(b, int) else ""
        rows.append((FIGURES[key], figure_text(a), figure_text(b), more))
    fields = [(escape(name), _value(a), _value(b)) for name, (a, b) in found.fields.items() if name != "name"]
    machines = table(("field of the machine", "A", "B"), fields) if fields else "<p>One machine ran both.</p>"
    return (
        '<div class="columns"><div>'
        + table(("", "A", "B", "B - A"), rows)
        + f"</div><div>{machines}</div></div>"
    )


def _explaining(found: Comparison) -> str:
    total = found.b.cycles - found.a.cycles
    rows = []
    for one in found.explaining:
        sides = zip("AB", (found.a, found.b), found.segments(one.key), strict=True)
        told = "; ".join(
            f"{side}: " + ", ".join(_segment(run, segment) for segment in segments)
            for side, run, segments in sides
            if segments
        )
        rows.append(
            (
                f'<span title="{escape(one.key.cause.label)}">{escape(one.key.text)}</span>',
                f"{one.a:,}",
                f"{one.b:,}",
                signed(one.difference),
                escape(told),
            )
        )
    if not rows:
        return "<p>Nothing differs on the critical paths.</p>"
    note = f"Of the critical paths, what differs most; all differences sum up to {total:+,} cycles."
    headings = ("unit and cause", "A", "B", "B - A", "longest segments")
    return f'<p class="faint">{note}</p>' + table(headings, rows)


def _segment(run: SavedRun, one: Segment) -> str:
    of = "" if one.instruction is None else f" of #{one.instruction}"
    layer = run.layer_of(one.start)
    return f"{one.cycles:,} cycles{of} from {one.start:,}" + ("" if layer is None else f" in {layer.name}")


def _layers(found: Comparison) -> str:
    rows = [
        (
            escape(one.name),
            *("" if cycles is None else f"{cycles:,}" for cycles in one.cycles),
            signed(one.difference),
            escape(mostly(one)),
        )
        for one in found.layers
    ]
    text = table(("layer", "A", "B", "B - A", "mostly"), rows)
    if len(found.programs) > 1:
        of = [(f"{one.key}", f"{one.a:,}", f"{one.b:,}", signed(one.difference)) for one in found.programs]
        text += "<p>The programs that the machine runs, one behind the other:</p>"
        text += table(("program", "A", "B", "B - A"), of)
    return text


def _causes(found: Comparison) -> str:
    rows = [
        (
            f"<b>{one.key[0]}</b>",
            f'<span title="{escape(one.key[1].label)}">{escape(one.key[1])}</span>',
            f"{one.a:,}",
            f"{one.b:,}",
            signed(one.difference),
        )
        for one in found.causes
    ]
    return table(("unit", "cause", "A", "B", "B - A"), rows)


def _units(found: Comparison) -> str:
    labels = {state.name.lower(): state.label for state in State}
    rows = [
        (f"<b>{unit}</b>", labels[state], f"{a:,}", f"{b:,}", signed(b - a))
        for (unit, state), a, b in found.units
    ]
    return table(("unit", "", "A", "B", "B - A"), rows)


def _traffic(found: Comparison) -> str:
    rows = [
        (
            f"<b>{escape(read.key)}</b>",
            *(text for one in (read, written) for text in _moved(one)),
        )
        for read, written in found.traffic
    ]
    headings = ("in DRAM", "read by A", "by B", "B - A", "written by A", "by B", "B - A")
    return table(headings, rows)


def _moved(one: Change[str]) -> tuple[str, str, str]:
    """Bytes in a table; nothing where there are none."""
    known = one.a or one.b
    return f"{one.a:,}" if known else "", f"{one.b:,}" if known else "", signed(one.difference)
