"""Verdict, figures, and cycles by unit."""

from collections import defaultdict
from collections.abc import Mapping
from html import escape

from accel.core.isa import Unit
from accel.core.unit_states import State
from accel.run.run_headline import headline
from accel.views.activity_records import Activity, StateReason
from accel.views.analyzed_run import AnalyzedRun
from accel.views.dram_traffic import dram_traffic
from accel.views.html_tables import MIN_LISTED_SHARE, figure_tiles, size_text, table, verdict_table
from accel.views.run_verdict import VerdictRow, verdict_rows

_BAR_HEIGHT = 26
_MIN_LABELLED_SHARE = 0.06
"""A narrower part of a bar has no percentage."""


def verdict_html(run: AnalyzedRun) -> str:
    found = headline(run.result)
    shown_headline = (
        "" if found is None else f'<p class="headline">{escape(found.with_advice(run.advised).text)}</p>'
    )
    return shown_headline + verdict_table([*_comparison_row(run), *verdict_rows(run)])


def figures_html(run: AnalyzedRun) -> str:
    """Return the main figures."""
    figures = run.result.to_dict()
    compulsory = run.result.compulsory
    traffic = dram_traffic(run)
    stopped = run.result.error is not None
    tiles = [("cycles", f"{figures['cycles']:,}", "until it stopped" if stopped else "")]
    if compulsory is not None and figures["utilization"] is not None:
        tiles += [
            (
                "GEMM core used",
                f"{figures['utilization']:.1%}",
                f"{figures['ideal_cycles']:,.0f} cycles at least",
            ),
            (
                "of the roofline",
                f"{figures['roofline_fraction']:.1%}",
                f"{figures['roofline_cycles']:,.0f} cycles at least",
            ),
            (
                "MACs per cycle",
                f"{compulsory.real_macs / figures['cycles']:,.1f}",
                f"{compulsory.real_macs:,} in total",
            ),
        ]
    tiles += [
        ("read", size_text(sum(one.read for one in traffic)), "including instructions"),
        ("written", size_text(sum(one.written for one in traffic)), ""),
        ("instructions", f"{figures['instructions']:,}", _progress(run)),
    ]
    return figure_tiles(tiles)


def _progress(run: AnalyzedRun) -> str:
    if run.result.error is not None:
        return f"{len(run.activity.slices):,} of them started"
    return "" if run.result.uops is None else f"{run.result.uops:,} micro-ops"


def _comparison_row(run: AnalyzedRun) -> list[VerdictRow]:
    mismatches = run.result.mismatches
    if mismatches is None:
        return []
    text = f"WRONG: {mismatches:,} outputs differ" if mismatches else "right: all outputs equal"
    return [("compared to numpy", text, not mismatches)]


def units_html(activity: Activity) -> str:
    cycles = max(1, activity.cycles)
    parts = ['<div class="bars">']
    for unit in Unit:
        counts = dict(zip(State, activity.unit_cycles(unit).to_dict().values(), strict=True))
        parts.append(f'<div class="bar"><b>{unit.label}</b>{_bar(unit, counts, cycles)}</div>')
    keys = "".join(f'<span class="key {s.name.lower()}"></span>{s.label} ' for s in State)
    parts.append(f'<p class="keys">{keys}</p></div>')
    rows = [
        ("" if n else f"<b>{unit.label}</b>", escape(reason.label), f"{count:,}", f"{count / cycles:.1%}")
        for unit in Unit
        for n, (reason, count) in enumerate(_reasons(activity, unit))
    ]
    parts.append(table(("unit", "state or reason", "cycles", "share"), rows))
    return '<div class="columns">' + "".join(parts) + "</div>"


def _bar(unit: Unit, counts: Mapping[State, int], cycles: int) -> str:
    pieces, done = [], 0
    for state, count in counts.items():
        share, start = count / cycles, done / cycles
        done += count
        if not count:
            continue
        name = state.name.lower()
        percentage = f"{share:.0%}" if share >= _MIN_LABELLED_SHARE else ""
        pieces.append(
            f"<g><title>{unit.label}: {state.label}, {count:,} cycles, {share:.1%}</title>"
            f'<rect class="{name}" x="{start:.3%}" width="{share:.3%}" height="{_BAR_HEIGHT}"/>'
            f'<text x="{start + share / 2:.3%}" y="17" class="on-{name}">{percentage}</text></g>'
        )
    return f'<svg class="stacked" width="100%" height="{_BAR_HEIGHT}">{"".join(pieces)}</svg>'


def _reasons(activity: Activity, unit: Unit) -> list[tuple[StateReason, int]]:
    sums: dict[StateReason, int] = defaultdict(int)
    for span in activity.spans[unit]:
        sums[span.reason] += span.stop - span.start
    min_cycles = MIN_LISTED_SHARE * activity.cycles
    return sorted(((r, n) for r, n in sums.items() if n >= min_cycles), key=lambda one: -one[1])
