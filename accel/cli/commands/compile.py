"""The group ``accel compile``."""

from collections.abc import Iterator, Mapping

import click

from accel.cli.command_groups import Group
from accel.cli.commands.compile_onnx import compile_onnx


class CompileCommands(Mapping[str, click.Command]):
    """Commands of networks and operators, the latter imported on first use."""

    def __getitem__(self, name: str) -> click.Command:
        return compile_onnx if name == compile_onnx.name else self._operators()[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._operators()
        yield str(compile_onnx.name)

    def __len__(self) -> int:
        return len(self._operators()) + 1

    @staticmethod
    def _operators() -> dict[str, click.Command]:
        from accel.cli.commands.compile_operators import COMMANDS  # slow to import

        return COMMANDS


class CompileGroup(Group):
    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self.commands = CompileCommands()  # type: ignore[assignment]  # all are known, so none is added


@click.group(cls=CompileGroup, name="compile")
def compile_command() -> None:
    """Compile a workload or a network to a file.

    \b
    Example:
      accel compile gemm -m 1024 -n 1024 -k 1024 --shift 12 -o gemm.accel
      accel compile onnx model.onnx -o net.accel
    """
