"""A page about a network's run: layers over time, the roofline of each, memory and traffic."""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from accel.base.errors import AccelError
from accel.base.files import write_atomically
from accel.network.choose import savings
from accel.network.memory import MemoryPlan
from accel.network.program import NetworkProgram
from accel.network.result import LayerResult, NetworkResult
from accel.run.advice import Advised
from accel.run.backends.simulator import UNTIMED
from accel.run.critical import Segment, shares_text
from accel.views.causes import advice_html, critical_html
from accel.views.figure import Figure
from accel.views.report import runs_view, view_html
from accel.views.roofline import powers, short
from accel.views.scene import Scene, scene
from accel.views.scenes import Scenes
from accel.views.sections import check_page_path, page_of, sections_data
from accel.views.still import tick_step
from accel.views.tables import size_text, table, tiles, verdicts

_WIDTH = 1240
_ROW = 22
_LABEL = 250
_COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a8a8a", "#b2a300")


class NetworkReport:
    """The page of a run.

    Args:
        program: what ran.
        result: of the run, in which time was simulated.
        advised: what would help, see :func:`~accel.network.advice.advise_network`; not told if not given.

    Raises:
        AccelError: it was not.
    """

    def __init__(
        self, program: NetworkProgram, result: NetworkResult, *, advised: Advised | None = None
    ) -> None:
        self.check_backend(result.backend)
        self._program = program
        self._result = result
        self._advised = advised

    @staticmethod
    def check_backend(backend: str) -> None:
        """Refuse a backend that simulates no layer's time.

        Raises:
            AccelError: it does not.
        """
        if backend == UNTIMED:
            raise AccelError(
                f"a report is wanted of the backend {backend!r}, which does not know the time of each layer; "
                f"take 'sim' or 'rtl'"
            )

    @staticmethod
    def check_path(path: str | Path) -> None:
        """Refuse a file whose name does not say what to write.

        Raises:
            AccelError: it ends otherwise.
        """
        check_page_path("report", path)

    def save(self, path: str | Path) -> None:
        """Write the page.

        Raises:
            AccelError: the name ends otherwise.
            ProgramError: it cannot be written.
        """
        self.check_path(path)
        write_atomically(Path(path), self.html().encode())

    def html(self) -> str:
        """The page; it needs nothing but itself. The chart of the units is in it if all that happened was
        kept (``run(record=True)``)."""
        result = self._result
        title, facts = f"{result.graph.name} on {result.config.label}", str(result.config)
        sections = network_sections(self._program, result, self._advised)
        scenes = network_scenes(self._program, result)
        if not scenes:
            return page_of(title, facts, sections)
        view = runs_view(Scenes(scenes))
        own = sections_data(sections)
        *inside, listing = view["sections"]
        place = 1 + [one["name"] for one in own].index("layers")
        every = [*own[:place], *inside, *own[place:], listing]
        return view_html({**view, "title": title, "facts": facts, "sections": every})


def network_scenes(program: NetworkProgram, result: NetworkResult) -> tuple[Scene, ...]:
    """Each program of a network with its layers, to look at; none if no run was kept.

    Args:
        program: what ran.
        result: of the run.
    """
    return tuple(
        scene(
            run,
            result.graph.name,
            layers=[(part.stage.name, end) for part, end in zip(chain.layers, chain.ends, strict=True)],
        )
        for chain, run in zip(program.chains, result.runs, strict=False)
    )


def network_sections(
    program: NetworkProgram, result: NetworkResult, advised: Advised | None = None
) -> list[tuple[str, str, str]]:
    """What a page says of a network's run: of each section its name, its heading and its HTML.

    Args:
        program: what ran.
        result: of the run, in which time was simulated.
        advised: what would help; not told if not given.
    """
    path = result.critical_path()
    return [
        ("verdict", "Verdict", _verdict(program, result)),
        ("figures", "Figures", _figures(result)),
        ("layers", "Layers over time", _over_time(result)),
        *([] if path is None else [("critical", "Critical path", _critical(result, path))]),
        *([] if advised is None else [("advice", "What would help", advice_html(advised))]),
        ("roofline", "Roofline of each layer", _roofline(result)),
        ("table", "Layers", _table_of_layers(result)),
        ("memory", "Memory between layers", _memory(program)),
        ("traffic", "Traffic by memory", _traffic(result)),
        ("fusion", "What fusion saves", _savings(program)),
    ]


def _on_machine(result: NetworkResult) -> list[tuple[LayerResult, int]]:
    """The layers of the machine, each with the cycle in which it begins."""
    found, begin = [], 0
    for layer in result.layers:
        if layer.cycles is not None:
            found.append((layer, begin))
            begin += layer.cycles
    return found


