from collections.abc import Iterator
from pathlib import Path

import pytest

from accel.formats.onnx_export import export_onnx
from accel.network.digits import MODEL
from accel.studio.access_control import AccessControl
from accel.studio.studio_files import StudioFiles
from accel.studio.studio_server import serving
from accel.studio.worker_supervisor import WorkerSupervisor
from tests.network.networks import divided_network


@pytest.fixture(scope="session")
def workers() -> Iterator[WorkerSupervisor]:
    with WorkerSupervisor(seconds=60) as found:
        yield found


@pytest.fixture(scope="session")
def divided(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two programs, with the host in between."""
    path = tmp_path_factory.mktemp("models") / "divided.onnx"
    path.write_bytes(export_onnx(divided_network()))
    return path


@pytest.fixture
def served(workers: WorkerSupervisor, divided: Path) -> Iterator[AccessControl]:
    """A server on a free port, with two networks."""
    with StudioFiles((MODEL, divided)) as files, serving(workers, files) as access:
        yield access
