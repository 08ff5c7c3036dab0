"""What a report begins with: whether a run is right, its figures, and where its cycles went."""

from collections import defaultdict
from collections.abc import Mapping
from html import escape

from accel.core.isa import Unit
from accel.views import verdict
from accel.views.scene import Scene
from accel.views.states import Activity, Reason, State
from accel.views.tables import LEAST_SHARE, size_text, table, tiles, verdicts
from accel.views.traffic import traffic


def verdict_html(scene: Scene) -> str:
    """How the run ended, whether it is right, and what is known of its tokens."""
    return verdicts([*_compared(scene), *verdict.rows(scene)])


def figures_html(scene: Scene) -> str:
    """The most important figures as tiles."""
    found = scene.result.to_dict()
    least, stopped = scene.result.compulsory, scene.result.error is not None
    moved = traffic(scene)
    told = [("cycles", f"{found['cycles']:,}", "until it stopped" if stopped else "")]
    if least is not None and found["utilization"] is not None:
        told += [
            (
                "GEMM core used",
                f"{found['utilization']:.1%}",
                f"{found['ideal_cycles']:,.0f} cycles at least",
            ),
            (
                "of the roofline",
                f"{found['roofline_fraction']:.1%}",
                f"{found['roofline_cycles']:,.0f} cycles at least",
            ),
            ("MACs per cycle", f"{least.real_macs / found['cycles']:,.1f}", f"{least.real_macs:,} in all"),
        ]
    told += [
        (
            "read",
            size_text(sum(one.read for one in moved)),
            "with instructions",
        ),
        ("written", size_text(sum(one.written for one in moved)), ""),
        ("instructions", f"{found['instructions']:,}", _progress(scene)),
    ]
    return tiles(told)


def _progress(scene: Scene) -> str:
    """How much of the program has run."""
    if scene.result.error is not None:
        return f"{len(scene.seen.slices):,} of them started"
    return "" if scene.result.uops is None else f"{scene.result.uops:,} micro-ops"


def _compared(scene: Scene) -> list[verdict.Row]:
    """Whether the outputs are right, if that is known."""
    wrong = scene.result.mismatches
    if wrong is None:
        return []
    text = f"WRONG: {wrong:,} outputs differ" if wrong else "right: all outputs equal"
    return [("compared to numpy", text, not wrong)]


def units_html(seen: Activity) -> str:
    """Each unit's cycles by state as a bar, and by reason as a table."""
    cycles = max(1, seen.cycles)
    parts = ['<div class="bars">']
    for unit in Unit:
        found = dict(zip(State, seen.unit_cycles(unit).to_dict().values(), strict=True))
        parts.append(f'<div class="bar"><b>{unit.label}</b>{_track(unit, found, cycles)}</div>')
    keys = "".join(f'<span class="key {s.name.lower()}"></span>{s.label} ' for s in State)
    parts.append(f'<p class="keys">{keys}</p></div>')
    rows = [
        ("" if n else f"<b>{unit.label}</b>", escape(reason.label), f"{count:,}", f"{count / cycles:.1%}")
        for unit in Unit
        for n, (reason, count) in enumerate(_reasons(seen, unit))
    ]
    parts.append(table(("unit", "what it does or waits for", "cycles", "share"), rows))
    return '<div class="columns">' + "".join(parts) + "</div>"


def _track(unit: Unit, found: Mapping[State, int], cycles: int) -> str:
    """A unit's cycles as a bar."""
    pieces, done = [], 0
    for state, count in found.items():
        share, at = count / cycles, done / cycles
        done += count
        if not count:
            continue
        told = f"{unit.label}: {state.label}, {count:,} cycles, {share:.1%}"
        pieces.append(
            f'<g><title>{told}</title><rect class="{state.name.lower()}" x="{at:.3%}" width="{share:.3%}" '
            f'height="26"/><text x="{at + share / 2:.3%}" y="17" class="on-{state.name.lower()}">'
            f"{_percent(share)}</text></g>"
        )
    return f'<svg class="track" width="100%" height="26">{"".join(pieces)}</svg>'


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.06 else ""


def _reasons(seen: Activity, unit: Unit) -> list[tuple[Reason, int]]:
    """What most of a unit's cycles went to first."""
    sums: dict[Reason, int] = defaultdict(int)
    for span in seen.spans[unit]:
        sums[span.reason] += span.stop - span.start
    least = LEAST_SHARE * seen.cycles
    return sorted(((r, n) for r, n in sums.items() if n >= least), key=lambda one: -one[1])
