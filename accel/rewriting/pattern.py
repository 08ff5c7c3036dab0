"""Patterns of graph operators, their matches, and the terms that replace them.

docs/how-to/rewrite-a-graph.md has an example.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import msgspec
import numpy as np
from msgspec import Struct

from accel.base.records import replace
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Array, Quantization, Shape, Tensor

AnyOperator = TypeVar("AnyOperator", bound=Operator)


class TensorPattern(Struct, frozen=True):
    name: str
    is_constant: bool = False


class RestPattern(Struct, frozen=True):
    """All further operands, perhaps none."""

    name: str
    is_constant: bool = False


class OpPattern(Struct, frozen=True):
    """The result of an operator.

    Attributes:
        operands: the last one may be a RestPattern.
        name: of the operator in the match, or empty.
    """

    kinds: tuple[type[Operator], ...]
    operands: tuple[TensorPattern | RestPattern | OpPattern, ...]
    name: str = ""

    @property
    def depth(self) -> int:
        return 1 + max((one.depth for one in self.operands if isinstance(one, OpPattern)), default=0)

    def operators(self) -> Iterable[OpPattern]:
        """Yield this and inner patterns, outermost first."""
        yield self
        for one in self.operands:
            if isinstance(one, OpPattern):
                yield from one.operators()


def tensor(name: str) -> TensorPattern:
    """Match any tensor. Equal names in a pattern match the same tensor."""
    return TensorPattern(name)


def constant(name: str) -> TensorPattern:
    """Match a constant."""
    return TensorPattern(name, is_constant=True)


def rest(name: str) -> RestPattern:
    """Match all further operands."""
    return RestPattern(name)


def constants(name: str) -> RestPattern:
    """Match all further operands if they are constants."""
    return RestPattern(name, is_constant=True)


def op(
    kind: type[Operator] | tuple[type[Operator], ...],
    *operands: TensorPattern | RestPattern | OpPattern,
    name: str = "",
) -> OpPattern:
    """Match the result of an operator."""
    return OpPattern(kind if isinstance(kind, tuple) else (kind,), operands, name)


@dataclass(frozen=True)
class Value:
    """A tensor in a match.

    Attributes:
        key: names the tensor within its graph.
        tensor: its shape, dtype and quantization, without a meaningful name.
        values: of a constant.
    """

    key: str
    tensor: Tensor = field(compare=False)
    values: Array | None = field(default=None, compare=False, repr=False)

    @property
    def shape(self) -> Shape:
        return self.tensor.shape

    @property
    def dtype(self) -> str:
        return self.tensor.dtype

    @property
    def quantization(self) -> Quantization | None:
        return self.tensor.quantization

    @property
    def array(self) -> Array:
        assert self.values is not None  # the pattern says so
        return self.values


def is_per_tensor(*values: Value) -> bool:
    """Whether each tensor has no scale, or one."""
    return all(one.quantization is None or one.quantization.is_per_tensor for one in values)


class NewConstant(Struct, frozen=True, eq=False):
    """A constant of a replacement."""

    values: Array
    quantization: Quantization | None = None

    @property
    def contiguous(self) -> Array:
        return np.ascontiguousarray(self.values).reshape(self.values.shape)

    @property
    def tensor(self) -> Tensor:
        return Tensor(
            name="constant",
            shape=self.values.shape,
            dtype=self.values.dtype.name,
            quantization=self.quantization,
        )


class NewNode(Struct, frozen=True, eq=False):
    """An operator of a replacement. A term that is used twice becomes one node."""

    operator: Operator
    operands: tuple[Term, ...]
    tensor: Tensor


Term = Value | NewConstant | NewNode


def make(
    operator: Operator,
    *operands: Term,
    dtype: str | None = None,
    quantization: Quantization | None = None,
    like: Value | None = None,
) -> NewNode:
    """Return a term that applies an operator.

    Args:
        like: has the result's dtype and quantization, by default the first operand.

    Raises:
        GraphError: the operator does not take such operands.
    """
    tensors = [one.tensor for one in operands]
    first = tensors[0]
    if like is not None:
        dtype, quantization = like.dtype, like.quantization
    elif dtype is None:
        dtype, quantization = first.dtype, quantization or first.quantization
    out = Tensor(name="result", shape=operator.result_shape(tensors), dtype=dtype, quantization=quantization)
    operator.check(tensors, out)
    return NewNode(operator, operands, out)


class View(Protocol):
    """What conditions can ask about the graph around a match."""

    def definitions(self, key: str) -> Iterable[tuple[Operator, tuple[Value, ...]]]:
        """Yield the operators that compute a tensor: one in a graph, perhaps several in an e-graph."""

    def has_one_reader(self, key: str) -> bool:
        """Whether one operand reads the tensor, which is no output. Always true in an e-graph, which contains
        such a graph.
        """


class Match(Struct, frozen=True):
    """A place where a pattern fits.

    Attributes:
        roots: the result of each pattern.
        found: tensors by name, also the results of named operators.
        lists: operands of ``rest`` and ``constants``.
        named: operators by name.
    """

    view: View
    roots: tuple[Value, ...] = ()
    found: dict[str, Value] = msgspec.field(default_factory=dict)
    lists: dict[str, tuple[Value, ...]] = msgspec.field(default_factory=dict)
    named: dict[str, Operator] = msgspec.field(default_factory=dict)

    def __getitem__(self, name: str) -> Value:
        return self.found[name]

    def rest(self, name: str) -> tuple[Value, ...]:
        return self.lists[name]

    def operator(self, name: str, kind: type[AnyOperator]) -> AnyOperator:
        found = self.named[name]
        assert isinstance(found, kind)  # the pattern says so
        return found

    @property
    def root(self) -> Value:
        return self.roots[0]

    def definitions(self, value: Value) -> Iterable[tuple[Operator, tuple[Value, ...]]]:
        return self.view.definitions(value.key)

    def definition(
        self, value: Value, kind: type[AnyOperator]
    ) -> tuple[AnyOperator, tuple[Value, ...]] | None:
        """Return an operator of the class that computes a tensor, and its operands."""
        for operator, operands in self.definitions(value):
            if isinstance(operator, kind):
                return operator, operands
        return None

    def has_one_reader(self, name: str) -> bool:
        return self.view.has_one_reader(self.found[name].key)

    def values(self, name: str) -> Array:
        return self.found[name].array

    def with_operator(self, name: str, result: Value, operator: Operator) -> Match | None:
        """Return None if the name has another tensor."""
        if name in self.found and self.found[name].key != result.key:
            return None
        return replace(self, found={**self.found, name: result}, named={**self.named, name: operator})

    def with_tensor(self, name: str, value: Value) -> Match | None:
        if name in self.found:
            return self if self.found[name].key == value.key else None
        return replace(self, found={**self.found, name: value})
