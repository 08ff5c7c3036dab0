import webbrowser
from pathlib import Path

import click

from accel.base.errors import AccelError
from accel.explore.exploration_snapshot import SNAPSHOT_SUFFIX
from accel.studio.state_links import STATE_SUFFIX, is_link, state_of_file, state_of_link


def studio(opened: tuple[str, ...], port: int | None, seconds: float, no_browser: bool) -> None:
    from accel.studio.studio_server import serve  # needs an extra

    def show_address(address: str) -> None:
        click.echo(f"open {address}")
        if not no_browser:
            webbrowser.open(address)

    links = [text for text in opened if is_link(text)]
    paths = [Path(text) for text in opened if not is_link(text)]
    states = [state_of_link(text) for text in links]
    states += [state_of_file(path) for path in paths if _is_state(path)]
    if len(states) > 1:
        raise AccelError(f"{len(states)} states are given; the page shows one")
    files = tuple(path for path in paths if not _is_state(path))
    serve(port, show_address, files, seconds=seconds, start=states[0] if states else None)


def _is_state(path: Path) -> bool:
    return path.suffix == STATE_SUFFIX and not path.name.endswith(SNAPSHOT_SUFFIX)
