"""The view in a notebook: as a widget, and in a browser."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accel.views.notebook_widget import widget, widget_module, widget_style
from accel.views.run_report import run_view
from tests.views.runs import look, result
from tests.views.test_timeline_page import count, settle


def test_the_widget_holds_the_view() -> None:
    pytest.importorskip("anywidget")
    made = widget(result())
    assert made.view == run_view(look())
    assert made.get_state()["view"]["chart"]["cycles"] == look().activity.cycles


def test_the_style_sheet_is_scoped() -> None:
    """No rule applies to the notebook's own page."""
    text = widget_style()
    assert ":root" not in text
    assert re.findall(r"(^|[ ,}])body[ ,{]", text) == []
    assert ':host(:not([data-theme="light"]))' in text
    assert widget_module().count("export ") == 1


PAGE = """<!DOCTYPE html><html><head><meta charset="utf-8"></head><body><p>a notebook</p><div id="cell"></div>
<script type="module">{script}
const traits = {data};
render({{ model: {{ get: name => traits[name], on: () => {{}} }}, el: document.getElementById("cell") }});
</script></body></html>"""


@pytest.mark.browser
def test_a_browser_draws_the_widget(tmp_path: Path, opened: Callable[..., Any]) -> None:
    data = json.dumps({"view": run_view(look()), "_style": widget_style()}).replace("</", "<\\/")
    path = tmp_path / "notebook.html"
    script = widget_module().replace("export default { render };", "")
    path.write_text(PAGE.format(script=script, data=data), encoding="utf-8")
    page = opened(path, dark=True)
    page.wait_for_selector("#cell #rows .row")
    settle(page)
    inside = "document.querySelector('#cell').shadowRoot"
    assert page.evaluate(f"{inside}.querySelectorAll('g.slice').length") == len(look().instructions)
    assert (
        page.evaluate(f"getComputedStyle({inside}.querySelector('.page')).backgroundColor")
        == "rgb(21, 25, 30)"
    )
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(21, 25, 30)"
    page.fill("#cell [data-search]", "load.wgt")
    settle(page)
    pale = f"{inside}.querySelectorAll('g.slice.pale').length"
    assert 0 < page.evaluate(pale) < len(look().instructions)
    assert count(page, "p") == 1, "the notebook's own"
