"""Where the blocks lie that calls and copies are about, while the loops around them run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from accel.base.errors import TensorizeError
from accel.compiler.codegen.memory import block_count, place_buffers, row_major
from accel.compiler.expr.linear import Linear, evaluate, linear, variables
from accel.compiler.expr.scalar import Expr, IterVar
from accel.compiler.nest.nest import Nest, Region
from accel.compiler.nest.packing import Element, buffer_elements, widths
from accel.compiler.nest.text import format_region
from accel.compiler.target.registry import AccessPtr

Env = dict[IterVar, int]
"""The values of loop variables."""


class Dimension(NamedTuple):
    """One dimension of a region: where it starts, in blocks of ``width``."""

    start: Linear
    extent: Expr
    width: int


class Place(NamedTuple):
    """What of a region does not change from call to call."""

    dimensions: list[Dimension]
    extents: _Blocks
    held: _Blocks
    strides: tuple[int, ...] | None
    """Of a scratchpad buffer that always holds as much, elements from block to block."""
    copy: Linear
    apart: int
    """Elements from one thread's copy of the buffer to the next."""


class _Blocks:
    """Sizes in blocks, along each dimension."""

    def __init__(self, sizes: Sequence[Expr], widths_: Sequence[int]) -> None:
        self._pairs = list(zip(sizes, widths_, strict=True))
        self._variables = list(dict.fromkeys(var for size in sizes for var in variables(size)))
        self.fixed = None if self._variables else self._evaluated({})
        """If they are always the same."""
        self._known: dict[tuple[int, ...], tuple[int, ...]] = {}

    def at(self, env: Env) -> tuple[int, ...]:
        if self.fixed is not None:
            return self.fixed
        key = tuple(env[var] for var in self._variables)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._evaluated(env)
        return found

    def _evaluated(self, env: Env) -> tuple[int, ...]:
        return tuple(-(-evaluate(size, env) // width) for size, width in self._pairs)


class Addresses:
    """The elements of all buffers, where those in scratchpads begin, and pointers to parts of them.

    Raises:
        ScheduleError, TensorizeError: a scratchpad is too small, or two uses of a buffer disagree.
    """

    def __init__(self, nest: Nest) -> None:
        self.elements = buffer_elements(nest)
        self.bases = place_buffers(nest.locals, self.elements)
        self._places: dict[tuple[int, Element], Place] = {}
        self._known_strides: dict[tuple[object, ...], tuple[int, ...]] = {}
        self._keep: list[object] = []
        """What the caches above know by its id."""

    def pointer(self, region: Region, box: list[IterVar], env: Env) -> AccessPtr:
        """To the blocks that a region covers while the variables of ``box`` run."""
        place = self.place(region, self.elements[region.buffer])
        steps = self._strides(place, env)
        base = self.base(region, place, steps, self._copy_base(region, place, env), env)
        key = (id(region), steps, tuple(box))
        strides = self._known_strides.get(key)
        if strides is None:
            strides = self._known_strides[key] = tuple(self._stride(region, place, steps, var) for var in box)
        assert region.buffer.scope is not None
        return AccessPtr(region.buffer.scope.name, base, strides)

    def taps(self, region: Region, dimension: int | None, env: Env) -> tuple[int, int]:
        """How many blocks of a region there are along a dimension, and elements from one to the next."""
        if dimension is None:
            return 1, 0
        place = self.place(region, self.elements[region.buffer])
        return evaluate(place.dimensions[dimension].extent, env), self._strides(place, env)[dimension]

    @staticmethod
    def _stride(region: Region, place: Place, steps: Sequence[int], var: IterVar) -> int:
        """Elements from one iteration of a loop to the next."""
        stride = place.copy.factor(var) * place.apart
        for dimension, step in zip(place.dimensions, steps, strict=True):
            factor = dimension.start.factor(var)
            if factor % dimension.width:
                raise _inside_element(region, dimension)
            stride += factor // dimension.width * step
        return stride

    def pointer_to(self, region: Region, place: Place, env: Env) -> AccessPtr:
        """To the blocks of a scratchpad region."""
        steps = self._strides(place, env)
        base = self.base(region, place, steps, self._copy_base(region, place, env), env)
        assert region.buffer.scope is not None
        return AccessPtr(region.buffer.scope.name, base, steps)

    def base(self, region: Region, place: Place, steps: Sequence[int], base: int, env: Env) -> int:
        for dimension, step in zip(place.dimensions, steps, strict=True):
            start = dimension.start.constant
            for atom, factor in dimension.start.terms:
                start += factor * (env[atom] if isinstance(atom, IterVar) else evaluate(atom, env))
            if start % dimension.width:
                raise _inside_element(region, dimension)
            base += start // dimension.width * step
        return base

    def _copy_base(self, region: Region, place: Place, env: Env) -> int:
        """First element of the thread's copy of a scratchpad buffer."""
        base = self.bases[region.buffer]
        return base if region.buffer.copies == 1 else base + evaluate(region.copy, env) * place.apart

    def _strides(self, place: Place, env: Env) -> tuple[int, ...]:
        """Elements from block to block along each dimension of what a buffer holds now."""
        return row_major(place.held.at(env)) if place.strides is None else place.strides

    def place(self, region: Region, element: Element) -> Place:
        """A region in blocks of an element's size."""
        key = (id(region), element)
        found = self._places.get(key)
        if found is None:
            self._keep.append(region)
            sizes = widths(element, len(region.ranges))
            held = _Blocks(region.held, sizes)
            found = self._places[key] = Place(
                dimensions=[
                    Dimension(linear(r.start), r.extent, w) for r, w in zip(region.ranges, sizes, strict=True)
                ],
                extents=_Blocks([r.extent for r in region.ranges], sizes),
                held=held,
                strides=None if held.fixed is None else row_major(held.fixed),
                copy=linear(region.copy),
                apart=block_count(region.buffer, element),
            )
        return found


def _inside_element(region: Region, dimension: Dimension) -> TensorizeError:
    return TensorizeError(
        f"{format_region(region)} starts inside an element of {dimension.width}; "
        f"tiles must be multiples of the intrinsic's block"
    )
