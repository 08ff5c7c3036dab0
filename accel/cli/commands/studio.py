import click

from accel.cli.command_groups import runs
from accel.studio.worker_supervisor import DEFAULT_SECONDS


@click.command()
@click.argument("opened", metavar="[LINK|FILE|FOLDER]...", nargs=-1)
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
@runs("accel.cli.studio:studio")
def studio() -> None:
    """Change a run on a local page, and see the effect.

    The page shows a workload, a machine and a schedule. It is served to this computer only, at an address
    that is valid for one browser. FILE is a network (.onnx, .tflite, .accel), a program (.accel, .s), or a
    state that the page has saved (.json). FOLDER is that of a running or finished 'accel explore'. LINK is an
    address that the page has copied, in quotes. The page can open further files. Ctrl-C ends the server.

    \b
    Example:
      accel studio
      accel studio model.onnx
      accel studio ecp5-resnet/
      accel studio 'http://127.0.0.1:8723/#eyJ3b3JrbG9hZCI6...'
      accel studio --port 8741 --no-browser
    """
