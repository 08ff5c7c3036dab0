"""A studio that serves, with the processes that work for it."""

import threading
import time
from collections.abc import Iterator

import pytest

from accel.network.digits import MODEL
from accel.studio.files import Files
from accel.studio.server import Door, listening, studio
from accel.studio.workshop import Workshop


@pytest.fixture(scope="session")
def workshop() -> Iterator[Workshop]:
    """Processes that work."""
    with Workshop(seconds=60) as found:
        yield found


@pytest.fixture
def served(workshop: Workshop) -> Iterator[Door]:
    """A server on a free port, which has a network to look at."""
    import uvicorn  # noqa: PLC0415  # as the studio does

    with Files((MODEL,)) as files, listening(0) as opened:
        door = Door(port=opened.getsockname()[1])
        server = uvicorn.Server(
            uvicorn.Config(studio(workshop, door, files), log_level="error", lifespan="off", ws="none")
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield door
        server.should_exit = True
        thread.join()
