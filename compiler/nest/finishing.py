"""How post-operators are carried out: in passes of the ALU, or of the GEMM core where it adds a residual.

for y in range(4):              for y in range(4):
for x in range(4):              for x in range(4):
add(S[y][x], bias)              add(S[y][x], bias)
shr(S[y][x], 8)         for y in range(4):
for x in range(4):
shr(S[y][x], 8)
"""

from collections.abc import Sequence
from dataclasses import replace

from accel.base.errors import TensorizeError
from accel.compiler.nest.nest import Alu, Call, Finish, For, Guard, Node, Operated, Post
from accel.compiler.target.finish import passes
from accel.compiler.target.intrin import AluIntrin
from accel.compiler.target.intrinsics import gemm


def carried_out(post: Post) -> list[Node]:
    """The nodes that carry out what follows the sums of a tile. How is decided here and nowhere else: by the
    intrinsic that the stage was tensorized with.

    Raises:
        TensorizeError: it carries out no post-operators.
    """
    intrin = post.finish.intrin
    if isinstance(intrin, AluIntrin):
        return in_passes(post)
    raise TensorizeError(f"{intrin.name} carries out no post-operators; the machine's alu does")


def in_passes(post: Post) -> list[Node]:
    """One ALU pass over the tile after the other."""
    return [node for step in alu_passes(post.finish) for node in _with_leaf(post.body, step)]


def alu_passes(node: Finish) -> list[Node]:
    """The operations on a block that post-operators are: the ALU's, and products with an identity matrix."""
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
            step = Alu(one.op, node.target, operand, dims, stage=node.stage)
            found.append(Guard(one.conditions, (step,)) if one.conditions else step)
    return found


def _product(node: Finish, operated: Operated) -> Call:
    """What adds a block of inp to one of the accumulators."""
    scope, (operand, unit) = node.target.buffer.scope, (operated.operand, operated.unit)
    assert scope is not None
    assert operand is not None
    assert unit is not None
    dims = (node.dims, operated.dims, (0, 1))
    return Call(gemm(scope.config), "update", node.target, (operand, unit), dims, stage=node.stage)


def _with_leaf(nodes: Sequence[Node], leaf: Node) -> tuple[Node, ...]:
    """A perfect nest around another statement."""
    (node,) = nodes
    if isinstance(node, Finish):
        return (leaf,)
    assert isinstance(node, For | Guard)
    return (replace(node, body=_with_leaf(node.body, leaf)),)