def _verdict(program: NetworkProgram, result: NetworkResult) -> str:
    rows = []
    if result.wrong is not None:
        text = f"WRONG: {result.wrong:,} values differ" if result.wrong else "right: all tensors equal"
        rows.append(("compared to numpy", text, not result.wrong))
    share = f"{program.machine_share:.2%} of {result.macs:,} MACs on the machine"
    rows.append(("placement", share, not result.host_macs))
    for chain in program.chains:
        if chain.memory.bound:
            over = chain.memory.nbytes - chain.memory.bound
            text = f"{chain.memory.nbytes:,} bytes between layers, {over:,} above the least possible"
            rows.append(("memory", text, not over))
    return verdicts(rows)


def _figures(result: NetworkResult) -> str:
    cycles = result.cycles or 0
    moved = result.bytes_by_kind
    told = [
        ("cycles", f"{cycles:,}", f"{100e6 / cycles:,.0f} runs a second at 100 MHz" if cycles else ""),
        ("GEMM core used", f"{result.utilization or 0:.1%}", "by nominal MACs"),
        ("MACs", f"{result.macs:,}", f"{result.host_macs:,} of them on the host"),
        ("read", size_text(sum(n for kind, n in moved.items() if kind != "out")), "with instructions"),
        ("written", size_text(moved.get("out", 0)), ""),
    ]
    return tiles(told)


def _over_time(result: NetworkResult) -> str:
    """A bar for each layer, from the retirement of the one before to its own; the strong part is its MACs."""
    layers, cycles = _on_machine(result), max(1, result.cycles or 0)
    height = _ROW * len(layers) + 28
    scale = (_WIDTH - _LABEL - 20) / cycles
    parts = []
    for cycle in range(0, cycles + 1, tick_step(cycles, 8)):
        x = _LABEL + cycle * scale
        parts.append(f'<path class="rule" d="M{x:.1f} 4V{height - 22}"/>')
        parts.append(
            f'<text class="faint" x="{x:.1f}" y="{height - 8}" text-anchor="middle">{cycle:,}</text>'
        )
    for row, (layer, begin) in enumerate(layers):
        taken = layer.cycles or 0
        x, y, width = _LABEL + begin * scale, 6 + row * _ROW, max(1.0, taken * scale)
        used = min(1.0, layer.utilization or 0)
        share = "" if layer.utilization is None else f", {layer.utilization:.1%} of the GEMM core"
        told = escape(f"{layer.name} ({layer.operator}): {taken:,} cycles{share}")
        parts.append(
            f"<g><title>{told}</title>"
            f'<text x="{_LABEL - 8}" y="{y + 12}" text-anchor="end">{escape(_clipped(layer.name))}</text>'
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="14" fill="#0072b2" opacity="0.35"/>'
            f'<rect x="{x:.1f}" y="{y}" width="{width * used:.1f}" height="14" fill="#0072b2"/></g>'
        )
    note = "The strong part of a bar is what its nominal MACs need at least."
    return f'<p class="faint">{note}</p>' + _svg(height, parts, "Layers over time")


def _roofline(result: NetworkResult) -> str:
    """Each layer with MACs below what GEMM core and bus allow."""
    config = result.config
    points = []
    for layer, _ in _on_machine(result):
        busier = max(layer.bytes_read, layer.bytes_by_kind.get("out", 0))
        if layer.macs and layer.cycles and busier:
            points.append((layer.macs / busier, layer.macs / layer.cycles, layer.name))
    if not points:
        return "<p>No layer multiplies; the bus alone is their limit.</p>"
    peak, bus = config.macs_per_cycle, config.bus_bytes
    left, right = min(x for x, _, _ in points) / 2, max(*(x for x, _, _ in points), peak / bus) * 3
    low, high = min(*(y for _, y, _ in points), left * bus) / 2, peak * 2.2
    figure = Figure(760, 400, x=(left, right), y=(low, high), margins=(64, 20, 18, 46), logarithmic=True)
    for value in powers(left, right):
        figure.x_tick(value, short(value))
    for value in powers(low, high):
        figure.y_tick(value, short(value))
    figure.x_title("nominal MACs per byte on the busier direction of the bus")
    figure.y_title("nominal MACs per cycle")
    figure.line([(left, left * bus), (peak / bus, peak), (right, peak)], "roof")
    for x, y, name in points:
        figure.point(x, y, "here", name)
    note = (
        "Nominal MACs count those on padding, which the machine leaves out: a layer may lie above the line."
    )
    return f'<p class="faint">{note} Point at a layer to see its name.</p>' + figure.svg(
        "Layers below the roofline"
    )


def _table_of_layers(result: NetworkResult) -> str:
    rows = []
    for layer in result.layers:
        rows.append(
            (
                escape(layer.name),
                escape(layer.operator),
                escape(f"{layer.where}: {layer.reason}" if layer.reason else layer.where),
                escape(layer.mapping),
                f"{layer.macs:,}" if layer.macs else "",
                "" if layer.cycles is None else f"{layer.cycles:,}",
                "" if layer.alone is None else f"{layer.alone:,}",
                "" if layer.utilization is None else f"{layer.utilization:.1%}",
                layer.bound_by or "",
                f"{layer.bytes_read:,}" if layer.bytes_by_kind else "",
                f"{layer.bytes_by_kind['out']:,}" if layer.bytes_by_kind else "",
                escape(shares_text(layer.causes)),
            )
        )
    headings = (
        *("layer", "operator", "where", "mapping", "MACs", "cycles", "alone"),
        *("utilization", "bound by", "read", "written", "critical path"),
    )
    note = "'alone' are the cycles that a layer is predicted to take by itself."
    return f'<p class="faint">{escape(note)}</p>' + table(headings, rows)


