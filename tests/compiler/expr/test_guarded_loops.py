"""Guarded loops as boxes, compared with an enumeration of all iterations."""

from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel import te
from accel.compiler.expr.guarded_loops import Ranges, alike, boxes, first_steps, hoist
from accel.compiler.expr.linear_expressions import Linear
from accel.compiler.expr.scalar_expressions import Binary, Cast, Const, Guarded, IterVar, format_expr
from tests.strategies import examples

VARS = [IterVar(name, 9) for name in "abcd"]
ranges = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 5)), min_size=1, max_size=4).map(
    lambda found: {v: (first, first + size) for v, (first, size) in zip(VARS, found, strict=False)}
)
factor = st.integers(-3, 3).filter(bool)


def points(box: Ranges) -> list[tuple[int, ...]]:
    return list(product(*(range(*bounds) for bounds in box.values())))


@examples(400)
@given(st.data())
def test_boxes_hold_the_points_at_which_no_margin_is_negative(data: st.DataObject) -> None:
    """Each point is in exactly one box."""
    box = data.draw(ranges)
    variables = st.lists(st.sampled_from(list(box)), max_size=2, unique=True)
    margins = [
        Linear(data.draw(st.integers(-4, 8)), tuple((v, data.draw(factor)) for v in data.draw(variables)))
        for _ in range(data.draw(st.integers(0, 3)))
    ]
    wanted = [
        point
        for point in points(box)
        if all(
            m.constant + sum(f * dict(zip(box, point, strict=True))[v] for v, f in m.terms) >= 0  # type: ignore[index]
            for m in margins
        )
    ]
    found = [point for part in boxes(box, margins) for point in points(part)]
    assert sorted(found) == wanted


def any_margins(data: st.DataObject, box: Ranges) -> list[Linear]:
    variables = st.lists(st.sampled_from(list(box)), max_size=2, unique=True)
    return [
        Linear(data.draw(st.integers(-4, 8)), tuple((v, data.draw(factor)) for v in data.draw(variables)))
        for _ in range(data.draw(st.integers(0, 3)))
    ]


@examples(400)
@given(st.data())
def test_each_sum_has_one_first_step(data: st.DataObject) -> None:
    """Each step is in exactly one box, and only wanted sums have a first step."""
    box = data.draw(ranges)
    margins = any_margins(data, box)
    sums = data.draw(st.lists(st.sampled_from(list(box)), unique=True))
    wanted: list[Ranges] = [{v: box[v] for v in box if v in sums}]
    if sums and wanted[0][sums[0]][1] - wanted[0][sums[0]][0] > 2:  # two disjoint boxes of sums
        begin, end = wanted[0][sums[0]]
        wanted = [wanted[0] | {sums[0]: (begin, begin + 1)}, wanted[0] | {sums[0]: (end - 1, end)}]
    firsts, rest = first_steps(box, margins, wanted)
    every = sorted(point for part in boxes(box, margins) for point in points(part))
    assert sorted(point for part in [*firsts, *rest] for point in points(part)) == every

    def sum_of(point: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(n for v, n in zip(box, point, strict=True) if v in sums)

    asked = {point for part in wanted for point in points({v: part[v] for v in box if v in sums})}
    started = sorted(sum_of(point) for part in firsts for point in points(part))
    assert started == sorted({sum_of(point) for point in every} & asked)


def test_the_first_step_is_common_to_all_sums() -> None:
    """With a 3x3 kernel and padding on all sides, the centre is the common step, in one box."""
    y, x, c, dy, dx = (IterVar(name, 9) for name in ("y", "x", "c", "dy", "dx"))
    box = {y: (0, 8), x: (0, 8), c: (0, 4), dy: (0, 3), dx: (0, 3)}
    margins = [Linear(n, ((a, f), (b, f))) for a, b in ((y, dy), (x, dx)) for n, f in ((-1, 1), (8, -1))]
    firsts, rest = first_steps(box, margins, [{y: (0, 8), x: (0, 8)}])
    assert firsts == [{y: (0, 8), x: (0, 8), c: (0, 1), dy: (1, 2), dx: (1, 2)}]
    assert len(rest) <= 18


def test_a_kernel_at_the_edge_is_split_into_few_boxes() -> None:
    """A 3x3 kernel on rows 1 to 4 of many and on all columns needs three boxes across and one down."""
    y, x, dy, dx = (IterVar(name, 9) for name in ("y", "x", "dy", "dx"))
    inside = {y: (0, 4), x: (0, 8), dy: (0, 3), dx: (0, 3)}
    left = Linear(-1, ((x, 1), (dx, 1)))
    right = Linear(8, ((x, -1), (dx, -1)))
    assert boxes(inside, [left, right]) == [
        inside | {x: (1, 8), dx: (0, 1)},
        inside | {dx: (1, 2)},
        inside | {x: (0, 7), dx: (2, 3)},
    ]
    top = Linear(-1, ((y, 1), (dy, 1)))
    assert boxes(inside, [top]) == [inside | {y: (1, 4), dy: (0, 1)}, inside | {dy: (1, 3)}]
    assert boxes(inside, [Linear(-1, ())]) == []
    assert boxes(inside, [Linear(0, ())]) == [inside]


@examples(200)
@given(
    st.lists(st.lists(st.integers(1, 3), min_size=3, max_size=3), min_size=1, max_size=5), st.integers(1, 40)
)
def test_groups_are_equally_long_along_their_two_loops(sizes: list[list[int]], most: int) -> None:
    parts = [{v: (n, n + size) for n, (v, size) in enumerate(zip(VARS, one, strict=False))} for one in sizes]
    groups = alike(parts, most)
    lengths = [[b - a for a, b in part.values()] for part in parts]
    pairs = [(0, 1), (0, 2), (1, 2)]
    allowed = [p for p in pairs if sum(prod(n) // (n[p[0]] * n[p[1]]) for n in lengths) <= most]
    if not groups:
        assert not allowed
        return
    assert sorted(map(id, parts)) == sorted(id(part) for _, group in groups for part in group)
    (pair,) = {pair for pair, _ in groups}
    for _, group in groups:
        assert (
            len(
                {tuple(list(part.values())[n][1] - list(part.values())[n][0] for n in pair) for part in group}
            )
            == 1
        )
    assert len(groups) == min(len({(n[a], n[b]) for n in lengths}) for a, b in allowed)


def test_guards_of_factors_are_hoisted_out_of_sums() -> None:
    A, B = te.placeholder((8,), name="A"), te.placeholder((8,), name="B")
    k, y = te.reduce_axis((0, 3), name="k"), IterVar("y", 8)
    first, second = (Const(0), y), (y, Const(5))
    guarded = Guarded(Guarded(A[y + k], (second,)), (first,))
    body, conditions = hoist(te.sum(guarded * B[k], axis=k))
    assert format_expr(body) == "sum(A[y+k] * B[k], axis=[k])"
    assert conditions == (first, second)


@pytest.mark.parametrize(
    "wrap", [lambda e: e + 1, lambda e: Cast(e, "int8"), lambda e: Binary("max", e, Const(3))]
)
def test_unguarded_expressions_stay(wrap: object) -> None:
    A, y = te.placeholder((8,), name="A"), IterVar("y", 8)
    body = wrap(Guarded(A[y], ((y, Const(5)),)))  # type: ignore[operator]
    assert hoist(body) == (body, ())
