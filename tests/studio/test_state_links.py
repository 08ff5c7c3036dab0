"""States of the studio in links and in files."""

import base64
import json
import socket
from pathlib import Path

import pytest

from accel.base.errors import AccelError
from accel.studio.access_control import LOOPBACK
from accel.studio.state_links import is_link, state_of_file, state_of_link
from accel.studio.studio_server import DEFAULT_PORT, listening
from accel.studio.studio_state import StudioState

STATE = {"workload": "gemm", "parameters": {"M": 24, "N": 24, "K": 32}, "machine": "tiny"}
FRAGMENT = base64.urlsafe_b64encode(json.dumps(STATE).encode()).decode().rstrip("=")


def test_a_link_has_a_state_whatever_its_host() -> None:
    for link in (f"#{FRAGMENT}", f"http://127.0.0.1:8723/#{FRAGMENT}", f"https://elsewhere/x?y#{FRAGMENT}"):
        assert is_link(link)
        assert state_of_link(link) == StudioState.from_data(STATE)
    assert not is_link("model.onnx")


@pytest.mark.parametrize(
    "link", ["http://127.0.0.1:8723/", f"#{FRAGMENT[:-9]}", "#%%%", "#W1td", "#" + "W1" * 40_000]
)
def test_a_damaged_link_is_refused(link: str) -> None:
    with pytest.raises(AccelError):
        state_of_link(link)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[1]", b'{"workload": 3}', b"[" * 100_000])
def test_a_file_without_a_state_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_bytes(content)
    with pytest.raises(AccelError):
        state_of_file(tmp_path / "state.json")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(AccelError, match=r"missing\.json. cannot be read"):
        state_of_file(tmp_path / "missing.json")


def test_the_usual_port_is_replaced_if_it_is_taken() -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((LOOPBACK, DEFAULT_PORT))
            taken.listen()
        except OSError:
            pass  # somebody else has it already
        with listening(None) as found:
            assert found.getsockname()[1] != DEFAULT_PORT
