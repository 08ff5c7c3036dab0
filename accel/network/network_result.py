"""Results of networks' runs."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from accel.base.errors import AccelError, MismatchError
from accel.base.html_summary import Bar, html_summary
from accel.compiler.expr.compulsory_cost import bound_by
from accel.core.config import Config
from accel.core.events import Timing
from accel.core.instruction_access import dram_rows
from accel.core.isa import Instruction, Loops, Store, Transfer, Unit
from accel.core.timing_rules import beat_cycles, busy_slots
from accel.energy import AccessCounts, EnergyReport, count_accesses, energy_of
from accel.energy.access_counts import count_parts
from accel.graph.graph import Graph
from accel.graph.graph_tensor import Array
from accel.network.chained_program import Chain
from accel.network.network_part import NetworkPart
from accel.run.critical_path import Segment, Share, join_paths, shares, split_path
from accel.run.layer_record import Layer, layer_at
from accel.run.result import Result, bytes_moved
from accel.run.session_tensors import Packing


class LayerResult(Layer, frozen=True, kw_only=True):
    """The figures of a layer, on the machine or on the host.

    Attributes:
        bound_by: the unit that limits it, by :func:`~accel.compiler.expr.compulsory_cost.bound_by`.
        bytes_by_kind: moved bytes by memory.
        causes: its critical path by cause, largest first, or empty without events.
        alone: predicted cycles in isolation.
        busy: the most of the cycles of compute slots, of reads and of writes at full bus width.
    """

    reason: str
    macs: int
    bound_by: str | None
    bytes_by_kind: Mapping[str, int]
    macs_per_cycle: int
    causes: tuple[Share, ...] = ()
    alone: int | None = None
    busy: float | None = None
    instructions: int = 0

    @property
    def nominal_cycles(self) -> float:
        """Cycles that the GEMM core needs for the nominal MACs at full rate."""
        return self.macs / self.macs_per_cycle

    @property
    def utilization(self) -> float | None:
        """Nominal cycles divided by the layer's: above 1 if it skips zeros around pictures, or overlaps."""
        return None if not self.cycles else self.nominal_cycles / self.cycles

    @property
    def overlaps(self) -> bool:
        """Whether part of its work precedes the previous layer's end, from which its cycles count."""
        return self.busy is not None and self.cycles is not None and self.cycles < self.busy

    @property
    def bound(self) -> str | None:
        """The largest cause on the critical path, for example ``compute slots``, else :attr:`bound_by`."""
        return f"{self.causes[0].unit} {self.causes[0].cause}" if self.causes else self.bound_by

    @property
    def bytes_read(self) -> int:
        return sum(count for kind, count in self.bytes_by_kind.items() if kind != "out")

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "operator": self.operator,
            "where": self.where,
            "program": self.program,
            "reason": self.reason,
            "mapping": self.mapping,
            "macs": self.macs,
            "cycles": self.cycles,
            "alone": self.alone,
            "busy": self.busy,
            "utilization": self.utilization,
            "bound_by": self.bound_by,
            "bytes_by_kind": dict(self.bytes_by_kind),
            "causes": [one.to_dict() for one in self.causes],
        }


def host_layer_result(graph: Graph, part: NetworkPart) -> LayerResult:
    return LayerResult(
        name=part.fused.name,
        operator=part.fused.operators(),
        where=part.where,
        reason=part.reason,
        macs=part.fused.macs(graph),
        cycles=None,
        bound_by=None,
        bytes_by_kind={},
        macs_per_cycle=0,
    )


def machine_layer_results(
    graph: Graph, chain: Chain, result: Result, *, program: int, causes: bool = False
) -> list[LayerResult]:
    """A layer's cycles last from the previous layer's last retirement to its own, or to the end."""
    begins = [0, *chain.ends[:-1]]
    cycles = layer_cycles(chain, result.timing)
    segments: list[list[Segment]] = [[] for _ in cycles]
    path = result.known_path if causes else None
    if path is not None and None not in cycles:
        segments = split_path(path, list(accumulate(one or 0 for one in cycles)))
    results, at = [], 0
    for part in chain.parts:
        if not part.on_machine:
            results.append(host_layer_result(graph, part))
            continue
        instructions = result.instructions[begins[at] : chain.ends[at]]
        results.append(
            LayerResult(
                name=part.fused.name,
                operator=part.fused.operators(),
                where=part.where,
                reason="",
                macs=part.fused.macs(graph),
                cycles=cycles[at],
                bound_by=_bound_by(instructions, cycles[at], result.config),
                bytes_by_kind=bytes_moved(instructions, result.config),
                macs_per_cycle=result.config.macs_per_cycle,
                causes=tuple(shares(segments[at])),
                mapping=part.mapping,
                alone=part.alone,
                program=program,
                busy=None if cycles[at] is None else _busy_cycles(instructions, result.config),
                instructions=len(instructions),
            )
        )
        at += 1
    return results


