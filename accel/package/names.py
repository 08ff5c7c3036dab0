"""Names of a package's symbols."""

import re


def identifier(name: str) -> str:
    """A name as a symbol of C: lower case, of letters, digits and underscores."""
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return plain if plain and not plain[0].isdigit() else f"net_{plain}".rstrip("_")
