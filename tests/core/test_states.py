"""Words, columns and colours of states agree wherever they are drawn or printed."""

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from accel.core.events import UnitCycles
from accel.core.isa import Unit
from accel.core.states import State
from accel.sweeps.plots import LABELS, STALL_COLORS
from accel.views import assets
from accel.views.states import State as Viewed

ASSETS = Path(assets.__file__).parent


def test_columns_are_the_figures_of_a_unit() -> None:
    assert [state.figure for state in State] == [one.name for one in fields(UnitCycles)]
    assert Viewed is State


@pytest.mark.parametrize("state", State)
def test_sweeps_say_and_paint_what_charts_do(state: State) -> None:
    assert STALL_COLORS[state.figure] == state.color
    for unit in Unit:
        assert LABELS[f"{unit.label}_{state.figure}"] == f"{unit.label}: {state.label}"


def test_pages_have_the_same_colours() -> None:
    for name, states in (("chart.css", list(State)[:3]), ("report.css", list(State))):
        first = (ASSETS / name).read_text(encoding="utf-8").partition("@media")[0]
        found = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", first))
        assert [found[state.name.lower()] for state in states] == [state.color for state in states]


def test_the_chart_says_the_same_words() -> None:
    script = (ASSETS / "chart.js").read_text(encoding="utf-8")
    labels = [state.label for state in State]
    assert json.dumps(labels) in script
    assert json.dumps(labels[:3]) in script
