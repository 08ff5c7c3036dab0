"""The choice among plans of tiled sums: all that fit are ranked by a rough bound, the best by the model.

One search serves matrix products and convolutions. The model looks at many plans briefly, at the better ones
more closely, and then at their neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic

import numpy as np

from accel.compiler.plans.arrays import BoolArray, FloatArray, IntArray
from accel.compiler.plans.candidate import Candidate, PlanT
from accel.compiler.plans.clocks import TURNS, Predictions, predict
from accel.compiler.plans.sums import Sums
from accel.compiler.plans.tile_walker import TileWalker
from accel.compiler.plans.tiles import KEPT, Sizes, Tiling
from accel.core.config import Config
from accel.core.memories import SCRATCHPADS

_BRIEFLY = 40
"""Turns that the model goes through of the plans that are looked at first."""
_FIRST_OF_KIND = 5
"""Plans of each kind (threads, what they run along, loop order, whether anything is kept) that the model
looks at."""
_FIRST = 128
"""Plans of any kind that it looks at besides."""
_CLOSELY = 40
"""Plans that it looks at closely."""
_REFINED = 3
"""The best of them are tried with somewhat other sizes, until that gains nothing."""
_ROUNDS = 3
"""How often."""
_GAIN = 0.0002
"""Share by which that must have made the best one faster to be worth another round."""
_BEHIND = 0.06
"""Share by which plans that load ahead, or those that do not, may be slower than the others and still be
tried with other sizes."""
KEEPING = (*((kept, 0) for kept in range(len(KEPT))), *((kept, 1) for kept in range(1, len(KEPT))))
"""What scratchpads may keep, by index into :data:`KEPT`, and whether they have room for what comes next."""
LESS_SURE = 0.03
"""By this share plans that load ahead must be better than others: the model has their LOADs come evenly, but
units wait by the order of these."""
_THREADS_OF_KEPT = (3, 8)
"""Numbers of threads that are tried where something is kept, besides their neighbours."""
_LEAST_OF_KEPT = 4
"""Tiles of all threads are tried there if they take one in so many of the accumulators at least."""
_ALIKE = 0.003
"""Rough bounds that differ by less than this share say nothing; effort decides."""
CLOSE = 0.002
"""Plans whose cycles differ by less than this share are as good as one another; bytes decide."""


@dataclass(frozen=True, kw_only=True)
class Space(Generic[PlanT]):
    """The plans of an operator on a machine.

    Attributes:
        shape: what is to be computed.
        config: the machine.
        plan: what a row of a table means.
        allowed: which plans there are schedules for.
        around: by an attribute of the table, all sizes that it may have.
        kept: what scratchpads may keep of all steps, by index into :data:`KEPT`, and whether ahead.
    """

    shape: Sums
    config: Config
    plan: Callable[[Tiling], list[PlanT]]
    allowed: Callable[[Sizes], BoolArray]
    around: Mapping[str, Sequence[int]]
    kept: Sequence[tuple[int, int]] = KEEPING

    def sizes(self, table: Tiling) -> Sizes:
        """What follows from plans."""
        return Sizes(self.shape, self.config, table)

    def fitting(self, table: Tiling, threads: int | None, least: int = 0) -> Tiling:
        """Those of some plans that fit, are useful, and have a schedule, with no more threads than have
        something to do; some may be there twice.

        Args:
            table: of plans; its arrays may broadcast.
            threads: so many for all of them; any number if None.
            least: accumulators that tiles of all threads have.
        """
        sizes = self.sizes(table)
        chosen = sizes.useful(threads) & self.allowed(sizes) & sizes.has_room()
        if least:
            chosen = chosen & (table.threads * sizes.elements >= least)
        made = table._replace(threads=np.minimum(table.threads, sizes.turns)).where(chosen)
        if not made.kept.any():
            return made
        sizes = self.sizes(made)
        return made.take(sizes.keeps_well() & sizes.has_micro_ops())

    def predict(self, table: Tiling, most: int = TURNS) -> Predictions:
        """What plans take."""
        return predict(TileWalker(self.shape, self.config, table), most)


def search(space: Space[PlanT], table: Tiling, threads: int | None) -> list[Candidate[PlanT]]:
    """The most promising plans, best first.

    Those that load ahead, of which the model knows less, are looked for apart, so that no others are left out
    for them. The model goes through both side by side, as most of what it takes does not depend on how many
    plans there are.

    Args:
        space: of plans.
        table: those that fit, at least one.
        threads: so many for all of them; any number if None.
    """
    kinds = {
        ahead: replace(space, kept=[pair for pair in space.kept if pair[1] == ahead])
        for ahead in np.unique(table.ahead).tolist()
    }
    found = _Found(space)
    found.add(_promising(space, [table.take(table.ahead == ahead) for ahead in kinds]))
    looked: set[tuple[int, ...]] = set()
    fastest = np.inf
    for _ in range(_ROUNDS):
        before, fastest = fastest, found.cycles.min()
        if fastest > before * (1 - _GAIN):
            break
        others = []
        for ahead, kind in kinds.items():
            fresh = [row for row in found.leaders(ahead) if row not in looked]
            looked.update(fresh)
            if fresh:
                others += kind.fitting(Tiling.of(list(_neighbours(kind, fresh, threads))), threads).rows_of()
        if not others:
            break
        found.add(Tiling.of([row for row in dict.fromkeys(others) if row not in found.rows]))
    return found.ranked()


def _promising(space: Space[PlanT], kinds: Sequence[Tiling]) -> Tiling:
    """Of plans of some kinds those to look at closely: the best of each, briefly looked at."""
    first = []
    for table in kinds:
        sizes = space.sizes(table)
        best = table.take(_best_of_each(table, sizes.quick(), sizes.instructions(), _FIRST_OF_KIND, _FIRST))
        first.append(Tiling.of(list(dict.fromkeys(best.rows_of()))))
    brief = space.predict(Tiling.joined(first), _BRIEFLY).cycles
    ends = np.cumsum([len(table.rows) for table in first])[:-1]
    return Tiling.joined(
        [
            table.take(_best_of_each(table, cycles, space.sizes(table).instructions(), 1, _CLOSELY))
            for table, cycles in zip(first, np.split(brief, ends), strict=True)
        ]
    )


def ranked_together(found: Sequence[list[Candidate[PlanT]]]) -> list[Candidate[PlanT]]:
    """Plans of several searches for the same, each best first, as those of one."""
    if len(found) == 1:
        return found[0]
    every = [one for part in found for one in part]
    limit = min((one.rated for one in every), default=0.0) * (1 + CLOSE)

    def order(one: Candidate[PlanT]) -> tuple[bool, float]:
        close = one.rated <= limit
        return not close, one.read_bytes if close else one.rated

    return sorted(every, key=order)


def _best_of_each(table: Tiling, cycles: FloatArray, effort: IntArray, of_kind: int, of_all: int) -> IntArray:
    """The best plans of each kind and the best of all; those that hardly differ by the effort."""
    alike = np.floor(np.log(cycles / cycles.min()) / np.log(1 + _ALIKE))
    order = np.lexsort((effort, alike))
    kinds = (((table.threads * 8 + table.thread_axis) * 2 + table.outer) * 2 + (table.kept > 0))[order]
    by_kind = np.argsort(kinds, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(kinds[by_kind]) != 0])
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    return np.unique(np.concatenate([order[by_kind[place < of_kind]], order[:of_all]]))


class _Found(Generic[PlanT]):
    """Plans that the model has looked at closely."""

    def __init__(self, space: Space[PlanT]) -> None:
        self.space = space
        self.rows: set[tuple[int, ...]] = set()
        self.table: Tiling | None = None
        self.parts: list[Predictions] = []

    def add(self, table: Tiling) -> None:
        """Look at some more."""
        if not len(table.rows):
            return
        self.rows.update(table.rows_of())
        self.table = table if self.table is None else Tiling.joined([self.table, table])
        self.parts.append(self.space.predict(table))

    @property
    def cycles(self) -> FloatArray:
        """Those predicted, of all."""
        return np.concatenate([part.cycles for part in self.parts])

    def leaders(self, ahead: int) -> list[tuple[int, ...]]:
        """The best of those that load ahead, or of those that do not; none if others are far ahead."""
        assert self.table is not None
        kind, cycles = np.flatnonzero(self.table.ahead == ahead), self.cycles
        order = kind[np.argsort(cycles[kind], kind="stable")[:_REFINED]]
        if cycles[order[0]] > cycles.min() * (1 + _BEHIND):
            return []
        return self.table.take(order).rows_of()

    def ranked(self) -> list[Candidate[PlanT]]:
        """All, best first. Of plans that are about as good as the best those come first that read the fewest
        bytes, and among those the ones with the fewest instructions; but none that load ahead, of which less
        is known."""
        assert self.table is not None
        sizes = self.space.sizes(self.table)
        read, effort, cycles = sizes.read_bytes(), sizes.instructions(), self.cycles
        cycles = cycles * (1 + LESS_SURE * self.table.ahead)
        close = cycles <= cycles.min() * (1 + CLOSE)
        keys = (effort, read, self.table.ahead)
        order = np.lexsort((*(np.where(close, key, 0) for key in keys), np.where(close, 0.0, cycles), ~close))
        plans = self.space.plan(self.table)
        predictions = [one for part in self.parts for one in part.each()]
        return [
            Candidate(
                plan=plans[n], prediction=predictions[n], read_bytes=int(read[n]), rated=float(cycles[n])
            )
            for n in order.tolist()
        ]


def _neighbours(
    space: Space[PlanT], rows: Sequence[tuple[int, ...]], threads: int | None
) -> Iterator[tuple[int, ...]]:
    """Plans with one or two choices a little different."""
    for row in rows:
        plan = Tiling(*row)  # type: ignore[arg-type]  # numbers in place of arrays
        changes: list[tuple[str, int]] = []
        for name, every in space.around.items():
            at = min(range(len(every)), key=lambda n: abs(every[n] - getattr(plan, name)))
            changes += [(name, every[n]) for n in range(max(0, at - 2), min(len(every), at + 3))]
        for name, size in changes:
            yield tuple(plan._replace(**{name: size}))  # type: ignore[arg-type]
        if plan.threads > 1:
            for axis in range(4):
                yield tuple(plan._replace(thread_axis=axis))  # type: ignore[arg-type]
        for kept, ahead in space.kept:
            yield tuple(plan._replace(kept=kept, ahead=ahead))  # type: ignore[arg-type]
        if threads is None:
            for number in (max(1, plan.threads - 1), plan.threads + 1):
                yield tuple(plan._replace(threads=number))  # type: ignore[arg-type]


def kept_with(fixed: Mapping[str, int] | None) -> Sequence[tuple[int, int]]:
    """What may be kept: nothing if sides of tiles are given, as these say what each tile and step loads."""
    return KEEPING[:1] if fixed else KEEPING


def every_plan(
    space: Space[PlanT], tried: Mapping[str, Sequence[int]], threads: Sequence[int], exactly: int | None
) -> Tiling:
    """All plans that fit and are useful.

    Args:
        space: of plans.
        tried: by an attribute of the table, its sizes.
        threads: numbers of virtual threads.
        exactly: how many there must be work for; for several if None.
    """
    sizes = [tried[name] for name in ("channels", "rows", "columns", "depth", "kernel_rows", "batches")]
    config = space.config
    *of_tiles, batches = sizes
    alone = Tiling.grid(*of_tiles, [1], [0], [0], batches, [0], [0])
    seen = space.sizes(alone)
    room = (
        (seen.inputs <= config.inp_depth)
        & (seen.weights <= config.wgt_depth)
        & (seen.elements <= config.acc_depth)
    )
    alone = alone.take(np.flatnonzero(room))
    axes = range(4 if space.shape.groups > 1 else 3)
    kinds = [
        (number, axis, outer)
        for number in threads
        for axis in (axes if number > 1 else [0])
        for outer in range(2)
    ]
    found = []
    least = min(config.acc_depth, space.shape.outputs // space.shape.groups) // _LEAST_OF_KEPT
    for kept, ahead, every in _keeping(space, alone):
        some = [kind for kind in kinds if not kept or exactly is not None or kind[0] in _THREADS_OF_KEPT]
        number, axis, outer = np.array(some, dtype=np.int64).reshape(-1, 3, 1).transpose(1, 0, 2)
        keeps = {"kept": np.array([kept]), "ahead": np.array([ahead])}
        table = every._replace(threads=number, thread_axis=axis, outer=outer, **keeps)
        found.append(space.fitting(table, exactly, least if kept else 0))
    return Tiling.joined(found)


def least_needs(
    choices: Iterable[Sums], config: Config, tried: Mapping[str, Sequence[int]]
) -> dict[str, int]:
    """Elements of each scratchpad that the smallest tiles take, in the way that lacks room in the fewest.

    Args:
        choices: the ways in which the same can be computed.
        config: the machine.
        tried: by an attribute of the table, its sizes.
    """
    smallest = {name: [min(sizes)] for name, sizes in tried.items()} | {"threads": [1], "outer": [0, 1]}
    table = Tiling.grid(*(smallest.get(name, [0]) for name in Tiling._fields))
    every = [
        {name: int(np.broadcast_to(elements, 2)[outer]) for name, elements in needs.items()}
        for shape in choices
        for needs in [Sizes(shape, config, table).needs()]
        for outer in range(2)
    ]
    return min(
        every, key=lambda one: sum(size > SCRATCHPADS[name].depth(config) for name, size in one.items())
    )


def _keeping(space: Space[PlanT], alone: Tiling) -> Iterator[tuple[int, int, Tiling]]:
    """What may be kept, and those of some tiles for which there is room for all of it."""
    sizes, config = space.sizes(alone), space.config
    inputs, weights = sizes.inputs * sizes.steps, sizes.weights * sizes.steps
    rooms: dict[int, Tiling] = {}
    for kept, ahead in space.kept:
        if kept not in rooms:
            keeps = space.sizes(alone._replace(kept=np.full_like(alone.kept, kept)))
            room = (inputs <= config.inp_depth) | ~keeps.inputs_kept
            room &= (weights <= config.wgt_depth) | ~keeps.weights_kept
            rooms[kept] = alone.take(np.flatnonzero(room))
        yield kept, ahead, rooms[kept]
