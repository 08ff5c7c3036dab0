"""HTML pages."""

import base64
import hashlib
from html import escape

TRUSTED_TYPES_POLICY = "accel"


def html_page(title: str, body: str, *, style: str, script: str = "", data: str = "") -> str:
    """Return a page with only its own style and script.

    ``title`` is plain text, ``body`` HTML. ``data`` must not contain ``<``.
    """
    data_element = f'<script type="text/plain" id="data">{data}</script>\n' if data else ""
    script_element = f"<script>{script}</script>\n" if script else ""
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n'
        "<head>\n"
        '<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(content_policy(style, script))}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n"
        f"<style>{style}</style>\n"
        "</head>\n"
        f"<body>\n{body}\n{data_element}{script_element}</body>\n"
        "</html>\n"
    )


def content_policy(style: str, script: str) -> str:
    """Permit one style sheet and one script, by hash."""
    rules = {
        "default-src": "'none'",
        "style-src": _hash_source(style),
        "script-src": _hash_source(script) if script else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": TRUSTED_TYPES_POLICY,
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _hash_source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
