"""The studio's server.

No data of a page is used as a path or executed. See also :mod:`accel.studio.access_control`.
"""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel.base.errors import AccelError
from accel.base.optional_extras import not_installed
from accel.explore.front_page import front_asset
from accel.studio.access_control import LOOPBACK, AccessControl, SecurityMiddleware, refusal_response
from accel.studio.assets import asset
from accel.studio.form_fields import form_data
from accel.studio.studio_files import MAX_FILE_BYTES, StudioFiles
from accel.studio.studio_state import StudioState
from accel.studio.studio_view import error_data
from accel.studio.worker_supervisor import DEFAULT_SECONDS, Superseded, WorkerSupervisor
from accel.views.page_sections import page_style
from accel.views.run_report import module

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import RedirectResponse, Response
    from starlette.routing import Route

    _IS_INSTALLED = True
except ImportError:
    _IS_INSTALLED = False

if TYPE_CHECKING:
    from starlette.types import ASGIApp

DEFAULT_PORT = 8723
MAX_STATE_BYTES = 1 << 20
MAX_UPLOAD_BYTES = MAX_FILE_BYTES * 4 // 3 + (1 << 12)
"""Base64 makes a file a third longer."""
QUESTIONS = ("view", "advice", "page")
_CLIENT_CLOSED = 499


def studio(
    workers: WorkerSupervisor, access: AccessControl, files: StudioFiles, start: StudioState | None = None
) -> ASGIApp:
    """The page shows ``start`` first."""
    endpoints = _Endpoints(workers, access, files, start)
    routes = [
        *(Route(path, endpoints.page, methods=["GET"]) for path in endpoints.pages),
        Route("/form", endpoints.form, methods=["GET"]),
        Route("/exploration", endpoints.exploration, methods=["GET"]),
        *(Route(f"/{name}", endpoints.question, methods=["POST"]) for name in QUESTIONS),
        Route("/file", endpoints.upload, methods=["POST"]),
    ]
    app = Starlette(routes=routes, exception_handlers={ClientDisconnect: _disconnected})
    return SecurityMiddleware(app, access)


async def _disconnected(request: Request, error: Exception) -> Response:
    """A client that disconnects during a post is no error."""
    return Response(status_code=_CLIENT_CLOSED)


class _Endpoints:
    def __init__(
        self,
        workers: WorkerSupervisor,
        access: AccessControl,
        files: StudioFiles,
        start: StudioState | None,
    ) -> None:
        self._workers, self._access, self._files, self._start = workers, access, files, start
        self.pages: dict[str, tuple[str, str]] = {
            "/": (asset("index.html"), "text/html"),
            "/studio.css": (page_style() + front_asset("front_chart.css") + asset("studio.css"), "text/css"),
            "/front.js": (f"{front_asset('front_chart.js')}export default frontChart;\n", "text/javascript"),
            "/studio.js": (asset("studio.js"), "text/javascript"),
            "/accel.js": (module(), "text/javascript"),
            "/icon.svg": (asset("icon.svg"), "image/svg+xml"),
        }

    async def page(self, request: Request) -> Response:
        token = request.query_params.get("token")
        if token is not None and request.url.path == "/":
            return self._admit(request, token)
        text, kind = self.pages[request.url.path]
        return Response(text, media_type=kind)

    def _admit(self, request: Request, token: str) -> Response:
        access = self._access
        response = RedirectResponse("/", status_code=303)
        if access.redeem(token):
            response.set_cookie(access.name, access.cookie, httponly=True, samesite="strict", path="/")
        elif not access.accepts(request.cookies.get(access.name)):
            return refusal_response(401, "this address has been used; start 'accel studio' again for another")
        return response

    async def form(self, request: Request) -> Response:
        return _json(
            form_data()
            | {
                "files": self._files.names,
                "explorations": self._files.explorations,
                "given": None if self._start is None else self._start.to_data(),
            }
        )

    async def exploration(self, request: Request) -> Response:
        try:
            return _json(self._files.exploration(request.query_params.get("name", "")))
        except AccelError as error:
            return _json(error_data(error))

    async def upload(self, request: Request) -> Response:
        body = await _body(request, MAX_UPLOAD_BYTES)
        if body is None:
            return _error(f"the file is larger than {MAX_FILE_BYTES:,} bytes", 413)
        try:
            data = json.loads(body)
            name, content = data["name"], base64.b64decode(data["content"], validate=True)
        except (ValueError, RecursionError, TypeError, KeyError):
            return _error("the post is not a file; it must be JSON with name, and content in base64", 400)
        if not isinstance(name, str):
            return _error("the name of the file is not text; it must be text", 400)
        try:
            return _json({"file": self._files.add(name, content), "files": self._files.names})
        except AccelError as error:
            return _json(error_data(error))

    async def question(self, request: Request) -> Response:
        body = await _body(request, MAX_STATE_BYTES)
        if body is None:
            return _error(f"the state is larger than {MAX_STATE_BYTES:,} bytes", 413)
        name = request.url.path.removeprefix("/")
        try:
            question = {"ask": name, "state": json.loads(body), "files": self._files.paths()}
            line = json.dumps(question).encode()  # on one line, whatever the page sent
        except (ValueError, RecursionError):
            return _error("the state is not JSON", 400)
        try:
            return _json(await run_in_threadpool(self._workers.ask, line))
        except Superseded as error:
            return _json(error_data(error), 409)
        except AccelError as error:
            return _json(error_data(error))


