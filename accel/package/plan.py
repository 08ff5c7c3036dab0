"""From a compiled network or program to what a package does."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from accel.base.errors import GraphError, ProgramError
from accel.core.config import Config
from accel.core.faults import dram_span
from accel.core.isa import Store
from accel.graph.graph import Graph, Node
from accel.graph.tensor import Array, Tensor
from accel.image.layout import BlockDiagonal, Interleaved
from accel.image.scenario import Start
from accel.image.tensor import ImageTensor
from accel.network.chain import Chain
from accel.network.lower import Operand
from accel.network.memory import Lifetime, plan
from accel.network.place import Part
from accel.network.program import NetworkProgram
from accel.package.deployment import (
    WORKSPACE_STEP,
    Deployment,
    Detail,
    Fill,
    HostArray,
    Move,
    Pack,
    Prepare,
    Run,
    Show,
    Step,
    Stream,
    Unpack,
    copied,
    one_value,
    placed,
    row_major,
    value_bytes,
)
from accel.package.host import host_steps, lacks, moves_nothing
from accel.run.measured import cycles_of
from accel.run.program import Program

MAX_RANK = 16
"""Dimensions that the driver's loops have; ``MAX_RANK`` of ``driver/accel_network.c``."""


def deploy_network(program: NetworkProgram, name: str, *, cut: bool = False) -> Deployment:
    """What the package of a network does.

    Args:
        program: the network.
        name: of the package.
        cut: leave out nodes that the driver does not have, and what depends on them; their operands become
            outputs.

    Raises:
        GraphError: there are such nodes; with ``cut``, a program of the machine depends on one.
        ProgramError: a program cannot be packaged.
    """
    graph = program.graph
    left_out = _left_out(program, cut=cut)
    outputs = _outputs(graph, program, left_out)
    building = _Building(name, program.config, list(map(graph.tensors.__getitem__, graph.inputs)))
    _Network(graph, building, outputs).carry_out(program.steps, left_out)
    return replace(building.result(), left_out=tuple(left_out.items()))


def deploy_program(program: Program, name: str) -> Deployment:
    """What the package of a single program does.

    Args:
        program: with inputs and outputs.
        name: of the package.

    Raises:
        ProgramError: it cannot be packaged.
        ProgramFault: it may deadlock or race.
    """
    names = list(dict.fromkeys(one.name for one in program.tensors if one.role == "input"))
    known = {one.name: _like(one) for one in program.tensors}
    building = _Building(name, program.config, [known[one] for one in names])
    number = building.stream(program, cycles_of(program))
    for one in program.tensors:
        if one.role == "input":
            building.pack(one, number, one.name)
    building.step(Run(stream=number))
    outputs: list[str] = []
    for one in program.tensors:
        if one.role == "output":
            building.new(one.name, known[one.name], output=len(outputs))
            outputs.append(one.name)
            building.unpack(one, number, one.name)
    return building.result()


def example_run(program: NetworkProgram | Program) -> dict[str, Array]:
    """Random inputs, and all that a run makes of them, by name.

    Args:
        program: to run, on the functional model.
    """
    inputs = program.random_inputs()
    if isinstance(program, NetworkProgram):
        found = program.run(inputs, backend="functional", check=False)
        return {**program.graph.constants, **found.tensors}
    return {**inputs, **program.run(inputs, backend="functional", check=False).outputs}


def _like(tensor: ImageTensor) -> Tensor:
    return Tensor(name=tensor.name, shape=tensor.shape, dtype=tensor.dtype)


# --- what is left out ------------------------------------------------------------------------------


def _left_out(program: NetworkProgram, *, cut: bool) -> dict[str, str]:
    """Nodes that are not part of the package, with the reason.

    Raises:
        GraphError: there are some and ``cut`` is not given, or the machine depends on one.
    """
    graph = program.graph
    reasons = {
        node.name: reason
        for part in program.parts
        for node in part.stage.nodes
        if not part.on_machine and (reason := lacks(graph, node)) is not None
    }
    if reasons and not cut:
        listed = "; ".join(f"{name!r}: {reason}" for name, reason in reasons.items())
        raise GraphError(
            f"the package would need nodes that its driver does not have: {listed}; cutting (--cut) hands "
            "out their operands"
        )
    lost: dict[str, str] = {}
    """Tensors that there are not, by the node that is to blame."""
    found: dict[str, str] = {}
    for part in program.parts:
        for node in part.stage.nodes:
            blamed = node.name if node.name in reasons else None
            for name in node.inputs:
                blamed = blamed or lost.get(name)
            if blamed is None:
                continue
            if part.on_machine:
                raise GraphError(
                    f"the machine needs what {blamed!r} makes, which the driver does not have; the package "
                    "cannot be cut there"
                )
            lost[node.output] = blamed
            found[node.name] = reasons.get(node.name, f"it depends on {blamed!r}")
    return found


