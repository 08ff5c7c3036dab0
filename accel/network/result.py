"""What a run of a network gave: tensors, and figures of every layer and of the whole."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from accel.base.errors import MismatchError
from accel.compiler.expr.metrics import bound_by
from accel.core.access import dram_rows
from accel.core.config import Config
from accel.core.events import Timing
from accel.core.isa import Instruction, Loops, Transfer, Unit
from accel.core.timing_rules import beat_cycles, busy_slots
from accel.graph.graph import Graph
from accel.graph.tensor import Array
from accel.network.chain import Chain
from accel.network.place import Part
from accel.run.critical import Segment, Share, cut, joined, shares
from accel.run.layers import Layer, layer_at
from accel.run.result import Result, bytes_moved
from accel.run.tensors import Packing


@dataclass(frozen=True, kw_only=True)
class LayerResult(Layer):
    """What a stage took, beyond what every record of a layer says.

    Attributes:
        reason: why it is on the host.
        macs: nominal ones.
        bound_by: what held it back, see :func:`~accel.compiler.expr.metrics.bound_by`; by what its
            instructions have to do.
        bytes_by_kind: that its instructions moved.
        macs_per_cycle: of the machine.
        causes: what its cycles went to on the critical path of the run, most first; empty where everything
            that happened was not kept.
        alone: cycles that it was predicted to take by itself; None on the host, and where that is not known.
    """

    reason: str
    macs: int
    bound_by: str | None
    bytes_by_kind: Mapping[str, int]
    macs_per_cycle: int
    causes: tuple[Share, ...] = ()
    alone: int | None = None

    @property
    def utilization(self) -> float | None:
        """Nominal MACs over those that the machine could have done meanwhile."""
        return None if not self.cycles else self.macs / (self.cycles * self.macs_per_cycle)

    @property
    def bytes_read(self) -> int:
        """By its LOADs, and its instructions."""
        return sum(count for kind, count in self.bytes_by_kind.items() if kind != "out")

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
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
            "utilization": self.utilization,
            "bound_by": self.bound_by,
            "bytes_by_kind": dict(self.bytes_by_kind),
            "causes": [one.to_dict() for one in self.causes],
        }


def host_layer(graph: Graph, part: Part) -> LayerResult:
    """Of a stage on the host."""
    return LayerResult(
        name=part.stage.name,
        operator=part.stage.operators(),
        where=part.where,
        reason=part.reason,
        macs=part.stage.macs(graph),
        cycles=None,
        bound_by=None,
        bytes_by_kind={},
        macs_per_cycle=0,
    )


def machine_layers(
    graph: Graph, chain: Chain, result: Result, *, program: int, causes: bool = False
) -> list[LayerResult]:
    """Of the stages of a chain.

    A layer's cycles go from the last retirement of the layer before to its own, so that they sum up to those
    of the run; the last layer's go to its end.

    Args:
        graph: the stages'.
        chain: that ran.
        result: of the run.
        program: the number of the chain, from 1.
        causes: find the critical path.
    """
    begins = [0, *chain.ends[:-1]]
    cycles = layer_cycles(chain, result.timing)
    why: list[list[Segment]] = [[] for _ in cycles]
    path = result.critical_path() if causes else None
    if path is not None and None not in cycles:
        why = cut(path, list(accumulate(one or 0 for one in cycles)))
    found, at = [], 0
    for part in chain.parts:
        if not part.on_machine:
            found.append(host_layer(graph, part))
            continue
        inside = result.instructions[begins[at] : chain.ends[at]]
        found.append(
            LayerResult(
                name=part.stage.name,
                operator=part.stage.operators(),
                where=part.where,
                reason="",
                macs=part.stage.macs(graph),
                cycles=cycles[at],
                bound_by=_bound_by(inside, cycles[at], result.config),
                bytes_by_kind=bytes_moved(inside, result.config),
                macs_per_cycle=result.config.macs_per_cycle,
                causes=tuple(shares(why[at])),
                mapping=part.mapping,
                alone=part.alone,
                program=program,
            )
        )
        at += 1
    return found


def _bound_by(instructions: Sequence[Instruction], cycles: int | None, config: Config) -> str | None:
    """What holds a layer back: the unit whose micro-ops, or bytes at the bus's speed, fill its cycles."""
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


