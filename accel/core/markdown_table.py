"""Tables in Markdown, for the generated manuals."""

from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. Bars inside of cells are escaped."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(one.replace("|", "\\|") for one in line) + " |" for line in lines)