def _bound_by(instructions: Sequence[Instruction], cycles: int | None, config: Config) -> str | None:
    if not cycles:
        return None
    busy = dict.fromkeys(Unit, 0.0)
    for one in instructions:
        if isinstance(one, Loops):
            busy[one.unit] += busy_slots(one, config)
        elif isinstance(one, Transfer):
            rows = dram_rows(one, config)
            moved = 0 if rows is None else rows.rows * rows.row_bytes
            busy[one.unit] += moved / config.bus_bytes * beat_cycles(one, config)
    return bound_by(cycles, compute=busy[Unit.COMPUTE], load=busy[Unit.LOAD], store=busy[Unit.STORE])


def _busy_cycles(instructions: Sequence[Instruction], config: Config) -> float:
    """Reads and writes have separate channels of the bus.

    For example, 90 slots, 800 bytes read and 400 written over a bus of 8 bytes are 100 cycles.
    """
    slots = reads = writes = 0.0
    for one in instructions:
        if isinstance(one, Loops):
            slots += busy_slots(one, config)
        elif isinstance(one, Transfer):
            rows = dram_rows(one, config)
            moved = 0 if rows is None else rows.rows * rows.row_bytes
            cycles = moved / config.bus_bytes * beat_cycles(one, config)
            if isinstance(one, Store):
                writes += cycles
            else:
                reads += cycles
    return max(slots, reads, writes)


