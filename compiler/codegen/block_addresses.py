"""Scratchpad and DRAM addresses of the blocks that calls and copies access, by loop variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from accel.base.errors import TensorizeError
from accel.compiler.codegen.dram_map import block_count, place_buffers, row_major
from accel.compiler.expr.linear_expressions import Known, Linear, evaluate, linear, value_of, variables
from accel.compiler.expr.scalar_expressions import Expr, IterVar
from accel.compiler.nest.element_packing import Element, block_shape, buffer_elements
from accel.compiler.nest.nest import Nest, Region
from accel.compiler.nest.nest_text import format_region
from accel.compiler.target.emitter_registry import AccessPtr

Env = Mapping[IterVar, int]


class Dimension(NamedTuple):
    """One dimension of a region: start and extent in tensor elements, and the width of a block."""

    start: Linear
    extent: Expr
    width: int

    @property
    def even(self) -> bool:
        numbers = (self.start.constant, *(factor for _, factor in self.start.terms))
        return not any(number % self.width for number in numbers)


class Place(NamedTuple):
    """The part of a region's addresses that is the same in all calls."""

    dimensions: list[Dimension]
    extents: Known[tuple[int, ...]]
    """In blocks, along each dimension."""
    held: Known[tuple[int, ...]]
    """The same of the buffer's current content."""
    strides: tuple[int, ...] | None
    """Elements from block to block in a scratchpad buffer of constant size."""
    copy: Linear
    apart: int
    """Elements from one thread's copy of the buffer to the next."""

    follows_from: frozenset[Expr]
    """All expressions that determine the start."""

    @property
    def variables(self) -> set[IterVar]:
        return {var for expr in self.follows_from for var in variables(expr)} | {*self.extents.variables}


class _Start(NamedTuple):
    """An element as a function of loop variables: ``constant`` plus the terms."""

    constant: int
    terms: tuple[tuple[IterVar, int], ...]
    others: tuple[tuple[Known[int], int], ...]
    """Nonlinear expressions, with their factors."""
    uneven: tuple[tuple[Dimension, int], ...]
    """Dimensions that may start inside a block, with their steps."""

    def at(self, region: Region, env: Env) -> int:
        found = self.constant
        for var, factor in self.terms:
            found += factor * env[var]
        for other, factor in self.others:
            found += factor * other.at(env)
        for dimension, step in self.uneven:
            start = evaluate(dimension.start.expr(), env)
            if start % dimension.width:
                raise _inside_element(region, dimension)
            found += start // dimension.width * step
        return found


