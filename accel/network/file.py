"""The file of a compiled network: graph, constants once each, programs, and where every stage runs.

A zip archive as a program's file is. Its manifest has the format ``accel-network``; ``constants/N.bin`` are
the graph's constants as they lie in memory, little-endian, and ``chains/N/`` holds a program's members.
Programs take the constants as inputs, so that their packing is made when they are loaded.
"""

import io
import json
import reprlib
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from accel.base.arguments import check_path
from accel.base.errors import AccelError, ProgramError
from accel.base.files import write_atomically
from accel.core.config import from_dict
from accel.graph.data import graph_to_data
from accel.graph.graph import Graph, Node
from accel.image.archive import Archive, damage, is_archive, write_archive
from accel.image.image import NETWORK_FORMAT
from accel.image.manifest import read_entry
from accel.network.arrange import Arrangement
from accel.network.chain import Chain
from accel.network.choose import Choice, Where
from accel.network.graph_file import constant_members, read_graph
from accel.network.lower import Operand
from accel.network.memory import Lifetime, MemoryPlan
from accel.network.place import Part
from accel.network.program import NetworkProgram
from accel.network.stage import Stage
from accel.run.program import Program

VERSION = 1
"""Of the file; newer ones are refused."""


def save_network(program: NetworkProgram, path: str | Path) -> None:
    """Write a network; on an error nothing is left behind.

    Raises:
        ProgramError: it cannot be written.
    """
    target = check_path("network", path)
    graph = program.graph
    members = constant_members(graph)
    steps: list[dict[str, Any]] = []
    numbers = {node.output: number for number, node in enumerate(graph.nodes)}
    for step in program.steps:
        if isinstance(step, Part):
            steps.append({"parts": [_part_to_data(step, numbers)], "chain": None})
            continue
        manifest, inside = step.program.contents()
        prefix = _chain_prefix(len(steps))
        members += [(prefix + name, content) for name, content in inside]
        steps.append(
            {
                "parts": [_part_to_data(part, numbers) for part in step.parts],
                "chain": {
                    "program": manifest,
                    "operands": [_operand_to_data(called, one) for called, one in step.operands.items()],
                    "outputs": step.outputs,
                    "ends": list(step.ends),
                    "memory": _memory_to_data(step.memory),
                    "compared": dict(step.compared),
                },
            }
        )
    data = {
        "format": NETWORK_FORMAT,
        "version": VERSION,
        "config": program.config.to_dict(),
        "compile_seconds": program.compile_seconds,
        "graph": graph_to_data(graph),
        "steps": steps,
        "choices": [choice.to_dict() for choice in program.choices],
        "arrangements": [one.to_dict() for one in program.arrangements],
    }
    buffer = io.BytesIO()
    write_archive(buffer, json.dumps(data).encode(), members)
    write_atomically(target, buffer.getvalue())


def load_network(path: str | Path) -> NetworkProgram:
    """Read a network.

    Raises:
        ProgramError: it cannot be read, is damaged, no network's file, or from a newer version.
    """
    source = check_path("network", path)
    name = f"network {str(path)!r}"
    try:
        with open(source, "rb") as file:
            if not is_archive(file):
                raise ProgramError(f"{name} is no network's file; 'accel compile onnx' writes such files")
            return _read(name, file)
    except OSError as error:
        raise ProgramError(f"{name} cannot be read: {error.strerror}") from None


def single_program(network: NetworkProgram, path: str) -> Program:
    """The one program of a network, its constants in it.

    Args:
        network: from a file.
        path: of the file, for errors.

    Raises:
        ProgramError: it has several, or none.
    """
    if len(network.chains) != 1:
        raise ProgramError(
            f"network {path!r} has {len(network.chains)} programs, with the host in between; 'accel run' and "
            "'accel show' take it"
        )
    return network.chains[0].whole(network.graph)


def _read(name: str, file: IO[bytes]) -> NetworkProgram:
    try:
        return _parse(Archive(file))
    except AccelError as error:
        raise ProgramError(f"{name}: {error}") from None
    except Exception as error:  # what is read fails at damage in too many ways to list
        raise ProgramError(f"{name} is damaged: {damage(error)}") from None


