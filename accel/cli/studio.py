"""``accel studio``: a local page to change a run and see the effect."""

import webbrowser
from pathlib import Path

import click

from accel.base.errors import AccelError
from accel.studio.state_links import STATE_SUFFIX, is_link, state_of_file, state_of_link
from accel.studio.worker_supervisor import DEFAULT_SECONDS


@click.command()
@click.argument("opened", metavar="[LINK|FILE]...", nargs=-1)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="The port to listen on; 0 for any free one.  [default: 8723, or any free one if it is taken]",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    default=DEFAULT_SECONDS,
    show_default=True,
    help="Timeout of one picture in seconds.",
)
@click.option("--no-browser", is_flag=True, help="Print the address only, and open no browser.")
def studio(opened: tuple[str, ...], port: int | None, seconds: float, no_browser: bool) -> None:
    """Change a run on a local page, and see the effect.

    The page shows a workload, a machine and a schedule. It is served to this computer only, at an address
    that is valid for one browser. FILE is a network (.onnx, .tflite, .accel), a program (.accel, .s), or a
    state that the page has saved (.json). LINK is an address that the page has copied, in quotes. The page
    can open further files. Ctrl-C ends the server.

    \b
    Example:
      accel studio
      accel studio model.onnx
      accel studio 'http://127.0.0.1:8723/#eyJ3b3JrbG9hZCI6...'
      accel studio --port 8741 --no-browser
    """
    from accel.studio.studio_server import serve  # noqa: PLC0415  # needs an extra

    def told(address: str) -> None:
        click.echo(f"open {address}")
        if not no_browser:
            webbrowser.open(address)

    links = [text for text in opened if is_link(text)]
    paths = [Path(text) for text in opened if not is_link(text)]
    states = [state_of_link(text) for text in links]
    states += [state_of_file(path) for path in paths if path.suffix == STATE_SUFFIX]
    if len(states) > 1:
        raise AccelError(f"{len(states)} states are given; the page shows one")
    files = tuple(path for path in paths if path.suffix != STATE_SUFFIX)
    serve(port, told, files, seconds=seconds, start=states[0] if states else None)
