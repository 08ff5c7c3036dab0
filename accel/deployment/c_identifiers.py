"""C identifiers."""

import re


def identifier(name: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return plain if plain and not plain[0].isdigit() else f"net_{plain}".rstrip("_")
