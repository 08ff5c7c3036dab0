"""An HTML page about a network's run."""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from accel.base.atomic_files import write_atomically
from accel.base.errors import AccelError
from accel.base.run_choices import UNTIMED
from accel.network.fusion_report import FusionChoice, total_savings
from accel.network.memory_plan import MemoryPlan
from accel.network.network_headline import network_headline
from accel.network.network_program import NetworkProgram
from accel.network.network_result import LayerResult, NetworkResult
from accel.run.critical_path import Segment, shares_text
from accel.run.machine_advice import AdviceReport
from accel.views.analyzed_run import AnalyzedRun, analyze_run
from accel.views.axis_ticks import power_ticks, tick_step, tick_text
from accel.views.critical_path_section import advice_html, critical_path_html
from accel.views.html_tables import figure_tiles, size_text, table, verdict_table
from accel.views.page_sections import check_page_path, sections_data, sections_page
from accel.views.run_report import sequence_view, view_page
from accel.views.run_sequence import RunSequence
from accel.views.svg_chart import Chart

_WIDTH = 1240
_ROW_HEIGHT = 22
_LABEL_WIDTH = 250
"""In pixels."""
_LABEL_CHARACTERS = 36
"""Longer names are cut off on the left."""
_TICKS = 8
_HUES = 8
"""Layers' colours in ``chart.css``, which repeat as in ``chart_drawing.js``."""


class NetworkReport:
    """Without ``advised``, its section is omitted."""

    def __init__(
        self, program: NetworkProgram, result: NetworkResult, *, advised: AdviceReport | None = None
    ) -> None:
        self.check_backend(result.backend)
        self._program = program
        self._result = result
        self._advised = advised

    @staticmethod
    def check_backend(backend: str) -> None:
        if backend == UNTIMED:
            raise AccelError(
                f"the backend of a report is {backend!r}, which does not simulate time; use 'sim' or 'rtl'"
            )

    @staticmethod
    def check_path(path: str | Path) -> None:
        check_page_path("report", path)

    def save(self, path: str | Path) -> None:
        self.check_path(path)
        write_atomically(Path(path), self.html().encode())

    def html(self) -> str:
        result = self._result
        title, facts = f"{result.graph.name} on {result.config.label}", str(result.config)
        sections = network_sections(self._program, result, self._advised)
        runs = analyzed_programs(self._program, result)
        if not runs:
            return sections_page(title, facts, sections)
        view = sequence_view(RunSequence(runs))
        own = sections_data(sections)
        *charts, listing = view["sections"]
        position = 1 + [one["name"] for one in own].index("layers")
        all_sections = [*own[:position], *charts, *own[position:], listing]
        return view_page({**view, "title": title, "facts": facts, "sections": all_sections})


def analyzed_programs(program: NetworkProgram, result: NetworkResult) -> tuple[AnalyzedRun, ...]:
    """Return the analyzed runs, or none without events."""
    return tuple(
        analyze_run(
            run,
            result.graph.name,
            layers=[(part.fused.name, end) for part, end in zip(chain.layers, chain.ends, strict=True)],
        )
        for chain, run in zip(program.chains, result.runs, strict=False)
    )


def network_sections(
    program: NetworkProgram, result: NetworkResult, advised: AdviceReport | None = None
) -> list[tuple[str, str, str]]:
    """Return name, heading and HTML."""
    path = result.known_path
    return [
        ("verdict", "Verdict", _verdict(program, result, advised)),
        ("figures", "Figures", _figures(result)),
        ("layers", "Layers over time", _layers_over_time(result)),
        *([] if path is None else [("critical", "Critical path", _critical_path(result, path))]),
        *([] if advised is None else [("advice", "What would help", advice_html(advised))]),
        ("roofline", "Roofline of each layer", _roofline(result)),
        ("table", "Layers", _layer_table(result)),
        ("memory", "Memory between layers", _memory(program)),
        ("traffic", "Traffic by memory", _traffic(result)),
        ("fusion", "Savings by fusion", _savings(program)),
    ]


def _on_machine(result: NetworkResult) -> list[tuple[LayerResult, int]]:
    layers, begin = [], 0
    for layer in result.layers:
        if layer.cycles is not None:
            layers.append((layer, begin))
            begin += layer.cycles
    return layers


def _verdict(program: NetworkProgram, result: NetworkResult, advised: AdviceReport | None) -> str:
    rows = []
    if result.wrong is not None:
        text = f"WRONG: {result.wrong:,} values differ" if result.wrong else "right: all tensors equal"
        rows.append(("compared to numpy", text, not result.wrong))
    share = f"{program.machine_share:.2%} of {result.macs:,} MACs on the machine"
    rows.append(("placement", share, not result.host_macs))
    for chain in program.chains:
        if chain.memory.bound:
            above = chain.memory.nbytes - chain.memory.bound
            text = f"{chain.memory.nbytes:,} bytes between layers, {above:,} more than the lower bound"
            rows.append(("memory", text, not above))
    found = network_headline(result)
    said = "" if found is None else f'<p class="headline">{escape(found.with_advice(advised).text)}</p>'
    return said + verdict_table(rows)