def _parse(archive: Archive) -> NetworkProgram:
    data = archive.manifest()
    if not isinstance(data, dict) or data.get("format") != NETWORK_FORMAT:
        raise ProgramError("it holds no network")
    version = read_entry(data, "version", int)
    if not 1 <= version <= VERSION:
        raise ProgramError(f"its format version is {version}; this release reads up to {VERSION}")
    graph = read_graph(data, archive)
    steps: list[Chain | Part] = []
    for number, one in enumerate(read_entry(data, "steps", list)):
        parts = tuple(_part(graph, part) for part in read_entry(one, "parts", list))
        if one.get("chain") is None:
            steps += parts
        else:
            steps.append(_chain(graph, one["chain"], parts, archive, _chain_prefix(number)))
    program = NetworkProgram(
        graph=graph,
        config=from_dict(read_entry(data, "config", dict)),
        steps=tuple(steps),
        choices=tuple(Choice.from_dict(one) for one in data.get("choices", [])),
        arrangements=tuple(Arrangement.from_dict(one) for one in data.get("arrangements", [])),
        compile_seconds=data.get("compile_seconds"),
    )
    _check(program)
    return program


def _check(program: NetworkProgram) -> None:
    """Refuse steps that do not compute the graph.

    Raises:
        ProgramError: a node is missing or there twice, or a chain's tensors are not the graph's.
    """
    graph = program.graph
    done = [node.output for part in program.parts for node in part.stage.nodes]
    if sorted(done) != sorted(node.output for node in graph.nodes):
        raise ProgramError("its stages are not the nodes of its graph, each once")
    for chain in program.chains:
        if chain.program.config != program.config:
            raise ProgramError("its programs are for other machines than it is itself")
        known = {tensor.name: tensor for tensor in chain.program.tensors}
        inputs = {name for name, one in known.items() if one.role == "input"}
        outputs = {name for name, one in known.items() if one.role == "output"}
        if inputs != chain.operands.keys() or outputs != chain.outputs.keys():
            raise ProgramError("the tensors of a program are not those of its network")
        for called, operand in chain.operands.items():
            size = int(np.prod(operand.shape))
            if known[called].shape != operand.shape or (
                not operand.made and graph.tensors[operand.tensor].size * operand.copies != size
            ):
                raise ProgramError(f"tensor {operand.tensor!r} does not fit its program")
        for called, name in chain.outputs.items():
            if int(np.prod(known[called].shape)) != graph.tensors[name].size:
                raise ProgramError(f"tensor {name!r} does not fit its program")
        count = len(chain.program.instructions)
        if len(chain.ends) != len(chain.layers) or list(chain.ends) != sorted(chain.ends):
            raise ProgramError("a program has not as many layers as its network says")
        if not chain.ends or chain.ends[-1] != count:
            raise ProgramError(f"the layers of a program end at {chain.ends}; it has {count} instructions")


# --- parts -----------------------------------------------------------------------------------------


def _part_to_data(part: Part, numbers: dict[str, int]) -> dict[str, Any]:
    stage = part.stage

    def number(node: Node | None) -> int | None:
        return None if node is None else numbers[node.output]

    return {
        "main": number(stage.main),
        "pad": number(stage.pad),
        "clips": [number(node) for node in stage.clips],
        "addition": number(stage.addition),
        "sum_clips": [number(node) for node in stage.sum_clips],
        "where": part.where,
        "reason": part.reason,
        "mapping": part.mapping,
        "alone": part.alone,
    }