def _outputs(graph: Graph, program: NetworkProgram, left_out: Iterable[str]) -> list[str]:
    """The graph's outputs, or what is taken by nodes that are left out."""
    nodes = {node.name: node for node in graph.nodes}
    lost = {nodes[name].output for name in left_out}
    kept = [name for name in graph.outputs if name not in lost]
    for name in left_out:
        kept += [one for one in nodes[name].inputs if one not in lost and one not in graph.constants]
    missing = set(kept) - _available(program)
    if missing:
        raise GraphError(f"tensor {min(missing)!r} stays within a program; it cannot be handed out")
    return list(dict.fromkeys(kept))


def _available(program: NetworkProgram) -> set[str]:
    """Tensors that are not only within a program."""
    found = {*program.graph.inputs, *program.graph.constants}
    for step in program.steps:
        if isinstance(step, Chain):
            found.update(step.outputs.values())
            for part in step.parts:
                if not part.on_machine and part.stage.inputs[0] in found:
                    found.add(part.stage.output)
        else:
            found.add(step.stage.output)
    return found


# --- arrays and steps ------------------------------------------------------------------------------


class _Building:
    """A deployment under construction; arrays go by names."""

    def __init__(self, name: str, config: Config, inputs: Sequence[Tensor]) -> None:
        self._name = name
        self._config = config
        self._streams: list[Stream] = []
        self._arrays: dict[str, HostArray] = {}
        self._steps: list[tuple[Detail, str | None, str | None, str | None]] = []
        for number, tensor in enumerate(inputs):
            self._arrays[tensor.name] = _array(tensor, "input", number)

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def new(self, name: str, tensor: Tensor, *, output: int | None = None) -> None:
        """An array that is not there yet: of the workspace, or an output by its number."""
        assert name not in self._arrays
        place, at = ("workspace", 0) if output is None else ("output", output)
        self._arrays[name] = _array(tensor, place, at)

    def fresh(self, like: str, shape: tuple[int, ...], dtype: str) -> str:
        """A new array of the workspace, and its name."""
        name, number = like, 1
        while name in self._arrays:
            number += 1
            name = f"{like} ({number})"
        self.new(name, Tensor(name=name, shape=shape, dtype=dtype))
        return name

    def step(
        self,
        detail: Detail,
        source: str | None = None,
        target: str | None = None,
        *,
        other: str | None = None,
    ) -> None:
        """What comes next."""
        self._steps.append((detail, source, other, target))

    def stream(self, program: Program, cycles: int, layers: Sequence[str] = ()) -> int:
        """A program of the machine, which is proven; returns its number.

        Raises:
            ProgramError: it cannot run again and again, from whatever a machine holds.
            ProgramFault: it may deadlock or race.
        """
        _check_repeatable(program)
        program.check().raise_if_bad()
        self._streams.append(Stream(image=program, offset=0, cycles=cycles, layers=tuple(layers)))
        return len(self._streams) - 1

    def pack(self, tensor: ImageTensor, stream: int, source: str) -> None:
        """An array to memory, changed as the tensor says."""
        _check_rank(tensor)
        if tensor.preparation is not None:
            one = tensor.preparation
            target = self.fresh(f"{tensor.name} prepared", tensor.shape, tensor.dtype)
            detail = Prepare(
                size=prod(tensor.shape), accepted=one.accepted, bounds=one.bounds, offset=one.offset
            )
            self.step(detail, source, target)
            source = target
        if tensor.view is not None and tensor.widening is not None:
            target = self.fresh(f"{tensor.name} arranged", tensor.inner_shape, tensor.dtype)
            self.step(Show(dtype=tensor.dtype, view=tensor.view), source, target)
            source, tensor = target, replace(tensor, view=None)
        if tensor.widening is not None:
            target = self.fresh(f"{tensor.name} widened", tensor.layout.shape, tensor.dtype)
            for step in _widened(tensor, tensor.widening):
                self.step(step, None if isinstance(step, Fill) else source, target)
            source = target
        self.step(Pack(tensor=tensor, stream=stream), source)

    def unpack(self, tensor: ImageTensor, stream: int, target: str) -> None:
        """Memory to an array."""
        _check_rank(tensor)
        self.step(Unpack(tensor=tensor, stream=stream), target=target)

    def result(self) -> Deployment:
        """The whole, with a place for every array of the workspace."""
        used: dict[str, list[int]] = {}
        for at, (_, *names) in enumerate(self._steps):
            for name in names:
                if name is not None:
                    used.setdefault(name, []).append(at)
        lifetimes = [
            Lifetime(name=name, nbytes=one.nbytes, first=used[name][0], last=used[name][-1])
            for name, one in self._arrays.items()
            if one.place == "workspace" and name in used
        ]
        workspace = plan(lifetimes, WORKSPACE_STEP)
        arrays = {
            name: replace(one, at=workspace.offsets[name]) if one.place == "workspace" else one
            for name, one in self._arrays.items()
            if one.place != "workspace" or name in used
        }
        numbers = {name: number for number, name in enumerate(arrays)}
        return Deployment(
            name=self._name,
            config=self._config,
            streams=tuple(placed(self._streams)),
            arrays=tuple(arrays.values()),
            steps=tuple(
                Step(
                    detail=detail,
                    source=None if source is None else numbers[source],
                    other=None if other is None else numbers[other],
                    target=None if target is None else numbers[target],
                )
                for detail, source, other, target in self._steps
            ),
            workspace_bytes=workspace.nbytes,
        )


