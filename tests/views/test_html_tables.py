"""Tables of pages: numbers are aligned to the right, and pages fit narrow windows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel.network.digits import INPUT, digits_network
from accel.network.network_report import NetworkReport
from accel.views.html_tables import table


@pytest.mark.parametrize(
    ("cells", "number"),
    [
        (("1,234", "", "-5"), True),
        (("12.5%", "330 KiB"), True),
        (("latency", "3"), False),
        (("1x16x16",), False),
        (("", ""), False),
    ],
)
def test_columns_of_numbers_are_aligned_to_the_right(cells: tuple[str, ...], number: bool) -> None:
    html = table(["a < b"], [(cell,) for cell in cells])
    assert html.count('class="number"') == (len(cells) + 1 if number else 0)
    assert "a &lt; b" in html


def test_a_table_without_rows_has_its_headings() -> None:
    assert table(["one", "two"], []).count("<th>") == 2


@pytest.mark.browser
def test_a_networks_report_fits_a_narrow_window(tmp_path: Path, opened: Callable[..., Any]) -> None:
    program = digits_network().build("vta-int8")
    result = program.run({INPUT: np.zeros((1, 1, 28, 28), np.float32)}, record=True)
    NetworkReport(program, result).save(tmp_path / "report.html")
    page = opened(tmp_path / "report.html", width=500)
    assert page.evaluate("document.documentElement.scrollWidth") <= 500
    assert page.input_value("[data-colour]") == "layer"
