"""Rules of Transposes and operators of several operands. elementwise_rules.py has those of one operand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from accel.base.records import replace
from accel.graph.elementwise_operators import (
    Add,
    ChannelTable,
    swaps_operands,
)
from accel.graph.graph_tensor import QUANTIZED, Shape
from accel.graph.movement_operators import (
    Concat,
    Pad,
    Transpose,
)
from accel.rewriting import movement_instances as instances
from accel.rewriting.operator_classes import BINARY
from accel.rewriting.pattern import (
    Match,
    NewConstant,
    NewNode,
    Term,
    Value,
    constant,
    is_per_tensor,
    make,
    op,
    rest,
    tensor,
)
from accel.rewriting.rule import Rule

_Permutation = tuple[int, ...]


def _inverse(permutation: _Permutation) -> _Permutation:
    return tuple(np.argsort(permutation).tolist())


def _permuted(sizes: Shape, permutation: _Permutation) -> Shape:
    return tuple(sizes[axis] for axis in permutation)


def _moved_operand(value: Value, permutation: _Permutation) -> Term | None:
    rank = len(permutation)
    if len(value.shape) > rank:
        return None
    if len(value.shape) == 0 or max(value.shape) == 1:
        return value
    if value.values is not None:
        padded = value.array.reshape((1,) * (rank - len(value.shape)) + value.shape)
        return NewConstant(padded.transpose(permutation), value.quantization)
    if len(value.shape) < rank:
        return None
    return make(Transpose(permutation=permutation), value)


def _moved_binary(
    match: Match, operands: tuple[Term, Term], before: tuple[Value, Value], out: Value
) -> NewNode | None:
    """Apply a binary operator to moved operands, or return None if the result would differ.

    ``before`` and ``out`` are in the graph. The operands' shapes determine the order of a quantized Add.
    """
    operator = match.named["binary"]
    new = make(operator, *operands, dtype=out.dtype, quantization=out.quantization)
    if isinstance(operator, Add) and out.dtype in QUANTIZED:
        old = swaps_operands([one.tensor for one in before], out.tensor)
        if old != swaps_operands([one.tensor for one in operands], new.tensor):
            return None
    return new


def _binary_before_transpose(match: Match) -> Term | None:
    first, second = match.operator("first", Transpose), match.operator("second", Transpose)
    if first != second:
        return None
    operands = match["x"], match["y"]
    new = _moved_binary(match, operands, (match["first"], match["second"]), match.root)
    return None if new is None else make(first, new)


BINARY_BEFORE_TRANSPOSE = Rule(
    name="binary-before-transpose",
    text="A binary operator of two equally transposed tensors is computed before one Transpose.",
    pattern=op(
        BINARY,
        op(Transpose, tensor("x"), name="first"),
        op(Transpose, tensor("y"), name="second"),
        name="binary",
    ),
    replacement=_binary_before_transpose,
    instance=instances.binary_of_transposes,
)


def _constant_before_transpose(swapped: bool) -> Callable[[Match], Term | None]:
    def replacement(match: Match) -> Term | None:
        transpose, x = match.operator("transpose", Transpose), match["x"]
        moved = _moved_operand(match["constant"], _inverse(transpose.permutation))
        if moved is None or len(match.root.shape) != len(x.shape):
            return None
        before = match["transpose"], match["constant"]
        operands: tuple[Term, Term] = (moved, x) if swapped else (x, moved)
        new = _moved_binary(match, operands, before[::-1] if swapped else before, match.root)
        return None if new is None else make(transpose, new)

    return replacement


CONSTANT_BEFORE_TRANSPOSE = Rule(
    name="constant-before-transpose",
    text="A binary operator of a transposed tensor and a constant is computed before the Transpose.",
    pattern=op(BINARY, op(Transpose, tensor("x"), name="transpose"), constant("constant"), name="binary"),
    replacement=_constant_before_transpose(swapped=False),
    instance=instances.transposes_with_constants,
)

FIRST_CONSTANT_BEFORE_TRANSPOSE = Rule(
    name="first-constant-before-transpose",
    text="A binary operator of a constant and a transposed tensor is computed before the Transpose.",
    pattern=op(BINARY, constant("constant"), op(Transpose, tensor("x"), name="transpose"), name="binary"),
    replacement=_constant_before_transpose(swapped=True),
    instance=instances.transposes_with_first_constants,
)


def _binary_after_transpose(match: Match) -> Term | None:
    transpose, before = match.operator("transpose", Transpose), (match["x"], match["y"])
    left, right = (_moved_operand(one, transpose.permutation) for one in before)
    if left is None or right is None:
        return None
    return _moved_binary(match, (left, right), before, match["binary"])


BINARY_AFTER_TRANSPOSE = Rule(
    name="binary-after-transpose",
    text="The Transpose of a binary operator moves to both operands, and into constants.",
    pattern=op(Transpose, op(BINARY, tensor("x"), tensor("y"), name="binary"), name="transpose"),
    condition=lambda match: is_per_tensor(match["x"], match["y"]),
    replacement=_binary_after_transpose,
    instance=instances.transposed_binary,
)


def _concat_before_transpose(match: Match) -> Term | None:
    transpose, concat = match.operator("first", Transpose), match.operator("concat", Concat)
    operands: list[Term] = [match["x"]]
    for value in match.rest("others"):
        found = match.definition(value, Transpose)
        if found is not None and found[0] == transpose:
            operands.append(found[1][0])
        elif value.values is not None:
            moved = value.array.transpose(_inverse(transpose.permutation))
            operands.append(NewConstant(moved, value.quantization))
        else:
            return None
    joined = make(replace(concat, axis=transpose.permutation[concat.axis]), *operands)
    return make(transpose, joined)


CONCAT_BEFORE_TRANSPOSE = Rule(
    name="concat-before-transpose",
    text="A Concat of equally transposed tensors is computed before one Transpose.",
    pattern=op(Concat, op(Transpose, tensor("x"), name="first"), rest("others"), name="concat"),
    replacement=_concat_before_transpose,
    instance=instances.concat_of_transposes,
)


def _concat_after_transpose(match: Match) -> Term:
    transpose, concat = match.operator("transpose", Transpose), match.operator("concat", Concat)
    operands = [make(transpose, one) for one in match.rest("operands")]
    return make(replace(concat, axis=transpose.permutation.index(concat.axis)), *operands)


CONCAT_AFTER_TRANSPOSE = Rule(
    name="concat-after-transpose",
    text="The Transpose of a Concat moves to its operands.",
    pattern=op(Transpose, op(Concat, rest("operands"), name="concat"), name="transpose"),
    replacement=_concat_after_transpose,
    instance=instances.transposed_concat,
)


def _moved_pad(pad: Pad, permutation: _Permutation) -> Pad:
    return replace(pad, begin=_permuted(pad.begin, permutation), end=_permuted(pad.end, permutation))


def _pad_before_transpose(match: Match) -> Term:
    transpose, pad = match.operator("transpose", Transpose), match.operator("pad", Pad)
    return make(transpose, make(_moved_pad(pad, _inverse(transpose.permutation)), match["x"]))


PAD_BEFORE_TRANSPOSE = Rule(
    name="pad-before-transpose",
    text="A transposed tensor is padded before its Transpose.",
    pattern=op(Pad, op(Transpose, tensor("x"), name="transpose"), name="pad"),
    replacement=_pad_before_transpose,
    instance=instances.padded_transposes,
)


def _pad_after_transpose(match: Match) -> Term:
    transpose, pad = match.operator("transpose", Transpose), match.operator("pad", Pad)
    return make(_moved_pad(pad, transpose.permutation), make(transpose, match["x"]))


PAD_AFTER_TRANSPOSE = Rule(
    name="pad-after-transpose",
    text="A padded tensor is transposed before its Pad.",
    pattern=op(Transpose, op(Pad, tensor("x"), name="pad"), name="transpose"),
    replacement=_pad_after_transpose,
    instance=instances.transposed_pads,
)


def _channel_table_before_transpose(match: Match) -> Term:
    transpose, table = match.operator("transpose", Transpose), match.operator("table", ChannelTable)
    moved = replace(table, axis=transpose.permutation[table.axis])
    return make(transpose, make(moved, match["x"], match["entries"], like=match.root))


CHANNEL_TABLE_BEFORE_TRANSPOSE = Rule(
    name="channel-table-before-transpose",
    text="A ChannelTable looks values up before a Transpose.",
    pattern=op(ChannelTable, op(Transpose, tensor("x"), name="transpose"), tensor("entries"), name="table"),
    condition=lambda match: (
        0 <= match.operator("table", ChannelTable).axis < len(match["x"].shape) and is_per_tensor(match.root)
    ),
    replacement=_channel_table_before_transpose,
    instance=instances.channel_tables_of_transposes,
)


def _channel_table_after_transpose(match: Match) -> Term:
    transpose, table = match.operator("transpose", Transpose), match.operator("table", ChannelTable)
    moved = replace(table, axis=transpose.permutation.index(table.axis))
    return make(moved, make(transpose, match["x"]), match["entries"], like=match.root)


CHANNEL_TABLE_AFTER_TRANSPOSE = Rule(
    name="channel-table-after-transpose",
    text="A ChannelTable looks values up after a Transpose.",
    pattern=op(Transpose, op(ChannelTable, tensor("x"), tensor("entries"), name="table"), name="transpose"),
    condition=lambda match: (
        0 <= match.operator("table", ChannelTable).axis < len(match["x"].shape) and is_per_tensor(match["x"])
    ),
    replacement=_channel_table_after_transpose,
    instance=instances.transposed_channel_tables,
)

TRANSPOSE_RULES: tuple[Rule, ...] = (
    BINARY_BEFORE_TRANSPOSE,
    CONSTANT_BEFORE_TRANSPOSE,
    FIRST_CONSTANT_BEFORE_TRANSPOSE,
    BINARY_AFTER_TRANSPOSE,
    CONCAT_BEFORE_TRANSPOSE,
    CONCAT_AFTER_TRANSPOSE,
    PAD_BEFORE_TRANSPOSE,
    PAD_AFTER_TRANSPOSE,
    CHANNEL_TABLE_BEFORE_TRANSPOSE,
    CHANNEL_TABLE_AFTER_TRANSPOSE,
)