def _array(tensor: Tensor, place: str, at: int) -> HostArray:
    return HostArray(
        name=tensor.name,
        dtype=tensor.dtype,
        shape=tensor.shape,
        place=place,
        at=at,
        quantization=tensor.quantization,
    )


def _check_rank(tensor: ImageTensor) -> None:
    seen = 0 if tensor.view is None else max(len(tensor.view.shape), len(tensor.view.sizes))
    rank = max(len(tensor.layout.packed), len(tensor.layout.shape), seen)
    if rank > MAX_RANK:
        raise ProgramError(f"tensor {tensor.name!r} has {rank} dimensions; a package has at most {MAX_RANK}")


def _check_repeatable(program: Program) -> None:
    """Refuse what would not give the same in every run.

    Raises:
        ProgramError: it starts from a state of the machine, or writes over its own constants.
    """
    start = program.start
    if start.contents or start.tokens != Start().tokens:
        raise ProgramError(
            "the program starts from contents of scratchpads or from tokens; a package has none"
        )
    base = program.config.mem_base
    held = [(program.code_offset, program.code_offset + len(program.code))]
    held += [(offset, offset + len(content)) for offset, content in program.segments]
    for index, one in enumerate(program.instructions):
        if not isinstance(one, Store):
            continue
        low, high = (address - base for address in dram_span(one, program.config))
        if any(max(low, start) < min(high, stop) for start, stop in held):
            raise ProgramError(
                f"instruction {index} writes over constants or instructions; a package is loaded once and "
                "runs often"
            )


def _widened(tensor: ImageTensor, widening: BlockDiagonal | Interleaved) -> list[Fill | Move]:
    """An array, widened into another one."""
    nbytes = value_bytes(tensor.dtype)
    wide = tensor.layout.shape
    size = prod(wide)
    if isinstance(widening, Interleaved):
        words = np.broadcast_to(np.array(widening.words, dtype=np.int32), (widening.channels,))
        template = np.stack([np.zeros_like(words), words], axis=1)
        move = Move(value_bytes=nbytes, sizes=wide[:1], source_strides=(1,), target_strides=(2,))
        return [Fill(values=copied(template, tensor.dtype), value_bytes=nbytes, nbytes=size * nbytes), move]
    rows, columns, *rest = tensor.inner_shape
    inner = columns * prod(rest)
    steps: list[Fill | Move] = [
        Fill(values=one_value(0, tensor.dtype), value_bytes=nbytes, nbytes=size * nbytes)
    ]
    for first in range(0, rows, widening.rows):
        column = first // widening.rows % widening.merged
        steps.append(
            Move(
                value_bytes=nbytes,
                sizes=(min(widening.rows, rows - first), inner),
                source_strides=(inner, 1),
                target_strides=(inner * widening.merged, 1),
                source_start=first * inner,
                target_start=first * inner * widening.merged + column * inner,
            )
        )
    return steps


