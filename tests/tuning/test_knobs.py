"""Knobs and constraints of templates."""

import pytest

from accel import te
from accel.base.errors import ScheduleError
from accel.compiler.schedule.knobs import PointExcluded, exclusion, find_declarations, run_template


def template() -> tuple[int, tuple[str, ...]]:
    tile = te.knob("tile", [8, 16, 32])
    order = te.knob_order("order", ["y", "x"])
    te.require(tile < 32 or order[0] == "y", "wide tiles need y outside")
    return tile, order


def test_a_template_called_directly_takes_first_values() -> None:
    assert template() == (8, ("y", "x"))


def test_declarations_and_values() -> None:
    found = find_declarations(template)
    assert [(one.name, len(one.values)) for one in found.knobs] == [("tile", 3), ("order", 2)]
    assert found.count == 3
    assert run_template(template, found, {"tile": 16, "order": ("x", "y")}) == (16, ("x", "y"))


def test_constraints_exclude_points_before_the_rest_of_the_template_runs() -> None:
    built = []

    def building() -> None:
        template()
        built.append(True)

    found = find_declarations(building)
    built.clear()
    assert exclusion(building, found, {"tile": 32, "order": ("x", "y")}) == "wide tiles need y outside"
    assert exclusion(building, found, {"tile": 32, "order": ("y", "x")}) is None
    assert not built
    with pytest.raises(PointExcluded, match="wide tiles"):
        run_template(building, found, {"tile": 32, "order": ("x", "y")})


def test_values_that_depend_on_other_knobs_are_refused() -> None:
    def dependent() -> None:
        outer = te.knob("outer", [1, 2])
        te.knob("inner", list(range(outer)))

    found = find_declarations(dependent)
    with pytest.raises(
        ScheduleError, match=r"knob 'inner' has the values \[0, 1\], and \[0\] in another run"
    ):
        run_template(dependent, found, {"outer": 2})


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: te.knob("", [1]), "the name of a knob is ''"),
        (lambda: te.knob("a", []), r"the values of knob 'a' are \[\]"),
        (lambda: te.knob("a", [1, 1]), "knob 'a' has a value twice"),
        (lambda: te.knob("a", [[1]]), r"knob 'a' has the value \[1\]"),
        (lambda: te.knob_order("a", ["x"]), "at least two items"),
        (lambda: te.knob_order("a", list(range(8))), "orders 8 items; at most 7"),
    ],
)
def test_unusable_knobs(declare: object, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        declare()  # type: ignore[operator]


def test_a_template_without_knobs() -> None:
    with pytest.raises(ScheduleError, match="the template declares no knobs"):
        find_declarations(lambda: None)