def _figures(result: NetworkResult) -> str:
    cycles = result.cycles or 0
    moved = result.bytes_by_kind
    read = sum(count for kind, count in moved.items() if kind != "out")
    figures = [
        ("cycles", f"{cycles:,}", f"{100e6 / cycles:,.0f} runs per second at 100 MHz" if cycles else ""),
        ("GEMM core used", f"{result.utilization or 0:.1%}", "counting nominal MACs"),
        ("MACs", f"{result.macs:,}", f"{result.host_macs:,} of them on the host"),
        ("read", size_text(read), "including instructions"),
        ("written", size_text(moved.get("out", 0)), ""),
    ]
    return figure_tiles(figures)


def _layers_over_time(result: NetworkResult) -> str:
    layers, cycles = _on_machine(result), max(1, result.cycles or 0)
    height = _ROW_HEIGHT * len(layers) + 28
    scale = (_WIDTH - _LABEL_WIDTH - 20) / cycles
    parts = list(_ticks(cycles, scale, height))
    for row, (layer, begin) in enumerate(layers):
        duration = layer.cycles or 0
        x, y, width = _LABEL_WIDTH + begin * scale, 6 + row * _ROW_HEIGHT, max(1.0, duration * scale)
        used = min(1.0, layer.utilization or 0)
        share = "" if layer.utilization is None else f", {layer.utilization:.1%} of the GEMM core"
        title = escape(f"{layer.name} ({layer.operator}): {duration:,} cycles{share}")
        hue = _hue(row)
        parts.append(
            f"<g><title>{title}</title>"
            f'<text x="{_LABEL_WIDTH - 8}" y="{y + 12}" text-anchor="end">{escape(_label(layer.name))}</text>'
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="14" {hue} opacity="0.35"/>'
            f'<rect x="{x:.1f}" y="{y}" width="{width * used:.1f}" height="14" {hue}/></g>'
        )
    note = "The solid part of a bar is the time that the GEMM core needs for the nominal MACs at full rate."
    return f'<p class="faint">{note}</p>' + _svg(height, parts, "Layers over time")


def _hue(layer: int) -> str:
    return f'class="hue{layer % _HUES}"'


def _roofline(result: NetworkResult) -> str:
    config = result.config
    points = []
    for layer, _ in _on_machine(result):
        busier = max(layer.bytes_read, layer.bytes_by_kind.get("out", 0))
        if layer.macs and layer.cycles and busier:
            points.append((layer.macs / busier, layer.macs / layer.cycles, layer.name))
    if not points:
        return "<p>No layer multiplies; the bus alone limits them.</p>"
    peak, bus = config.macs_per_cycle, config.bus_bytes
    left, right = min(x for x, _, _ in points) / 2, max(*(x for x, _, _ in points), peak / bus) * 3
    low, high = min(*(y for _, y, _ in points), left * bus) / 2, peak * 2.2
    chart = Chart(760, 400, x=(left, right), y=(low, high), margins=(64, 20, 18, 46), is_logarithmic=True)
    for value in power_ticks(left, right):
        chart.x_tick(value, tick_text(value))
    for value in power_ticks(low, high):
        chart.y_tick(value, tick_text(value))
    chart.x_title("nominal MACs per byte in the busier direction of the bus")
    chart.y_title("nominal MACs per cycle")
    chart.line([(left, left * bus), (peak / bus, peak), (right, peak)], "roof")
    for x, y, name in points:
        chart.point(x, y, "here", name)
    note = (
        "Nominal MACs include those on padding, which the machine skips, so that a layer can lie above the "
        "roofline. Point at a layer to see its name."
    )
    return f'<p class="faint">{note}</p>' + chart.svg("Layers below the roofline")


def _layer_table(result: NetworkResult) -> str:
    rows = []
    for layer in result.layers:
        rows.append(
            (
                escape(layer.name),
                escape(shares_text(layer.causes)),
                escape(layer.operator),
                escape(f"{layer.where}: {layer.reason}" if layer.reason else layer.where),
                escape(layer.mapping),
                f"{layer.macs:,}" if layer.macs else "",
                "" if layer.cycles is None else f"{layer.cycles:,}",
                "" if layer.alone is None else f"{layer.alone:,}",
                "" if layer.utilization is None else f"{layer.utilization:.1%}",
                f"{layer.bytes_read:,}" if layer.bytes_by_kind else "",
                f"{layer.bytes_by_kind['out']:,}" if layer.bytes_by_kind else "",
            )
        )
    headings = (
        *("layer", "critical path", "operators", "where", "mapping", "MACs", "cycles", "alone"),
        *("utilization", "read", "written"),
    )
    note = (
        "Layers overlap: 'cycles' are those between the ends of two layers, and 'alone' are the predicted "
        "cycles of a layer in isolation."
    )
    return f'<p class="faint">{escape(note)}</p>' + table(headings, rows)


