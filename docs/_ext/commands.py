"""Write the page of commands from each command's own help."""

from collections.abc import Iterator
from pathlib import Path

import click
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

from accel.cli.app import app as commands

_WIDTH = 100


def pages(command: click.Command, path: str, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    """Yield the name and help of a command and of its subcommands, in order."""
    name = path.rpartition(" ")[2]
    context = click.Context(command, info_name=name, parent=parent, max_content_width=_WIDTH)
    context.terminal_width = _WIDTH
    yield path, command.get_help(context)
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from pages(inner, f"{path} {name}", context)


def write(app: Sphinx) -> None:
    parts = ["Commands\n========\n\nWhat ``--help`` says.\n"]
    for path, text in pages(commands, "accel", None):
        lines = "".join(f"   {line}".rstrip() + "\n" for line in text.splitlines())
        parts.append(f"\n{path}\n{'-' * len(path)}\n\n.. code-block:: text\n\n{lines}")
    target = Path(app.srcdir, "commands.rst")
    content = "".join(parts)
    if not target.exists() or target.read_text(encoding="utf-8") != content:
        target.write_text(content, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write)
    app.add_lexer("asm", TextLexer)  # private, no other extension uses it
    return {"parallel_read_safe": True}
