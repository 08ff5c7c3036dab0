"""Write notebooks as pages with their text, code and stored outputs."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

EXAMPLES = Path(__file__).parents[2] / "examples"
SUFFIX = ".notebook"
"""Suffix of the written pages. It differs from ``.md`` so that nobody edits them as documents."""


def lines(notebook: dict[str, Any]) -> Iterator[str]:
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield text.replace("](../docs/", "](")
            yield ""
            continue
        yield from ("```python", text, "```", "")
        for output in cell.get("outputs", []):
            yield from _output(output)


def _output(output: dict[str, Any]) -> Iterator[str]:
    """Yield a cell's output in the richest form that a page can show."""
    data = output.get("data", {})
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            content = "".join(data[kind])
            markup = re.sub(r"<\?xml.*?\?>|<!DOCTYPE[^>]*>\s*(?=<svg)", "", content, flags=re.S)
            yield from ("`````{raw} html", markup.strip(), "`````", "")
            return
    text = "".join(output.get("text", data.get("text/plain", "")))
    if text.strip():
        yield from ("```text", text.rstrip(), "```", "")


def write(app: Sphinx) -> None:
    for path in sorted(EXAMPLES.glob("*.ipynb")):
        content = "\n".join(lines(json.loads(path.read_text(encoding="utf-8")))) + "\n"
        target = Path(app.srcdir, f"{path.stem}{SUFFIX}")
        if not target.exists() or target.read_text(encoding="utf-8") != content:
            target.write_text(content, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_source_suffix(SUFFIX, "markdown")
    app.connect("builder-inited", write, priority=100)
    return {"parallel_read_safe": True}
