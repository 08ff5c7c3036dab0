"""Requests that the studio accepts, and its responses."""

import base64
import json
import logging
import socket
import struct
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from accel.base.errors import AccelError
from accel.studio.access_control import HEADERS, LOOPBACK, AccessControl
from accel.studio.studio_files import StudioFiles
from accel.studio.studio_server import MAX_STATE_BYTES, listening, studio
from accel.studio.worker_supervisor import Superseded
from tests.studio.asking import Answer, Browser

PORT = 8741
HERE = f"http://127.0.0.1:{PORT}"
STATE = {"workload": "gemm", "parameters": {"M": 8, "N": 8, "K": 8}}


class Echo:
    """Replaces the worker processes: returns the question as the answer."""

    error: AccelError | None = None

    def ask(self, question: bytes) -> bytes:
        if self.error is not None:
            raise self.error
        return question


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def access() -> AccessControl:
    return AccessControl(port=PORT)


@pytest.fixture
def files() -> Iterator[StudioFiles]:
    with StudioFiles() as found:
        yield found


@pytest.fixture
def new_browser(echo: Echo, access: AccessControl, files: StudioFiles) -> Browser:
    """A browser that has not opened the printed address."""
    return Browser(app=studio(echo, access, files), host=f"127.0.0.1:{PORT}")  # type: ignore[arg-type]


@pytest.fixture
def admitted(new_browser: Browser, access: AccessControl) -> Browser:
    """A browser that has."""
    assert new_browser.get(f"/?token={access.token}").status == 303
    return new_browser


def post(browser: Browser, data: Any = STATE, **headers: str) -> Answer:
    own = {"origin": HERE, "content-type": "application/json"}
    return browser.ask("POST", "/view", json.dumps(data).encode(), own | headers)


# --- the token and the cookie ----------------------------------------------------------------------


def test_the_token_becomes_a_cookie_and_leaves_the_address(
    new_browser: Browser, access: AccessControl
) -> None:
    token = access.token
    assert token is not None
    assert new_browser.get("/").status == 401
    assert new_browser.get("/?token=guessed").status == 401
    entered = new_browser.get(f"/?token={token}")
    assert (entered.status, entered.headers["location"]) == (303, "/")
    words = {word.strip().lower() for word in entered.headers["set-cookie"].split(";")[1:]}
    assert words == {"httponly", "samesite=strict", "path=/"}
    assert new_browser.get("/").status == 200
    assert new_browser.get(f"/?token={token}").status == 303, (
        "a browser with the cookie may use the address again"
    )


def test_a_token_admits_one_browser(admitted: Browser, access: AccessControl) -> None:
    assert access.token is None
    admitted.cookies.clear()
    for token in ("None", "", access.cookie):
        assert admitted.get(f"/?token={token}").status == 401


@pytest.mark.parametrize(
    "path", ["/", "/studio.js", "/accel.js", "/front.js", "/studio.css", "/form", "/exploration?name=space"]
)
def test_nothing_is_shown_without_a_cookie(path: str, new_browser: Browser, access: AccessControl) -> None:
    assert new_browser.get(path).status == 401
    assert post(new_browser).status == 401
    new_browser.cookies[access.name] = "guessed"
    assert new_browser.get(path).status == 401
    assert post(new_browser).status == 401


# --- other hosts, other sites ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "localhost:80", f"127.0.0.1.evil.example:{PORT}"],
)
def test_rebound_names_are_refused(host: str, admitted: Browser, access: AccessControl) -> None:
    """A host name that resolves to this server is refused, whatever the browser sends with it."""
    for path in ("/", "/form", f"/?token={access.token}"):
        assert admitted.get(path, host=host).status == 421
    assert post(admitted, host=host, origin=f"http://{host}").status == 421


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "https://127.0.0.1:8741",
        "http://127.0.0.1:8742",
        "",
        "http://127.0.0.1",
    ],
)
def test_posts_of_other_sites_are_refused(origin: str, admitted: Browser) -> None:
    assert post(admitted, origin=origin).status == 403


