"""Loop nests as text."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from accel.compiler.expr.linear_expressions import simplify
from accel.compiler.expr.scalar_expressions import (
    Binary,
    Const,
    Expr,
    Function,
    format_conditions,
    format_expr,
)
from accel.compiler.expr.window_expressions import NO_PADDING, Range
from accel.compiler.nest.epilogue_lowering import block_operations
from accel.compiler.nest.nest import (
    AluCall,
    Assign,
    BlockEpilogue,
    Call,
    ConstantParameters,
    ConstantTable,
    Copy,
    For,
    Guard,
    HostPack,
    IdentityMatrix,
    Nest,
    Node,
    Region,
    StoreEpilogue,
    TileEpilogue,
    ZeroBuffer,
    ZeroRegion,
    unrolled_nodes,
)
from accel.image.packed_layout import Interleaved

PREFIX = "vdla."
"""Prefix of intrinsic names in nests."""


def format_nest(nest: Nest) -> str:
    """Return the nest as indented text, scratchpad declarations first."""
    return "".join(f"{text}\n" for text, _ in nest_lines(nest))


def nest_lines(nest: Nest) -> Iterator[tuple[str, Node | None]]:
    """Yield each line of :func:`format_nest` with its node, or None for declarations."""
    for buffer in nest.locals:
        place = buffer.scope.name if buffer.scope is not None else buffer.dtype
        sizes = (buffer.sets, *buffer.shape) if buffer.sets > 1 else buffer.shape
        yield f"{place} {buffer.name}" + "".join(f"[{n}]" for n in sizes), None
    for node in nest.body:
        yield from _node_lines(node, 0)


def format_node(node: Node, indent: int = 0) -> list[str]:
    """One level of ``indent`` is 4 spaces."""
    return [text for text, _ in _node_lines(node, indent)]


def _node_lines(node: Node, indent: int) -> Iterator[tuple[str, Node]]:
    pad, inner, children = "    " * indent, indent, tuple[Node, ...]()
    if isinstance(node, For) and node.is_unrolled:
        children = tuple(unrolled_nodes(node))
    elif isinstance(node, For):
        kind = "vthread" if node.is_vthread else "range"
        yield f"{pad}for {node.var.name} in {kind}({format_expr(node.extent)}):", node
        inner, children = indent + 1, node.body
    elif isinstance(node, Guard):
        yield f"{pad}if {format_conditions(node.conditions)}:", node
        inner, children = indent + 1, node.body
    elif isinstance(node, TileEpilogue):
        children = node.body
    elif isinstance(node, BlockEpilogue):
        children = tuple(block_operations(node))
    else:
        yield pad + _format_leaf(node), node
    for child in children:
        yield from _node_lines(child, inner)


def _format_leaf(node: Node) -> str:
    if isinstance(node, Assign):
        sign = "+=" if node.accumulate else "="
        return f"{format_expr(node.target)} {sign} {format_expr(node.value)}"
    if isinstance(node, ZeroRegion):
        return f"{format_region(node.region)} = 0"
    if isinstance(node, ZeroBuffer):
        return f"{PREFIX}fill_zero({node.buffer.name})"
    if isinstance(node, IdentityMatrix):
        return f"host.identity({node.target.name})"
    if isinstance(node, HostPack):
        if isinstance(node.packing, Interleaved):
            return f"host.parameters({node.target.name}, {node.source.name})"
        return f"host.widen({node.target.name}, {node.source.name}, groups={node.packing.merged})"
    if isinstance(node, ConstantTable):
        return f"host.table({node.target.name})"
    if isinstance(node, ConstantParameters):
        return f"host.parameters({node.target.name}, bias={node.bias})"
    if isinstance(node, StoreEpilogue):
        return f"{PREFIX}{_format_store(node)}"
    if isinstance(node, Call):
        operands = [node.output, *node.inputs]
        name = node.intrin.form_name(node.form)
        return f"{PREFIX}{name}({', '.join(format_region(o) for o in operands)})"
    if isinstance(node, Copy):
        return f"{PREFIX}dma_copy2d({', '.join(_copy_operands(node))})"
    assert isinstance(node, AluCall)
    if node.op == "zero":
        return f"{PREFIX}fill_zero({format_region(node.target)})"
    operand = str(node.operand) if isinstance(node.operand, int) else format_region(node.operand)
    return f"{PREFIX}{node.op}({format_region(node.target)}, {operand})"


def without_settings(text: str) -> str:
    """Remove zero points, bounds and the like, which follow the regions and padding of a statement.

    ``vdla.dma_copy2d(dataL, data[0:4][0:7], pad=(0, 1+0), zero=3)`` loses ``, zero=3)``.
    """
    return re.sub(r", (?!pad=)\w+=.*", "", text)


def _format_store(node: StoreEpilogue) -> str:
    regions = [node.target, node.source, *(one.operand for one in node.ops if one.operand is not None)]
    functions = [one.op.apply(Const(0)) for one in node.ops]
    settings: dict[str, Any] = {}
    for function in functions:
        assert isinstance(function, Function)
        again = "sum_" if settings else ""
        own = {name: value for name, value in function.settings().items() if name not in settings}
        both = {again + name: value for name, value in function.settings().items() if name in settings}
        settings |= own | both
    named = [f"{name}={value}".replace(" ", "") for name, value in settings.items()]
    name = functions[-1].NAME if isinstance(functions[-1], Function) else ""
    return f"{name}({', '.join([*map(format_region, regions), *named])})"


def _copy_operands(node: Copy) -> Iterator[str]:
    yield format_region(node.target)
    yield format_region(node.source, node.strides)
    if node.padding:
        sides = ("0" if p == NO_PADDING else f"{format_expr(p[0])}+{format_expr(p[1])}" for p in node.padding)
        yield f"pad=({', '.join(sides)})"
    if node.zero_point:
        yield f"zero={node.zero_point}"


def format_region(region: Region, steps: Sequence[int] = ()) -> str:
    """Return ``A[ko*8:ko*8+8][yo*8:yo*8+8]``, or only the name of a whole scratchpad buffer."""
    name = region.buffer.name
    if region.buffer.sets > 1:
        name += f"[{format_expr(region.set_index)}]"
    if region.is_whole and region.buffer.scope is not None:
        return name
    each = steps or [1] * len(region.ranges)
    return name + "".join(f"[{_format_range(r, n)}]" for r, n in zip(region.ranges, each, strict=True))


def _format_range(r: Range, step: int) -> str:
    if r.extent == Const(1):
        return format_expr(r.start)
    stop = add(r.start, r.extent)
    text = f"{format_expr(r.start)}:{format_expr(stop)}"
    return text if step == 1 else f"{text}:{step}"


def add(a: Expr, b: Expr) -> Expr:
    """A minimum stays outermost."""
    if isinstance(b, Binary) and b.op == "min":
        return Binary("min", add(a, b.a), add(a, b.b))
    return simplify(Binary("+", a, b))
