"""A compiled network as plain data."""

import reprlib
from math import prod
from typing import Any, get_args

from accel.base.errors import ProgramError
from accel.graph.graph import Graph, Node
from accel.image.manifest_entries import read_entry, read_object
from accel.network.chained_program import Chain
from accel.network.fused_nodes import FusedNodes
from accel.network.lowering.layer_operand import Operand
from accel.network.memory_plan import LiveRange, MemoryPlan
from accel.network.network_part import NetworkPart, Where
from accel.rewriting.search_result import (
    CompiledComparison,
    CompiledCost,
    Ending,
    SearchResult,
)
from accel.run.program import Program

_ENDINGS: tuple[Ending, ...] = get_args(Ending)


def part_to_data(part: NetworkPart, numbers: dict[str, int]) -> dict[str, Any]:
    """Convert a part."""
    fused = part.fused

    def number(node: Node | None) -> int | None:
        return None if node is None else numbers[node.output]

    return {
        "main": number(fused.main),
        "pad": number(fused.pad),
        "clips": [number(node) for node in fused.clips],
        **({} if fused.lookup is None else {"lookup": number(fused.lookup)}),
        "addition": number(fused.combination),
        "sum_clips": [number(node) for node in fused.combination_clips],
        "where": part.where,
        "reason": part.reason,
        "mapping": part.mapping,
        "alone": part.alone,
    }


def part_from_data(graph: Graph, data: Any) -> NetworkPart:
    """Invert :func:`part_to_data`."""

    def node(number: Any) -> Node:
        if type(number) is not int or not 0 <= number < len(graph.nodes):
            raise ProgramError(
                f"a layer has node {reprlib.repr(number)}; it must be in 0..{len(graph.nodes) - 1}"
            )
        return graph.nodes[number]

    def optional(key: str) -> Node | None:
        return None if data.get(key) is None else node(data[key])

    where: str = read_entry(data, "where", str)
    if where not in ("machine", "host"):
        raise ProgramError(f"a layer is on {where!r}; it must be on 'machine' or 'host'")
    placement: Where = "machine" if where == "machine" else "host"
    return NetworkPart(
        fused=FusedNodes(
            main=node(data.get("main")),
            pad=optional("pad"),
            clips=tuple(map(node, read_entry(data, "clips", list))),
            lookup=optional("lookup"),
            combination=optional("addition"),
            combination_clips=tuple(map(node, read_entry(data, "sum_clips", list))),
        ),
        where=placement,
        reason=read_entry(data, "reason", str),
        mapping=read_entry(data, "mapping", str) if "mapping" in data else "",
        alone=None if data.get("alone") is None else read_entry(data, "alone", int),
    )


def chain_to_data(chain: Chain, program: dict[str, Any]) -> dict[str, Any]:
    return {
        "program": program,
        "operands": [_operand_to_data(name, one) for name, one in chain.operands.items()],
        "outputs": chain.outputs,
        "ends": list(chain.ends),
        "memory": _memory_to_data(chain.memory),
        "compared": dict(chain.compared),
    }


def chain_from_data(graph: Graph, data: Any, parts: tuple[NetworkPart, ...], program: Program) -> Chain:
    """Invert :func:`chain_to_data`."""
    operands = dict(_operand_from_data(graph, one) for one in read_entry(data, "operands", list))
    outputs = read_entry(data, "outputs", dict)
    for name in outputs.values():
        if name not in graph.tensors:
            raise ProgramError(f"{reprlib.repr(name)} is not a tensor of its graph")
    ends = read_entry(data, "ends", list)
    if any(type(end) is not int for end in ends):
        raise ProgramError(f"the layers of a program end at {reprlib.repr(ends)}; they must be integers")
    return Chain(
        parts=parts,
        program=program,
        operands=operands,
        outputs=outputs,
        ends=tuple(ends),
        memory=_memory_from_data(read_entry(data, "memory", dict)),
        compared={name: read_entry(data["compared"], name, int) for name in data.get("compared", {})},
    )


def _operand_to_data(name: str, operand: Operand) -> dict[str, Any]:
    return {
        "input": name,
        "name": operand.name,
        "tensor": operand.tensor,
        "shape": list(operand.shape),
        "copies": operand.copies,
        "axis": operand.axis,
        "groups": operand.groups,
        "whole": list(operand.tensor_shape),
        "made": list(operand.generated),
    }


