"""C identifiers for the symbols of a package."""

import re


def identifier(name: str) -> str:
    """Return a name as a C identifier: lower-case letters, digits and underscores."""
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return plain if plain and not plain[0].isdigit() else f"net_{plain}".rstrip("_")
