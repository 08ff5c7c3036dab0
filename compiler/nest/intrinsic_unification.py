"""Unification of a block of loops with an intrinsic's computation.

It searches for a mapping of loops to the intrinsic's axes under which all accesses agree. + and * commute.
Memory scopes tell operands apart. The mapping also gives the order of indices inside a packed element.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

from msgspec import Struct

from accel.base.errors import TensorizeError
from accel.compiler.expr.linear_expressions import at_zero, linear, variables
from accel.compiler.expr.scalar_expressions import Binary, Cast, Const, Expr, IterVar, Read, Sum, format_expr
from accel.compiler.expr.tensor_expressions import Tensor
from accel.compiler.expr.window_expressions import Range
from accel.compiler.nest.nest import Buffer, Region

COMMUTATIVE = ("+", "*", "min", "max")


class BlockLoop(Struct, frozen=True):
    var: IterVar
    extent: Expr
    span: int
    """The split's factor, even if the last tile is shorter."""
    whole: bool
    """Whether it is an unsplit axis, which may be padded to the intrinsic's width."""

    def fits(self, axis: IterVar) -> bool:
        if self.var.kind != axis.kind:
            return False
        return self.span == axis.extent or (self.whole and self.span < axis.extent)


class Access(Struct, frozen=True):
    """An operand of the block and the matching one of the intrinsic.

    Attributes:
        pattern: the intrinsic's axis for each dimension of its operand.
        output: whether it is written. An input may repeat along an axis that it does not depend on.
        ends: per dimension, whether the tensor ends with the last iteration. Then a block reads zeros beyond
            the end.
    """

    buffer: Buffer
    buffer_extents: tuple[Expr, ...]
    indices: tuple[Expr, ...]
    pattern: tuple[IterVar, ...]
    label: str
    output: bool = False
    ends: tuple[bool, ...] = ()

    def __str__(self) -> str:
        return self.buffer.name + "".join(f"[{format_expr(i)}]" for i in self.indices)


@dataclass(frozen=True)
class Operand:
    """An access's block, and the region's dimension for each of the intrinsic."""

    region: Region
    dims: tuple[int | None, ...]


class Unified(Struct, frozen=True):
    """The loop for each axis, or None for axes with one value, and the operands."""

    loops: dict[IterVar, BlockLoop | None]
    operands: list[Operand]


def match(pattern: Expr, found: Expr) -> Iterator[dict[Tensor, Read]]:
    """Yield each operand's access for all ways in which ``found`` has the form of ``pattern``."""
    if isinstance(pattern, Sum) or isinstance(found, Sum):
        if isinstance(pattern, Sum) and isinstance(found, Sum):
            yield from match(pattern.body, found.body)
    elif isinstance(pattern, Read):
        if isinstance(found, Read) and isinstance(pattern.tensor, Tensor):
            yield {pattern.tensor: found}
    elif isinstance(pattern, Binary):
        if isinstance(found, Binary) and found.op == pattern.op:
            yield from _match_pair(pattern, found.a, found.b)
            if pattern.op in COMMUTATIVE:
                yield from _match_pair(pattern, found.b, found.a)
    elif isinstance(pattern, Cast):
        if isinstance(found, Cast) and found.to == pattern.to:
            yield from match(pattern.value, found.value)
    elif pattern == found:
        yield {}


def _match_pair(pattern: Binary, a: Expr, b: Expr) -> Iterator[dict[Tensor, Read]]:
    for left in match(pattern.a, a):
        for right in match(pattern.b, b):
            if all(left[t] == right[t] for t in left.keys() & right.keys()):
                yield left | right


def map_axes(
    name: str, block: Sequence[BlockLoop], axes: Sequence[IterVar], accesses: Sequence[Access]
) -> Unified:
    """Return the first mapping of loops onto ``axes`` that all accesses agree with."""
    if len(block) > len(axes):
        raise TensorizeError(
            f"the block for {name} has {len(block)} loops ({_loops(block)}); {name} has {len(axes)} axes "
            f"({_axes(axes)}): tensorize an inner loop"
        )
    slots: list[BlockLoop | None] = [*block, *[None] * (len(axes) - len(block))]
    reason: TensorizeError | None = None
    for arrangement in _distinct(slots):
        mapping = dict(zip(axes, arrangement, strict=True))
        if not all(_admissible(axis, loop) for axis, loop in mapping.items()):
            continue
        try:
            return Unified(mapping, [_operand(access, mapping) for access in accesses])
        except TensorizeError as error:
            reason = reason or TensorizeError(f"the block for {name}: {error}")
    if reason is not None:
        raise reason
    raise TensorizeError(
        f"the block for {name} has the loops {_loops(block)}; {name} needs {_axes(axes)}: "
        f"split by these factors and tensorize at the outermost of the inner loops"
    )


