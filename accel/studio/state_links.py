"""States of the studio in links and in files.

A link has the state after ``#``: JSON in base64 with ``-`` and ``_``, without padding. A file has the JSON.
"""

import base64
import json
from pathlib import Path
from typing import Any

from accel.base.errors import AccelError
from accel.studio.studio_state import StudioState

STATE_SUFFIX = ".json"


def is_link(text: str) -> bool:
    return text.startswith(("http://", "https://", "#"))


def state_of_link(link: str) -> StudioState:
    """Return the state of a link."""
    _, _, fragment = link.partition("#")
    try:
        text = base64.urlsafe_b64decode(fragment + "=" * (-len(fragment) % 4))
        data = _parsed(text)
    except ValueError:
        raise AccelError(
            "the link has no state, or only a part of it; copy the whole address, up to its end"
        ) from None
    return StudioState.from_data(data)


def state_of_file(path: Path) -> StudioState:
    """Return the state in a file, as the button *Save* writes it."""
    try:
        data = _parsed(path.read_bytes())
    except OSError as error:
        raise AccelError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except ValueError:
        raise AccelError(f"{str(path)!r} is not a state of the studio; it must be JSON") from None
    return StudioState.from_data(data)


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise AccelError("the state is nested too deeply") from None