def layer_cycles(chain: Chain, timing: Timing | None) -> list[int] | list[None]:
    """Count as :func:`machine_layer_results`."""
    count = len(chain.ends)
    if timing is None:
        return [None] * count
    if count == 1:
        return [timing.cycles]
    retired = timing.retirements()
    if retired is None:
        return [None] * count
    last = [0] * count
    for instruction, cycle in retired:
        layer = bisect_right(chain.ends, instruction)
        last[layer] = max(last[layer], cycle)
    last = list(accumulate(last, max))
    last[-1] = timing.cycles
    return [end - begin for begin, end in zip([0, *last], last, strict=False)]


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkResult:
    """The result of a network's run.

    Attributes:
        macs: nominal MACs.
        host_macs: nominal MACs on the host.
        tensors: inputs and results by name, in the graph's shapes and dtypes.
        cycles: cycles of all programs, or None if time was not simulated.
        mismatches: wrong values by tensor, or None if nothing was compared.
        compile_seconds: processor time of compilation, or None if unknown.
        simulate_seconds: processor time, including the host's.
        runs: events of each program, or empty unless recorded.
    """

    graph: Graph
    config: Config
    backend: str
    macs: int
    host_macs: int
    tensors: dict[str, Array]
    layers: tuple[LayerResult, ...]
    cycles: int | None
    mismatches: dict[str, int] | None
    packing: Packing
    compile_seconds: float | None
    simulate_seconds: float
    runs: tuple[Result, ...] = ()

    def __repr__(self) -> str:
        parts = [f"{self.backend} on {self.config.label}"]
        if self.cycles is not None:
            parts.append(f"{self.cycles} cycles")
        if self.utilization is not None:
            parts.append(f"utilization {self.utilization:.1%}")
        parts.append("not compared" if self.mismatches is None else f"{self.wrong} mismatches")
        return f"NetworkResult({', '.join(parts)})"

    def _repr_html_(self) -> str:
        rows = [("machine", f"{self.config.label} ({self.backend})")]
        if self.cycles is not None:
            rows.append(("cycles", f"{self.cycles:,}"))
        if self.utilization is not None:
            rows.append(("utilization", f"{self.utilization:.1%}"))
        rows.append(("mismatches with numpy", "not compared" if self.wrong is None else f"{self.wrong:,}"))
        rows += [(f"output {name}", f"{a.dtype}{list(a.shape)}") for name, a in self.outputs.items()]
        slowest = sorted(self.layers, key=lambda layer: -(layer.cycles or 0))[:8] if self.cycles else []
        bars = [
            Bar(one.name, (one.cycles or 0) / (self.cycles or 1), f"{one.cycles or 0:,} cycles")
            for one in slowest
        ]
        return html_summary("NetworkResult", rows, bars)

    @cached_property
    def outputs(self) -> dict[str, Array]:
        """The network's outputs by name."""
        values = {**self.graph.constants, **self.tensors}
        tail = self.graph.tail
        return {name: values[name] for name in self.graph.outputs} if tail is None else tail.run(values)

    @property
    def wrong(self) -> int | None:
        """The sum of :attr:`mismatches`, or None."""
        return None if self.mismatches is None else sum(self.mismatches.values())

    @property
    def utilization(self) -> float | None:
        """Nominal MACs divided by the GEMM core's capacity in all cycles."""
        if not self.cycles:
            return None
        on_machine = self.macs - self.host_macs
        return on_machine / (self.cycles * self.config.macs_per_cycle)

    @property
    def busy_share(self) -> float | None:
        """The sum of all layers' :attr:`LayerResult.busy`, divided by the cycles."""
        if not self.cycles:
            return None
        return sum(layer.busy or 0 for layer in self.layers) / self.cycles

    @property
    def bytes_by_kind(self) -> dict[str, int]:
        """Bytes that instructions moved, by memory."""
        total: Counter[str] = Counter()
        for layer in self.layers:
            total.update(layer.bytes_by_kind)
        return dict(total)

    def critical_path(self) -> tuple[Segment, ...]:
        """Return the critical path: segments in order of time, whose cycles add up to all cycles.

        Instructions are numbered within their program.

        Raises:
            AccelError: time was not simulated, or events were not recorded (``run(record=True)``).
        """
        if self.known_path is None:
            raise AccelError(
                "the network's run has no critical path, because time was not simulated or events were not "
                "recorded; use the backend 'sim' and record=True"
            )
        return self.known_path

    @property
    def known_path(self) -> tuple[Segment, ...] | None:
        """The critical path, or None where :meth:`critical_path` raises an error."""
        paths = [path for run in self.runs if (path := run.known_path) is not None]
        return join_paths(paths) if paths else None

    def layer_of(self, cycle: int) -> LayerResult | None:
        """Return the layer of a cycle, counted over all programs."""
        return layer_at(self.layers, cycle)

    def energy(self) -> EnergyReport:
        """Return the machine's energy, without the host's, by component and layer, from exact counts of
        accesses.

        Raises:
            AccelError: the programs were not kept (``run(record=True)``).
        """
        on_machine = [layer for layer in self.layers if layer.program is not None]
        if on_machine and not self.runs:
            raise AccelError(
                "the network's run has no energy, because its programs were not kept; use record=True"
            )
        total, parts = AccessCounts(self.config), list[tuple[str, AccessCounts]]()
        for number, run in enumerate(self.runs, 1):
            run.check_energy()
            layers = [layer for layer in on_machine if layer.program == number]
            ends = accumulate(layer.instructions for layer in layers)
            found = count_parts(run.instructions, run.config, ends)
            parts += zip((layer.name for layer in layers), found, strict=True)
            total += count_accesses(
                run.instructions, run.config, address=run.config.mem_base + run.image.code_offset
            )
        return energy_of(total, parts)

    def raise_if_wrong(self) -> None:
        """Raise a MismatchError if a tensor differs from the graph's evaluation."""
        if self.mismatches:
            name, count = next(iter(self.mismatches.items()))
            raise MismatchError(
                f"{count} of {self.tensors[name].size} values of tensor {name!r} differ from the graph's "
                f"evaluation, the first of {len(self.mismatches)} such tensors"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        return {
            "backend": self.backend,
            "config": self.config.label,
            "cycles": self.cycles,
            "utilization": self.utilization,
            "busy_share": self.busy_share,
            "macs": self.macs,
            "host_macs": self.host_macs,
            "mismatches": self.wrong,
            "bytes_by_kind": self.bytes_by_kind,
            "packing": self.packing.to_dict(),
            "compile_seconds": self.compile_seconds,
            "simulate_seconds": self.simulate_seconds,
            "layers": [layer.to_dict() for layer in self.layers],
        }
