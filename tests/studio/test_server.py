"""Who may ask the studio, and what it answers."""

import base64
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accel.base.errors import AccelError
from accel.studio.files import Files
from accel.studio.server import HEADERS, LOOPBACK, MOST_BYTES, Door, listening, studio
from accel.studio.workshop import Superseded
from tests.studio.asking import Answer, Browser

PORT = 8741
HERE = f"http://127.0.0.1:{PORT}"
STATE = {"workload": "gemm", "parameters": {"M": 8, "N": 8, "K": 8}}


class Echo:
    """In place of the processes: answers with what it is asked."""

    error: AccelError | None = None

    def ask(self, question: bytes) -> bytes:
        if self.error is not None:
            raise self.error
        return question


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def door() -> Door:
    return Door(port=PORT)


@pytest.fixture
def files() -> Iterator[Files]:
    with Files() as found:
        yield found


@pytest.fixture
def stranger(echo: Echo, door: Door, files: Files) -> Browser:
    """A browser that has not opened the address."""
    return Browser(app=studio(echo, door, files), host=f"127.0.0.1:{PORT}")  # type: ignore[arg-type]


@pytest.fixture
def friend(stranger: Browser, door: Door) -> Browser:
    """A browser that has."""
    assert stranger.get(f"/?token={door.token}").status == 303
    return stranger


def post(browser: Browser, data: Any = STATE, **headers: str) -> Answer:
    own = {"origin": HERE, "content-type": "application/json"}
    return browser.ask("POST", "/view", json.dumps(data).encode(), own | headers)


# --- the token and the cookie ----------------------------------------------------------------------


def test_the_token_becomes_a_cookie_and_leaves_the_address(stranger: Browser, door: Door) -> None:
    token = door.token
    assert token is not None
    assert stranger.get("/").status == 401
    assert stranger.get("/?token=guessed").status == 401
    entered = stranger.get(f"/?token={token}")
    assert (entered.status, entered.headers["location"]) == (303, "/")
    words = {word.strip().lower() for word in entered.headers["set-cookie"].split(";")[1:]}
    assert words == {"httponly", "samesite=strict", "path=/"}
    assert stranger.get("/").status == 200
    assert stranger.get(f"/?token={token}").status == 303, "who is known may come again"


def test_a_token_is_good_for_one_browser(friend: Browser, door: Door) -> None:
    assert door.token is None
    friend.cookies.clear()
    for token in ("None", "", door.cookie):
        assert friend.get(f"/?token={token}").status == 401


@pytest.mark.parametrize("path", ["/", "/studio.js", "/accel.js", "/studio.css", "/form"])
def test_nothing_is_shown_without_a_cookie(path: str, stranger: Browser, door: Door) -> None:
    assert stranger.get(path).status == 401
    assert post(stranger).status == 401
    stranger.cookies[door.name] = "guessed"
    assert stranger.get(path).status == 401
    assert post(stranger).status == 401


# --- other names, other sites ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "localhost:80", f"127.0.0.1.evil.example:{PORT}"],
)
def test_rebound_names_are_refused(host: str, friend: Browser, door: Door) -> None:
    """A name that leads here is not this server's, whatever the browser sends along."""
    for path in ("/", "/form", f"/?token={door.token}"):
        assert friend.get(path, host=host).status == 421
    assert post(friend, host=host, origin=f"http://{host}").status == 421


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
def test_posts_of_other_sites_are_refused(origin: str, friend: Browser) -> None:
    assert post(friend, origin=origin).status == 403


def test_posts_must_say_where_they_come_from(friend: Browser) -> None:
    assert friend.ask("POST", "/view", b"{}", {"content-type": "application/json"}).status == 403
    assert post(friend, **{"sec-fetch-site": "cross-site"}).status == 403
    assert post(friend, **{"sec-fetch-site": "same-origin"}).status == 200
    assert friend.get("/accel.js", sec_fetch_site="cross-site").status == 403
    assert friend.get("/", sec_fetch_site="cross-site", sec_fetch_mode="navigate").status == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_posts_that_need_no_permission_are_refused(kind: str, friend: Browser) -> None:
    """What forms and scripts of other sites can send without being asked first."""
    assert post(friend, **{"content-type": kind}).status == 415


