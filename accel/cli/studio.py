"""``accel studio``: a local page to change a run and see the effect."""

import webbrowser
from pathlib import Path

import click

from accel.studio.worker_supervisor import DEFAULT_SECONDS


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on.  [default: any free one]"
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    default=DEFAULT_SECONDS,
    show_default=True,
    help="Timeout of one picture in seconds.",
)
@click.option("--no-browser", is_flag=True, help="Print the address only, and open no browser.")
def studio(files: tuple[Path, ...], port: int, seconds: float, no_browser: bool) -> None:
    """Change a run on a local page, and see the effect.

    The page shows a workload, a machine and a schedule. It is served to this computer only, at an address
    that is valid for one browser. FILES are networks (.onnx, .tflite, .accel) and programs (.accel, .s). The
    page can open further files. Ctrl-C ends the server.

    \b
    Example:
      accel studio
      accel studio model.onnx
      accel studio --port 8741 --no-browser
    """
    from accel.studio.studio_server import serve  # noqa: PLC0415  # needs an extra

    def told(address: str) -> None:
        click.echo(f"open {address}")
        if not no_browser:
            webbrowser.open(address)

    serve(port, told, files, seconds=seconds)