def test_posts_need_an_origin(admitted: Browser) -> None:
    assert admitted.ask("POST", "/view", b"{}", {"content-type": "application/json"}).status == 403
    assert post(admitted, **{"sec-fetch-site": "cross-site"}).status == 403
    assert post(admitted, **{"sec-fetch-site": "same-origin"}).status == 200
    assert admitted.get("/accel.js", sec_fetch_site="cross-site").status == 403
    assert admitted.get("/", sec_fetch_site="cross-site", sec_fetch_mode="navigate").status == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_posts_without_preflight_are_refused(kind: str, admitted: Browser) -> None:
    """Forms and scripts of other sites can send these types without a preflight request."""
    assert post(admitted, **{"content-type": kind}).status == 415


def test_preflight_requests_are_refused(admitted: Browser) -> None:
    asked = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    answer = admitted.ask("OPTIONS", "/view", headers=asked)
    assert answer.status in (403, 405)
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_every_response_has_the_security_headers(admitted: Browser) -> None:
    answers = [admitted.get("/"), admitted.get("/nothing"), post(admitted), post(admitted, origin="null")]
    for answer in answers:
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert HEADERS["content-security-policy"].startswith("default-src 'self';")


# --- responses ---------------------------------------------------------------------------------


def test_states_are_passed_to_the_worker_as_a_line(admitted: Browser) -> None:
    headers = {"origin": HERE, "content-type": "application/json; charset=utf-8"}
    answer = admitted.ask("POST", "/view", json.dumps(STATE, indent=2).encode(), headers)
    assert answer.json() == {"ask": "view", "state": STATE, "files": {}}
    assert b"\n" not in answer.content


def test_other_posts_are_refused(admitted: Browser) -> None:
    headers = {"origin": HERE, "content-type": "application/json"}
    assert admitted.ask("POST", "/view", b"{", headers).status == 400
    assert admitted.ask("POST", "/view", b"[" * 100_000, headers).status == 400
    assert admitted.ask("POST", "/view", b" " * (MAX_STATE_BYTES + 1), headers).status == 413


def test_files_are_uploaded(admitted: Browser, files: StudioFiles) -> None:
    headers = {"origin": HERE, "content-type": "application/json"}

    def upload(name: object, content: object) -> Answer:
        return admitted.ask("POST", "/file", json.dumps({"name": name, "content": content}).encode(), headers)

    answer = upload("a.s", base64.b64encode(b"FINISH").decode())
    assert answer.json() == {"file": files.names[0], "files": files.names}
    assert Path(files.paths()[files.names[0]]).read_bytes() == b"FINISH"
    assert admitted.get("/form").json()["files"] == files.names
    assert upload("a.s", "no base64!").status == 400
    assert upload(3, "").status == 400
    assert admitted.ask("POST", "/file", b"[]", headers).status == 400
    assert "is neither a network nor a program" in upload("a.py", "").json()["error"]["message"]
    assert admitted.ask("POST", "/file", b"{}", headers | {"origin": "null"}).status == 403


def test_an_exploration_is_read_again_with_each_request(
    echo: Echo, access: AccessControl, tmp_path: Path
) -> None:
    path = tmp_path / "space.points.json"
    path.write_text('{"exploration": 1, "points": []}')
    with StudioFiles((tmp_path,)) as files:
        browser = Browser(app=studio(echo, access, files), host=f"127.0.0.1:{PORT}")
        browser.get(f"/?token={access.token}")
        assert browser.get("/form").json()["explorations"] == ["space"]
        assert browser.get("/exploration?name=space").json()["points"] == []
        path.write_text('{"exploration": 1, "points": [1]}')
        assert browser.get("/exploration?name=space").json()["points"] == [1]
        path.write_text("{")
        assert "is not JSON" in browser.get("/exploration?name=space").json()["error"]["message"]
        for name in ("../space", str(path), ""):
            error = browser.get(f"/exploration?name={name}").json()["error"]
            assert error["message"].startswith(f"{name!r} is not an exploration of the studio; ")