def _critical_path(result: NetworkResult, path: Sequence[Segment]) -> str:
    has_several_programs = len(result.runs) > 1

    def instruction_text(segment: Segment) -> str:
        layer = result.layer_of(segment.start)
        if segment.instruction is None or layer is None or layer.program is None:
            return ""
        name = result.runs[layer.program - 1].instructions[segment.instruction].mnemonic
        index = f"{layer.program}:{segment.instruction}" if has_several_programs else segment.instruction
        return escape(f"{index} {name} in {layer.name}")

    return critical_path_html(path, instruction_text)


def _memory(program: NetworkProgram) -> str:
    parts, first_layer = [], 0
    for chain in program.chains:
        names = [part.fused.name for part in chain.layers]
        if chain.memory.nbytes:
            parts.append(_memory_chart(chain.memory, names, first_layer))
        first_layer += len(names)
    return "".join(parts) or "<p>No program keeps tensors between its layers.</p>"


def _memory_chart(plan: MemoryPlan, names: Sequence[str], first_layer: int) -> str:
    height = _ROW_HEIGHT * len(names) + 28
    scale = (_WIDTH - _LABEL_WIDTH - 20) / plan.nbytes
    parts = [
        f'<text x="{_LABEL_WIDTH - 8}" y="{row * _ROW_HEIGHT + 18}" text-anchor="end">'
        f"{escape(_label(name))}</text>"
        for row, name in enumerate(names)
    ]
    parts += _ticks(plan.nbytes, scale, height)
    for one in plan.live_ranges:
        offset = plan.offsets[one.name]
        x, width = _LABEL_WIDTH + offset * scale, max(1.0, one.nbytes * scale)
        y, bar_height = 4 + one.first * _ROW_HEIGHT, (one.last - one.first + 1) * _ROW_HEIGHT - 4
        title = escape(f"{one.name}: {one.nbytes:,} bytes at {offset:,}")
        parts.append(
            f'<g><title>{title}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{bar_height}" '
            f"{_hue(first_layer + one.first)}/></g>"
        )
    note = f"{plan.nbytes:,} bytes in total; no plan needs less than {plan.bound:,}."
    return f'<p class="faint">{note}</p>' + _svg(height, parts, "Memory between layers")


def _traffic(result: NetworkResult) -> str:
    rows = [(escape(kind), f"{count:,}") for kind, count in result.bytes_by_kind.items() if count]
    host = f'<p class="faint">The host: {escape(str(result.packing))}.</p>'
    return table(("memory", "bytes"), rows) + host


def _savings(program: NetworkProgram) -> str:
    rows = [row for choice in program.choices if (row := _savings_row(choice)) is not None]
    if not rows:
        return "<p>No nodes were fused.</p>"
    headings = (
        *("layer", "chosen", "cycles", "second best", "cycles"),
        *("saved cycles", "of them on the host", "saved bytes"),
    )
    note = (
        "Savings are the predicted cycles of the nodes run one by one, minus the predicted cycles of the "
        "fused layer. Layers without a search for plans have a lower bound instead. Each layer is predicted "
        "in isolation, and the host's speed is an assumption. All "
        f"fusions together save {total_savings(program.choices)}."
    )
    return f'<p class="faint">{note}</p>' + table(headings, rows)


def _savings_row(choice: FusionChoice) -> tuple[str, ...] | None:
    chosen, *others = choice.alternatives
    saved = choice.saved
    if chosen.cost is None or not saved.cycles:
        return None
    second = next((one for one in others if one.cost is not None), None)
    return (
        escape(choice.name),
        escape(", ".join(chosen.stages)),
        f"{chosen.cost.cycles:,}",
        "" if second is None else escape(", ".join(second.stages)),
        "" if second is None or second.cost is None else second.cost.cycles_text,
        saved.cycles_text,
        f"{saved.host_cycles:,}",
        f"{saved.nbytes:,}",
    )


def _ticks(limit: int, scale: float, height: int) -> Iterable[str]:
    for value in range(0, limit + 1, tick_step(limit, _TICKS)):
        x = _LABEL_WIDTH + value * scale
        yield f'<path class="rule" d="M{x:.1f} 4V{height - 22}"/>'
        yield f'<text class="faint" x="{x:.1f}" y="{height - 8}" text-anchor="middle">{value:,}</text>'


def _svg(height: int, parts: Iterable[str], title: str) -> str:
    return (
        f'<div class="wide"><svg class="chart broad" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'role="img"><title>{escape(title)}</title>{"".join(parts)}</svg></div>'
    )


def _label(name: str) -> str:
    most = _LABEL_CHARACTERS
    return name if len(name) <= most else f"...{name[3 - most :]}"
