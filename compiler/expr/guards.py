"""Guarded loops as boxes: where a condition decides, loops run over parts of their ranges instead.

for y in range(8):              for dy in range(1):
    for dy in range(3):             for y in range(1, 8):
        if 0 < y+dy:                    gemm(...)
            gemm(...)           for dy in range(1, 3):
                                    for y in range(8):
                                        gemm(...)
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from math import prod

from accel.compiler.expr.linear import Linear
from accel.compiler.expr.scalar import Binary, Condition, Expr, Guarded, IterVar, Sum

Ranges = dict[IterVar, tuple[int, int]]
"""For each loop, its first iteration and the one behind its last."""


def hoist(expr: Expr) -> tuple[Expr, tuple[Condition, ...]]:
    """A sum without the guards of its factors, and the conditions under which something is added to it."""
    if isinstance(expr, Sum):
        body, conditions = hoist(expr.body)
        return Sum(body, expr.axes), conditions
    if isinstance(expr, Guarded) and expr.otherwise == 0:
        value, conditions = hoist(expr.value)
        return value, (*expr.conditions, *conditions)
    if isinstance(expr, Binary) and expr.op == "*":
        (a, of_a), (b, of_b) = hoist(expr.a), hoist(expr.b)
        return Binary("*", a, b), (*of_a, *of_b)
    return expr, ()


def boxes(ranges: Ranges, margins: Sequence[Linear]) -> list[Ranges]:
    """The parts of a box in which no margin is negative, as few boxes as that is easily done in.

    Args:
        ranges: of the loops.
        margins: in terms of the loops' variables.
    """
    if any(behind <= first for first, behind in ranges.values()):
        return []
    open_ones = []
    for form in margins:
        margin = _without_fixed(form, ranges)
        low, high = _bounds(margin, ranges)
        if high < 0:
            return []
        if low < 0:
            open_ones.append(margin)
    if not open_ones:
        return [ranges]
    alone = [margin for margin in open_ones if len(margin.terms) == 1]
    if alone:
        return boxes(_tightened(ranges, alone), open_ones)
    mixed = [v for margin in open_ones for v, _ in margin.terms if isinstance(v, IterVar)]
    var = min(mixed, key=lambda v: ranges[v][1] - ranges[v][0])
    return _run_through(var, ranges, open_ones)


def _run_through(var: IterVar, ranges: Ranges, margins: Sequence[Linear]) -> list[Ranges]:
    """The boxes of one iteration after the other; those that are alike are taken together."""
    found: list[Ranges] = []
    before: list[Ranges] = []
    for value in range(*ranges[var]):
        here = boxes({**ranges, var: (value, value + 1)}, margins)
        if [{**r, var: (0, 0)} for r in here] == [{**r, var: (0, 0)} for r in before] != []:
            for r in before:
                r[var] = (r[var][0], value + 1)
            continue
        found += here
        before = here
    return found


def _without_fixed(margin: Linear, ranges: Ranges) -> Linear:
    """A margin with variables put in that have one value left."""
    constant, terms = margin
    kept = []
    for v, factor in terms:
        assert isinstance(v, IterVar)
        first, behind = ranges[v]
        if behind - first == 1:
            constant += factor * first
        else:
            kept.append((v, factor))
    return Linear(constant, tuple(kept))


def _bounds(margin: Linear, ranges: Ranges) -> tuple[int, int]:
    low = high = margin.constant
    for v, factor in margin.terms:
        assert isinstance(v, IterVar)
        first, behind = ranges[v]
        ends = (factor * first, factor * (behind - 1))
        low += min(ends)
        high += max(ends)
    return low, high


def _tightened(ranges: Ranges, margins: Sequence[Linear]) -> Ranges:
    """The ranges in which margins of one variable each are not negative."""
    result = dict(ranges)
    for margin in margins:
        ((v, factor),) = margin.terms
        assert isinstance(v, IterVar)
        first, behind = result[v]
        if factor > 0:
            first = max(first, -(margin.constant // factor))
        else:
            behind = min(behind, margin.constant // -factor + 1)
        result[v] = (first, max(first, behind))
    return result


def alike(parts: Sequence[Ranges], most: int) -> list[tuple[tuple[int, ...], list[Ranges]]]:
    """Boxes in few groups that are equally long along two loops each, so that only the others differ.

    Args:
        parts: boxes over the same loops.
        most: iterations that the other loops of all boxes may have together.

    Returns:
        For each group the positions of its two loops and its boxes; nothing if there are no such groups.
    """
    sizes = [[behind - first for first, behind in part.values()] for part in parts]
    best: tuple[int, int, tuple[int, int]] | None = None
    for pair in combinations(range(len(sizes[0])), 2):
        groups = len({tuple(size[n] for n in pair) for size in sizes})
        others = sum(prod(size) // prod(size[n] for n in pair) for size in sizes)
        if others <= most and (best is None or (groups, others) < best[:2]):
            best = groups, others, pair
    if best is None:
        return []
    pair = best[2]
    found: dict[tuple[int, ...], list[Ranges]] = {}
    for part, size in zip(parts, sizes, strict=True):
        found.setdefault(tuple(size[n] for n in pair), []).append(part)
    return [(pair, group) for group in found.values()]


# --- the first step of each sum -----------------------------------------------------------------------


def first_steps(
    ranges: Ranges, margins: Sequence[Linear], wanted: Sequence[Ranges]
) -> tuple[list[Ranges], list[Ranges]]:
    """The part of a box in which no margin is negative, the first step of some sums apart from all others.

    Steps that are there for many sums are taken first, so that there are few boxes.

    Args:
        ranges: of the loops.
        margins: in terms of the loops' variables.
        wanted: disjoint boxes over those loops that run over different sums: the sums whose first steps are
            looked for. All other loops run over the steps of a sum.

    Returns:
        Boxes in which each sum that is wanted, and has any step, has exactly one; and all the rest.
    """
    sums = [v for v in ranges if wanted and v in wanted[0]]
    steps = [v for v in ranges if v not in sums]
    corners = {tuple(part[v][0] for v in steps): None for part in boxes(ranges, margins)}
    points = [{v: (n, n + 1) for v, n in zip(steps, corner, strict=True)} for corner in corners]
    there = [boxes({**ranges, **point}, margins) for point in points]
    firsts: list[Ranges] = []
    rest: list[Ranges] = []
    others: list[Ranges] = [{v: ranges[v] for v in steps}]
    left = list(wanted)
    for number in sorted(range(len(points)), key=lambda n: -sum(map(_size, there[n]))):
        taken = [
            {**part, **common}
            for box in left
            for part in there[number]
            if (common := _common({v: part[v] for v in sums}, box)) is not None
        ]
        if taken:
            firsts += taken
            left = _without(left, [{v: part[v] for v in sums} for part in taken])
            others = _without(others, [points[number]])
            rest += _without(there[number], taken)
    for part in others:
        rest += boxes({**ranges, **part}, margins)
    return firsts, rest


def _size(box: Ranges) -> int:
    return prod(behind - first for first, behind in box.values())


def _common(a: Ranges, b: Ranges) -> Ranges | None:
    """What two boxes over the same loops share, if anything."""
    found = {v: (max(a[v][0], b[v][0]), min(a[v][1], b[v][1])) for v in a}
    return found if all(first < behind for first, behind in found.values()) else None


def _without(parts: Iterable[Ranges], cuts: Sequence[Ranges]) -> list[Ranges]:
    """Boxes less others over the same loops."""
    found = list(parts)
    for cut in cuts:
        found = [piece for part in found for piece in _around(part, cut)]
    return found


def _around(part: Ranges, cut: Ranges) -> Iterator[Ranges]:
    """What of a box is outside of another one."""
    common = _common(part, cut)
    if common is None:
        yield part
        return
    inside = dict(part)
    for v, (first, behind) in common.items():
        for piece in ((inside[v][0], first), (behind, inside[v][1])):
            if piece[0] < piece[1]:
                yield {**inside, v: piece}
        inside[v] = (first, behind)