def test_superseded_requests_have_their_own_status(admitted: Browser, echo: Echo) -> None:
    echo.error = Superseded("a newer state has come")
    assert post(admitted).status == 409
    echo.error = AccelError("no")
    assert post(admitted).json() == {"error": {"kind": "AccelError", "message": "no"}}


def test_it_listens_on_the_loopback_interface_only() -> None:
    with listening(0) as opened:
        assert opened.getsockname()[0] == LOOPBACK
        opened.listen()
        with pytest.raises(AccelError, match=r"port \d+ cannot be used: .*; give another one, or 0"):
            listening(opened.getsockname()[1])


def raw(access: AccessControl, text: str) -> str:
    """Send bytes to a socket, and return the first line of the response."""
    with socket.create_connection((LOOPBACK, access.port), timeout=10) as made:
        made.sendall(text.replace("\n", "\r\n").encode())
        return made.recv(200).decode().splitlines()[0]


def test_access_control_on_a_socket(served: AccessControl) -> None:
    assert raw(served, "GET / HTTP/1.1\nHost: evil.example\n\n").split()[1] == "421"
    assert raw(served, f"GET / HTTP/1.1\nHost: {served.hosts[0]}\n\n").split()[1] == "401"
    two = f"Host: {served.hosts[0]}\nHost: evil.example\n"
    assert raw(served, f"GET / HTTP/1.1\n{two}\n").split()[1] in ("400", "421")
    assert raw(served, "GET / HTTP/1.0\n\n").split()[1] in ("400", "421")
    cookie = f"Host: {served.hosts[0]}\nCookie: {served.name}={served.cookie}\n"
    assert raw(served, f"GET /form HTTP/1.1\n{cookie}\n").split()[1] == "200"
    assert raw(served, f"GET /../../etc/passwd HTTP/1.1\n{cookie}\n").split()[1] == "404"
    assert raw(served, f"POST /view HTTP/1.1\n{cookie}Content-Length: 2\n\n{{}}").split()[1] == "403"


# --- clients that disconnect -----------------------------------------------------------------------

BODY = json.dumps(STATE)
HEAD = "POST /view HTTP/1.1\nHost: HOST\nOrigin: http://HOST\nCookie: COOKIE\n"
JSON = "Content-Type: application/json\n"
PARTS = {
    "nothing": "",
    "half a request line": "POST /vi",
    "half a header": HEAD + "Content-Le",
    "headers without their body": HEAD + JSON + "Content-Length: 500\n\n",
    "half a body": HEAD + JSON + "Content-Length: 500\n\n{",
    "half a chunk": HEAD + JSON + "Transfer-Encoding: chunked\n\n50\n{",
    "a chunk without an end": HEAD + JSON + "Transfer-Encoding: chunked\n\n1\n{\n",
    "a request": HEAD + JSON + f"Content-Length: {len(BODY)}\n\n{BODY}",
    "a refused request without its body": HEAD + "Content-Length: 500\n\n{",
    "half an upload": HEAD.replace("/view", "/file") + JSON + "Content-Length: 500\n\n{",
    "a large page": HEAD.replace("POST /view", "GET /accel.js") + "\n",
}
"""Bytes that a client sends before it disconnects."""


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_client_that_disconnects_is_no_error(
    how: str, served: AccessControl, caplog: Any, capfd: Any
) -> None:
    """The server prints nothing and continues."""
    caplog.set_level(logging.DEBUG)
    cookie = f"{served.name}={served.cookie}"
    for part, pause in product(PARTS.values(), (0, 0.05)):
        text = part.replace("HOST", served.hosts[0]).replace("COOKIE", cookie)
        with socket.create_connection((LOOPBACK, served.port), timeout=10) as made:
            made.sendall(text.replace("\n", "\r\n").encode())
            time.sleep(pause)
            if how == "reset":
                made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request = f"GET /form HTTP/1.1\nHost: {served.hosts[0]}\nCookie: {cookie}\n\n"
    assert raw(served, request).split()[1] == "200"
    time.sleep(0.2)
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == []
    assert "Traceback" not in "".join(capfd.readouterr())
