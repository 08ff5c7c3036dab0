"""Pages of sections: a heading, links to the sections, and these, with nothing fetched from elsewhere."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from accel.base.errors import AccelError
from accel.views.assets import asset
from accel.views.timeline import PAGE_HEAD

_SUFFIX = ".html"
_PAGE = Template(
    PAGE_HEAD
    + """<header>
<h1>$title</h1>
<p>$facts</p>
<nav>$links</nav>
</header>
$sections
</body>
</html>
"""
)


def check_page_path(what: str, path: str | Path) -> None:
    """Refuse a file whose name does not say what to write.

    Args:
        what: is to be written to it.
        path: its path.

    Raises:
        AccelError: it ends otherwise.
    """
    if Path(path).suffix.lower() != _SUFFIX:
        raise AccelError(f"the {what} is to be written to {str(path)!r}; the name must end in {_SUFFIX}")


def sections_data(sections: Sequence[tuple[str, str, str]]) -> list[dict[str, str]]:
    """Sections as a view has them, which can be JSON.

    Args:
        sections: as of :func:`page_of`.
    """
    return [{"name": name, "heading": heading, "html": html} for name, heading, html in sections]


def page_of(title: str, facts: str, sections: Sequence[tuple[str, str, str]]) -> str:
    """A page as HTML.

    Args:
        title, facts: as plain text.
        sections: of each its name, its heading as plain text, and its HTML.
    """
    return _PAGE.substitute(
        title=escape(title),
        facts=escape(facts),
        style=asset("page.css") + asset("report.css") + asset("chart.css"),
        links=" ".join(f'<a href="#{name}">{escape(heading)}</a>' for name, heading, _ in sections),
        sections="\n".join(
            f'<section id="{name}"><h2>{escape(heading)}</h2>\n{content}\n</section>'
            for name, heading, content in sections
        ),
    )
