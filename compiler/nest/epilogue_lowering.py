"""Epilogues as passes of the ALU, or of the GEMM core where it adds a residual.

Each operation gets its own loops over the blocks of a tile, since such a pass is one ALU instruction.
"""

from collections.abc import Sequence

from accel.base.errors import TensorizeError
from accel.base.records import replace
from accel.compiler.nest.nest import AluCall, AppliedOp, BlockEpilogue, Call, For, Guard, Node, TileEpilogue
from accel.compiler.target.alu_epilogue import passes
from accel.compiler.target.intrinsic_declaration import AluIntrin
from accel.compiler.target.machine_intrinsics import gemm


def lower_epilogue(post: TileEpilogue) -> list[Node]:
    intrin = post.block_epilogue.intrin
    if isinstance(intrin, AluIntrin):
        return lower_to_alu(post)
    raise TensorizeError(f"{intrin.name} does not compute epilogues; the machine's alu does")


def lower_to_alu(post: TileEpilogue) -> list[Node]:
    return [node for step in block_operations(post.block_epilogue) for node in _with_leaf(post.body, step)]


def block_operations(node: BlockEpilogue) -> list[Node]:
    """Return the operations on one block: the ALU's, and products with an identity matrix."""
    found: list[Node] = []
    for operated in node.ops:
        for one in passes(operated.op):
            if one.op == "product":
                step: Node = _product(node, operated)
                found.append(Guard(one.conditions, (step,)) if one.conditions else step)
                continue
            immediate = isinstance(one.operand, int)
            operand = one.operand if isinstance(one.operand, int) else operated.operand
            assert operand is not None
            dims = (node.dims, node.dims if immediate else operated.dims)
            step = AluCall(one.op, node.target, operand, dims, stage=node.stage)
            found.append(Guard(one.conditions, (step,)) if one.conditions else step)
    return found


def _product(node: BlockEpilogue, operated: AppliedOp) -> Call:
    scope, (operand, unit) = node.target.buffer.scope, (operated.operand, operated.identity)
    assert scope is not None
    assert operand is not None
    assert unit is not None
    dims = (node.dims, operated.dims, (0, 1))
    return Call(gemm(scope.config), "update", node.target, (operand, unit), dims, stage=node.stage)


def _with_leaf(nodes: Sequence[Node], leaf: Node) -> tuple[Node, ...]:
    (node,) = nodes
    if isinstance(node, BlockEpilogue):
        return (leaf,)
    assert isinstance(node, For | Guard)
    return (replace(node, body=_with_leaf(node.body, leaf)),)
