"""Unit states have the same words, columns and colours wherever they are drawn or printed."""

import json
import re
from pathlib import Path

import pytest

from accel.base.records import field_names
from accel.core.events import UnitCycles
from accel.core.isa import Unit
from accel.core.unit_states import State
from accel.sweeps.sweep_plots import LABELS, STALL_COLORS
from accel.views import assets

ASSETS = Path(assets.__file__).parent


def test_columns_are_the_figures_of_a_unit() -> None:
    assert [state.figure for state in State] == list(field_names(UnitCycles))


@pytest.mark.parametrize("state", State)
def test_sweeps_use_the_words_and_colours_of_charts(state: State) -> None:
    assert STALL_COLORS[state.figure] == state.color
    for unit in Unit:
        assert LABELS[f"{unit.label}_{state.figure}"] == f"{unit.label}: {state.label}"


def test_pages_have_the_same_colours() -> None:
    for name, states in (("chart.css", list(State)[:3]), ("report.css", list(State))):
        first = (ASSETS / name).read_text(encoding="utf-8").partition("@media")[0]
        found = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", first))
        assert [found[state.name.lower()] for state in states] == [state.color for state in states]


def test_the_chart_says_the_same_words() -> None:
    labels = [state.label for state in State]
    assert json.dumps(labels) in assets.chart_script()
