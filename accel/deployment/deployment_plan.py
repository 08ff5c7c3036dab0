"""From a network or program to the steps of its package."""

from collections.abc import Iterable, Sequence

from accel.base.errors import GraphError
from accel.base.records import replace
from accel.deployment.deployment_builder import DeploymentBuilder
from accel.deployment.deployment_steps import (
    Deployment,
    Fill,
    Move,
    Run,
    copied,
    row_major,
    value_bytes,
)
from accel.deployment.host_steps import host_steps, lacks, moves_nothing
from accel.graph.graph import Graph, Node
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import Array, Tensor
from accel.image.image_tensor import ImageTensor
from accel.network.chained_program import Chain
from accel.network.lowering.layer_operand import Operand
from accel.network.network_part import NetworkPart
from accel.network.network_program import NetworkProgram
from accel.run.measured_plans import simulated_cycles
from accel.run.program import Program


def deploy_network(program: NetworkProgram, name: str, *, cut: bool = False) -> Deployment:
    """Return the deployment of a network.

    Args:
        cut: leave out nodes that the driver lacks, and dependent ones. Their operands become outputs.
    """
    graph = program.graph
    left_out = _left_out(program, cut=cut)
    outputs = _outputs(graph, program, left_out)
    building = DeploymentBuilder(name, program.config, list(map(graph.tensors.__getitem__, graph.inputs)))
    _Network(graph, building, outputs).carry_out(program.steps, left_out)
    return replace(building.result(), left_out=tuple(left_out.items()))


def deploy_program(program: Program, name: str) -> Deployment:
    """Deploy a single program."""
    names = list(dict.fromkeys(one.name for one in program.tensors if one.role == "input"))
    known = {one.name: _like(one) for one in program.tensors}
    building = DeploymentBuilder(name, program.config, [known[one] for one in names])
    number = building.stream(program, simulated_cycles(program))
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
    """Run random inputs on the functional simulator. Return inputs and outputs."""
    inputs = program.random_inputs()
    if isinstance(program, NetworkProgram):
        found = program.run(inputs, backend="functional", check=False)
        return {**evaluate(program.graph, inputs), **program.graph.constants, **found.tensors}
    return {**inputs, **program.run(inputs, backend="functional", check=False).outputs}


def _like(tensor: ImageTensor) -> Tensor:
    return Tensor(name=tensor.name, shape=tensor.shape, dtype=tensor.dtype)


def _left_out(program: NetworkProgram, *, cut: bool) -> dict[str, str]:
    graph = program.graph
    reasons = {
        node.name: reason
        for part in program.parts
        for node in part.fused.nodes
        if not part.on_machine and (reason := lacks(graph, node)) is not None
    }
    texts = [f"{name!r}: {reason}" for name, reason in reasons.items()]
    if graph.tail is not None:
        texts.append(f"the network's end ({', '.join(graph.tail.kinds)}), whose shapes depend on values")
    if texts and not cut:
        listed = "; ".join(texts)
        raise GraphError(
            f"the package would need nodes that its driver does not have: {listed}; cutting (--cut) hands "
            "out their operands"
        )
    lost: dict[str, str] = {}
    found: dict[str, str] = {}
    for part in program.parts:
        for node in part.fused.nodes:
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
    found = {*program.graph.inputs, *program.graph.constants}
    for step in program.steps:
        if isinstance(step, Chain):
            found.update(step.outputs.values())
            for part in step.parts:
                if not part.on_machine and part.fused.inputs[0] in found:
                    found.add(part.fused.output)
        else:
            found.add(step.fused.output)
    return found


class _Network:
    def __init__(self, graph: Graph, building: DeploymentBuilder, outputs: Sequence[str]) -> None:
        self._graph = graph
        self._building = building
        self._outputs = outputs
        self._roots: dict[str, str] = {}

    def _root(self, name: str) -> str:
        while name in self._roots:
            name = self._roots[name]
        return name

    def carry_out(self, steps: Sequence[Chain | NetworkPart], left_out: Iterable[str]) -> None:
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
                [operand.tensor for operand in step.operands.values() if not operand.generated]
                if isinstance(step, Chain)
                else step.fused.inputs
            )
            self._wanted.update(map(self._root, taken))
        for step in steps:
            if isinstance(step, Chain):
                self._on_machine(step)
                continue
            for node in step.fused.nodes:
                if node.name not in skipped and not moves_nothing(node):
                    self._on_host(node)
        for name in self._outputs:
            if self._own.get(self._root(name)) != name:
                self._copy(name)

    def _owners(self) -> dict[str, str]:
        """Return the output that each tensor is directly written to."""
        given = {*self._graph.inputs, *self._graph.constants}
        found: dict[str, str] = {}
        for name in self._outputs:
            root = self._root(name)
            if root not in given:
                found.setdefault(root, name)
        return found

    def _is_there(self, name: str) -> bool:
        root = self._root(name)
        return root in self._graph.constants or self._own.get(root, root) in self._building

    def _written(self, name: str) -> str:
        output = self._own.get(name)
        if (output or name) not in self._building:
            number = None if output is None else self._outputs.index(output)
            self._building.new(output or name, self._graph.tensors[output or name], output=number)
        return output or name

    def _read(self, name: str) -> str:
        root = self._root(name)
        if root in self._graph.constants and root not in self._building:
            tensor = self._graph.tensors[root]
            self._building.new(root, tensor)
            values = copied(self._graph.constants[root], tensor.dtype)
            detail = Fill(values=values, value_bytes=value_bytes(tensor.dtype), nbytes=tensor.nbytes)
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
        program = chain.with_constants(self._graph)
        cycles = min(chain.compared.values()) if chain.compared else simulated_cycles(program)
        number = self._building.stream(program, cycles, [part.fused.name for part in chain.layers])
        for tensor in program.tensors:
            if tensor.role == "input":
                self._building.pack(tensor, number, self._operand(chain.operands[tensor.name]))
        self._building.step(Run(stream=number))
        for tensor in program.tensors:
            if tensor.role == "output":
                target = self._written(chain.outputs[tensor.name])
                self._building.unpack(tensor, number, target)
        for node in _nodes(chain):  # inner tensors of the chain that another step needs
            wanted = node.output in self._wanted and not moves_nothing(node)
            if wanted and all(map(self._is_there, node.inputs)):
                self._on_host(node)

    def _operand(self, operand: Operand) -> str:
        source = self._read(operand.tensor)
        if operand.copies == 1:
            return source
        before, behind = operand.tensor_shape[: operand.axis], operand.tensor_shape[operand.axis + 1 :]
        size = operand.tensor_shape[operand.axis] // operand.groups
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
        tensor = self._graph.tensors[name]
        source = self._read(name)
        called = f"{name} (output)"  # an input may also be an output
        self._building.new(called, tensor, output=self._outputs.index(name))
        detail = Move(
            value_bytes=value_bytes(tensor.dtype),
            sizes=(tensor.size,),
            source_strides=(1,),
            target_strides=(1,),
        )
        self._building.step(detail, source, called)


def _nodes(step: Chain | NetworkPart) -> Iterable[Node]:
    parts = step.parts if isinstance(step, Chain) else (step,)
    return (node for part in parts if not part.on_machine for node in part.fused.nodes)