def layer_cycles(chain: Chain, timing: Timing | None) -> list[int] | list[None]:
    """The cycles of each layer of a chain, as :func:`machine_layers` counts them; None where they are not
    known.

    Args:
        chain: that ran.
        timing: what is known of the run's cycles.
    """
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
    return [now - before for before, now in zip([0, *last], last, strict=False)]


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkResult:
    """A finished run of a network.

    Attributes:
        graph: what ran.
        config: the machine.
        backend: what ran it.
        macs: nominal MACs of convolutions and products.
        host_macs: those of them that the host did.
        tensors: inputs and what the stages made, by name, in the graph's shapes and dtypes.
        layers: the stages, in order.
        cycles: of all programs; None if time was not simulated.
        mismatches: of tensors that are not the graph's, how many values differ; None if nothing was compared.
        packing: what the host did around the layers.
        compile_seconds: that compiling took; None if it is not known.
        simulate_seconds: that the run took, host and machine together.
        runs: of each program in order all that happened, as views draw it; none if it was not recorded.
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
        """The main figures in a line."""
        parts = [f"{self.backend} on {self.config.label}"]
        if self.cycles is not None:
            parts.append(f"{self.cycles} cycles")
        if self.utilization is not None:
            parts.append(f"utilization {self.utilization:.1%}")
        parts.append("not compared" if self.mismatches is None else f"{self.wrong} mismatches")
        return f"NetworkResult({', '.join(parts)})"

    @property
    def outputs(self) -> dict[str, Array]:
        """The graph's outputs by name."""
        constants = self.graph.constants
        return {
            name: self.tensors[name] if name in self.tensors else constants[name]
            for name in self.graph.outputs
        }

    @property
    def wrong(self) -> int | None:
        """Values that differ, of all tensors; None if nothing was compared."""
        return None if self.mismatches is None else sum(self.mismatches.values())

    @property
    def utilization(self) -> float | None:
        """Nominal MACs on the machine over those that it could have done in all cycles."""
        if not self.cycles:
            return None
        done = self.macs - self.host_macs
        return done / (self.cycles * self.config.macs_per_cycle)

    @property
    def bytes_by_kind(self) -> dict[str, int]:
        """Bytes that instructions moved, by memory."""
        total: Counter[str] = Counter()
        for layer in self.layers:
            total.update(layer.bytes_by_kind)
        return dict(total)

    def critical_path(self) -> tuple[Segment, ...] | None:
        """Why the run took as many cycles: segments in order of time that sum up to
        :attr:`~accel.network.result.NetworkResult.cycles`.

        Instructions are numbered in their own program; programs run one behind the other.

        Returns:
            See :class:`~accel.run.critical.Segment`; None if not all that happened was kept
            (``run(record=True)``), or time was not simulated.
        """
        paths = [path for run in self.runs if (path := run.critical_path()) is not None]
        return joined(paths) if paths else None

    def layer_of(self, cycle: int) -> LayerResult | None:
        """The layer that a cycle went to, of all programs one behind the other; None if that is not known."""
        return layer_at(self.layers, cycle)

    def raise_if_wrong(self) -> None:
        """Raise if a tensor differs from the graph's.

        Raises:
            MismatchError: naming the first one.
        """
        if self.mismatches:
            name, count = next(iter(self.mismatches.items()))
            raise MismatchError(
                f"{count} of {self.tensors[name].size} values of tensor {name!r} differ from the graph's "
                f"evaluation, the first of {len(self.mismatches)} such tensors"
            )

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        return {
            "backend": self.backend,
            "config": self.config.label,
            "cycles": self.cycles,
            "utilization": self.utilization,
            "macs": self.macs,
            "host_macs": self.host_macs,
            "mismatches": self.wrong,
            "bytes_by_kind": self.bytes_by_kind,
            "packing": self.packing.to_dict(),
            "compile_seconds": self.compile_seconds,
            "simulate_seconds": self.simulate_seconds,
            "layers": [layer.to_dict() for layer in self.layers],
        }