def _critical(result: NetworkResult, path: Sequence[Segment]) -> str:
    several = len(result.runs) > 1

    def where(one: Segment) -> str:
        """An instruction by its number, as the chart has it, its name and its layer."""
        layer = result.layer_of(one.start)
        if one.instruction is None or layer is None or layer.program is None:
            return ""
        name = result.runs[layer.program - 1].instructions[one.instruction].mnemonic
        number = f"{layer.program}:{one.instruction}" if several else one.instruction
        return escape(f"{number} {name} in {layer.name}")

    return critical_html(path, where)


def _memory(program: NetworkProgram) -> str:
    """While each layer runs, which tensor holds which bytes of the pool."""
    parts = []
    for chain in program.chains:
        if chain.memory.nbytes:
            parts.append(_pool(chain.memory, [part.stage.name for part in chain.layers]))
    return "".join(parts) or "<p>No tensor lies between layers of one program.</p>"


def _pool(plan: MemoryPlan, names: Sequence[str]) -> str:
    height = _ROW * len(names) + 28
    scale = (_WIDTH - _LABEL - 20) / plan.nbytes
    parts = [
        f'<text x="{_LABEL - 8}" y="{row * _ROW + 18}" text-anchor="end">{escape(_clipped(name))}</text>'
        for row, name in enumerate(names)
    ]
    for byte in range(0, plan.nbytes + 1, tick_step(plan.nbytes, 8)):
        x = _LABEL + byte * scale
        parts.append(f'<path class="rule" d="M{x:.1f} 4V{height - 22}"/>')
        parts.append(_number(x, height, byte))
    for number, one in enumerate(plan.lifetimes):
        x, width = _LABEL + plan.offsets[one.name] * scale, max(1.0, one.nbytes * scale)
        y, tall = 4 + one.first * _ROW, (one.last - one.first + 1) * _ROW - 4
        told = escape(f"{one.name}: {one.nbytes:,} bytes at {plan.offsets[one.name]:,}")
        parts.append(
            f'<g><title>{told}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{tall}" '
            f'fill="{_COLORS[number % len(_COLORS)]}" opacity="0.8"/></g>'
        )
    note = f"{plan.nbytes:,} bytes in all; no plan needs less than {plan.bound:,}."
    return f'<p class="faint">{note}</p>' + _svg(height, parts, "Memory between layers")


def _traffic(result: NetworkResult) -> str:
    rows = [(escape(kind), f"{count:,}") for kind, count in result.bytes_by_kind.items() if count]
    host = f'<p class="faint">The host: {escape(str(result.packing))}.</p>'
    return table(("what", "bytes"), rows) + host


def _savings(program: NetworkProgram) -> str:
    """What was compared where nodes could be fused, and what the one that was taken saves."""
    rows = []
    for choice in program.choices:
        taken, *others = choice.alternatives
        saved = choice.saved
        if taken.cost is None or not saved.cycles:
            continue
        second = next((one for one in others if one.cost is not None), None)
        rows.append(
            (
                escape(choice.name),
                escape(", ".join(taken.stages)),
                f"{taken.cost.cycles:,}",
                "" if second is None else escape(", ".join(second.stages)),
                "" if second is None or second.cost is None else f"{second.cost.cycles:,}",
                f"{saved.cycles:,}",
                f"{saved.host_cycles:,}",
                f"{saved.nbytes:,}",
            )
        )
    if not rows:
        return "<p>Nothing was fused.</p>"
    headings = (
        *("layer", "taken", "cycles", "second best", "cycles"),
        *("saved cycles", "of them the host's", "saved bytes"),
    )
    note = (
        "Predicted, each layer by itself; saved against every node on its own. What the host takes is "
        f"assumed. In all {savings(program.choices)}."
    )
    return f'<p class="faint">{note}</p>' + table(headings, rows)


def _svg(height: int, parts: Iterable[str], title: str) -> str:
    return (
        f'<div class="wide"><svg class="chart broad" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'role="img"><title>{escape(title)}</title>{"".join(parts)}</svg></div>'
    )


def _number(x: float, height: int, value: int) -> str:
    """The number of a tick, below a chart."""
    return f'<text class="faint" x="{x:.1f}" y="{height - 8}" text-anchor="middle">{value:,}</text>'


def _clipped(name: str) -> str:
    """A name as long as there is room for."""
    most = 36
    return name if len(name) <= most else f"...{name[3 - most :]}"
