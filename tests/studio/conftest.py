"""A studio that serves, with the processes that work for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from accel.formats.onnx_export import export_onnx
from accel.network.digits import MODEL
from accel.studio.files import Files
from accel.studio.server import Door, serving
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
    with Files((MODEL, divided)) as files, serving(workshop, files) as door:
        yield door
