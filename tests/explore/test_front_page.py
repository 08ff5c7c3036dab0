"""The page shows all measured points, its own files only, and the command of a chosen point."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from accel.explore import Exploration, exploration_runner, explore
from accel.explore.front_page import front_page, page_data
from accel.explore.front_picture import front_svg
from accel.explore.placement_tasks import ToolVersions
from tests.explore.spaces import small
from tests.explore.worker_functions import place_by_formula
from tests.thorough import also


@pytest.fixture(scope="module")
def found() -> Exploration:
    return explore(small(title="A <b> & c"))


def test_the_page_holds_the_data(found: Exploration) -> None:
    page = front_page(found)
    assert "<h1>A &lt;b&gt; &amp; c</h1>" in page
    (data,) = re.findall(r'<script type="text/plain" id="data">(.*?)</script>', page)
    assert json.loads(data) == page_data(found)
    points = json.loads(data)["points"]
    assert len(points) == len(found.measured) + 1  # the base machine
    assert sum(one["front"] for one in points) == len(found.front)
    assert [one["base"] for one in points] == [False] * len(found.measured) + [True]


def test_the_picture_is_repeatable(found: Exploration) -> None:
    picture = front_svg(found)
    assert picture.startswith(b"<?xml")
    assert b"Pareto front" in picture
    assert front_svg(found) == picture


def test_one_objective_is_drawn_over_the_number_of_points() -> None:
    found = explore(small(objectives=["cycles"]))
    assert len(found.front) == 1
    assert page_data(found)["x"] == "point"
    assert b"point" in front_svg(found)


def test_a_page_of_placed_machines_has_units(
    chromium: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = ToolVersions(yosys="0.1", nextpnr="0.2")
    monkeypatch.setattr(exploration_runner, "placement_tools", lambda: tools)
    monkeypatch.setattr(exploration_runner, "measure_placement", place_by_formula)
    placed = explore(small(objectives=["microseconds", "frequency"]))
    path = tmp_path / "front.html"
    path.write_text(front_page(placed), encoding="utf-8")
    page = chromium.new_page()
    page.goto(path.as_uri())
    headings = page.locator("#front th").all_text_contents()
    assert headings[:2] == ["microseconds", "frequency (MHz)"]
    assert headings.count("frequency (MHz)") == 1
    assert "lut slots (LUT4)" in headings
    assert page.locator("#chart svg > text").all_text_contents()[-2:] == ["frequency (MHz)", "microseconds"]
    first = page.locator("#front tbody tr").first.locator("td").nth(1).inner_text()
    assert float(first) == placed.best.objectives["frequency"]
    page.close()


@pytest.mark.parametrize("width", [500, also(1366)])
def test_a_chosen_point_shows_its_command(
    found: Exploration, chromium: Any, tmp_path: Path, width: int
) -> None:
    path = tmp_path / "front.html"
    path.write_text(front_page(found), encoding="utf-8")
    page = chromium.new_page(viewport={"width": width, "height": 900})
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    assert page.locator("#chart .dot").count() == len(found.measured) + 1
    assert page.locator("#chart .dot.front").count() == len(found.front)
    assert page.locator("#front tbody tr").count() == len(found.front)
    assert page.locator("#chosen pre").inner_text() == found.commands(found.best)[0]
    page.locator("#front tbody tr").last.click()
    assert page.locator("#chosen pre").inner_text() == found.commands(found.front[-1])[0]
    page.locator("#x").select_option("block_in")
    page.locator("#log").check()
    assert page.locator("#chart .dot").count() == len(found.measured) + 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert problems == []
    page.close()
