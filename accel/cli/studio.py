"""``accel studio``: a page to change one thing and look."""

import webbrowser
from pathlib import Path

import click

from accel.studio.workshop import SECONDS


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Where to listen; any free port if not given."
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    default=SECONDS,
    show_default=True,
    help="How long one picture may take, before it is given up.",
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def studio(files: tuple[Path, ...], port: int, seconds: float, no_browser: bool) -> None:
    """Change one thing on a local page, and see what it does.

    A workload, a machine or a schedule, on a page that is served to this computer only, at an address that
    is good for one browser. FILES are networks (.onnx, .tflite, .accel) and programs (.accel, .s) to look at;
    the page takes more. Ctrl-C ends it.

    \b
    Example:
      accel studio
      accel studio model.onnx
      accel studio --port 8741 --no-browser
    """
    from accel.studio.server import serve  # noqa: PLC0415  # needs an extra

    def told(address: str) -> None:
        click.echo(f"open {address}")
        if not no_browser:
            webbrowser.open(address)

    serve(port, told, files, seconds=seconds)
