"""Only a page's own style sheet and script have an effect, and pages load no other file."""

import base64
import hashlib
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel.network.digits import INPUT, digits_network
from accel.network.network_report import NetworkReport
from accel.views import Comparison, Report, SavedRun, Timeline
from accel.views.html_page import content_policy, html_page
from tests.views.runs import result


class Page(HTMLParser):
    """The policy, the inline styles and scripts, and the attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.policies: list[str] = []
        self.attributes: set[str] = set()
        self.tags: set[str] = set()
        self.inline: dict[str, list[str]] = {"style": [], "script": []}
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.add(tag)
        self.attributes |= set(values)
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policies.append(values["content"] or "")
        is_data = values.get("type") == "text/plain"
        self._inside = tag if tag in self.inline and not is_data else ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.inline[self._inside].append(data)


def network_report() -> str:
    program = digits_network().build("vta-int8")
    return NetworkReport(
        program, program.run({INPUT: np.zeros((1, 1, 28, 28), np.float32)}, record=True)
    ).html()


PAGES: dict[str, Callable[[], str]] = {
    "timeline": lambda: Timeline(result())._content(".html").decode(),
    "report": lambda: Report(result())._content(".html").decode(),
    "network report": network_report,
    "comparison": lambda: Comparison(SavedRun.of(result()), SavedRun.of(result(8, 8, 8))).html(),
}


@pytest.mark.parametrize("name", PAGES)
def test_every_page_has_a_policy_that_permits_only_its_own_script_and_style(name: str) -> None:
    page = Page(PAGES[name]())
    (policy,) = page.policies
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert "unsafe" not in policy
    for tag, texts in page.inline.items():
        hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
        assert rules[f"{tag}-src"].split() == ([f"'sha256-{one}'" for one in hashes] or ["'none'"])
        assert len(texts) <= 1
    assert page.inline["style"]
    assert not [one for one in page.attributes if one == "style" or one.startswith("on")]
    assert not page.attributes & {"src", "srcset", "action", "formaction", "xlink:href"}
    assert not page.tags & {"link", "iframe", "object", "embed", "base", "form", "img"}


def test_a_page_without_a_script_permits_none() -> None:
    assert "script-src 'none'" in content_policy("", "")
    assert "<script" not in html_page("a", "b", style="")


def test_titles_are_escaped() -> None:
    assert "<title>&lt;b&gt;</title>" in html_page("<b>", "", style="")


SMUGGLED = (
    "<script>document.title += ' by a script'</script>",
    "<svg onload=\"document.title += ' by an event'\"></svg>",
    "<img src=x onerror=\"document.title += ' by an error'\">",
    '<iframe srcdoc="<script>parent.document.title += &quot; by a frame&quot;</script>"></iframe>',
)


@pytest.mark.browser
def test_a_browser_does_not_run_smuggled_scripts(tmp_path: Path, chromium: Any) -> None:
    """The page itself still works: its chart is drawn."""
    path = tmp_path / "report.html"
    Report(result()).save(path)
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace('<main id="view">', "".join(SMUGGLED) + '<main id="view">'), encoding="utf-8"
    )
    page = chromium.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("g.slice")
    page.wait_for_timeout(100)
    assert " by a" not in page.title()
    page.close()
