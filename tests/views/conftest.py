from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def opened(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Open a file as a page of a laptop's size. Messages on the console and requests are errors."""
    pages, complaints = [], []

    def visit(path: Path, *, dark: bool = False, width: int = 1366, height: int = 768) -> Any:
        page = chromium.new_page(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: asked.url.startswith("http") and complaints.append(asked.url))
        page.set_default_timeout(60_000)
        page.goto(path.as_uri())
        pages.append(page)
        return page

    yield visit
    for page in pages:
        page.close()
    assert complaints == []
