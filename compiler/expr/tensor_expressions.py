"""Tensor expressions: placeholders and computations, element by element.

    C = compute((64, 48), lambda y, x: sum(A[y, k] * B[k, x], axis=k), name="C", dtype="int8")

C has the shape (64, 48) and holds the low 8 bits of the sums.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from operator import add, mul, sub
from typing import Any

from accel.base.arguments import plain_integers
from accel.base.errors import ShapeError
from accel.compiler.expr.linear_expressions import bounds, guarded_bounds
from accel.compiler.expr.quantized_expressions import Requantized
from accel.compiler.expr.scalar_expressions import (
    BYTES,
    Binary,
    Cast,
    Condition,
    Const,
    Dtype,
    Expr,
    Guarded,
    IterVar,
    Read,
    Sum,
    as_expr,
    cast,
    check_dtype,
    children,
    format_expr,
    reads,
    walk,
    without_zero,
)
from accel.core.config import DRAM_ADDRESS_BITS

LARGEST_PRODUCT = 1 << 14
"""Largest magnitude of a product of two int8 values."""
LONGEST_REDUCTION = (1 << 31) // LARGEST_PRODUCT - 1
"""Number of int8 products whose sum always fits int32."""
LONGEST_SUM = (1 << 31) // (1 << 7) - 1
"""Number of int8 values whose sum always fits int32."""
LARGEST_TENSOR = 1 << DRAM_ADDRESS_BITS
"""Largest number of one-byte elements with a DRAM address."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """The result of an operation. ``T[i, j]`` in an expression reads an element."""

    op: Placeholder | Compute

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.op.shape

    @property
    def dtype(self) -> Dtype:
        return self.op.dtype

    def __getitem__(self, indices: Expr | int | tuple[Expr | int, ...]) -> Read:
        index = indices if isinstance(indices, tuple) else (indices,)
        if len(index) != len(self.shape):
            raise ShapeError(
                f"{self.name} is read with {len(index)} indices; it has {len(self.shape)} dimensions"
            )
        return Read(self, tuple(self._index(d, as_expr(i)) for d, i in enumerate(index)))

    def _index(self, dimension: int, index: Expr) -> Expr:
        size = self.shape[dimension]
        if isinstance(index, Const) and not 0 <= index.value < size:
            raise ShapeError(
                f"{self.name} is read at {index.value} in dimension {dimension}; "
                f"indices there are 0..{size - 1}"
            )
        return index

    def __call__(self, *indices: Expr | int) -> Read:
        return self[indices]

    def __add__(self, other: Tensor | int) -> Tensor:
        return self._elementwise(other, "+", "plus", add)

    def __sub__(self, other: Tensor | int) -> Tensor:
        return self._elementwise(other, "-", "minus", sub)

    def __mul__(self, other: Tensor | int) -> Tensor:
        return self._elementwise(other, "*", "times", mul)

    __radd__ = __add__
    __rmul__ = __mul__

    def __matmul__(self, other: Tensor) -> Tensor:
        """Return the matrix product, int32. For example, shapes (8, 16) and (16, 4) give (8, 4)."""
        if len(self.shape) != 2 or len(other.shape) != 2 or self.shape[1] != other.shape[0]:
            raise ShapeError(
                f"{self.name} @ {other.name} has shapes {self.shape} and {other.shape}; "
                f"they must be (M, K) and (K, N)"
            )
        k = reduce_axis((0, self.shape[1]), name="k")
        shape = (self.shape[0], other.shape[1])
        name = f"{self.name}_{other.name}"
        return compute(shape, lambda y, x: sum(self[y, k] * other[k, x], axis=k), name=name)

    def _elementwise(
        self, other: Tensor | int, sign: str, word: str, operation: Callable[[Any, Any], Expr]
    ) -> Tensor:
        if not isinstance(other, Tensor):
            number = f"minus_{-other}" if other < 0 else other
            name = f"{self.name}_{word}_{number}"
            return compute(self.shape, lambda *index: operation(self[index], other), name=name)
        if other.shape != self.shape:
            raise ShapeError(
                f"{self.name} {sign} {other.name} has shapes {self.shape} and {other.shape}; "
                f"they must be equal"
            )
        name = f"{self.name}_{word}_{other.name}"
        return compute(self.shape, lambda *index: operation(self[index], other[index]), name=name)

    def __repr__(self) -> str:
        return f"Tensor({self.name}, {self.shape}, {self.dtype})"


@dataclass(frozen=True, eq=False)
class Placeholder:
    name: str
    shape: tuple[int, ...]
    dtype: Dtype
    tensor: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tensor", Tensor(self))


@dataclass(frozen=True, eq=False)
class Compute:
    """A tensor whose elements are expressions. A :class:`Sum` in ``body`` is outermost or below one cast."""

    name: str
    shape: tuple[int, ...]
    dtype: Dtype
    axis: tuple[IterVar, ...]
    body: Expr
    tensor: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tensor", Tensor(self))

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        found = reduction(self.body)
        return found.axes if found is not None else ()


def reduction(body: Expr) -> Sum | None:
    if isinstance(body, Cast):
        body = body.value
    return body if isinstance(body, Sum) else None


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_name(name: str) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ShapeError(f"the name is {name!r}; it must be an identifier")
    return name


def check_shape(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    """Raise a ShapeError if one is not positive or DRAM is too small."""
    sizes = plain_integers(shape)
    if not sizes or min(sizes) < 1:
        raise ShapeError(f"the shape of {name} is {_shown(shape)}; it must be one or more positive integers")
    if prod(sizes) > LARGEST_TENSOR:
        raise ShapeError(
            f"{name} has {prod(sizes)} elements; DRAM's addresses of {DRAM_ADDRESS_BITS} bits reach "
            f"{LARGEST_TENSOR} of one byte"
        )
    return sizes


def _shown(values: object) -> str:
    return repr(tuple(values) if isinstance(values, list) else values)


def placeholder(shape: Sequence[int], dtype: str = "int8", *, name: str = "placeholder") -> Tensor:
    """Return a tensor that is given when the program runs.

    Raises:
        ShapeError: a size is not positive, DRAM addresses do not suffice, or the dtype is unknown.
    """
    found = check_dtype(dtype)
    if found == "int16":
        raise ShapeError(f"{name} is given as int16; DRAM holds 'int8', 'uint8' and 'int32'")
    return Placeholder(check_name(name), check_shape(name, shape), found).tensor


def reduce_axis(bounds: tuple[int, int], *, name: str = "k") -> IterVar:
    """Return a variable to sum over, from ``bounds[0]`` = 0 to ``bounds[1] - 1``.

    Raises:
        ShapeError: the bounds are empty or do not start at 0.
    """
    plain = plain_integers(bounds)
    if plain is None or len(plain) != 2:
        raise ShapeError(
            f"the bounds of the reduce axis {name!r} are {_shown(bounds)}; they must be two integers"
        )
    low, high = plain
    if low != 0 or high < 1:
        raise ShapeError(
            f"the reduce axis {name!r} runs over {low}..{high}; it must start at 0 and not be empty"
        )
    return IterVar(check_name(name), high, "reduce")


def sum(value: Expr | int, axis: IterVar | Sequence[IterVar]) -> Expr:
    """Return the sum of ``value`` over one or several reduce axes, in int32.

    Raises:
        ShapeError: there is no axis, one is no reduce axis, or one is named twice.
    """
    axes = tuple(axis) if isinstance(axis, Sequence) else (axis,)
    for one in axes:
        if not isinstance(one, IterVar) or one.kind != "reduce":
            raise ShapeError(f"sum runs over {one!r}; it must be made by reduce_axis")
    _check_distinct(axes)
    return Sum(as_expr(value), axes)


def pad(
    tensor: Tensor, before: Sequence[int], after: Sequence[int] | None = None, *, name: str | None = None
) -> Tensor:
    """Return ``tensor`` with zeros around it. LOADs write the zeros to a scratchpad without reading DRAM.

    For example, ``pad(A, (1, 1))`` of a 56 x 56 tensor is 58 x 58 with

        P[y, x] = A[y - 1, x - 1] if 0 < y and y < 57 and 0 < x and x < 57 else 0

    Args:
        before, after: zeros on each side, per dimension. ``after`` defaults to ``before``.
        name: name of the result, by default the tensor's with the suffix ``_pad``.

    Raises:
        ShapeError: there is not one number per dimension, or one is negative.
    """
    sizes = tensor.shape
    before, behind = (_padding(tensor, numbers) for numbers in (before, before if after is None else after))

    def body(*index: IterVar) -> Expr:
        conditions: list[Condition] = []
        for axis, first, last, size in zip(index, before, behind, sizes, strict=True):
            conditions += [(Const(first - 1), axis)] * bool(first) + [(axis, Const(first + size))] * bool(
                last
            )
        shifted = (axis - first if first else axis for axis, first in zip(index, before, strict=True))
        value = tensor[tuple(shifted)]
        return Guarded(value, tuple(conditions)) if conditions else value

    whole = tuple(a + n + b for a, n, b in zip(before, sizes, behind, strict=True))
    return compute(whole, body, name=name or f"{tensor.name}_pad")


def _padding(tensor: Tensor, numbers: object) -> tuple[int, ...]:
    plain = plain_integers(numbers)
    if plain is None or len(plain) != len(tensor.shape) or min(plain) < 0:
        raise ShapeError(
            f"the padding of {tensor.name} is {_shown(numbers)}; "
            f"it must be {len(tensor.shape)} integers, none negative"
        )
    return plain


def _check_distinct(axes: Sequence[IterVar]) -> None:
    if not axes or len(set(axes)) != len(axes):
        names = ", ".join(axis.name for axis in axes) or "no axis"
        raise ShapeError(f"sum runs over {names}; it must be one or more axes, each once")


def compute(
    shape: Sequence[int],
    body: Callable[..., Expr | int],
    *,
    name: str = "compute",
    dtype: str | None = None,
) -> Tensor:
    """Return a tensor with the elements ``body(*indices)``.

    For example, ``compute((4, 8), lambda y, x: A[y, x] + 1)`` has the axes y and x.

    Args:
        body: returns the element's expression. Its parameters name the axes.
        dtype: type of the elements. The expression is cast to it (int8 wraps).

    Raises:
        ShapeError: ``body`` is not a function, a sum is inside another expression, an axis is not bound, or a
            sum of int8 values or products is too long for int32.
    """
    sizes = check_shape(name, shape)
    if not callable(body):
        raise ShapeError(f"the computation of {name} is {body!r}; it must be a function of the indices")
    axis = tuple(IterVar(n, size) for n, size in zip(_axis_names(body, len(sizes)), sizes, strict=True))
    expr = as_expr(body(*axis))
    if dtype is not None:
        expr = cast(expr, dtype)
    op = Compute(check_name(name), sizes, expr.dtype, axis, expr)
    check_compute(op)
    return op.tensor


def _axis_names(body: Callable[..., object], count: int) -> list[str]:
    parameters = list(inspect.signature(body).parameters.values())
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return [f"i{n}" for n in range(count)]
    if len(parameters) != count:
        raise ShapeError(f"the computation takes {len(parameters)} indices; its shape has {count} dimensions")
    return [p.name for p in parameters]


def check_compute(op: Compute) -> None:
    """Raise a ShapeError for a computation without a meaning."""
    if op.body.dtype != op.dtype:
        raise ShapeError(f"{op.name} is {op.dtype}; its elements are {op.body.dtype}")
    outer = reduction(op.body)
    if outer is not None:
        _check_distinct(outer.axes)
    bound = {*op.axis, *(outer.axes if outer is not None else ())}
    for node in walk(op.body):
        if isinstance(node, Sum) and node is not outer:
            raise ShapeError(
                f"{op.name} has a sum inside another expression; make the sum a computation of its own"
            )
        if isinstance(node, IterVar) and node not in bound:
            raise ShapeError(
                f"{op.name} uses the axis {node.name!r}, which neither its shape nor a sum binds"
            )
        if isinstance(node, Requantized) and len(node.scales) > 1:
            low, high = bounds(node.channel)
            if low < 0 or high >= len(node.scales):
                raise ShapeError(
                    f"{op.name} has {len(node.scales)} scales; the channel {format_expr(node.channel)} "
                    f"runs over {low}..{high}"
                )
    for read, conditions in guarded_reads(op.body):
        decisive = [*read.indices, *(side for condition in conditions for side in condition)]
        if any(reads(index) for index in decisive):
            raise ShapeError(
                f"{op.name} reads {read.tensor.name} at an index that is itself read from a tensor"
            )
        _check_bounds(op, read, conditions)
    if outer is not None:
        length = prod(axis.extent for axis in outer.axes)
        products = not isinstance(_unguarded(outer.body), Read)
        sizes = sorted((magnitude(read.tensor) for read in reads(outer.body)), reverse=True)
        largest = max(LARGEST_PRODUCT, prod(sizes[:2])) if products else sizes[0]
        longest = (1 << 31) // largest - 1
        if length > longest and all(read.dtype != "int32" for read in reads(outer.body)):
            types = " and ".join(dict.fromkeys(_type(read.tensor) for read in reads(outer.body)))
            what = f"products of {types} values" if products else f"{types} values"
            raise ShapeError(f"{op.name} sums {length} {what}; int32 can hold {longest}")


_MAGNITUDES = {"int8": 1 << 7, "uint8": 1 << 8, "int16": 1 << 15, "int32": 1 << 31}


def magnitude(tensor: object) -> int:
    """Values minus a zero point have 9 bits."""
    assert isinstance(tensor, Tensor)
    if tensor.dtype == "int16":
        return 1 << 8 if centered_of(tensor) is not None else 1 << 15
    return _MAGNITUDES[tensor.dtype]


def _type(tensor: object) -> str:
    assert isinstance(tensor, Tensor)
    center = centered_of(tensor)
    return tensor.dtype if center is None else f"centered {center[0].dtype}"


def centered_of(tensor: Tensor) -> tuple[Tensor, int] | None:
    """The tensor of bytes and the zero point subtracted from it, also through windows, or None."""
    if not isinstance(tensor.op, Compute) or tensor.dtype != "int16":
        return None
    read, zero = without_zero(_unguarded_once(tensor.op.body))
    if not isinstance(read, Read) or not isinstance(read.tensor, Tensor):
        return None
    if zero is None:
        return centered_of(read.tensor)
    return (read.tensor, zero) if read.dtype in BYTES else None


def _unguarded_once(expr: Expr) -> Expr:
    return expr.value if isinstance(expr, Guarded) else expr


def sum_limit(total: Sum | None) -> int | None:
    """The largest magnitude of a sum of products of (centered) bytes, otherwise None."""
    product = None if total is None else _unguarded(total.body)
    if total is None or not isinstance(product, Binary) or product.op != "*":
        return None
    factors = reads(total.body)
    largest = prod(magnitude(read.tensor) for read in factors)
    limit = largest * prod(axis.extent for axis in total.axes)
    return limit if len(factors) == 2 and limit < 1 << 31 else None


def _unguarded(expr: Expr) -> Expr:
    while isinstance(expr, Guarded | Cast):
        expr = expr.value
    return expr


def guarded_reads(
    expr: Expr, around: tuple[Condition, ...] = ()
) -> Iterator[tuple[Read, tuple[Condition, ...]]]:
    if isinstance(expr, Guarded):
        yield from guarded_reads(expr.value, around + expr.conditions)
    elif isinstance(expr, Read):
        yield expr, around
    else:
        for child in children(expr):
            yield from guarded_reads(child, around)


def _check_bounds(op: Compute, read: Read, conditions: Sequence[Condition]) -> None:
    for d, (index, size) in enumerate(zip(read.indices, read.tensor.shape, strict=True)):
        low, high = guarded_bounds(index, conditions)
        if low < 0 or high >= size:
            raise ShapeError(
                f"{op.name} reads {read.tensor.name} at {format_expr(index)} in dimension {d}, which runs "
                f"over {low}..{high}; the tensor has {size} there"
            )


def producers(outputs: Sequence[Tensor]) -> list[Tensor]:
    """The outputs and all tensors that they depend on, each after the tensors that it reads."""
    found: list[Tensor] = []
    seen: set[Tensor] = set()

    def visit(tensor: Tensor) -> None:
        if tensor in seen:
            return
        seen.add(tensor)
        if isinstance(tensor.op, Compute):
            for read in reads(tensor.op.body):
                assert isinstance(read.tensor, Tensor)
                visit(read.tensor)
        found.append(tensor)

    for output in outputs:
        visit(output)
    return found