def test_no_site_is_ever_given_permission(friend: Browser) -> None:
    asked = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    answer = friend.ask("OPTIONS", "/view", headers=asked)
    assert answer.status in (403, 405)
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_every_answer_has_the_headers(friend: Browser) -> None:
    answers = [friend.get("/"), friend.get("/nothing"), post(friend), post(friend, origin="null")]
    for answer in answers:
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert HEADERS["content-security-policy"].startswith("default-src 'self';")


# --- what it answers -------------------------------------------------------------------------------


def test_states_are_passed_on_in_a_line(friend: Browser) -> None:
    headers = {"origin": HERE, "content-type": "application/json; charset=utf-8"}
    answer = friend.ask("POST", "/view", json.dumps(STATE, indent=2).encode(), headers)
    assert answer.json() == {"ask": "view", "state": STATE, "files": {}}
    assert b"\n" not in answer.content


def test_what_is_no_state_is_refused(friend: Browser) -> None:
    headers = {"origin": HERE, "content-type": "application/json"}
    assert friend.ask("POST", "/view", b"{", headers).status == 400
    assert friend.ask("POST", "/view", b"[" * 100_000, headers).status == 400
    assert friend.ask("POST", "/view", b" " * (MOST_BYTES + 1), headers).status == 413


def test_files_are_uploaded(friend: Browser, files: Files) -> None:
    headers = {"origin": HERE, "content-type": "application/json"}

    def upload(name: object, content: object) -> Answer:
        return friend.ask("POST", "/file", json.dumps({"name": name, "content": content}).encode(), headers)

    answer = upload("a.s", base64.b64encode(b"FINISH").decode())
    assert answer.json() == {"file": files.names[0], "files": files.names}
    assert Path(files.paths()[files.names[0]]).read_bytes() == b"FINISH"
    assert friend.get("/form").json()["files"] == files.names
    assert upload("a.s", "no base64!").status == 400
    assert upload(3, "").status == 400
    assert friend.ask("POST", "/file", b"[]", headers).status == 400
    assert "is nothing to look at" in upload("a.py", "").json()["error"]["message"]
    assert friend.ask("POST", "/file", b"{}", headers | {"origin": "null"}).status == 403


def test_what_is_overtaken_is_told(friend: Browser, echo: Echo) -> None:
    echo.error = Superseded("a newer state has come")
    assert post(friend).status == 409
    echo.error = AccelError("no")
    assert post(friend).json() == {"error": {"kind": "AccelError", "message": "no"}}


def test_it_listens_on_the_loopback_interface_only() -> None:
    with listening(0) as opened:
        assert opened.getsockname()[0] == LOOPBACK
        opened.listen()
        with pytest.raises(AccelError, match=r"port \d+ cannot be used: .*; give another one, or 0"):
            listening(opened.getsockname()[1])


def raw(door: Door, text: str) -> str:
    """The first line of the answer to a request, as bytes on a socket."""
    with socket.create_connection((LOOPBACK, door.port), timeout=10) as made:
        made.sendall(text.replace("\n", "\r\n").encode())
        return made.recv(200).decode().splitlines()[0]


def test_on_a_socket(served: Door) -> None:
    assert raw(served, "GET / HTTP/1.1\nHost: evil.example\n\n").split()[1] == "421"
    assert raw(served, f"GET / HTTP/1.1\nHost: {served.hosts[0]}\n\n").split()[1] == "401"
    two = f"Host: {served.hosts[0]}\nHost: evil.example\n"
    assert raw(served, f"GET / HTTP/1.1\n{two}\n").split()[1] in ("400", "421")
    assert raw(served, "GET / HTTP/1.0\n\n").split()[1] in ("400", "421")
    cookie = f"Host: {served.hosts[0]}\nCookie: {served.name}={served.cookie}\n"
    assert raw(served, f"GET /form HTTP/1.1\n{cookie}\n").split()[1] == "200"
    assert raw(served, f"GET /../../etc/passwd HTTP/1.1\n{cookie}\n").split()[1] == "404"
    assert raw(served, f"POST /view HTTP/1.1\n{cookie}Content-Length: 2\n\n{{}}").split()[1] == "403"
