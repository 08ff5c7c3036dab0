"""Model files of any format."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from accel.base.arguments import check_path
from accel.base.errors import GraphError

MAX_FILE_BYTES = (1 << 31) - 1
"""The limit of protobuf and flat buffers."""

T = TypeVar("T")


def read_model_file(path: str | os.PathLike[str], read: Callable[[bytes, Path], T]) -> T:
    """Let ``read`` parse a file's content, given the file's folder."""
    place = check_path("model", path)
    try:
        size = place.stat().st_size
        if size > MAX_FILE_BYTES:
            raise GraphError(f"{str(place)!r} has {size} bytes; a model has up to {MAX_FILE_BYTES}")
        content = place.read_bytes()
    except OSError as error:
        raise GraphError(f"{str(place)!r} cannot be read: {error.strerror}") from None
    try:
        return read(content, place.parent)
    except GraphError as error:
        raise GraphError(f"{str(place)!r}: {error}") from None
