"""Comparisons of two runs, with causes of the difference."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from accel.base.atomic_files import write_atomically
from accel.base.deprecated_modules import renamed
from accel.core.isa import Unit
from accel.core.unit_states import State
from accel.run.critical_path import Segment, longest_segments
from accel.run.wait_causes import Wait
from accel.views.html_tables import table
from accel.views.page_sections import Section, check_page_path, sections_page
from accel.views.paired_timelines import paired_timelines_html, paired_timelines_text
from accel.views.run_changes import (
    Change,
    LayerChange,
    PathCause,
    layer_changes,
    path_changes,
    program_changes,
)
from accel.views.saved_run import FIGURES, SavedRun

_EXPLAINING_CAUSES = 5
_LISTED_SEGMENTS = 3


__getattr__ = renamed(__name__, {"Why": "PathCause"})


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two runs, A and B."""

    a: SavedRun
    b: SavedRun

    def __repr__(self) -> str:
        return f"Comparison({summary(self)})"

    @property
    def same_program(self) -> bool:
        """Whether instructions and constants are equal."""
        return self.a.program == self.b.program

    @property
    def fields(self) -> dict[str, tuple[Any, Any]]:
        """Differing configuration fields. None stands for a missing one."""
        a, b = self.a.config.to_dict(), self.b.config.to_dict()
        return {name: (a.get(name), b.get(name)) for name in {**a, **b} if a.get(name) != b.get(name)}

    @property
    def figures(self) -> dict[str, tuple[Any, Any]]:
        """:data:`FIGURES` of both runs."""
        figures = [{**run.figures, "largest_cause": run.largest_cause} for run in (self.a, self.b)]
        return {key: (figures[0].get(key), figures[1].get(key)) for key in FIGURES}

    @property
    def units(self) -> list[Change[tuple[str, str]]]:
        """Cycles by unit and state. Those of one unit sum up to the run."""
        a, b = (run.figures["stalls"] for run in (self.a, self.b))
        return [
            Change((unit.label, state.name.lower()), a[unit.label][state.figure], b[unit.label][state.figure])
            for unit in Unit
            for state in State
        ]

    @cached_property
    def causes(self) -> list[Change[tuple[str, Wait]]]:
        """Critical cycles by unit and cause, the largest difference first. Differences sum up to that of the
        runs."""
        return path_changes(self.a.critical, self.b.critical, lambda one: (one.unit, one.cause))

    @cached_property
    def reasons(self) -> list[Change[PathCause]]:
        """Critical cycles by unit, cause and tensor, in the same order."""
        return path_changes(self.a.critical, self.b.critical, PathCause.of)

    def segments(self, why: PathCause, most: int = _LISTED_SEGMENTS) -> tuple[list[Segment], list[Segment]]:
        """Return the ``most`` longest segments of a cause from each run."""
        paths = ([one for one in run.critical if PathCause.of(one) == why] for run in (self.a, self.b))
        first, second = (longest_segments(path, most) for path in paths)
        return first, second

    @property
    def explaining(self) -> list[Change[PathCause]]:
        """The five causes with the largest differences."""
        return [one for one in self.reasons if one.difference][:_EXPLAINING_CAUSES]

    @cached_property
    def layers(self) -> list[LayerChange]:
        """The layers of both runs, if of networks."""
        return layer_changes(self.a, self.b)

    @cached_property
    def programs(self) -> list[Change[int]]:
        """Cycles of each program by its number, if the runs are of networks."""
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
        """Return plain data."""
        return {
            "a": _run_dict(self.a),
            "b": _run_dict(self.b),
            "same_program": self.same_program,
            "fields": {name: {"a": a, "b": b} for name, (a, b) in self.fields.items()},
            "figures": {name: {"a": a, "b": b} for name, (a, b) in self.figures.items()}
            | {
                "bound_by": {
                    side: run.figures.get("bound_by") for side, run in (("a", self.a), ("b", self.b))
                }
            },
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
        """Yield lines of text of ``columns`` characters on one scale."""
        return paired_timelines_text(self.a, self.b, columns, ascii_only=ascii_only)

    @staticmethod
    def check_path(path: str | Path) -> None:
        """Raise an AccelError unless a file's name ends in ``.html``."""
        check_page_path("comparison", path)

    def save(self, path: str | Path) -> None:
        """Write the page.

        Raises:
            AccelError: the name does not end in ``.html``.
            ProgramError: the file cannot be written.
        """
        self.check_path(path)
        write_atomically(Path(path), self.html().encode())

    def html(self) -> str:
        """Return a self-contained page."""
        return sections_page(f"A: {self.a.name}; B: {self.b.name}", summary(self), comparison_sections(self))


def comparison_sections(found: Comparison) -> list[Section]:
    """Return name, heading and HTML of each section."""
    return [
        ("figures", "Figures", _figures(found)),
        ("explaining", "What explains the difference", _explaining(found)),
        *([("layers", "Layers", _layers(found))] if found.layers else []),
        ("timelines", "Timelines", paired_timelines_html(found.a, found.b)),
        ("critical", "Critical paths", _causes(found)),
        ("units", "Where the cycles went", _units(found)),
        ("traffic", "DRAM traffic", _traffic(found)),
    ]


def summary(found: Comparison) -> str:
    """Return cycles, speed and differing fields in one line.

    For example: ``200 and 100 cycles; B is 2 times as fast; the same program; bus_bits 64 and 128``.
    """
    a, b = found.a.cycles, found.b.cycles
    parts = [f"{a:,} and {b:,} cycles"]
    if a == b:
        parts.append("equally fast")
    elif a and b:
        parts.append(_cycles_text(b / a))
    parts.append("the same program" if found.same_program else "different programs")
    if found.fields:
        parts.append(
            ", ".join(f"{name} {_value(a)} and {_value(b)}" for name, (a, b) in found.fields.items())
        )
    return "; ".join(parts)


def _cycles_text(ratio: float) -> str:
    if ratio >= 2:
        return f"B takes {ratio:.3g} times the cycles of A"
    if ratio <= 1 / 2:
        return f"B is {1 / ratio:.3g} times as fast"
    return f"B takes {abs(ratio - 1):.1%} {'more' if ratio > 1 else 'fewer'} cycles"


def main_cause(one: LayerChange) -> str:
    """Return the largest cause of a layer's difference."""
    if one.is_moved:
        assert one.a is not None
        assert one.b is not None
        return f"moved from the {one.a.where} to the {one.b.where}"
    if one.a is None or one.b is None:
        return f"only in {'B' if one.a is None else 'A'}"
    if not one.difference:
        return ""
    is_slower = one.difference > 0
    cause = next(c for c in one.causes if (c.difference > 0) is is_slower and c.difference)
    mapped = f"; mapping {one.b.mapping}" if one.a.mapping != one.b.mapping else ""
    return f"{' '.join(cause.key)} {signed(cause.difference)}{mapped}"


def figure_text(value: Any) -> str:
    """Return a share in percent, and None as an empty string."""
    if isinstance(value, float):
        return f"{value:.1%}"
    return f"{value:,}" if isinstance(value, int) else str(value or "")


def signed(difference: int) -> str:
    """Return a difference with its sign, or an empty string for 0."""
    return f"{difference:+,}" if difference else ""


def _value(value: Any) -> str:
    return "none" if value is None else str(value)


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
        difference = signed(b - a) if isinstance(a, int) and isinstance(b, int) else ""
        rows.append((FIGURES[key], escape(figure_text(a)), escape(figure_text(b)), difference))
    fields = [
        (escape(name), escape(_value(a)), escape(_value(b)))
        for name, (a, b) in found.fields.items()
        if name != "name"
    ]
    machines = (
        table(("field of the machine", "A", "B"), fields)
        if fields
        else "<p>Both ran on the same machine.</p>"
    )
    return (
        '<div class="columns"><div>'
        + table(("", "A", "B", "B - A"), rows)
        + f"</div><div>{machines}</div></div>"
    )


def _explaining(found: Comparison) -> str:
    rows = []
    for one in found.explaining:
        sides = zip("AB", (found.a, found.b), found.segments(one.key), strict=True)
        segments_text = "; ".join(
            f"{side}: " + ", ".join(_segment_text(run, segment) for segment in segments)
            for side, run, segments in sides
            if segments
        )
        rows.append(
            (
                f'<span title="{escape(one.key.cause.label)}">{escape(one.key.text)}</span>',
                f"{one.a:,}",
                f"{one.b:,}",
                signed(one.difference),
                escape(segments_text),
            )
        )
    if not rows:
        return "<p>The critical paths have the same causes.</p>"
    note = (
        f"The largest differences on the critical paths. All differences sum up to "
        f"{found.b.cycles - found.a.cycles:+,} cycles."
    )
    headings = ("unit and cause", "A", "B", "B - A", "longest segments")
    return f'<p class="faint">{note}</p>' + table(headings, rows)


def _segment_text(run: SavedRun, one: Segment) -> str:
    instruction = "" if one.instruction is None else f" of #{one.instruction}"
    layer = run.layer_of(one.start)
    place = "" if layer is None else f" in {layer.name}"
    return f"{one.cycles:,} cycles{instruction} from {one.start:,}{place}"


def _layers(found: Comparison) -> str:
    rows = [
        (
            escape(one.name),
            *("" if cycles is None else f"{cycles:,}" for cycles in one.cycles),
            signed(one.difference),
            escape(main_cause(one)),
        )
        for one in found.layers
    ]
    text = table(("layer", "A", "B", "B - A", "main cause"), rows)
    if len(found.programs) > 1:
        programs = [
            (f"{one.key}", f"{one.a:,}", f"{one.b:,}", signed(one.difference)) for one in found.programs
        ]
        text += "<p>The programs of the networks, in the order in which they run:</p>"
        text += table(("program", "A", "B", "B - A"), programs)
    return text


def _causes(found: Comparison) -> str:
    rows = [
        (
            f"<b>{escape(unit)}</b>",
            f'<span title="{escape(cause.label)}">{escape(cause)}</span>',
            f"{a:,}",
            f"{b:,}",
            signed(b - a),
        )
        for (unit, cause), a, b in found.causes
    ]
    return table(("unit", "cause", "A", "B", "B - A"), rows)


def _units(found: Comparison) -> str:
    labels = {state.name.lower(): state.label for state in State}
    rows = [
        (f"<b>{unit}</b>", labels[state], f"{a:,}", f"{b:,}", signed(b - a))
        for (unit, state), a, b in found.units
    ]
    return table(("unit", "state", "A", "B", "B - A"), rows)


def _traffic(found: Comparison) -> str:
    rows = [
        (f"<b>{escape(read.key)}</b>", *(text for one in (read, written) for text in _bytes_cells(one)))
        for read, written in found.traffic
    ]
    headings = ("tensor", "read by A", "by B", "B - A", "written by A", "by B", "B - A")
    return table(headings, rows)


def _bytes_cells(one: Change[str]) -> tuple[str, str, str]:
    is_used = one.a or one.b
    return f"{one.a:,}" if is_used else "", f"{one.b:,}" if is_used else "", signed(one.difference)