class _Network:
    """The steps of a network."""

    def __init__(self, graph: Graph, building: _Building, outputs: Sequence[str]) -> None:
        self._graph = graph
        self._building = building
        self._outputs = outputs
        self._roots: dict[str, str] = {}
        """Tensors that are others under another name."""

    def _root(self, name: str) -> str:
        while name in self._roots:
            name = self._roots[name]
        return name

    def carry_out(self, steps: Sequence[Chain | Part], left_out: Iterable[str]) -> None:
        """All steps, and outputs that are nobody's own array."""
        skipped = set(left_out)
        nodes = [
            node
            for step in steps
            for node in _nodes(step)
            if node.name not in skipped and moves_nothing(node)
        ]
        self._roots = {node.output: node.inputs[0] for node in nodes}
        self._own = self._owners()
        self._wanted = {self._root(name) for name in self._outputs}
        for step in steps:
            taken = (
                [operand.tensor for operand in step.operands.values() if not operand.made]
                if isinstance(step, Chain)
                else step.stage.inputs
            )
            self._wanted.update(map(self._root, taken))
        for step in steps:
            if isinstance(step, Chain):
                self._on_machine(step)
                continue
            for node in step.stage.nodes:
                if node.name not in skipped and not moves_nothing(node):
                    self._on_host(node)
        for name in self._outputs:
            if self._own.get(self._root(name)) != name:
                self._copy(name)

    def _owners(self) -> dict[str, str]:
        """The output that each tensor is written to at once, by the tensor."""
        given = {*self._graph.inputs, *self._graph.constants}
        found: dict[str, str] = {}
        for name in self._outputs:
            root = self._root(name)
            if root not in given:
                found.setdefault(root, name)
        return found

    def _is_there(self, name: str) -> bool:
        """Whether a tensor's values are with the host."""
        root = self._root(name)
        return root in self._graph.constants or self._own.get(root, root) in self._building

    def _written(self, name: str) -> str:
        """The array for a tensor that is about to be made."""
        output = self._own.get(name)
        if (output or name) not in self._building:
            number = None if output is None else self._outputs.index(output)
            self._building.new(output or name, self._graph.tensors[output or name], output=number)
        return output or name

    def _read(self, name: str) -> str:
        """The array with a tensor's values; those of a constant are filled in."""
        root = self._root(name)
        if root in self._graph.constants and root not in self._building:
            tensor = self._graph.tensors[root]
            self._building.new(root, tensor)
            values = copied(self._graph.constants[root], tensor.dtype)
            detail = Fill(values=values, value_bytes=value_bytes(tensor.dtype), nbytes=tensor.bytes)
            self._building.step(detail, target=root)
        return self._own.get(root, root)

    def _on_host(self, node: Node) -> None:
        found = host_steps(self._graph, node)
        local: dict[str, str] = {}
        for name, tensor in found.temporaries.items():
            local[name] = self._building.fresh(name, tensor.shape, tensor.dtype)
        for detail, sources, target in found.steps:
            read = [local.get(name) or self._read(name) for name in sources]
            source, other = [*read, None, None][:2]
            self._building.step(detail, source, local.get(target) or self._written(target), other=other)

    def _on_machine(self, chain: Chain) -> None:
        program = chain.whole(self._graph)
        cycles = min(chain.compared.values()) if chain.compared else cycles_of(program)
        number = self._building.stream(program, cycles, [part.stage.name for part in chain.layers])
        for tensor in program.tensors:
            if tensor.role == "input":
                self._building.pack(tensor, number, self._operand(chain.operands[tensor.name]))
        self._building.step(Run(stream=number))
        for tensor in program.tensors:
            if tensor.role == "output":
                target = self._written(chain.outputs[tensor.name])
                self._building.unpack(tensor, number, target)
        for node in _nodes(chain):  # what lies within others on the machine, and somebody else wants, too
            wanted = node.output in self._wanted and not moves_nothing(node)
            if wanted and all(map(self._is_there, node.inputs)):
                self._on_host(node)

    def _operand(self, operand: Operand) -> str:
        """The array that a layer takes."""
        source = self._read(operand.tensor)
        if operand.copies == 1:
            return source
        before, behind = operand.whole[: operand.axis], operand.whole[operand.axis + 1 :]
        size = operand.whole[operand.axis] // operand.groups
        dtype = self._graph.tensors[operand.tensor].dtype
        sizes = (*before, operand.groups, operand.copies, size, *behind)
        once = row_major((*before, operand.groups, size, *behind))
        axis = len(before) + 1
        detail = Move(
            value_bytes=value_bytes(dtype),
            sizes=sizes,
            source_strides=(*once[:axis], 0, *once[axis:]),
            target_strides=row_major(sizes),
        )
        target = self._building.fresh(f"{operand.tensor} repeated", operand.shape, dtype)
        self._building.step(detail, source, target)
        return target

    def _copy(self, name: str) -> None:
        """An output with the values of an input, a constant or another output."""
        tensor = self._graph.tensors[name]
        source = self._read(name)
        called = f"{name} (output)"  # an input may be an output, too
        self._building.new(called, tensor, output=self._outputs.index(name))
        detail = Move(
            value_bytes=value_bytes(tensor.dtype),
            sizes=(tensor.size,),
            source_strides=(1,),
            target_strides=(1,),
        )
        self._building.step(detail, source, called)


def _nodes(step: Chain | Part) -> Iterable[Node]:
    """Nodes of a step that the host has."""
    parts = step.parts if isinstance(step, Chain) else (step,)
    return (node for part in parts if not part.on_machine for node in part.stage.nodes)