def _json(data: Any, status: int = 200) -> Response:
    content = data if isinstance(data, bytes) else json.dumps(data).encode()
    return Response(content, status_code=status, media_type="application/json")


def _error(message: str, status: int) -> Response:
    return _json(error_data(AccelError(message)), status)


async def _body(request: Request, max_bytes: int) -> bytes | None:
    parts, size = list[bytes](), 0
    async for part in request.stream():
        size += len(part)
        if size > max_bytes:
            return None
        parts.append(part)
    return b"".join(parts)


def listening(port: int | None) -> socket.socket:
    """Return a socket on the loopback interface. Port 0 is any free one. None is 8723, or any free one if
    it is taken."""
    if port is None:
        try:
            return listening(DEFAULT_PORT)
        except AccelError:
            return listening(0)
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((LOOPBACK, port))
    except OSError as error:
        found.close()
        raise AccelError(f"port {port} cannot be used: {error.strerror}; give another one, or 0") from None
    return found


@contextmanager
def serving(workers: WorkerSupervisor, files: StudioFiles, port: int = 0) -> Iterator[AccessControl]:
    """Serve from a thread."""
    with listening(port) as opened:
        access, server = _server(workers, files, opened)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
        thread.start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.01)
            yield access
        finally:
            server.should_exit = True
            thread.join()


def serve(
    port: int | None,
    announce: Callable[[str], None],
    paths: tuple[Path, ...] = (),
    *,
    seconds: float = DEFAULT_SECONDS,
    start: StudioState | None = None,
) -> None:
    """Serve the studio until the user ends it.

    Args:
        announce: called with the address to open.
        start: the first state. Its file must be in ``paths``.
    """
    if not _IS_INSTALLED:
        raise AccelError(not_installed("the studio needs starlette", "studio"))
    with StudioFiles(paths) as files, listening(port) as opened, WorkerSupervisor(seconds=seconds) as workers:
        access, server = _server(workers, files, opened, start)
        announce(access.address)
        server.run(sockets=[opened])


def _server(
    workers: WorkerSupervisor, files: StudioFiles, opened: socket.socket, start: StudioState | None = None
) -> tuple[AccessControl, uvicorn.Server]:
    access = AccessControl(port=opened.getsockname()[1])
    settings = uvicorn.Config(
        studio(workers, access, files, start),
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
    )
    return access, uvicorn.Server(settings)
