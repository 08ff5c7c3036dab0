"""Where the blocks lie that calls and copies are about, while the loops around them run."""

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
"""The values of loop variables."""


class Dimension(NamedTuple):
    """One dimension of a region: where it starts, in blocks of ``width``."""

    start: Linear
    extent: Expr
    width: int

    @property
    def even(self) -> bool:
        """Whether it starts at a block, whatever its variables are."""
        numbers = (self.start.constant, *(factor for _, factor in self.start.terms))
        return not any(number % self.width for number in numbers)


class Place(NamedTuple):
    """The part of a region that is the same in all calls."""

    dimensions: list[Dimension]
    extents: Known[tuple[int, ...]]
    """In blocks, along each dimension."""
    held: Known[tuple[int, ...]]
    """The same of all that the buffer holds now."""
    strides: tuple[int, ...] | None
    """Distances from block to block in a scratchpad buffer of constant size, in elements."""
    copy: Linear
    apart: int
    """Elements from one thread's copy of the buffer to the next."""

    follows_from: frozenset[Expr]
    """All that decides where the blocks lie."""

    @property
    def variables(self) -> set[IterVar]:
        """Those that decide where the blocks lie, and how many there are."""
        return {var for expr in self.follows_from for var in variables(expr)} | {*self.extents.variables}


class _Start(NamedTuple):
    """An element as a function of loop variables: ``constant`` and all that is added to it."""

    constant: int
    terms: tuple[tuple[IterVar, int], ...]
    others: tuple[tuple[Known[int], int], ...]
    """Expressions that are not linear, with their factors."""
    uneven: tuple[tuple[Dimension, int], ...]
    """Dimensions of which only the run tells whether they start at a block, with their steps."""

    def at(self, region: Region, env: Env) -> int:
        """The element."""
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
    """The elements of all buffers, where those in scratchpads begin, and pointers to parts of them."""

    def __init__(self, nest: Nest) -> None:
        self.elements = buffer_elements(nest)
        self.bases = place_buffers(nest.locals, self.elements)
        self._places: dict[tuple[int, Element], Place] = {}
        self._known_strides: dict[tuple[object, ...], tuple[int, ...]] = {}
        self._starts: dict[tuple[int, tuple[int, ...]], _Start] = {}
        """By the id of a place, and steps."""
        self._row_major: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._keep: list[object] = []
        """Keeps objects alive whose ids are keys of the caches above."""

    def pointer(self, region: Region, box: list[IterVar], env: Env) -> AccessPtr:
        """To the blocks that a region covers while the variables of ``box`` run."""
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
        """How many blocks of a region there are along a dimension, and elements from one to the next."""
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
        """To the blocks of a scratchpad region."""
        steps = self._strides(place, env)
        assert region.buffer.scope is not None
        return AccessPtr(region.buffer.scope.name, self._local(region, place, steps, env), steps)

    def outside(self, region: Region, place: Place, steps: tuple[int, ...], env: Env) -> int:
        """Where a region of DRAM starts, in elements from the start of its tensor."""
        return self._start(place, steps, 0, 0).at(region, env)

    def _local(self, region: Region, place: Place, steps: tuple[int, ...], env: Env) -> int:
        """The element of its scratchpad where a region starts, in the thread's copy of the buffer."""
        buffer = region.buffer
        apart = 0 if buffer.sets == 1 else place.apart
        return self._start(place, steps, self.bases[buffer], apart).at(region, env)

    def _start(self, place: Place, steps: tuple[int, ...], first: int, apart: int) -> _Start:
        """Where a region starts if its buffer starts at ``first`` and has copies so far apart."""
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
        """Distances from block to block along each dimension of a buffer's current content, in elements."""
        if place.strides is not None:
            return place.strides
        held = place.held.at(env)
        found = self._row_major.get(held)
        if found is None:
            found = self._row_major[held] = row_major(held)
        return found

    def place(self, region: Region, element: Element) -> Place:
        """A region in blocks of an element's size."""
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