class Addresses:
    """The elements of all buffers, and pointers to parts of them."""

    def __init__(self, nest: Nest) -> None:
        self.elements = buffer_elements(nest)
        self.bases = place_buffers(nest.locals, self.elements)
        self._places: dict[tuple[int, Element], Place] = {}
        self._known_strides: dict[tuple[object, ...], tuple[int, ...]] = {}
        self._starts: dict[tuple[int, tuple[int, ...]], _Start] = {}
        """By ``id`` of a place, and steps."""
        self._row_major: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._keep: list[object] = []
        """Keeps objects alive whose ids are keys of the caches above."""

    def pointer(self, region: Region, box: list[IterVar], env: Env) -> AccessPtr:
        place = self.place(region, self.elements[region.buffer])
        steps = self._strides(place, env)
        base = self._local(region, place, steps, env)
        key = (id(region), steps, tuple(box))
        strides = self._known_strides.get(key)
        if strides is None:
            strides = self._known_strides[key] = tuple(self._stride(region, place, steps, var) for var in box)
        assert region.buffer.scope is not None
        return AccessPtr(region.buffer.scope.name, base, strides)

    def taps(self, region: Region, dimension: int | None, env: Env) -> tuple[int, int]:
        """Return the number of a region's blocks along a dimension, and the elements from one to the next."""
        if dimension is None:
            return 1, 0
        place = self.place(region, self.elements[region.buffer])
        return evaluate(place.dimensions[dimension].extent, env), self._strides(place, env)[dimension]

    @staticmethod
    def _stride(region: Region, place: Place, steps: Sequence[int], var: IterVar) -> int:
        stride = place.copy.factor(var) * place.apart
        for dimension, step in zip(place.dimensions, steps, strict=True):
            factor = dimension.start.factor(var)
            if factor % dimension.width:
                raise _inside_element(region, dimension)
            stride += factor // dimension.width * step
        return stride

    def pointer_to(self, region: Region, place: Place, env: Env) -> AccessPtr:
        steps = self._strides(place, env)
        assert region.buffer.scope is not None
        return AccessPtr(region.buffer.scope.name, self._local(region, place, steps, env), steps)

    def outside(self, region: Region, place: Place, steps: tuple[int, ...], env: Env) -> int:
        """Return the first element of a DRAM region, from the start of its tensor."""
        return self._start(place, steps, 0, 0).at(region, env)

    def _local(self, region: Region, place: Place, steps: tuple[int, ...], env: Env) -> int:
        """Return the first element of a region in the thread's copy of its scratchpad buffer."""
        buffer = region.buffer
        apart = 0 if buffer.sets == 1 else place.apart
        return self._start(place, steps, self.bases[buffer], apart).at(region, env)

    def _start(self, place: Place, steps: tuple[int, ...], first: int, apart: int) -> _Start:
        """The buffer starts at ``first``, and its copies are ``apart`` elements apart."""
        key = (id(place), steps)
        found = self._starts.get(key)
        if found is None:
            even = [(d, step) for d, step in zip(place.dimensions, steps, strict=True) if d.even]
            parts = [(d.start, step, d.width) for d, step in even] + [(place.copy, apart, 1)]
            constant = first
            factors: dict[Expr, int] = {}
            for form, step, width in parts:
                constant += form.constant // width * step
                for atom, factor in form.terms:
                    factors[atom] = factors.get(atom, 0) + factor // width * step
            kept = [(atom, factor) for atom, factor in factors.items() if factor]
            found = self._starts[key] = _Start(
                constant=constant,
                terms=tuple((atom, factor) for atom, factor in kept if isinstance(atom, IterVar)),
                others=tuple(
                    (value_of(atom), factor) for atom, factor in kept if not isinstance(atom, IterVar)
                ),
                uneven=tuple(
                    (d, step) for d, step in zip(place.dimensions, steps, strict=True) if not d.even
                ),
            )
        return found

    def _strides(self, place: Place, env: Env) -> tuple[int, ...]:
        """Return the elements from block to block along each dimension of a buffer's current content."""
        if place.strides is not None:
            return place.strides
        held = place.held.at(env)
        found = self._row_major.get(held)
        if found is None:
            found = self._row_major[held] = row_major(held)
        return found

    def place(self, region: Region, element: Element) -> Place:
        key = (id(region), element)
        found = self._places.get(key)
        if found is None:
            self._keep.append(region)
            sizes = block_shape(element, len(region.ranges))
            held = _blocks(region.buffer_extents, sizes)
            dimensions = [
                Dimension(linear(r.start), r.extent, w) for r, w in zip(region.ranges, sizes, strict=True)
            ]
            copy = linear(region.set_index)
            starts = (copy, *(dimension.start for dimension in dimensions))
            found = self._places[key] = Place(
                dimensions=dimensions,
                extents=_blocks([r.extent for r in region.ranges], sizes),
                held=held,
                strides=None if held.variables else row_major(held.at({})),
                copy=copy,
                apart=block_count(region.buffer, element),
                follows_from=frozenset(
                    [*region.buffer_extents, *(atom for form in starts for atom, _ in form.terms)]
                ),
            )
        return found


def _blocks(sizes: Sequence[Expr], widths_: Sequence[int]) -> Known[tuple[int, ...]]:
    pairs = list(zip(sizes, widths_, strict=True))
    return Known(
        list(dict.fromkeys(var for size in sizes for var in variables(size))),
        lambda env: tuple(-(-evaluate(size, env) // width) for size, width in pairs),
    )


def _inside_element(region: Region, dimension: Dimension) -> TensorizeError:
    return TensorizeError(
        f"{format_region(region)} starts inside an element of {dimension.width}; "
        f"tiles must be multiples of the intrinsic's block"
    )