def _distinct(slots: list[BlockLoop | None]) -> Iterator[tuple[BlockLoop | None, ...]]:
    seen = set()
    for arrangement in permutations(slots):
        if arrangement not in seen:
            seen.add(arrangement)
            yield arrangement


def _admissible(axis: IterVar, loop: BlockLoop | None) -> bool:
    return axis.extent == 1 if loop is None else loop.fits(axis)


def _operand(access: Access, mapping: dict[IterVar, BlockLoop | None]) -> Operand:
    by_var = {loop.var: (axis, loop) for axis, loop in mapping.items() if loop is not None}
    inner = set(by_var)
    dimension_of: dict[IterVar, int] = {}
    ranges = []
    for d, index in enumerate(access.indices):
        running = [(v, f) for v, f in linear(index).terms if set(variables(v)) & inner]
        if len(running) > 1:  # a loop that runs once moves nothing
            running = [(v, f) for v, f in running if not _stands_still(by_var, v, access)]
        if not running:
            ranges.append(Range(at_zero(index, inner), Const(1)))
            continue
        var, factor = running[0]
        if len(running) > 1 or factor != 1 or not isinstance(var, IterVar):
            raise TensorizeError(
                f"{access} is indexed by {format_expr(index)} in dimension {d}; "
                f"{access.label} needs one loop of the block there, with step 1"
            )
        axis, loop = by_var[var]
        if axis in dimension_of:
            raise TensorizeError(f"{access} depends on {var.name} twice; {access.label} does only once")
        if axis not in access.pattern:
            raise TensorizeError(f"{access} depends on {var.name}; {access.label} has no such axis")
        dimension_of[axis] = d
        ranges.append(Range(at_zero(index, inner), loop.extent))
    for axis in access.pattern:
        mapped = mapping[axis]
        if axis not in dimension_of and axis.extent > 1 and access.output:
            expected = mapped.var.name if mapped is not None else axis.name
            raise TensorizeError(f"{access} does not depend on {expected}; {access.label} does")
    return Operand(
        Region(access.buffer, tuple(ranges), access.buffer_extents),
        tuple(dimension_of.get(axis) for axis in access.pattern),
    )


def _stands_still(by_var: dict[IterVar, tuple[IterVar, BlockLoop]], v: Expr, access: Access) -> bool:
    return isinstance(v, IterVar) and v.extent == 1 and by_var[v][0] not in access.pattern


def check_short_blocks(
    name: str, body: Expr, unified: Unified, accesses: Sequence[Access], tensors: Sequence[Tensor]
) -> None:
    """Refuse a reduce axis with a short last block, if the sum would include elements beyond its end.

    ``accesses`` and ``tensors`` have one entry per operand of the intrinsic ``name``, output first.
    """
    for axis, loop in unified.loops.items():
        if axis.kind != "reduce" or loop is None or loop.extent == Const(axis.extent):
            continue
        zero = set()
        for access, operand, tensor in zip(accesses, unified.operands, tensors, strict=True):
            d = operand.dims[access.pattern.index(axis)] if axis in access.pattern else None
            if d is not None and access.ends[d]:
                zero.add(tensor)
        if not _vanishes(body, zero):
            read = " and ".join(str(access) for access in accesses[1:])
            raise TensorizeError(
                f"the block for {name}: {read} do not end with {loop.var.name}, whose last block is short; "
                f"{name} sums whole blocks of {axis.extent}: end a tensor there, or sum a multiple of it"
            )


def _vanishes(expr: Expr, zero: set[Tensor]) -> bool:
    if isinstance(expr, Const):
        return expr.value == 0
    if isinstance(expr, Read):
        return expr.tensor in zero
    if isinstance(expr, Cast):
        return _vanishes(expr.value, zero)
    if not isinstance(expr, Binary):
        return False
    a = _vanishes(expr.a, zero)
    if expr.op in ("+", "-", "min", "max"):
        return a and _vanishes(expr.b, zero)
    return a or (expr.op == "*" and _vanishes(expr.b, zero))


def _loops(block: Sequence[BlockLoop]) -> str:
    return ", ".join(f"{b.var.name}({b.span}{', reduce' if b.var.kind == 'reduce' else ''})" for b in block)


def _axes(axes: Sequence[IterVar]) -> str:
    return ", ".join(f"{a.name}({a.extent}{', reduce' if a.kind == 'reduce' else ''})" for a in axes)
