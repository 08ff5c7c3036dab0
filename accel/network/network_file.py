"""Files of compiled networks.

The zip archive has a manifest of the format ``accel-network``, with graph and placement. ``constants/N.bin``
are the graph's constants, little-endian. ``chains/N/`` holds the members of a program. Programs read
constants as inputs.
"""

import io
import json
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from accel.base.arguments import check_path
from accel.base.atomic_files import write_atomically
from accel.base.errors import AccelError, ProgramError
from accel.core.config import from_dict
from accel.graph.graph_serialization import graph_to_data
from accel.image.image import NETWORK_FORMAT
from accel.image.manifest_entries import read_entry, read_object
from accel.image.zip_archive import Archive, damage, is_archive, write_archive
from accel.network.chained_program import Chain
from accel.network.fusion_report import FusionChoice
from accel.network.graph_file import constant_members, read_graph
from accel.network.host_regions import check_foreign
from accel.network.layout_choice import LayoutChoice
from accel.network.move_choice import MoveChoice
from accel.network.network_data import (
    chain_from_data,
    chain_to_data,
    part_from_data,
    part_to_data,
    search_from_data,
)
from accel.network.network_part import NetworkPart
from accel.network.network_program import NetworkProgram
from accel.network.partition import PartitionSummary
from accel.run.program import Program

VERSION = 1


def save_network(program: NetworkProgram, path: str | Path) -> None:
    """Write a compiled network, all or nothing.

    Raises:
        ProgramError: the file cannot be written.
    """
    target = check_path("network", path)
    write_atomically(target, network_bytes(program))


def network_bytes(program: NetworkProgram) -> bytes:
    """Return a file's content."""
    graph = program.graph
    members = constant_members(graph)
    steps: list[dict[str, Any]] = []
    numbers = {node.output: number for number, node in enumerate(graph.nodes)}
    for step in program.steps:
        if isinstance(step, NetworkPart):
            steps.append({"parts": [part_to_data(step, numbers)], "chain": None})
            continue
        manifest, program_members = step.program.contents()
        prefix = _chain_prefix(len(steps))
        members += [(prefix + name, content) for name, content in program_members]
        steps.append(
            {
                "parts": [part_to_data(part, numbers) for part in step.parts],
                "chain": chain_to_data(step, manifest),
            }
        )
    data = {
        "format": NETWORK_FORMAT,
        "version": VERSION,
        "config": program.config.to_dict(),
        "graph": graph_to_data(graph),
        "steps": steps,
        "choices": [choice.to_dict() for choice in program.choices],
        "arrangements": [one.to_dict() for one in program.arrangements],
        "partition": None if program.partition is None else program.partition.to_dict(),
        **({"moves": [one.to_dict() for one in program.moves]} if program.moves else {}),
        **({} if program.rewriting is None else {"rewriting": program.rewriting.to_dict()}),
    }
    buffer = io.BytesIO()
    write_archive(buffer, json.dumps(data).encode(), members)
    return buffer.getvalue()


def load_network(path: str | Path) -> NetworkProgram:
    """Read a compiled network.

    Raises:
        ProgramError: the file cannot be read, is damaged, not a network file, or of a newer version.
    """
    source = check_path("network", path)
    name = f"network {str(path)!r}"
    try:
        with open(source, "rb") as file:
            if not is_archive(file):
                raise ProgramError(f"{name} is not a network file; 'accel compile onnx' writes such files")
            return _read(name, file)
    except OSError as error:
        raise ProgramError(f"{name} cannot be read: {error.strerror}") from None


def network_from_bytes(content: bytes) -> NetworkProgram:
    """Raise a ProgramError for damaged content, or a newer version."""
    return _read("network", io.BytesIO(content))


def single_program(network: NetworkProgram, path: str) -> Program:
    if len(network.chains) != 1:
        raise ProgramError(
            f"network {path!r} has {len(network.chains)} programs, with the host in between; 'accel run' and "
            "'accel show' take it"
        )
    return network.chains[0].with_constants(network.graph)


def _read(name: str, file: IO[bytes]) -> NetworkProgram:
    try:
        return _parse(Archive(file))
    except AccelError as error:
        raise ProgramError(f"{name}: {error}") from None
    except Exception as error:  # damaged data raises exceptions of many types
        raise ProgramError(f"{name} is damaged: {damage(error)}") from None


def _parse(archive: Archive) -> NetworkProgram:
    data = archive.manifest()
    if not isinstance(data, dict) or data.get("format") != NETWORK_FORMAT:
        raise ProgramError("it holds no network")
    version = read_entry(data, "version", int)
    if not 1 <= version <= VERSION:
        raise ProgramError(f"its format version is {version}; this release reads up to {VERSION}")
    graph = read_graph(data, archive)
    check_foreign(graph)
    steps: list[Chain | NetworkPart] = []
    for number, one in enumerate(read_entry(data, "steps", list)):
        parts = tuple(part_from_data(graph, part) for part in read_entry(one, "parts", list))
        if one.get("chain") is None:
            steps += parts
        else:
            program = Program.from_contents(
                read_entry(one["chain"], "program", dict), archive, _chain_prefix(number)
            )
            steps.append(chain_from_data(graph, one["chain"], parts, program))
    network = NetworkProgram(
        graph=graph,
        config=from_dict(read_entry(data, "config", dict)),
        steps=tuple(steps),
        choices=tuple(FusionChoice.from_dict(one) for one in data.get("choices", [])),
        arrangements=tuple(LayoutChoice.from_dict(one) for one in data.get("arrangements", [])),
        partition=read_object(data, "partition", PartitionSummary.from_dict),
        moves=tuple(MoveChoice.from_dict(one) for one in data.get("moves", [])),
        rewriting=read_object(data, "rewriting", partial(search_from_data, graph)),
        compile_seconds=data.get("compile_seconds"),
    )
    _check(network)
    return network


def _check(network: NetworkProgram) -> None:
    graph = network.graph
    outputs = [node.output for part in network.parts for node in part.fused.nodes]
    if sorted(outputs) != sorted(node.output for node in graph.nodes):
        raise ProgramError("its layers do not contain each node of its graph exactly once")
    for chain in network.chains:
        if chain.program.config != network.config:
            raise ProgramError("its programs are for another machine than the network")
        tensors = {tensor.name: tensor for tensor in chain.program.tensors}
        inputs = {name for name, one in tensors.items() if one.role == "input"}
        results = {name for name, one in tensors.items() if one.role == "output"}
        if inputs != chain.operands.keys() or results != chain.outputs.keys():
            raise ProgramError("the tensors of a program are not those of its network")
        for name, operand in chain.operands.items():
            size = int(np.prod(operand.shape))
            fits = operand.generated or graph.tensors[operand.tensor].size * operand.copies == size
            if tensors[name].shape != operand.shape or not fits:
                raise ProgramError(f"tensor {operand.tensor!r} does not fit its program")
        for output, name in chain.outputs.items():
            if int(np.prod(tensors[output].shape)) != graph.tensors[name].size:
                raise ProgramError(f"tensor {name!r} does not fit its program")
        count = len(chain.program.instructions)
        if len(chain.ends) != len(chain.layers) or list(chain.ends) != sorted(chain.ends):
            raise ProgramError(
                f"a program has the ends {chain.ends} of {len(chain.layers)} layers; they must ascend"
            )
        if not chain.ends or chain.ends[-1] != count:
            raise ProgramError(f"the layers of a program end at {chain.ends}; it has {count} instructions")


def _chain_prefix(number: int) -> str:
    return f"chains/{number}/"