def _part(graph: Graph, data: Any) -> Part:
    def node(number: Any) -> Node:
        if type(number) is not int or not 0 <= number < len(graph.nodes):
            raise ProgramError(f"a stage has node {reprlib.repr(number)}; there are {len(graph.nodes)}")
        return graph.nodes[number]

    def optional(key: str) -> Node | None:
        return None if data.get(key) is None else node(data[key])

    where: str = read_entry(data, "where", str)
    if where not in ("machine", "host"):
        raise ProgramError(f"a stage is on {where!r}; it must be on the machine or the host")
    placed: Where = "machine" if where == "machine" else "host"
    return Part(
        stage=Stage(
            main=node(data.get("main")),
            pad=optional("pad"),
            clips=tuple(map(node, read_entry(data, "clips", list))),
            addition=optional("addition"),
            sum_clips=tuple(map(node, read_entry(data, "sum_clips", list))),
        ),
        where=placed,
        reason=read_entry(data, "reason", str),
        mapping=read_entry(data, "mapping", str) if "mapping" in data else "",
        alone=None if data.get("alone") is None else read_entry(data, "alone", int),
    )


def _chain(graph: Graph, data: Any, parts: tuple[Part, ...], archive: Archive, prefix: str) -> Chain:
    program = Program.from_contents(read_entry(data, "program", dict), archive, prefix)
    operands = dict(_operand(graph, one) for one in read_entry(data, "operands", list))
    outputs = read_entry(data, "outputs", dict)
    for name in outputs.values():
        if name not in graph.tensors:
            raise ProgramError(f"{reprlib.repr(name)} is no tensor of its graph")
    ends = read_entry(data, "ends", list)
    if any(type(end) is not int for end in ends):
        raise ProgramError("the layers of a program end at what is no number")
    return Chain(
        parts=parts,
        program=program,
        operands=operands,
        outputs=outputs,
        ends=tuple(ends),
        memory=_memory(read_entry(data, "memory", dict)),
        compared={name: read_entry(data["compared"], name, int) for name in data.get("compared", {})},
    )


def _operand_to_data(called: str, operand: Operand) -> dict[str, Any]:
    return {
        "input": called,
        "name": operand.name,
        "tensor": operand.tensor,
        "shape": list(operand.shape),
        "copies": operand.copies,
        "axis": operand.axis,
        "groups": operand.groups,
        "whole": list(operand.whole),
        "made": list(operand.made),
    }


def _operand(graph: Graph, data: Any) -> tuple[str, Operand]:
    called, name, tensor = (read_entry(data, key, str) for key in ("input", "name", "tensor"))
    shape = read_entry(data, "shape", list)
    if tensor not in graph.tensors:
        raise ProgramError(f"{tensor!r} is no tensor of its graph")
    copies, axis, groups = (read_entry(data, key, int) for key in ("copies", "axis", "groups"))
    whole = read_entry(data, "whole", list)
    if any(type(size) is not int for size in [*shape, *whole]):
        raise ProgramError(f"the shape of {tensor!r} is {reprlib.repr(shape)}")
    divided = 0 <= axis < len(whole) and groups > 0 and whole[axis] % groups == 0
    if copies < 1 or (copies > 1 and tensor not in graph.constants and not divided):
        raise ProgramError(f"{tensor!r} is taken {copies} times along axis {axis} in {groups} groups")
    made = data.get("made", [])
    if not isinstance(made, list) or any(type(value) is not int for value in made):
        raise ProgramError(f"what was made for {tensor!r} is no list of integers")
    if made and len(made) not in (prod(shape), shape[0] if len(shape) == 2 else 0):
        raise ProgramError(f"what was made for {tensor!r} are {len(made)} values; its shape is {shape}")
    return called, Operand(
        name=name,
        tensor=tensor,
        shape=tuple(shape),
        copies=copies,
        axis=axis,
        groups=groups,
        whole=tuple(whole),
        made=tuple(made),
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
            for one in memory.lifetimes
        ],
    }


def _memory(data: Any) -> MemoryPlan:
    tensors = read_entry(data, "tensors", list)
    lifetimes = tuple(
        Lifetime(
            name=read_entry(one, "name", str),
            nbytes=read_entry(one, "bytes", int),
            first=read_entry(one, "first", int),
            last=read_entry(one, "last", int),
        )
        for one in tensors
    )
    return MemoryPlan(
        lifetimes=lifetimes,
        offsets={one["name"]: read_entry(one, "offset", int) for one in tensors},
        nbytes=read_entry(data, "bytes", int),
        bound=read_entry(data, "bound", int),
    )


def _chain_prefix(number: int) -> str:
    return f"chains/{number}/"
