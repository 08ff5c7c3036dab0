"""Groups of commands."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from accel.base.errors import nearest
from accel.base.interrupts import ended_by_interrupt
from accel.cli.stdout import write


class Group(click.Group):
    """A group of commands. Without arguments it prints its help."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:  # shell completion parses incomplete commands
            write(ctx.get_help() + "\n")
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not ctx.resilient_parsing:
            raise click.UsageError(f"{args[0]!r} is not a command; {nearest(args[0], self.commands)}", ctx)
        return super().resolve_command(ctx, args)


@dataclass(frozen=True)
class Entry:
    """A command as ``module:name``, and the first sentence of its help."""

    place: str
    summary: str


def runs(place: str, *, multiplies: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that executes ``module:name``, imported only then.

    Args:
        multiplies: whether numpy multiplies large matrices. Otherwise OpenBLAS gets one thread, unless the
            user has set a number. Others wait actively, 0.1 s of processor time.
    """

    def decorate(declared: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(declared)
        def execute(*arguments: Any, **values: Any) -> Any:
            module, _, attribute = place.partition(":")
            if not multiplies:
                os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported
            with ended_by_interrupt():
                function = getattr(import_module(module), attribute)
            return function(*arguments, **values)

        return execute

    return decorate


class Commands(Mapping[str, click.Command]):
    """Commands by name, each imported on first use."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self.entries = dict(entries)
        self._imported: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._imported:
            module, _, attribute = self.entries[name].place.partition(":")
            with ended_by_interrupt():
                self._imported[name] = getattr(import_module(module), attribute)
        return self._imported[name]

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


class LazyGroup(Group):
    """A group whose help and completion import no command."""

    commands: Commands  # type: ignore[assignment]  # all are known beforehand, so none is added

    def __init__(self, *, entries: Mapping[str, Entry], **settings: object) -> None:
        super().__init__(commands=Commands(entries), **settings)  # type: ignore[arg-type]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, self.commands.entries[name].summary) for name in sorted(self.commands)]
            )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [
            CompletionItem(name, help=entry.summary)
            for name, entry in sorted(self.commands.entries.items())
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)
