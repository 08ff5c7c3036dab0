"""Requests to an application without a network: exactly the bytes of a test."""

import asyncio
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    def json(self) -> Any:
        return json.loads(self.content)


@dataclass(kw_only=True)
class Browser:
    """Sends requests to an application and stores its cookies. Redirects are not followed."""

    app: Any
    host: str
    cookies: dict[str, str] = field(default_factory=dict)

    def ask(
        self, method: str, path: str, content: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request. ``Host`` and the cookies are added to ``headers``, unless they are there."""
        own = {"host": self.host}
        if self.cookies:
            own["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = own | dict(headers or {})
        parts = urlsplit(path)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in sent.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        said: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            said.append(message)

        with ThreadPoolExecutor(1) as pool:  # in a thread of its own, where no loop runs
            pool.submit(lambda: asyncio.run(self.app(scope, receive, send))).result()
        found = {name.decode(): value.decode() for name, value in said[0]["headers"]}
        for name, morsel in SimpleCookie(found.get("set-cookie", "")).items():
            self.cookies[name] = morsel.value
        return Answer(
            status=said[0]["status"],
            headers=found,
            content=b"".join(one.get("body", b"") for one in said[1:]),
        )

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers={name.replace("_", "-"): text for name, text in headers.items()})
