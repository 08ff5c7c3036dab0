"""The studio's server: a page, the views that it asks for, and who may ask.

It listens on the loopback interface only. Still, any page in the user's browser could send requests there,
and a name that an attacker owns could lead there (DNS rebinding). So:

- requests whose ``Host`` is not exactly this server's are refused, as are posts whose ``Origin`` is not;
- what asks must hold a cookie, which scripts cannot read and other sites' requests do not carry; the browser
  gets it once, for a token in the address that is printed, and the address is left at once;
- posts must be JSON, which other sites cannot send without being asked first, and are never allowed to;
- pages may load scripts, styles and all else from here only.

Nothing that a page sends is a path, and nothing of it is executed.
"""

from __future__ import annotations

import base64
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel.base.errors import AccelError
from accel.base.extras import not_installed
from accel.studio.assets import asset
from accel.studio.files import MOST_BYTES as MOST_FILE_BYTES
from accel.studio.files import Files
from accel.studio.form import form
from accel.studio.view import error_of
from accel.studio.workshop import SECONDS, Superseded, Workshop
from accel.views.report import module, style

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import RedirectResponse, Response
    from starlette.routing import Route

    _INSTALLED = True
except ImportError:
    _INSTALLED = False

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = "127.0.0.1"
NAMES = (LOOPBACK, "localhost")
"""Under which a browser may ask."""
MOST_BYTES = 1 << 20
"""Of a state."""
MOST_UPLOADED = MOST_FILE_BYTES * 4 // 3 + (1 << 12)
"""Of a post that holds a file."""
_POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; "
    "require-trusted-types-for 'script'; trusted-types accel"
)
ASKED = ("view", "advice")
"""What a page may ask for of a state."""
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Of every response."""


@dataclass
class Door:
    """Who may come in.

    Attributes:
        port: that is listened on.
        token: of the address that is printed; good for one browser, and None from then on.
        cookie: the value that the browser holds instead.
    """

    port: int
    token: str | None = field(default_factory=lambda: secrets.token_urlsafe(32))
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @property
    def hosts(self) -> tuple[str, ...]:
        """What ``Host`` may be."""
        return tuple(f"{name}:{self.port}" for name in NAMES)

    @property
    def origins(self) -> tuple[str, ...]:
        """What ``Origin`` may be."""
        return tuple(f"http://{host}" for host in self.hosts)

    @property
    def name(self) -> str:
        """Of the cookie: those of all ports of a host share a place."""
        return f"accel_studio_{self.port}"

    @property
    def address(self) -> str:
        """To be opened once."""
        return f"http://{LOOPBACK}:{self.port}/?token={self.token}"

    def unlock(self, token: str) -> bool:
        """Whether this is the token, which is spent then."""
        if self.token is None or not secrets.compare_digest(token.encode(), self.token.encode()):
            return False
        self.token = None
        return True

    def knows(self, cookie: str | None) -> bool:
        """Whether this is the cookie."""
        return cookie is not None and secrets.compare_digest(cookie.encode(), self.cookie.encode())

    def refusal(self, request: Request) -> tuple[int, str] | None:
        """Why a request is refused, with its status; None if it is not."""
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            return 421, f"this server is {' or '.join(self.hosts)}, and answers to no other name"
        if request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            entering = request.method == "GET" and request.url.path == "/"
            if not entering or request.headers.get("sec-fetch-mode") != "navigate":
                return 403, "other sites may not ask"
        if request.method not in ("GET", "HEAD"):
            if request.headers.getlist("origin") not in [[one] for one in self.origins]:
                return 403, "posts must come from the page of this server"
            kind = request.headers.get("content-type", "")
            if kind.partition(";")[0].strip().lower() != "application/json":
                return 415, "posts must be application/json"
        if request.method == "GET" and request.url.path == "/" and "token" in request.query_params:
            return None
        if not self.knows(request.cookies.get(self.name)):
            return 401, "open the address that 'accel studio' printed; it is good for one browser"
        return None


class Guard:
    """Refuses what :class:`Door` refuses, and puts :data:`HEADERS` on every response."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Called for each request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", []), *own]
            await send(message)

        refusal = self._door.refusal(Request(scope))
        app: ASGIApp = self._app if refusal is None else _told(*refusal)
        await app(scope, receive, with_headers)


def _told(status: int, message: str) -> Response:
    return Response(f"accel studio: {message}\n", status_code=status, media_type="text/plain")


def _json(data: Any, status: int = 200) -> Response:
    content = data if isinstance(data, bytes) else json.dumps(data).encode()
    return Response(content, status_code=status, media_type="application/json")


