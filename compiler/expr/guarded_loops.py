"""Guarded loops as boxes: instead of testing a condition, loops run over parts of their ranges.

    for y in range(8):              for dy in range(1):
        for dy in range(3):             for y in range(1, 8):
            if 0 < y+dy:                    gemm(...)
                gemm(...)           for dy in range(1, 3):
                                        for y in range(8):
                                            gemm(...)

Conditions are linear in the loops' variables.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from math import prod

from accel.compiler.expr.linear_expressions import Linear
from accel.compiler.expr.scalar_expressions import Binary, Condition, Expr, Guarded, IterVar, Sum

Ranges = dict[IterVar, tuple[int, int]]
"""For each loop, its first iteration and the one after its last."""


def hoist(expr: Expr) -> tuple[Expr, tuple[Condition, ...]]:
    """A sum without the guards of its factors, and the conditions under which a term is added."""
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
    """The parts of a box in which no margin is negative, in few boxes."""
    if any(end <= first for first, end in ranges.values()):
        return []
    undecided = []
    for form in margins:
        margin = _substitute_fixed(form, ranges)
        low, high = _bounds(margin, ranges)
        if high < 0:
            return []
        if low < 0:
            undecided.append(margin)
    if not undecided:
        return [ranges]
    alone = [margin for margin in undecided if len(margin.terms) == 1]
    if alone:
        return boxes(_restricted(ranges, alone), undecided)
    mixed = [v for margin in undecided for v, _ in margin.terms if isinstance(v, IterVar)]
    var = min(mixed, key=lambda v: ranges[v][1] - ranges[v][0])
    return _split_by_value(var, ranges, undecided)


def _split_by_value(var: IterVar, ranges: Ranges, margins: Sequence[Linear]) -> list[Ranges]:
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


def _substitute_fixed(margin: Linear, ranges: Ranges) -> Linear:
    constant, terms = margin
    kept = []
    for v, factor in terms:
        assert isinstance(v, IterVar)
        first, end = ranges[v]
        if end - first == 1:
            constant += factor * first
        else:
            kept.append((v, factor))
    return Linear(constant, tuple(kept))


def _bounds(margin: Linear, ranges: Ranges) -> tuple[int, int]:
    low = high = margin.constant
    for v, factor in margin.terms:
        assert isinstance(v, IterVar)
        first, end = ranges[v]
        ends = (factor * first, factor * (end - 1))
        low += min(ends)
        high += max(ends)
    return low, high


def _restricted(ranges: Ranges, margins: Sequence[Linear]) -> Ranges:
    result = dict(ranges)
    for margin in margins:
        ((v, factor),) = margin.terms
        assert isinstance(v, IterVar)
        first, end = result[v]
        if factor > 0:
            first = max(first, -(margin.constant // factor))
        else:
            end = min(end, margin.constant // -factor + 1)
        result[v] = (first, max(first, end))
    return result


def alike(parts: Sequence[Ranges], most: int) -> list[tuple[tuple[int, ...], list[Ranges]]]:
    """Group boxes by their lengths along two loops, chosen for few groups.

    Each group holds the positions of its two loops, and its boxes. There is none if the other loops have more
    than ``most`` iterations in total.
    """
    sizes = [[end - first for first, end in part.values()] for part in parts]
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


def first_steps(
    ranges: Ranges, margins: Sequence[Linear], wanted: Sequence[Ranges]
) -> tuple[list[Ranges], list[Ranges]]:
    """Return boxes without negative margins: those with the first step of each wanted sum, and all others.

    ``wanted`` are disjoint boxes over the loops over sums. All other loops are steps of a sum.
    """
    sums = [v for v in ranges if wanted and v in wanted[0]]
    steps = [v for v in ranges if v not in sums]
    corners = {tuple(part[v][0] for v in steps): None for part in boxes(ranges, margins)}
    points = [{v: (n, n + 1) for v, n in zip(steps, corner, strict=True)} for corner in corners]
    step_boxes = [boxes({**ranges, **point}, margins) for point in points]
    firsts: list[Ranges] = []
    rest: list[Ranges] = []
    others: list[Ranges] = [{v: ranges[v] for v in steps}]
    left = list(wanted)
    for number in sorted(range(len(points)), key=lambda n: -sum(map(_size, step_boxes[n]))):
        taken = [
            {**part, **common}
            for box in left
            for part in step_boxes[number]
            if (common := _intersection({v: part[v] for v in sums}, box)) is not None
        ]
        if taken:
            firsts += taken
            left = _without(left, [{v: part[v] for v in sums} for part in taken])
            others = _without(others, [points[number]])
            rest += _without(step_boxes[number], taken)
    for part in others:
        rest += boxes({**ranges, **part}, margins)
    return firsts, rest


def _size(box: Ranges) -> int:
    return prod(end - first for first, end in box.values())


def _intersection(a: Ranges, b: Ranges) -> Ranges | None:
    found = {v: (max(a[v][0], b[v][0]), min(a[v][1], b[v][1])) for v in a}
    return found if all(first < end for first, end in found.values()) else None


def _without(parts: Iterable[Ranges], cuts: Sequence[Ranges]) -> list[Ranges]:
    found = list(parts)
    for cut in cuts:
        found = [piece for part in found for piece in _difference(part, cut)]
    return found


def _difference(part: Ranges, cut: Ranges) -> Iterator[Ranges]:
    common = _intersection(part, cut)
    if common is None:
        yield part
        return
    inside = dict(part)
    for v, (first, end) in common.items():
        for piece in ((inside[v][0], first), (end, inside[v][1])):
            if piece[0] < piece[1]:
                yield {**inside, v: piece}
        inside[v] = (first, end)