def _operand_from_data(graph: Graph, data: Any) -> tuple[str, Operand]:
    program_input, name, tensor = (read_entry(data, key, str) for key in ("input", "name", "tensor"))
    shape = read_entry(data, "shape", list)
    if tensor not in graph.tensors:
        raise ProgramError(f"{tensor!r} is not a tensor of its graph")
    copies, axis, groups = (read_entry(data, key, int) for key in ("copies", "axis", "groups"))
    tensor_shape = read_entry(data, "whole", list)
    if any(type(size) is not int for size in [*shape, *tensor_shape]):
        raise ProgramError(f"the shape of {tensor!r} is {reprlib.repr(shape)}; it must be integers")
    is_divisible = 0 <= axis < len(tensor_shape) and groups > 0 and tensor_shape[axis] % groups == 0
    if copies < 1 or (copies > 1 and tensor not in graph.constants and not is_divisible):
        raise ProgramError(
            f"{tensor!r} has {copies} copies along axis {axis} in {groups} groups; "
            f"its shape is {tuple(tensor_shape)}"
        )
    generated = data.get("made", [])
    if not isinstance(generated, list) or any(type(value) is not int for value in generated):
        raise ProgramError(f"the values generated for {tensor!r} are not a list of integers")
    if generated and len(generated) not in (prod(shape), shape[0] if len(shape) == 2 else 0):
        raise ProgramError(f"there are {len(generated)} values for {tensor!r}; its shape is {tuple(shape)}")
    return program_input, Operand(
        name=name,
        tensor=tensor,
        shape=tuple(shape),
        copies=copies,
        axis=axis,
        groups=groups,
        tensor_shape=tuple(tensor_shape),
        generated=tuple(generated),
    )


def _memory_to_data(memory: MemoryPlan) -> dict[str, Any]:
    return {
        "bytes": memory.nbytes,
        "bound": memory.bound,
        "tensors": [
            {
                "name": one.name,
                "bytes": one.nbytes,
                "first": one.first,
                "last": one.last,
                "offset": memory.offsets[one.name],
            }
            for one in memory.live_ranges
        ],
    }


def _memory_from_data(data: Any) -> MemoryPlan:
    tensors = read_entry(data, "tensors", list)
    live_ranges = tuple(
        LiveRange(
            name=read_entry(one, "name", str),
            nbytes=read_entry(one, "bytes", int),
            first=read_entry(one, "first", int),
            last=read_entry(one, "last", int),
        )
        for one in tensors
    )
    return MemoryPlan(
        live_ranges=live_ranges,
        offsets={one["name"]: read_entry(one, "offset", int) for one in tensors},
        nbytes=read_entry(data, "bytes", int),
        bound=read_entry(data, "bound", int),
    )


def search_from_data(graph: Graph, data: dict[str, Any]) -> SearchResult:
    """Invert :meth:`~accel.rewriting.search_result.SearchResult.to_dict` for a compiled graph."""
    rules, ended_by = read_entry(data, "rules", dict), read_entry(data, "ended_by", str)
    ending = next((one for one in _ENDINGS if one == ended_by), None)
    if ending is None:
        raise ProgramError(
            f"a search is ended by {reprlib.repr(ended_by)}; it must be one of {', '.join(_ENDINGS)}"
        )
    return SearchResult(
        graph=graph,
        search=read_entry(data, "search", str),
        rules={name: read_entry(rules, name, int) for name in rules},
        cycles_before=read_entry(data, "cycles_before", int),
        cycles_after=read_entry(data, "cycles_after", int),
        graphs=read_entry(data, "graphs", int),
        nodes=read_entry(data, "nodes", int),
        seconds=read_entry(data, "seconds", float),
        ended_by=ending,
        compiled=read_object(data, "compiled", _comparison_from_data),
    )


def _comparison_from_data(data: dict[str, Any]) -> CompiledComparison:
    costs = [read_entry(data, name, dict) for name in ("searched", "greedy")]
    searched, greedy = (
        CompiledCost(cycles=read_entry(one, "cycles", int), programs=read_entry(one, "programs", int))
        for one in costs
    )
    return CompiledComparison(searched=searched, greedy=greedy)
