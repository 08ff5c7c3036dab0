"""Networks as text."""

from collections.abc import Iterator

from accel.graph.graph import Graph, Node
from accel.graph.graph_tensor import Tensor
from accel.image.program_source import PLAIN
from accel.network.chained_program import Chain
from accel.network.fusion_report import total_savings
from accel.network.memory_plan import MemoryPlan
from accel.network.network_part import NetworkPart
from accel.network.network_program import NetworkProgram
from accel.network.wait_strategies import WAIT_TEXTS

_MEMORY_COLUMNS = 64
_CHOSEN = " (chosen)"


def network_text(program: NetworkProgram, stage: str) -> str:
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
    if graph.tail is not None:
        made = [name for name in graph.result_names if name not in graph.outputs]
        inputs, results = (", ".join(map(repr, names)) for names in (graph.tail.inputs, made))
        yield f"after the graph: {', '.join(graph.tail.kinds)} of {inputs} -> {results}"


def _node(graph: Graph, node: Node) -> str:
    inputs = ", ".join(repr(name) for name in node.inputs if name not in graph.constants)
    macs = graph.macs(node)
    macs_text = f"  {macs:,} MACs" if macs else ""
    out = _tensor(graph.tensors[node.output])
    return f"{node.operator.kind:<18} {out}  of {inputs or 'constants'}{macs_text}"


def _tensor(tensor: Tensor) -> str:
    text = f"{tensor.name!r} {tensor.dtype}{list(tensor.shape)}"
    quantization = tensor.quantization
    if quantization is None:
        return text
    scales, zeros = quantization.scale, set(quantization.zero)
    scale = f"{scales[0]:.6g}" if len(scales) == 1 else f"{len(scales)} scales"
    zero = next(iter(zeros)) if len(zeros) == 1 else f"{len(zeros)} zero points"
    return f"{text} ({scale}, {zero})"


def _fused(program: NetworkProgram) -> Iterator[str]:
    for part in program.parts:
        fused = part.fused
        inputs = [name for name in fused.inputs if name not in program.graph.constants]
        yield f"{fused.operators():<28} {fused.name!r}: {', '.join(map(repr, inputs))} -> {fused.output!r}"
    yield from _choices(program)


def choices_text(program: NetworkProgram) -> str:
    return "".join(f"{line}\n" for line in _choices(program))


def _choices(program: NetworkProgram) -> Iterator[str]:
    if program.rewriting is not None:
        yield f"rewritten by {program.rewriting.search}: {program.rewriting.describe()}"
    for choice in program.choices:
        savings = f"; fusion saves {choice.saved}" if choice.saved.cycles else ""
        yield f"{choice.name!r}: predicted cycles of each alternative{savings}"
        for number, one in enumerate(choice.alternatives):
            cost = "not supported" if one.cost is None else str(one.cost)
            remark = _CHOSEN if not number else f" ({one.refused})" if one.refused else ""
            yield f"  {', '.join(one.stages)}: {cost}{remark}"
    for move in program.moves:
        yield f"{move.name!r}: predicted cycles of the layers around each form of the move"
        for number, (form, cycles) in enumerate(move.alternatives):
            yield f"  {form}: {cycles:,}{'' if number else _CHOSEN}"
    for layouts in program.arrangements:
        yield f"{layouts.name!r}: predicted cycles of the layer + of row exchanges before and after it"
        for number, mapping in enumerate(layouts.alternatives):
            remark = "" if number else _CHOSEN
            yield f"  {mapping.mapping}: {mapping.cycles:,} + {mapping.exchange:,}{remark}"
    total = total_savings(program.choices)
    if total.cycles:
        yield f"all fusions together save {total}, predicted"


def _placed(program: NetworkProgram) -> Iterator[str]:
    number = 0
    for step in program.steps:
        if isinstance(step, NetworkPart):
            yield _part(program, step)
            continue
        number += 1
        count = len(step.program.instructions)
        yield f"program {number}: {len(step.layers)} layers, {count:,} instructions"
        for strategy, cycles in step.compared.items():
            remark = _CHOSEN if cycles == min(step.compared.values()) else ""
            yield f"  LOADs wait {WAIT_TEXTS.get(strategy, strategy)}: {cycles:,} cycles{remark}"
        for part in step.parts:
            yield f"  {_part(program, part)}"
    if program.partition is not None:
        yield f"programs: {number}; {program.partition.describe()}"
    tail = program.graph.tail
    if tail is not None:
        yield f"{'host':<8} {', '.join(tail.kinds)}  (after each run; its shapes depend on values)"
    share = f"{program.machine_share:.2%} of {program.macs:,} MACs"
    yield f"on the machine ({program.config.label}): {share}"


def _part(program: NetworkProgram, part: NetworkPart) -> str:
    macs = part.fused.macs(program.graph)
    share = f"  {macs / program.macs:.1%} of MACs" if macs and program.macs else ""
    reason = f"  ({part.reason})" if part.reason else ""
    mapping = f"  {part.mapping}" if part.mapping not in ("", PLAIN) else ""
    return f"{part.where:<8} {part.fused.operators():<28} {part.fused.name!r}{share}{mapping}{reason}"


def _memory(program: NetworkProgram) -> Iterator[str]:
    for number, chain in enumerate(program.chains, start=1):
        plan = chain.memory
        yield (
            f"program {number}: {chain.program.size:,} bytes of DRAM, {plan.nbytes:,} of them for tensors "
            f"between layers; no plan needs less than {plan.bound:,}"
        )
        yield from _memory_picture(chain, plan)


def _memory_picture(chain: Chain, plan: MemoryPlan) -> Iterator[str]:
    if not plan.nbytes:
        return
    letters = {one.name: _letter(number) for number, one in enumerate(plan.live_ranges)}
    for one in plan.live_ranges:
        yield f"  {letters[one.name]}  {one.name!r}: {one.nbytes:,} bytes at {plan.offsets[one.name]:#x}"
    for step, part in enumerate(chain.layers):
        row = ["."] * _MEMORY_COLUMNS
        for one in plan.live_ranges:
            if one.first <= step <= one.last:
                begin = plan.offsets[one.name] * _MEMORY_COLUMNS // plan.nbytes
                end = -(-(plan.offsets[one.name] + one.nbytes) * _MEMORY_COLUMNS // plan.nbytes)
                row[begin:end] = letters[one.name] * (end - begin)
        yield f"  |{''.join(row)}| {part.fused.name!r}"


def _letter(number: int) -> str:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    return letters[number % len(letters)]
