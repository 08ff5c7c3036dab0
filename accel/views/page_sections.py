"""Pages of sections."""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from accel.base.errors import AccelError
from accel.views.assets import asset
from accel.views.html_page import html_page

Section = tuple[str, str, str]
"""Identifier, heading (plain text) and HTML."""
_SUFFIX = ".html"


def check_page_path(what: str, path: str | Path) -> None:
    if Path(path).suffix.lower() != _SUFFIX:
        raise AccelError(f"the {what} is to be written to {str(path)!r}; the name must end in {_SUFFIX}")


def sections_data(sections: Sequence[Section]) -> list[dict[str, str]]:
    return [{"name": name, "heading": heading, "html": html} for name, heading, html in sections]


def sections_html(sections: Iterable[Section]) -> tuple[str, str]:
    """Return HTML of links to sections, and of the sections."""
    every = list(sections)
    links = " ".join(f'<a href="#{name}">{escape(heading)}</a>' for name, heading, _ in every)
    content = "\n".join(
        f'<section id="{name}"><h2>{escape(heading)}</h2>\n{html}\n</section>'
        for name, heading, html in every
    )
    return links, content


def sections_page(title: str, facts: str, sections: Sequence[Section]) -> str:
    """Return a page without scripts. ``facts`` is the line below the title."""
    links, content = sections_html(sections)
    header = f"<header>\n<h1>{escape(title)}</h1>\n<p>{escape(facts)}</p>\n<nav>{links}</nav>\n</header>"
    return html_page(title, f"{header}\n{content}", style=page_style())


def page_style() -> str:
    return asset("page.css") + asset("report.css") + asset("chart.css")
