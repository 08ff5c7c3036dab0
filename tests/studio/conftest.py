"""A studio that serves, with the processes that work for it."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from accel.formats.onnx_export import export_onnx
from accel.network.digits import MODEL
from accel.studio.files import Files
from accel.studio.server import Door, listening, studio
from accel.studio.workshop import Workshop
from tests.network.networks import divided_network


@pytest.fixture(scope="session")
def workshop() -> Iterator[Workshop]:
    """Processes that work."""
    with Workshop(seconds=60) as found:
        yield found


@pytest.fixture(scope="session")
def divided(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two programs, with the host in between."""
    path = tmp_path_factory.mktemp("models") / "divided.onnx"
    path.write_bytes(export_onnx(divided_network()))
    return path


@pytest.fixture
def served(workshop: Workshop, divided: Path) -> Iterator[Door]:
    """A server on a free port, which has two networks to look at."""
    import uvicorn  # noqa: PLC0415  # as the studio does

    with Files((MODEL, divided)) as files, listening(0) as opened:
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
