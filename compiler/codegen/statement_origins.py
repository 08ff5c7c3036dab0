"""Descriptions of a nest's statements, for the provenance of instructions."""

from collections.abc import Collection, Sequence

from accel.compiler.nest.nest import (
    AluCall,
    Buffer,
    Call,
    Copy,
    HostPack,
    Nest,
    Node,
    Region,
    StoreEpilogue,
    ZeroBuffer,
    walk_nodes,
)
from accel.compiler.nest.nest_text import format_node
from accel.compiler.schedule.schedule import Step
from accel.image.provenance import Kind, Statement


class Origins:
    """Statements as records."""

    def __init__(self, nest: Nest, steps: Sequence[Step]) -> None:
        self._steps = _makers(steps)
        copies = [node for node in walk_nodes(nest.body) if isinstance(node, Copy)]
        widened = {node.target: node.source for node in nest.body if isinstance(node, HostPack)}
        self._loaded: dict[Buffer, set[str]] = {}
        self._stored: dict[Buffer, set[str]] = {}
        for node in walk_nodes(nest.body):
            if isinstance(node, StoreEpilogue):
                self._stored.setdefault(node.source.buffer, set()).add(node.target.buffer.name)
        for copy in copies:
            if copy.target.buffer.scope is None:
                self._stored.setdefault(copy.source.buffer, set()).add(copy.target.buffer.name)
            else:
                source = widened.get(copy.source.buffer, copy.source.buffer)
                self._loaded.setdefault(copy.target.buffer, set()).add(source.name)

    def statement(self, node: Node, loops: tuple[str, ...]) -> Statement:
        kind, target, reads = _operands(node)
        if isinstance(node, Copy):
            local = node.source.buffer if kind == "store" else node.target.buffer
            (dram,) = {node.source.buffer, node.target.buffer} - {local}
            tensor = dram.name if kind == "store" else _only(self._loaded[local], dram.name)
        else:
            tensor = _only(self._stored.get(target, ()), target.name)
        names = [_only(self._loaded.get(buffer, ()), buffer.name) for buffer in reads]
        stage = getattr(node, "stage", "")
        return Statement(
            kind=kind,
            text=format_node(node)[0],
            stage=stage,
            step=self._steps.get(stage),
            tensor=tensor,
            reads=tuple(name for name in dict.fromkeys(names) if name != tensor),
            loops=loops,
        )


def _operands(node: Node) -> tuple[Kind, Buffer, list[Buffer]]:
    if isinstance(node, Copy):
        return ("store" if node.target.buffer.scope is None else "load"), node.target.buffer, []
    if isinstance(node, StoreEpilogue):
        return (
            "store",
            node.target.buffer,
            [one.operand.buffer for one in node.ops if one.operand is not None],
        )
    if isinstance(node, ZeroBuffer):
        return "clear", node.buffer, []
    if isinstance(node, Call):
        return "intrinsic", node.output.buffer, [region.buffer for region in node.inputs]
    assert isinstance(node, AluCall)
    return "alu", node.target.buffer, [node.operand.buffer] if isinstance(node.operand, Region) else []


def _only(names: Collection[str], otherwise: str) -> str:
    return next(iter(names)) if len(names) == 1 else otherwise


def _makers(steps: Sequence[Step]) -> dict[str, int]:
    """By stage, the number of the last step that tensorized it, made it a copy, or put it into a
    scratchpad."""
    makers: dict[str, int] = {}
    for number, step in enumerate(steps):
        if step["op"] in ("set_scope", "tensorize"):
            makers[step["stage"]] = number
        elif step["op"] in ("cache_read", "cache_write", "merge_groups", "multiply_identity", "add_product"):
            makers[step["name"]] = number
        if step["op"] == "cache_write":
            makers[step["tensor"]] = number
    return makers