def studio(workshop: Workshop, door: Door, files: Files) -> ASGIApp:
    """The application.

    Args:
        workshop: makes the views.
        door: decides who may ask for them.
        files: that can be looked at.
    """
    pages: dict[str, tuple[str, str]] = {
        "/": (asset("index.html"), "text/html"),
        "/studio.css": (style() + asset("studio.css"), "text/css"),
        "/studio.js": (asset("studio.js"), "text/javascript"),
        "/accel.js": (module(), "text/javascript"),
        "/icon.svg": (asset("icon.svg"), "image/svg+xml"),
    }

    async def page(request: Request) -> Response:
        token = request.query_params.get("token")
        if token is not None and request.url.path == "/":
            return _entered(door, token, known=door.knows(request.cookies.get(door.name)))
        text, kind = pages[request.url.path]
        return Response(text, media_type=kind)

    async def offered(request: Request) -> Response:
        return _json(form() | {"files": files.names})

    async def uploaded(request: Request) -> Response:
        body = await _body(request, MOST_UPLOADED)
        if body is None:
            return _json(error_of(AccelError(f"the file is larger than {MOST_FILE_BYTES:,} bytes")), 413)
        try:
            data = json.loads(body)
            name, content = data["name"], base64.b64decode(data["content"], validate=True)
        except (ValueError, RecursionError, TypeError, KeyError):
            return _json(error_of(AccelError("a file is sent as JSON with name and content, in base64")), 400)
        if not isinstance(name, str):
            return _json(error_of(AccelError("the name of a file must be text")), 400)
        try:
            return _json({"file": files.add(name, content), "files": files.names})
        except AccelError as error:
            return _json(error_of(error))

    async def asked(request: Request) -> Response:
        body = await _body(request, MOST_BYTES)
        if body is None:
            return _json(error_of(AccelError(f"the state is larger than {MOST_BYTES:,} bytes")), 413)
        what = request.url.path.removeprefix("/")
        try:
            question = {"ask": what, "state": json.loads(body), "files": files.paths()}
            line = json.dumps(question).encode()  # in a line
        except (ValueError, RecursionError):
            return _json(error_of(AccelError("the state is no JSON")), 400)
        try:
            return _json(await run_in_threadpool(workshop.ask, line))
        except Superseded as error:
            return _json(error_of(error), 409)
        except AccelError as error:
            return _json(error_of(error))

    routes = [Route(path, page, methods=["GET"]) for path in pages]
    routes += [
        Route("/form", offered, methods=["GET"]),
        *(Route(f"/{what}", asked, methods=["POST"]) for what in ASKED),
    ]
    routes += [Route("/file", uploaded, methods=["POST"])]
    return Guard(Starlette(routes=routes), door)


def _entered(door: Door, token: str, *, known: bool) -> Response:
    """A cookie for the token; the address with the token is left."""
    response = RedirectResponse("/", status_code=303)
    if door.unlock(token):
        response.set_cookie(door.name, door.cookie, httponly=True, samesite="strict", path="/")
    elif not known:
        return _told(401, "this address has been used; start 'accel studio' again for another one")
    return response


async def _body(request: Request, most: int) -> bytes | None:
    """What is posted; None if it is too large."""
    parts, size = list[bytes](), 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            return None
        parts.append(part)
    return b"".join(parts)


def listening(port: int) -> socket.socket:
    """A socket of the loopback interface.

    Args:
        port: 0 for any that is free.

    Raises:
        AccelError: the port is taken, or must not be used.
    """
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((LOOPBACK, port))
    except OSError as error:
        found.close()
        raise AccelError(f"port {port} cannot be used: {error.strerror}; give another one, or 0") from None
    return found


@contextmanager
def serving(workshop: Workshop, files: Files, port: int = 0) -> Iterator[Door]:
    """A studio that serves from a thread until the context is left.

    Args:
        workshop: makes the views.
        files: that can be looked at.
        port: 0 for any that is free.

    Raises:
        AccelError: the port cannot be used.
    """
    with listening(port) as opened:
        door, server = _server(workshop, files, opened)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
        thread.start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.01)
            yield door
        finally:
            server.should_exit = True
            thread.join()


def serve(
    port: int,
    told: Callable[[str], None],
    paths: tuple[Path, ...] = (),
    *,
    seconds: float = SECONDS,
) -> None:
    """Serve until the user ends it.

    Args:
        port: 0 for any that is free.
        told: called with the address to open.
        paths: of networks and programs to look at.
        seconds: that an answer may take.

    Raises:
        AccelError: the port cannot be used, a file is nothing to look at, or the extra is not installed.
    """
    if not _INSTALLED:
        raise AccelError(not_installed("the studio needs starlette", "studio"))
    with Files(paths) as files, listening(port) as opened, Workshop(seconds=seconds) as workshop:
        door, server = _server(workshop, files, opened)
        told(door.address)
        server.run(sockets=[opened])


def _server(workshop: Workshop, files: Files, opened: socket.socket) -> tuple[Door, uvicorn.Server]:
    door = Door(port=opened.getsockname()[1])
    settings = uvicorn.Config(
        studio(workshop, door, files), log_level="warning", access_log=False, lifespan="off", ws="none"
    )
    return door, uvicorn.Server(settings)
