"""Access control of the studio's server.

Any page in the user's browser can send requests to the loopback interface, also by DNS rebinding. Therefore:

- ``Host`` must be exactly this server's, and so must the ``Origin`` of a post.
- A request needs a cookie, which neither scripts nor other sites can use. The browser gets it once, for the
  token in the printed address.
- Posts must be JSON, which other sites cannot send without a preflight request, which the server refuses.
- Pages may load everything from this server only.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

try:
    from starlette.requests import Request
    from starlette.responses import Response
except ImportError:
    pass  # the extra is not installed; studio_server.serve reports it

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = "127.0.0.1"
HOST_NAMES = (LOOPBACK, "localhost")
_POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; "
    "require-trusted-types-for 'script'; trusted-types accel"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass
class AccessControl:
    """Decides which requests the server accepts.

    Attributes:
        token: of the printed address. None after it has admitted a browser.
    """

    port: int
    token: str | None = field(default_factory=lambda: secrets.token_urlsafe(32))
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(f"{name}:{self.port}" for name in HOST_NAMES)

    @property
    def origins(self) -> tuple[str, ...]:
        return tuple(f"http://{host}" for host in self.hosts)

    @property
    def name(self) -> str:
        """The port is part of it because all ports of a host share cookies."""
        return f"accel_studio_{self.port}"

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/?token={self.token}"

    def redeem(self, token: str) -> bool:
        if self.token is None or not secrets.compare_digest(token.encode(), self.token.encode()):
            return False
        self.token = None
        return True

    def accepts(self, cookie: str | None) -> bool:
        return cookie is not None and secrets.compare_digest(cookie.encode(), self.cookie.encode())

    def refusal(self, request: Request) -> tuple[int, str] | None:
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            return 421, f"this server is {' or '.join(self.hosts)}; it has no other name"
        is_start_page = request.method == "GET" and request.url.path == "/"
        is_navigation = is_start_page and request.headers.get("sec-fetch-mode") == "navigate"
        is_own = request.headers.get("sec-fetch-site", "none") in ("same-origin", "none")
        if not is_own and not is_navigation:
            return 403, "requests of other sites are refused"
        if request.method not in ("GET", "HEAD"):
            if request.headers.getlist("origin") not in [[one] for one in self.origins]:
                return 403, "posts must come from a page of this server"
            kind = request.headers.get("content-type", "")
            if kind.partition(";")[0].strip().lower() != "application/json":
                return 415, "posts must be application/json"
        if is_start_page and "token" in request.query_params:
            return None
        if not self.accepts(request.cookies.get(self.name)):
            return 401, "open the address that 'accel studio' printed; it admits one browser"
        return None


class SecurityMiddleware:
    """Refuses requests, and adds :data:`HEADERS`."""

    def __init__(self, app: ASGIApp, access: AccessControl) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", []), *headers]
            await send(message)

        refusal = self._access.refusal(Request(scope))
        app: ASGIApp = self._app if refusal is None else refusal_response(*refusal)
        await app(scope, receive, send_with_headers)


def refusal_response(status: int, reason: str) -> Response:
    return Response(f"accel studio: {reason}\n", status_code=status, media_type="text/plain")
