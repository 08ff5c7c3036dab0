"""Rules of operators that move values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isqrt

import numpy as np
import numpy.typing as npt

from accel.base.records import replace
from accel.graph.graph import Graph
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import QUANTIZED, Shape
from accel.graph.movement_operators import (
    Concat,
    DepthToSpace,
    Reshape,
    Slice,
    SpaceToDepth,
    Take,
    Transpose,
)
from accel.graph.product_operators import MatMul
from accel.rewriting import movement_instances as instances
from accel.rewriting.pattern import (
    Match,
    OpPattern,
    Term,
    Value,
    constant,
    make,
    op,
    rest,
    tensor,
)
from accel.rewriting.rule import Rule

_PICTURE_RANK = 4
"""(N, C, H, W)."""


# ---- Reshape and Transpose alone


def _transpose_pair(match: Match) -> Term:
    first, second = (match.operator(name, Transpose).permutation for name in ("first", "second"))
    permutation = tuple(first[axis] for axis in second)
    if permutation == tuple(range(len(permutation))):
        return match["x"]
    return make(Transpose(permutation=permutation), match["x"])


TRANSPOSE_PAIR = Rule(
    name="transpose-pair",
    text="Two Transposes in sequence become one, or none.",
    pattern=op(Transpose, op(Transpose, tensor("x"), name="first"), name="second"),
    replacement=_transpose_pair,
    instance=instances.transpose_pairs,
    simplifies=True,
)


def _transpose_of_ones(match: Match) -> Term | None:
    permutation, x = match.operator("transpose", Transpose).permutation, match["x"]
    if permutation == tuple(range(len(permutation))):
        return x
    moved = [axis for axis in permutation if x.shape[axis] > 1]
    return make(Reshape(sizes=match.root.shape), x) if moved == sorted(moved) else None


TRANSPOSE_OF_ONES = Rule(
    name="transpose-of-ones",
    text="A Transpose that only moves axes of size 1 becomes a Reshape, and one that moves none disappears.",
    pattern=op(Transpose, tensor("x"), name="transpose"),
    replacement=_transpose_of_ones,
    instance=instances.transposes_with_ones,
    simplifies=True,
)

RESHAPE_PAIR = Rule(
    name="reshape-pair",
    text="Two Reshapes in sequence become one.",
    pattern=op(Reshape, op(Reshape, tensor("x")), name="second"),
    replacement=lambda match: make(match.operator("second", Reshape), match["x"]),
    instance=instances.reshape_pairs,
    simplifies=True,
)

RESHAPE_OF_NOTHING = Rule(
    name="reshape-of-nothing",
    text="A Reshape to the operand's shape disappears.",
    pattern=op(Reshape, tensor("x")),
    condition=lambda match: match["x"].shape == match.root.shape,
    replacement=lambda match: match["x"],
    instance=instances.reshapes,
    simplifies=True,
)


# ---- Slice and Concat


def _slice_pair(match: Match) -> Term:
    first, second = match.operator("first", Slice), match.operator("second", Slice)
    combined = Slice(
        starts=tuple(
            start + index * step
            for start, index, step in zip(first.starts, second.starts, first.steps, strict=True)
        ),
        sizes=second.sizes,
        steps=tuple(one * other for one, other in zip(first.steps, second.steps, strict=True)),
    )
    return make(combined, match["x"])


SLICE_PAIR = Rule(
    name="slice-pair",
    text="Two Slices in sequence become one.",
    pattern=op(Slice, op(Slice, tensor("x"), name="first"), name="second"),
    replacement=_slice_pair,
    instance=instances.slice_pairs,
    simplifies=True,
)


def _is_everything(match: Match) -> bool:
    operator = match.operator("slice", Slice)
    sizes = zip(operator.sizes, operator.steps, strict=True)
    return match["x"].shape == operator.sizes and all(step == 1 or size == 1 for size, step in sizes)


SLICE_OF_EVERYTHING = Rule(
    name="slice-of-everything",
    text="A Slice of all values in their order disappears.",
    pattern=op(Slice, tensor("x"), name="slice"),
    condition=_is_everything,
    replacement=lambda match: match["x"],
    instance=instances.slices,
    simplifies=True,
)


def _slice_of_concat(match: Match) -> Term | None:
    concat, part = match.operator("concat", Concat), match.operator("slice", Slice)
    axis, offset = concat.axis, 0
    start = part.starts[axis]
    last = start + (part.sizes[axis] - 1) * part.steps[axis]
    for value in match.rest("operands"):
        end = offset + value.shape[axis]
        if offset <= min(start, last) and max(start, last) < end:
            starts = (*part.starts[:axis], start - offset, *part.starts[axis + 1 :])
            return make(replace(part, starts=starts), value)
        offset = end
    return None


SLICE_OF_CONCAT = Rule(
    name="slice-of-concat",
    text="A Slice of a Concat that lies within one operand becomes a Slice of this operand.",
    pattern=op(Slice, op(Concat, rest("operands"), name="concat"), name="slice"),
    replacement=_slice_of_concat,
    instance=instances.slices_of_concats,
    simplifies=True,
)

_Part = tuple[Value, Slice]


def _joined_slices(match: Match) -> Term | None:
    axis, operands = match.operator("concat", Concat).axis, match.rest("operands")
    known: dict[tuple[str, Slice], Value] = {}
    joined: list[Value | _Part] = []
    for value in operands:
        part = _part_along(match, value, axis)
        if part is None:
            joined.append(value)
            continue
        known[part[0].key, part[1]] = value
        last = joined[-1] if joined else None
        if isinstance(last, tuple) and (both := _join(last, part, axis)) is not None:
            joined[-1] = both
        else:
            joined.append(part)
    if len(joined) == len(operands):
        return None
    terms: list[Term] = []
    for one in joined:
        if isinstance(one, Value):
            terms.append(one)
        elif one[1].sizes == one[0].shape:
            terms.append(one[0])
        else:
            terms.append(known.get((one[0].key, one[1])) or make(one[1], one[0]))
    return make(Concat(axis=axis), *terms) if len(terms) > 1 else terms[0]


def _part_along(match: Match, value: Value, axis: int) -> _Part | None:
    """Return source and Slice of a tensor that is a part of another one along one axis."""
    found = match.definition(value, Slice)
    if found is None:
        return None
    part, (source,) = found
    places = zip(part.starts, part.sizes, part.steps, source.shape, strict=True)
    is_along = all(
        step == 1 and (one == axis or (start, size) == (0, whole))
        for one, (start, size, step, whole) in enumerate(places)
    )
    return (source, part) if is_along else None


def _join(first: _Part, second: _Part, axis: int) -> _Part | None:
    (source, before), (other, after) = first, second
    if source.key != other.key or before.starts[axis] + before.sizes[axis] != after.starts[axis]:
        return None
    count = before.sizes[axis] + after.sizes[axis]
    return source, replace(before, sizes=(*before.sizes[:axis], count, *before.sizes[axis + 1 :]))


CONCAT_OF_SLICES = Rule(
    name="concat-of-slices",
    text="Neighbouring Slices of one tensor in a Concat become one Slice, or the tensor itself.",
    pattern=op(Concat, rest("operands"), name="concat"),
    replacement=_joined_slices,
    instance=instances.concats_of_slices,
    simplifies=True,
)


def _flat_concat(match: Match) -> Term | None:
    concat, operands = match.operator("concat", Concat), match.rest("operands")
    if len(operands) == 1:
        return operands[0]
    flat: list[Value] = []
    for value in operands:
        inner = match.definition(value, Concat) if match.view.has_one_reader(value.key) else None
        flat += inner[1] if inner is not None and inner[0] == concat else (value,)
    return make(concat, *flat) if len(flat) > len(operands) else None


CONCAT_OF_CONCAT = Rule(
    name="concat-of-concat",
    text="A Concat on the same axis becomes part of the only Concat that reads it, and a Concat of one "
    "tensor disappears.",
    pattern=op(Concat, rest("operands"), name="concat"),
    replacement=_flat_concat,
    instance=instances.concats_of_concats,
    simplifies=True,
)


# ---- Take, DepthToSpace and SpaceToDepth


def _take_pair(match: Match) -> Term | None:
    first, second = match.operator("first", Take), match.operator("second", Take)
    if first.axis != second.axis:
        return None
    return make(replace(first, indices=tuple(first.indices[one] for one in second.indices)), match["x"])


TAKE_PAIR = Rule(
    name="take-pair",
    text="Two Takes along one axis in sequence become one.",
    pattern=op(Take, op(Take, tensor("x"), name="first"), name="second"),
    replacement=_take_pair,
    instance=instances.take_pairs,
    simplifies=True,
)


def _takes_everything(match: Match) -> bool:
    take = match.operator("take", Take)
    return take.indices == tuple(range(match["x"].shape[take.axis]))


TAKE_OF_EVERYTHING = Rule(
    name="take-of-everything",
    text="A Take of all values in their order disappears.",
    pattern=op(Take, tensor("x"), name="take"),
    condition=_takes_everything,
    replacement=lambda match: match["x"],
    instance=instances.takes,
    simplifies=True,
)


def _shuffle(match: Match) -> Term | None:
    x, out = match["x"], match.root
    if {len(x.shape), len(out.shape)} != {_PICTURE_RANK} or out.dtype not in QUANTIZED:
        return None
    numbers = np.arange(x.tensor.size).reshape(x.shape)
    values, before = numbers, x
    for name in ("first", "second", "third", "last"):
        if name in match.named:
            after = match[name]
            values = match.named[name].evaluate([before.tensor], [values], after.tensor)
            before = after
    for operator in _pixel_moves(x.shape, out.shape, values):
        if np.array_equal(operator.evaluate([x.tensor], [numbers], out.tensor), values):
            return make(operator, x)
    return None


def _pixel_moves(source: Shape, out: Shape, values: npt.NDArray[np.int64]) -> Iterator[Operator]:
    """``values`` has the number in the source of each value of the result."""
    if source == out:
        channels = values[0, :, 0, 0] // (source[2] * source[3])
        if (channels < source[1]).all():
            yield Take(axis=1, indices=tuple(channels.tolist()))
        return
    deep, wide = (source, out) if source[1] > out[1] else (out, source)
    block = isqrt(deep[1] // wide[1])
    if (deep[0], deep[1], deep[2] * block, deep[3] * block) != (wide[0], wide[1] * block**2, *wide[2:]):
        return
    if out == wide:
        yield DepthToSpace(block=block)
        yield DepthToSpace(block=block, columns_first=False)
    else:
        yield SpaceToDepth(block=block)


def _shuffle_rule(
    name: str, text: str, pattern: OpPattern, instance: Callable[[np.random.Generator], Graph]
) -> Rule:
    return Rule(
        name=name, text=text, pattern=pattern, replacement=_shuffle, instance=instance, simplifies=True
    )


_MOVES = (Reshape, Transpose)
_FIRST = op(Reshape, tensor("x"), name="first")

SHUFFLE = _shuffle_rule(
    "shuffle",
    "A Reshape, a Reshape or Transpose, and a Reshape of a picture become a Take of channels, a DepthToSpace "
    "or a SpaceToDepth.",
    op(Reshape, op(_MOVES, _FIRST, name="second"), name="last"),
    instances.shuffles,
)

LONG_SHUFFLE = _shuffle_rule(
    "long-shuffle",
    "A Reshape, two moves that are Reshapes or Transposes, and a Reshape of a picture become a Take of "
    "channels, a DepthToSpace or a SpaceToDepth.",
    op(Reshape, op(_MOVES, op(_MOVES, _FIRST, name="second"), name="third"), name="last"),
    instances.long_shuffles,
)


# ---- Reshapes around products


def _product_of_rows(match: Match) -> Term | None:
    x, rows, weights, out = match["x"], match["rows"], match["weights"], match.root
    is_joined = len(x.shape) > 2 and x.shape[-1] == rows.shape[-1] and out.shape[:-1] == x.shape[:-1]
    is_matrix = len(rows.shape) == len(weights.shape) == 2
    if not is_joined or not is_matrix or out.dtype not in {*QUANTIZED, "int32"}:
        return None
    return make(match.operator("product", MatMul), x, weights, *match.rest("bias"), like=out)


PRODUCT_OF_ROWS = Rule(
    name="product-of-rows",
    text="An integer product between a Reshape that joins the leading axes and one that separates them again "
    "is computed without both.",
    pattern=op(
        Reshape,
        op(MatMul, op(Reshape, tensor("x"), name="rows"), constant("weights"), rest("bias"), name="product"),
    ),
    condition=lambda match: match.has_one_reader("product"),
    replacement=_product_of_rows,
    instance=instances.products_of_rows,
    simplifies=True,
)

SHUFFLE_RULES = (SHUFFLE, LONG_SHUFFLE)
"""They recognize chains of moves that exporters write for one move."""

MOVEMENT_RULES: tuple[Rule, ...] = (
    TRANSPOSE_PAIR,
    TRANSPOSE_OF_ONES,
    RESHAPE_OF_NOTHING,
    SHUFFLE,
    LONG_SHUFFLE,
    RESHAPE_PAIR,
    PRODUCT_OF_ROWS,
    SLICE_PAIR,
    SLICE_OF_EVERYTHING,
    SLICE_OF_CONCAT,
    CONCAT_OF_SLICES,
    CONCAT_OF_CONCAT,
    TAKE_PAIR,
    TAKE_OF_EVERYTHING,
)
