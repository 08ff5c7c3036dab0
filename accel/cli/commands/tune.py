"""The group ``accel tune``."""

from collections.abc import Iterator, Mapping

import click

from accel.base.errors import nearest
from accel.cli.command_groups import Group

_TEMPLATE = "FILE.py:TEMPLATE"
"""Name of the command of templates. Users write the file and the function."""


class TuneCommands(Mapping[str, click.Command]):
    """Commands of templates and operators."""

    def __getitem__(self, name: str) -> click.Command:
        return self._commands()[_TEMPLATE if ":" in name or name.endswith(".py") else name]

    def __iter__(self) -> Iterator[str]:
        yield from self._commands()

    def __len__(self) -> int:
        return len(self._commands())

    @staticmethod
    def _commands() -> dict[str, click.Command]:
        from accel.cli.commands.tune_computations import (  # slow to import
            COMMANDS,
            template_command,
        )

        return {**COMMANDS, _TEMPLATE: template_command}


class TuneGroup(Group):
    """The group of :class:`TuneCommands`. A name with a colon is the template of the first command."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self.commands = TuneCommands()  # type: ignore[assignment]  # all are known, so none is added

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and (":" in args[0] or args[0].endswith(".py")):
            return _TEMPLATE, self.commands[_TEMPLATE], args
        if args and args[0] not in self.commands and not ctx.resilient_parsing:
            raise click.UsageError(
                f"{args[0]!r} is neither FILE.py:TEMPLATE nor an operator; {nearest(args[0], self.commands)}",
                ctx,
            )
        return super().resolve_command(ctx, args)


@click.group(cls=TuneGroup, name="tune")
def tune() -> None:
    """Search for the fastest schedule of a computation.

    The computation is a template, which is a Python function with knobs, or an operator, whose plans are the
    points. Candidates are simulated in time only. The fastest one is proven free of deadlocks and races, run
    and compared with numpy.

    \b
    Example:
      accel tune layer.py:template --machine vta --trials 64 -o best.json
      accel tune gemm -m 64 -n 64 -k 64 --shift 7 --trials 32 -o best.json
    """
