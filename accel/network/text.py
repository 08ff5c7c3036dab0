"""Networks as text: the graph, its stages, where they run, and where tensors lie."""

from collections.abc import Iterator

from accel.graph.graph import Graph, Node
from accel.graph.tensor import Tensor
from accel.image.source import PLAIN
from accel.network.chain import Chain
from accel.network.choose import savings
from accel.network.memory import MemoryPlan
from accel.network.place import Part
from accel.network.program import NetworkProgram

STAGES = ("graph", "fused", "placed", "memory")
"""What :func:`network_text` shows."""
_WIDTH = 64
"""Columns of a picture of memory."""


def network_text(program: NetworkProgram, stage: str) -> str:
    """A network at one stage of its compilation, lines with their ends.

    Args:
        program: the network.
        stage: one of :data:`STAGES`.
    """
    lines = {"graph": _graph, "fused": _fused, "placed": _placed, "memory": _memory}[stage](program)
    return "".join(f"{line}\n" for line in lines)


def _graph(program: NetworkProgram) -> Iterator[str]:
    graph = program.graph
    for name in graph.inputs:
        yield f"input   {_tensor(graph.tensors[name])}"
    for node in graph.nodes:
        yield _node(graph, node)
    for name in graph.outputs:
        yield f"output  {_tensor(graph.tensors[name])}"


def _node(graph: Graph, node: Node) -> str:
    inputs = ", ".join(repr(name) for name in node.inputs if name not in graph.constants)
    macs = graph.macs(node)
    counted = f"  {macs:,} MACs" if macs else ""
    return (
        f"{node.operator.kind:<18} {_tensor(graph.tensors[node.output])}  of {inputs or 'constants'}{counted}"
    )


def _tensor(tensor: Tensor) -> str:
    found = f"{tensor.name!r} {tensor.dtype}{list(tensor.shape)}"
    one = tensor.quantization
    if one is None:
        return found
    scale = f"{one.scale[0]:.6g}" if len(one.scale) == 1 else f"{len(one.scale)} scales"
    zeros = set(one.zero)
    zero = next(iter(zeros)) if len(zeros) == 1 else f"{len(zeros)} zero points"
    return f"{found} ({scale}, {zero})"


def _fused(program: NetworkProgram) -> Iterator[str]:
    for part in program.parts:
        stage = part.stage
        inputs = [name for name in stage.inputs if name not in program.graph.constants]
        yield f"{stage.operators():<28} {stage.name!r}: {', '.join(map(repr, inputs))} -> {stage.output!r}"
    yield from _choices(program)


def choices_text(program: NetworkProgram) -> str:
    """What was compared where nodes could be fused or placed in several ways, lines with their ends."""
    return "".join(f"{line}\n" for line in _choices(program))


def _choices(program: NetworkProgram) -> Iterator[str]:
    for choice in program.choices:
        told = f"; fusion saves {choice.saved}" if choice.saved.cycles else ""
        yield f"{choice.name!r}, by predicted cycles{told}"
        for number, one in enumerate(choice.alternatives):
            cost = "not possible" if one.cost is None else str(one.cost)
            remark = " (taken)" if not number else f" ({one.refused})" if one.refused else ""
            yield f"  {', '.join(one.stages)}: {cost}{remark}"
    for arrangement in program.arrangements:
        yield f"{arrangement.name!r}, by predicted cycles of the layer and of exchanges of rows around it"
        for number, way in enumerate(arrangement.considered):
            taken = " (taken)" if not number else ""
            yield f"  {way.mapping}: {way.cycles:,} + {way.exchange:,}{taken}"
    total = savings(program.choices)
    if total.cycles:
        yield f"all fusions save {total}, predicted"


def _placed(program: NetworkProgram) -> Iterator[str]:
    number = 0
    for step in program.steps:
        if isinstance(step, Part):
            yield _part(program, step)
            continue
        number += 1
        count = len(step.program.instructions)
        yield f"program {number}: {len(step.layers)} layers, {count:,} instructions"
        for way, cycles in step.compared.items():
            taken = " (taken)" if cycles == min(step.compared.values()) else ""
            yield f"  LOADs wait {way}: {cycles:,} cycles{taken}"
        for part in step.parts:
            yield f"  {_part(program, part)}"
    share = f"{program.machine_share:.2%} of {program.macs:,} MACs"
    yield f"on the machine ({program.config.label}): {share}"


def _part(program: NetworkProgram, part: Part) -> str:
    macs = part.stage.macs(program.graph)
    share = f"  {macs / program.macs:.1%} of MACs" if macs and program.macs else ""
    reason = f"  ({part.reason})" if part.reason else ""
    mapping = f"  {part.mapping}" if part.mapping not in ("", PLAIN) else ""
    return f"{part.where:<8} {part.stage.operators():<28} {part.stage.name!r}{share}{mapping}{reason}"


def _memory(program: NetworkProgram) -> Iterator[str]:
    for number, chain in enumerate(program.chains, start=1):
        plan = chain.memory
        yield (
            f"program {number}: {chain.program.size:,} bytes of DRAM, of these {plan.nbytes:,} for tensors "
            f"between layers; none below {plan.bound:,}"
        )
        yield from _picture(chain, plan)


def _picture(chain: Chain, plan: MemoryPlan) -> Iterator[str]:
    """One line for each layer: what of the pool holds which tensor while it runs."""
    if not plan.nbytes:
        return
    letters = {one.name: _letter(number) for number, one in enumerate(plan.lifetimes)}
    for one in plan.lifetimes:
        yield f"  {letters[one.name]}  {one.name!r}: {one.nbytes:,} bytes at {plan.offsets[one.name]:#x}"
    for step, part in enumerate(chain.layers):
        row = ["."] * _WIDTH
        for one in plan.lifetimes:
            if one.first <= step <= one.last:
                begin = plan.offsets[one.name] * _WIDTH // plan.nbytes
                end = -(-(plan.offsets[one.name] + one.nbytes) * _WIDTH // plan.nbytes)
                row[begin:end] = letters[one.name] * (end - begin)
        yield f"  |{''.join(row)}| {part.stage.name!r}"


def _letter(number: int) -> str:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    return letters[number % len(letters)]
